//! Reads the YAML settings of the rule middleware for the policy `rules`.
//!
//! ```yaml
//! compaction:
//!   enabled: true
//!   trigger_threshold: 0.60
//!   protect_last_n_turns: 5
//!   max_tool_output_chars: 500
//!   keep_tool_summary: true
//!   drop_system_after_turn: 1
//!   collapse_consecutive_assistant: true
//! ```

use std::path::Path;

use fanfold_core::{Policy, Rules};
use serde::Deserialize;

use crate::failure::{Failure, Result};
use crate::files::input;

#[derive(Debug, Deserialize)]
struct Document {
    compaction: RulesBlock,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesBlock {
    enabled: Option<bool>,
    trigger_threshold: Option<f64>,
    protect_last_n_turns: Option<usize>,
    max_tool_output_chars: Option<usize>,
    keep_tool_summary: Option<bool>,
    drop_system_after_turn: Option<usize>,
    collapse_consecutive_assistant: Option<bool>,
}

/// The policy `rules` with the settings of a file.
pub(crate) fn read(path: &Path) -> Result<Policy> {
    let name = path.display().to_string();
    let text = input::utf8(input::read_file(path)?, &name)?;
    Ok(Policy::rules_with(&parse(&text, &name)?))
}

fn parse(text: &str, name: &str) -> Result<Rules> {
    let document: Document = serde_saphyr::from_str(text).map_err(|error| {
        let message = error.to_string();
        let first = message.lines().next().unwrap_or("invalid").trim_start_matches("error: ");
        Failure::new(format!("{name}: {first}"), "the file has a block `compaction:` with seven keys")
    })?;
    let RulesBlock {
        enabled,
        trigger_threshold,
        protect_last_n_turns,
        max_tool_output_chars,
        keep_tool_summary,
        drop_system_after_turn,
        collapse_consecutive_assistant,
    } = document.compaction;
    let default = Rules::default();
    let trigger = match trigger_threshold {
        None => default.trigger,
        Some(share) if (0.0..=1.0).contains(&share) => (share * 1000.0).round() as u32,
        Some(other) => {
            let message = format!("{name}: trigger_threshold is {other}, which is not a share of the window");
            return Err(Failure::new(message, "write a number between 0 and 1, such as 0.60"));
        }
    };
    Ok(Rules {
        enabled: enabled.unwrap_or(default.enabled),
        trigger,
        protect_last_n_turns: protect_last_n_turns.unwrap_or(default.protect_last_n_turns),
        max_tool_output_chars: max_tool_output_chars.unwrap_or(default.max_tool_output_chars),
        keep_tool_summary: keep_tool_summary.unwrap_or(default.keep_tool_summary),
        // Zero would drop the instructions before they are used, so it means never.
        drop_system_after_turn: drop_system_after_turn
            .or(default.drop_system_after_turn)
            .filter(|turn| *turn > 0),
        collapse_consecutive_assistant: collapse_consecutive_assistant
            .unwrap_or(default.collapse_consecutive_assistant),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENTED: &str = "\
compaction:
  enabled: true
  trigger_threshold: 0.60    # fire at 60% of context window
  protect_last_n_turns: 5    # never touch recent turns
  max_tool_output_chars: 500 # truncate above this
  keep_tool_summary: true    # one-line summaries of collapsed tools
  drop_system_after_turn: 1  # drop system messages after turn 1
  collapse_consecutive_assistant: true
";

    #[test]
    fn documented_file_is_the_default_policy() {
        let rules = parse(DOCUMENTED, "compaction.yaml").expect("it is the documented example");
        assert_eq!(rules, Rules::default());
    }

    #[test]
    fn each_key_changes_the_rules() {
        let text = DOCUMENTED.replace("0.60", "0.5").replace(": 5 ", ": 2 ").replace("turn: 1", "turn: 0");
        let rules = parse(&text, "compaction.yaml").expect("valid");
        assert_eq!((rules.trigger, rules.protect_last_n_turns, rules.drop_system_after_turn), (500, 2, None));
        let off = parse("compaction:\n  enabled: false\n", "compaction.yaml").expect("valid");
        assert_eq!(off, Rules { enabled: false, ..Rules::default() });
    }

    #[test]
    fn invalid_files_are_refused() {
        for text in ["", "a: 1", "compaction:\n  trigger_threshold: 60\n", "compaction:\n  treshold: 1\n"] {
            assert!(parse(text, "compaction.yaml").is_err(), "{text}");
        }
    }
}

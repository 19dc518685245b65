//! The settings of the rule middleware, as its YAML stands, for the policy `rules`.
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

use anyhow::Context as _;
use fanfold_core::{Policy, Strategy};
use serde::Deserialize;

use crate::failure::Failure;

#[derive(Debug, Deserialize)]
struct Document {
    compaction: Rules,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Rules {
    enabled: bool,
    trigger_threshold: f64,
    protect_last_n_turns: usize,
    max_tool_output_chars: usize,
    keep_tool_summary: bool,
    drop_system_after_turn: Option<u32>,
    collapse_consecutive_assistant: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            enabled: true,
            trigger_threshold: 0.6,
            protect_last_n_turns: 5,
            max_tool_output_chars: 500,
            keep_tool_summary: true,
            drop_system_after_turn: Some(1),
            collapse_consecutive_assistant: true,
        }
    }
}

/// The policy `rules` with what a file says of it.
///
/// `keep_tool_summary: false` is read and changes nothing: the line is where a fold's handle stands.
pub(crate) fn read(path: &Path) -> anyhow::Result<Policy> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("{} could not be read", path.display()))?;
    Ok(parse(&text, &path.display().to_string())?)
}

fn parse(text: &str, name: &str) -> Result<Policy, Failure> {
    let document: Document = serde_saphyr::from_str(text).map_err(|error| {
        let message = error.to_string();
        let first = message.lines().next().unwrap_or("not understood");
        Failure::new(
            format!("{name}: {first}"),
            "the file has a block `compaction:`; see `fanfold help fold`",
        )
    })?;
    policy(&document.compaction).map_err(|message| {
        Failure::new(format!("{name}: {message}"), "trigger_threshold is a share such as 0.60")
    })
}

fn policy(rules: &Rules) -> Result<Policy, String> {
    let mut policy = Policy::rules();
    if !(0.0..=1.0).contains(&rules.trigger_threshold) {
        return Err(format!("trigger_threshold is {}, not a share", rules.trigger_threshold));
    }
    policy.strategy = match rules.enabled {
        true => Strategy::From((rules.trigger_threshold * 1000.0).round() as u32),
        false => Strategy::Off,
    };
    policy.tail.steps = rules.protect_last_n_turns;
    policy.long_result = rules.max_tool_output_chars;
    let is_system_kept = rules.drop_system_after_turn.is_none_or(|turn| turn == 0);
    for stage in &mut policy.stages {
        if is_system_kept {
            stage.passes.retain(|pass| pass.name != "late_system");
        }
        if !rules.collapse_consecutive_assistant {
            stage.passes.retain(|pass| pass.name != "last_of_run");
        }
    }
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AS_IT_STANDS: &str = "\
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
    fn the_file_as_it_stands_is_the_policy() {
        let policy = parse(AS_IT_STANDS, "compaction.yaml").expect("it is the documented example");
        assert_eq!(format!("{policy:?}"), format!("{:?}", Policy::rules()));
    }

    #[test]
    fn each_line_changes_something() {
        let text = AS_IT_STANDS.replace("0.60", "0.5").replace(": 5 ", ": 2 ").replace("turn: 1", "turn: 0");
        let policy = parse(&text, "compaction.yaml").expect("valid");
        assert_eq!((policy.strategy, policy.tail.steps), (Strategy::From(500), 2));
        assert!(policy.stages[0].passes.iter().all(|pass| pass.name != "late_system"));
        let off = parse("compaction:\n  enabled: false\n", "compaction.yaml").expect("valid");
        assert_eq!(off.strategy, Strategy::Off);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for text in ["", "a: 1", "compaction:\n  trigger_threshold: 60\n", "compaction:\n  treshold: 1\n"] {
            assert!(parse(text, "compaction.yaml").is_err(), "{text}");
        }
    }
}

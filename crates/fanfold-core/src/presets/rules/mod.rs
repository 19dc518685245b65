//! The policy `rules`: the rule middleware. Successful calls become a line, long outputs 10 + 5 lines; user messages
//! stay.

pub(crate) mod late_system;
pub(crate) mod collapse;
pub(crate) mod call_lines;
pub(crate) mod truncate;

use crate::fold::passes::{DROP, Pass, SQUEEZE};
use crate::fold::policy::{Digest, LateSystemReach, Policy, Reach, Stage, Tail, UserTextReach};
use crate::model::budget::Strategy;
use crate::presets::last_resort;

/// The settings of the rule middleware, by the names they have in its own file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// True if folding is enabled.
    pub enabled: bool,
    /// The size from which a view is folded, in per mille of the window (`trigger_threshold`).
    pub trigger: u32,
    /// The number of newest replies that stay unchanged.
    pub protect_last_n_turns: usize,
    /// The length above which outputs are cut to 10 + 5 lines.
    pub max_tool_output_chars: usize,
    /// True if a line describes each folded call.
    pub keep_tool_summary: bool,
    /// The number of turns after which system text becomes a marker.
    pub drop_system_after_turn: Option<usize>,
    /// True if only the last of several consecutive assistant messages is kept.
    pub collapse_consecutive_assistant: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            enabled: true,
            trigger: 600,
            protect_last_n_turns: 5,
            max_tool_output_chars: 500,
            keep_tool_summary: true,
            drop_system_after_turn: Some(1),
            collapse_consecutive_assistant: true,
        }
    }
}

impl Policy {
    /// The rule middleware with its default settings.
    pub(crate) fn rules() -> Policy {
        Policy::rules_with(&Rules::default())
    }

    /// The rule middleware.
    pub fn rules_with(rules: &Rules) -> Policy {
        let mut passes = vec![late_system::PASS, collapse::PASS, call_lines::PASS, truncate::PASS];
        if !rules.collapse_consecutive_assistant {
            passes.retain(|pass| pass.name != collapse::PASS.name);
        }
        let late_system = match rules.drop_system_after_turn {
            Some(_) => LateSystemReach::Fold,
            None => LateSystemReach::Never,
        };
        let normal = Stage::new("normal", passes);
        // User text is folded last, if no view fits otherwise.
        let last_stage = |name, passes: &[Pass], user_text| {
            let reach = Reach { user_text, ..last_resort().reach };
            Stage { name, passes: passes.to_vec(), reach, ..last_resort() }
        };
        Policy {
            strategy: if rules.enabled { Strategy::Threshold(rules.trigger) } else { Strategy::Off },
            tail: Tail { share: 0, steps: rules.protect_last_n_turns, results: 0, ceiling: 1000 },
            digest: Digest::CallLines,
            stages: vec![
                Stage { reach: Reach { late_system, ..Reach::default() }, ..normal },
                last_stage("oldest steps out", &[DROP, SQUEEZE], UserTextReach::Never),
                last_stage("older user messages", &[DROP, SQUEEZE], UserTextReach::Older),
                last_stage("newest user message", &[SQUEEZE], UserTextReach::Newest),
            ],
            long_result_chars: rules.max_tool_output_chars,
            n_system_turns: rules.drop_system_after_turn.unwrap_or(1),
            has_call_lines: rules.keep_tool_summary,
            ..Policy::base("rules")
        }
    }
}

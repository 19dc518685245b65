//! The policies that come with fanfold: its own, and those of other systems for comparison.
//!
//! Each file is one policy with its own passes. A policy lists only what differs from `Policy::base`.

mod fanfold;
mod hermes;
mod rules;
mod hamr;
mod mask;
mod window;
#[cfg(test)]
mod tests;

use crate::fold::passes::*;
use crate::fold::policy::{Digest, Head, LateSystemReach, Policy, Reach, Stage, Tail, UserTextReach};
use crate::model::budget::Strategy;
use hamr::stubs::PASS as STUBS;
use hermes::summary::PASS as SUMMARY;
use mask::PASS as MASK;
use rules::call_lines::PASS as CALL_LINES;
use rules::collapse::PASS as COLLAPSE;
use rules::late_system::PASS as LATE_SYSTEM;
use rules::truncate::PASS as TRUNCATE;

pub use rules::Rules;

/// Every pass: those of `fanfold` from the smallest loss to the largest, then those of the other policies.
pub const ALL_PASSES: &[Pass] = &[
    TOOL_RULES,  // results of tools with a rule
    DEDUPE,      // results that are repeated later
    OVERTAKEN,   // results that a later call made stale
    MEDIA,       // old images and files
    REASONING,   // old reasoning
    ARGUMENTS,   // long arguments of old calls
    CONDENSE,    // long results, by their kind
    MIDDLE,      // results of the middle zone to one line
    ONE_LINE,    // old results to one line
    ANCHOR,      // results next to the newest text of the agent
    DIGEST,      // whole old steps into a segment
    AGAIN,       // lines of the newest results that are already visible
    ARRIVAL,     // results of the newest step to their share of the room
    SQUEEZE,     // anything long, also new: the last pass before user text
    USER_TEXT,   // user text: pasted blocks, old messages, the newest; always reported
    SUMMARY,     // hermes, hamr: all old entries into one static summary
    LATE_SYSTEM, // rules: system text after the first turn
    COLLAPSE,    // rules: consecutive assistant messages to the last one
    CALL_LINES,  // rules: successful steps to a line for each call
    TRUNCATE,    // rules: long outputs to 10 + 5 lines
    STUBS,       // hamr: old results to a few facts
    MASK,        // mask: old results to a placeholder
    DROP,        // window: the oldest entries
];

impl Policy {
    /// The names of all policies, the default first.
    pub const NAMES: [&'static str; 6] = ["fanfold", "hermes", "rules", "hamr", "mask", "window"];

    /// Finds a policy by its name.
    pub fn named(name: &str) -> Option<Policy> {
        match name {
            "fanfold" => Some(Policy::fanfold()),
            "hermes" => Some(Policy::hermes()),
            "rules" => Some(Policy::rules()),
            "hamr" => Some(Policy::hamr()),
            "mask" => Some(Policy::mask()),
            "window" => Some(Policy::window()),
            _ => None,
        }
    }

    /// A policy that never folds, to which each policy adds what it does.
    fn base(name: &'static str) -> Policy {
        Policy {
            name,
            strategy: Strategy::Off,
            economy: None,
            low_mark: 0,
            arrival_share: 1000,
            tail: Tail { share: 0, steps: 0, results: 0, ceiling: 1000 },
            middle_share: 0,
            head: Head::FirstTurn { steps: 0, share: 0 },
            digest: Digest::Marker,
            stages: Vec::new(),
            tools: Vec::new(),
            long_result_chars: 0,
            n_system_turns: 1,
            has_call_lines: true,
            keeps_anchor: false,
            rests: false,
            working_context: false,
            recall: Policy::RECALL.into(),
        }
    }
}

/// The last stage of the other policies: drops the oldest entries, then cuts the rest.
fn last_resort() -> Stage {
    Stage {
        tail: 0,
        reach: Reach { tail: true, ..everything_old() },
        above: 1000,
        goal: Some(1000),
        ..Stage::new("oldest out", vec![DROP, SQUEEZE])
    }
}

/// Everything old, including user messages and system text.
fn everything_old() -> Reach {
    Reach { user_text: UserTextReach::Unrestricted, late_system: LateSystemReach::Absorb, ..Reach::default() }
}

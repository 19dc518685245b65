//! The policies that come with fanfold: ours, and those of other systems to compare with.

pub(crate) mod hermes;
pub(crate) mod rules;
pub(crate) mod hamr;
pub(crate) mod mask;
#[cfg(test)]
mod tests;

use crate::actions::tool_rule::{ToolFold, ToolRule};
use crate::fold::economy::Economy;
use crate::fold::passes::{self, *};
use crate::fold::policy::{Digest, Head, LateSystem, Policy, Reach, Stage, SummaryCounts, Tail, Users};
use crate::model::budget::Strategy;
use crate::model::tokens::Tokens;
use hamr::stubs::PASS as STUBS;
use hermes::summary::PASS as SUMMARY;
use mask::placeholders::PASS as MASK;
use rules::call_lines::PASS as CALL_LINES;
use rules::collapse::PASS as COLLAPSE;
use rules::late_system::PASS as LATE_SYSTEM;
use rules::truncate::PASS as TRUNCATE;

/// Every pass, in the order of loss: ours from the cheapest to the dearest, then those of the presets.
pub const ALL_PASSES: &[Pass] = &[
    TOOL_RULES,  // results of tools that the policy names
    DEDUPE,      // results that come again later, word for word
    OVERTAKEN,   // results that a later call made stale
    MEDIA,       // old images and files
    REASONING,   // what the model thought long ago
    ARGUMENTS,   // long arguments of old calls
    CONDENSE,    // long results, by what they are
    ONE_LINE,    // old results to one informative line
    ANCHOR,      // results beside the newest thing the agent said
    DIGEST,      // whole old steps into a segment
    AGAIN,       // lines of the newest results that stand above already
    ARRIVAL,     // results of the newest step, to its share of the room
    SQUEEZE,     // anything long, also new: the last thing before people's words
    USER_TEXT,   // people's words: pasted blocks, old messages, the newest; told loudly
    SUMMARY,     // hermes, hamr: all old entries into one static summary
    LATE_SYSTEM, // rules: system text behind the first turn
    COLLAPSE,    // rules: several assistant messages in a row to the last
    CALL_LINES,  // rules: succeeded steps to a line for each call
    TRUNCATE,    // rules: long outputs to 10 + 5 lines
    STUBS,       // hamr: old results to a few facts
    MASK,        // mask: old results to a placeholder
    DROP,        // window: the oldest entries out
];

/// The settings of the rule middleware, by the names they have in its own file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Whether it folds at all.
    pub enabled: bool,
    /// From when on it folds, in per mille of the window (`trigger_threshold`).
    pub trigger: u32,
    /// So many of the newest replies are never touched.
    pub protect_last_n_turns: usize,
    /// Longer outputs are cut to 10 + 5 lines.
    pub max_tool_output_chars: usize,
    /// Whether a folded call leaves a line that tells what it did.
    pub keep_tool_summary: bool,
    /// System text behind so many turns becomes a marker; none leaves it alone.
    pub drop_system_after_turn: Option<usize>,
    /// Whether several assistant messages in a row become the last.
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

/// A view that costs more than this needs another fold soon, in per mille of the room.
const FULL: u32 = 850;

impl Policy {
    /// The names of the policies that come with fanfold, the default first.
    pub const NAMES: [&'static str; 6] = ["fanfold", "hermes", "rules", "hamr", "mask", "window"];

    /// The policy of that name.
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

    /// Ours: people's words stay, folds are rare and deep, the lines worth most stand in a digest.
    pub fn fanfold() -> Policy {
        // From the cheapest loss to the dearest, as measured: a segment with the lines worth most keeps more of what is
        // used later than condensing each result where it stands. So that comes after it, for steps that must stay.
        let first = [
            passes::TOOL_RULES,
            passes::DEDUPE,
            passes::MEDIA,
            passes::REASONING,
            passes::ANCHOR,
            passes::DIGEST,
        ];
        let then = [passes::OVERTAKEN, passes::ARGUMENTS, passes::CONDENSE, passes::ONE_LINE];
        let normal = Stage {
            name: "normal",
            tail: 1000,
            passes: first.to_vec(),
            reach: Reach::default(),
            above: 0,
            goal: None,
            keep: None,
        };
        let smaller = |name, tail| Stage {
            name,
            tail,
            passes: [&first[..], &then].concat(),
            above: FULL,
            goal: Some(FULL),
            ..normal.clone()
        };
        let newest = Stage {
            name: "newest steps",
            passes: vec![passes::DIGEST, passes::SQUEEZE],
            reach: Reach { tail: true, ..Reach::default() },
            above: 1000,
            ..smaller("", 400)
        };
        let minimal = Stage {
            name: "minimal",
            tail: 0,
            passes: [&first[..], &[passes::SQUEEZE]].concat(),
            reach: Reach { tail: true, ..Reach::default() },
            above: 1000,
            ..smaller("", 0)
        };
        let users = |name, users| Stage {
            name,
            tail: 0,
            passes: vec![passes::USER_TEXT],
            reach: Reach { tail: true, users, ..Reach::default() },
            above: 1000,
            goal: Some(FULL),
            keep: None,
        };
        let mut older = users("older user messages", Users::Older);
        // What people's messages became is a segment by now, and may be merged further.
        older.passes.push(passes::DIGEST);
        let images = Stage {
            name: "newest images",
            tail: 0,
            passes: vec![passes::MEDIA],
            reach: Reach { tail: true, images: true, ..Reach::default() },
            above: 1000,
            // As few as must go.
            goal: Some(1000),
            keep: None,
        };
        Policy {
            name: "fanfold",
            strategy: Strategy::Light,
            economy: Some(Economy {
                tail: Tokens(1_500),
                steps: 3,
                keep: 245,
                usual: Tokens(6_000),
                least: Tokens(5_000),
                patience: 1400,
                horizon: 12,
                again: Tokens(200),
                limit: 1000,
            }),
            low_mark: 565,
            arrival: 330,
            tail: Tail { share: 40, steps: 1, results: 0, ceiling: 1500 },
            head: Head::FirstTurn { steps: 1, share: 20 },
            digest: Digest::Segments { share: 550, most: Tokens(40_000), behind: 3 },
            stages: vec![
                normal.clone(),
                smaller("smaller tail", 600),
                smaller("smallest tail", 400),
                newest,
                minimal,
                images,
                users("pasted blocks", Users::Pastes),
                users("oldest user messages", Users::Oldest),
                older,
                users("newest user message", Users::Newest),
            ],
            tools: known_tools(),
            long_result: 0,
            system_turns: 1,
            tool_lines: true,
            anchors: true,
            rests: true,
            working_context: false,
            recall: Policy::RECALL.into(),
        }
    }

    /// Hermes' built-in compressor without its model: half the window, a head of three, a tail, a static summary.
    pub fn hermes() -> Policy {
        Policy {
            name: "hermes",
            strategy: Strategy::From(500),
            economy: None,
            low_mark: 0,
            arrival: 1000,
            tail: Tail { share: 200, steps: 1, results: 0, ceiling: 1000 },
            head: Head::Messages(3),
            digest: Digest::Summary {
                share: 150,
                counts: SummaryCounts { asks: 12, actions: 30, files: 40, errors: 8, texts: 8 },
            },
            stages: vec![
                Stage {
                    name: "normal",
                    tail: 1000,
                    passes: vec![passes::MEDIA, passes::REASONING, SUMMARY],
                    reach: freely(),
                    above: 0,
                    goal: None,
                    keep: None,
                },
                last_resort(),
            ],
            tools: Vec::new(),
            long_result: 200,
            system_turns: 1,
            tool_lines: true,
            anchors: false,
            rests: false,
            working_context: false,
            recall: Policy::RECALL.into(),
        }
    }

    /// The rule middleware with its own defaults.
    pub fn rules() -> Policy {
        Policy::rules_with(&Rules::default())
    }

    /// The rule middleware: succeeded calls to a line, long outputs to 10 + 5 lines, users never touched.
    pub fn rules_with(rules: &Rules) -> Policy {
        let mut passes = vec![LATE_SYSTEM, COLLAPSE, CALL_LINES, TRUNCATE];
        if !rules.collapse_consecutive_assistant {
            passes.retain(|pass| pass.name != COLLAPSE.name);
        }
        let late_system = match rules.drop_system_after_turn {
            Some(_) => LateSystem::Folds,
            None => LateSystem::Stays,
        };
        // It never touches users: they are the last to go, when there would be no view otherwise.
        let sparing = |name, passes: &[passes::Pass], users| {
            let reach = Reach { users, ..last_resort().reach };
            Stage { name, passes: passes.to_vec(), reach, ..last_resort() }
        };
        Policy {
            name: "rules",
            strategy: if rules.enabled { Strategy::From(rules.trigger) } else { Strategy::Off },
            economy: None,
            low_mark: 0,
            arrival: 1000,
            tail: Tail { share: 0, steps: rules.protect_last_n_turns, results: 0, ceiling: 1000 },
            head: Head::FirstTurn { steps: 0, share: 0 },
            digest: Digest::CallLines,
            stages: vec![
                Stage {
                    name: "normal",
                    tail: 1000,
                    passes,
                    reach: Reach { late_system, ..Reach::default() },
                    above: 0,
                    goal: None,
                    keep: None,
                },
                sparing("oldest steps out", &[passes::DROP, passes::SQUEEZE], Users::Never),
                sparing("older user messages", &[passes::DROP, passes::SQUEEZE], Users::Older),
                sparing("newest user message", &[passes::SQUEEZE], Users::Newest),
            ],
            tools: Vec::new(),
            long_result: rules.max_tool_output_chars,
            system_turns: rules.drop_system_after_turn.unwrap_or(1),
            tool_lines: rules.keep_tool_summary,
            anchors: false,
            rests: false,
            working_context: false,
            recall: Policy::RECALL.into(),
        }
    }

    /// Hamr: the last three tool turns verbatim, older results to stubs, then staged summaries.
    pub fn hamr() -> Policy {
        let summary = |name, tail| Stage {
            name,
            tail,
            passes: vec![STUBS, SUMMARY],
            reach: freely(),
            above: 1000,
            goal: Some(1000),
            keep: None,
        };
        Policy {
            name: "hamr",
            strategy: Strategy::From(600),
            economy: None,
            low_mark: 0,
            arrival: 1000,
            tail: Tail { share: 400, steps: 3, results: 0, ceiling: 1000 },
            head: Head::FirstTurn { steps: 0, share: 0 },
            digest: Digest::Summary {
                share: 150,
                counts: SummaryCounts { asks: 4, actions: 10, files: 20, errors: 4, texts: 5 },
            },
            stages: vec![
                Stage {
                    name: "stubs",
                    tail: 0,
                    passes: vec![STUBS],
                    reach: Reach::default(),
                    above: 0,
                    goal: None,
                    keep: None,
                },
                summary("summary", 1000),
                summary("summary, smaller tail", 600),
                summary("summary, smallest tail", 400),
                summary("minimal summary", 250),
                last_resort(),
            ],
            tools: Vec::new(),
            long_result: 2_048,
            system_turns: 1,
            tool_lines: true,
            anchors: false,
            rests: false,
            working_context: false,
            recall: Policy::RECALL.into(),
        }
    }

    /// Observation masking: the last ten results stay, older ones become a placeholder.
    pub fn mask() -> Policy {
        Policy {
            name: "mask",
            strategy: Strategy::From(0),
            economy: None,
            low_mark: 0,
            arrival: 1000,
            tail: Tail { share: 0, steps: 0, results: 10, ceiling: 1000 },
            head: Head::FirstTurn { steps: 0, share: 0 },
            digest: Digest::Marker,
            stages: vec![
                Stage {
                    name: "normal",
                    tail: 1000,
                    passes: vec![MASK],
                    reach: Reach::default(),
                    above: 0,
                    goal: None,
                    keep: None,
                },
                last_resort(),
            ],
            tools: Vec::new(),
            long_result: 0,
            system_turns: 1,
            tool_lines: true,
            anchors: false,
            rests: false,
            working_context: false,
            recall: Policy::RECALL.into(),
        }
    }

    /// A sliding window: the oldest out first.
    pub fn window() -> Policy {
        Policy {
            name: "window",
            strategy: Strategy::From(1000),
            economy: None,
            low_mark: 1000,
            arrival: 1000,
            tail: Tail { share: 0, steps: 1, results: 0, ceiling: 1000 },
            head: Head::FirstTurn { steps: 0, share: 0 },
            digest: Digest::Marker,
            stages: vec![
                Stage { passes: vec![passes::DROP], reach: freely(), above: 0, goal: None, ..last_resort() },
                last_resort(),
            ],
            tools: Vec::new(),
            long_result: 0,
            system_turns: 1,
            tool_lines: true,
            anchors: false,
            rests: false,
            working_context: false,
            recall: Policy::RECALL.into(),
        }
    }
}

/// What is known of the tools of the common agents: plans are worth their newest state alone.
fn known_tools() -> Vec<ToolRule> {
    let plans = ["TodoWrite", "update_plan", "todo", "write_todos", "todo_write"];
    let always =
        |tool: &str| ToolRule { tool: tool.to_owned(), fold: ToolFold::Always, ..ToolRule::default() };
    plans.into_iter().map(always).collect()
}

/// What any client must do when nothing else helps: drop the oldest, then cut what is left.
fn last_resort() -> Stage {
    Stage {
        name: "oldest out",
        tail: 0,
        passes: vec![passes::DROP, passes::SQUEEZE],
        reach: Reach { tail: true, ..freely() },
        above: 1000,
        goal: Some(1000),
        keep: None,
    }
}

/// Takes everything old, whoever said it.
fn freely() -> Reach {
    Reach { users: Users::Freely, late_system: LateSystem::Goes, ..Reach::default() }
}

//! What may be folded, from when on, and in which order: plain data.

mod without; // a policy without one of its mechanisms

use crate::budget::{Cadence, Strategy};
use crate::economy::Economy;
use crate::need::Need;
use crate::passes::{self, Pass};
use crate::tokens::Tokens;

/// What may be folded. Plain data: every behaviour that differs between policies is a value here.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The name a person gives.
    pub name: &'static str,
    /// From when on a view is folded.
    pub strategy: Strategy,
    /// How it is folded before that where it pays; none leaves it to the strategy alone.
    pub economy: Option<Economy>,
    /// How far a fold goes down, in per mille of the room, so that folds are rare.
    pub low_mark: u32,
    /// What of the end stays as it is.
    pub tail: Tail,
    /// What of the beginning stays as it is.
    pub head: Head,
    /// How folded entries are written.
    pub digest: Digest,
    /// What is tried, in order, until the view fits.
    pub stages: Vec<Stage>,
    /// What is said of single tools.
    pub tools: Vec<ToolRule>,
    /// Results longer than this many characters are long, for policies that count so.
    pub long_result: usize,
    /// So many turns may have system text; behind them it may be folded, for policies that do so.
    pub system_turns: usize,
    /// Whether a folded call leaves a line that tells what it did, for policies that may leave it out.
    pub tool_lines: bool,
    /// Whether the newest step in which the model said something stays, however old it is.
    pub anchors: bool,
    /// Whether folding rests after two folds in a row that won little, until something changes.
    pub rests: bool,
    /// Whether the working context rides at the end of each view.
    pub working_context: bool,
    /// What is recalled when a new entry mentions something folded; none recalls nothing by itself.
    pub need: Option<Need>,
    /// How the lines of a segment are chosen. Only a study of what each part adds changes it.
    #[doc(hidden)]
    pub choice: Choice,
}

/// How the lines of a segment are chosen.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// What an atom is worth.
    pub scorer: Scorer,
    /// Whether an atom that stands in a chosen line adds nothing in the next.
    pub is_once: bool,
    /// Whether what was done, what went wrong and what people said first is worth something by itself.
    pub has_tellings: bool,
    /// Whether lines of files are worth something by themselves.
    pub has_copies: bool,
}

/// What an atom is worth.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scorer {
    /// What was learnt from recorded conversations.
    Learnt,
    /// More, the more often the agent used it.
    ByUses,
    /// More, the newer it is.
    ByAge,
    /// All the same.
    Even,
}

impl Default for Choice {
    fn default() -> Choice {
        Choice { scorer: Scorer::Learnt, is_once: true, has_tellings: true, has_copies: true }
    }
}

/// The newest entries, which stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// Their share of the room in per mille.
    pub share: u32,
    /// At least so many steps, whatever they cost.
    pub steps: usize,
    /// At least so many results, whatever they cost.
    pub results: usize,
    /// An entry may overshoot the share by this much, in per mille of the share.
    pub ceiling: u32,
}

/// The oldest entries, which stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// System text and the first user message, and on the first folds so many steps behind it.
    FirstTurn {
        /// How many steps stay on the first folds; they go when what stands behind them is written anew.
        steps: usize,
        /// What a step may cost to stay, in per mille of the room.
        share: u32,
    },
    /// So many messages, always; a reply and its results are not torn apart.
    Messages(usize),
}

/// How folded entries are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digest {
    /// Segments added behind one another and merged now and then; the lines worth most, by source.
    Segments {
        /// What all segments may take, in per mille of the room.
        share: u32,
        /// What they may take at most: they are read at every request.
        most: Tokens,
        /// How many segments are added behind the first before all are merged.
        behind: usize,
    },
    /// One summary that is rewritten at each fold.
    Summary {
        /// What it may take, in per mille of the room.
        share: u32,
        /// How many of each thing it names.
        counts: SummaryCounts,
    },
    /// A line for each call, as text of the assistant's.
    CallLines,
    /// A line that says how much is gone, and the handle.
    Marker,
}

impl Digest {
    /// How many segments are added behind the first before all are merged.
    pub(crate) fn behind(self) -> usize {
        match self {
            Digest::Segments { behind, .. } => behind,
            Digest::Summary { .. } | Digest::CallLines | Digest::Marker => 0,
        }
    }
}

/// How many of each thing a summary names, newest kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SummaryCounts {
    /// What users asked for.
    pub asks: usize,
    /// Tool calls.
    pub actions: usize,
    /// Files.
    pub files: usize,
    /// Errors.
    pub errors: usize,
    /// The last texts.
    pub texts: usize,
}

/// A view that costs more than this needs another fold soon, in per mille of the room.
const FULL: u32 = 850;

/// One try at making a view fit.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Its name in receipts.
    pub name: &'static str,
    /// The tail is this much of the policy's, in per mille.
    pub tail: u32,
    /// The passes, in order.
    pub passes: Vec<Pass>,
    /// What may be touched.
    pub reach: Reach,
    /// Only when the view costs more than this, in per mille of the room; zero is always.
    pub above: u32,
    /// How far it goes, in per mille of the room; by itself to the policy's low mark.
    pub goal: Option<u32>,
    /// A segment is added behind those that are there and keeps this much, in per mille of what it stands for.
    pub keep: Option<u32>,
}

/// What a stage may touch beside old steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reach {
    /// The newest steps, too.
    pub tail: bool,
    /// What people said.
    pub users: Users,
    /// People's newest images, too.
    pub images: bool,
    /// System text behind the first turn.
    pub late_system: bool,
}

/// How far a stage may touch what people said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Users {
    /// Not at all.
    #[default]
    Never,
    /// Large pasted blocks in old messages.
    Pastes,
    /// Whole old messages, when people's text fills more than half of the room.
    Oldest,
    /// Every message but the first and the newest, however little of the room they fill: before the newest is cut.
    Older,
    /// The newest message too, when it does not fit beside what must stay: as much of it as fits.
    Newest,
    /// Like everything else, but for the head: the presets of systems that do so.
    Freely,
}

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

/// What is said of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRule {
    /// The tool's name; a `*` at the end matches any rest.
    pub tool: String,
    /// Whether its results may be folded.
    pub fold: ToolFold,
    /// What one result may take at most, in per mille of the room.
    pub cap: Option<u32>,
}

/// Whether a tool's results may be folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolFold {
    /// As the passes decide.
    #[default]
    Auto,
    /// Never, but for the last resort before refusing.
    Never,
    /// As soon as they are old, to one line.
    Always,
}

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
        let large = Stage {
            name: "large results",
            passes: vec![passes::DIGEST, passes::LEVEL],
            reach: Reach { tail: true, ..Reach::default() },
            above: 1000,
            ..smaller("", 400)
        };
        let mut minimal = Stage { above: 1000, ..smaller("minimal", 0) };
        minimal.passes.push(passes::SQUEEZE);
        minimal.reach.tail = true;
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
                tail: Tokens(1_000),
                steps: 3,
                keep: 250,
                usual: Tokens(6_000),
                least: Tokens(4_000),
                patience: 1200,
                horizon: 15,
                limit: 1030,
            }),
            low_mark: 580,
            tail: Tail { share: 40, steps: 1, results: 0, ceiling: 1500 },
            head: Head::FirstTurn { steps: 1, share: 20 },
            digest: Digest::Segments { share: 560, most: Tokens(40_000), behind: 3 },
            stages: vec![
                normal.clone(),
                smaller("smaller tail", 600),
                smaller("smallest tail", 400),
                large,
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
            need: None,
            choice: Choice::default(),
        }
    }

    /// Hermes' built-in compressor without its model: half the window, a head of three, a tail, a static summary.
    pub fn hermes() -> Policy {
        Policy {
            name: "hermes",
            strategy: Strategy::From(500),
            economy: None,
            low_mark: 0,
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
                    passes: vec![passes::MEDIA, passes::REASONING, passes::SUMMARY],
                    reach: Reach { users: Users::Freely, ..Reach::default() },
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
            need: None,
            choice: Choice::default(),
        }
    }

    /// The rule middleware with its own defaults.
    pub fn rules() -> Policy {
        Policy::rules_with(&Rules::default())
    }

    /// The rule middleware: succeeded calls to a line, long outputs to 10 + 5 lines, users never touched.
    pub fn rules_with(rules: &Rules) -> Policy {
        let mut passes = vec![passes::LATE_SYSTEM, passes::COLLAPSE, passes::CALL_LINES, passes::TRUNCATE];
        if !rules.collapse_consecutive_assistant {
            passes.retain(|pass| pass.name != passes::COLLAPSE.name);
        }
        Policy {
            name: "rules",
            strategy: if rules.enabled { Strategy::From(rules.trigger) } else { Strategy::Off },
            economy: None,
            low_mark: 0,
            tail: Tail { share: 0, steps: rules.protect_last_n_turns, results: 0, ceiling: 1000 },
            head: Head::FirstTurn { steps: 0, share: 0 },
            digest: Digest::CallLines,
            stages: vec![
                Stage {
                    name: "normal",
                    tail: 1000,
                    passes,
                    reach: Reach { late_system: rules.drop_system_after_turn.is_some(), ..Reach::default() },
                    above: 0,
                    goal: None,
                    keep: None,
                },
                last_resort(),
            ],
            tools: Vec::new(),
            long_result: rules.max_tool_output_chars,
            system_turns: rules.drop_system_after_turn.unwrap_or(1),
            tool_lines: rules.keep_tool_summary,
            anchors: false,
            rests: false,
            working_context: false,
            need: None,
            choice: Choice::default(),
        }
    }

    /// Hamr: the last three tool turns verbatim, older results to stubs, then staged summaries.
    pub fn hamr() -> Policy {
        let summary = |name, tail| Stage {
            name,
            tail,
            passes: vec![passes::STUBS, passes::SUMMARY],
            reach: Reach { users: Users::Freely, ..Reach::default() },
            above: 1000,
            goal: Some(1000),
            keep: None,
        };
        Policy {
            name: "hamr",
            strategy: Strategy::From(600),
            economy: None,
            low_mark: 0,
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
                    passes: vec![passes::STUBS],
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
            need: None,
            choice: Choice::default(),
        }
    }

    /// Observation masking: the last ten results stay, older ones become a placeholder.
    pub fn mask() -> Policy {
        Policy {
            name: "mask",
            strategy: Strategy::From(0),
            economy: None,
            low_mark: 0,
            tail: Tail { share: 0, steps: 0, results: 10, ceiling: 1000 },
            head: Head::FirstTurn { steps: 0, share: 0 },
            digest: Digest::Marker,
            stages: vec![
                Stage {
                    name: "normal",
                    tail: 1000,
                    passes: vec![passes::MASK],
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
            need: None,
            choice: Choice::default(),
        }
    }

    /// A sliding window: the oldest out first.
    pub fn window() -> Policy {
        Policy {
            name: "window",
            strategy: Strategy::From(1000),
            economy: None,
            low_mark: 1000,
            tail: Tail { share: 0, steps: 1, results: 0, ceiling: 1000 },
            head: Head::FirstTurn { steps: 0, share: 0 },
            digest: Digest::Marker,
            stages: vec![last_resort()],
            tools: Vec::new(),
            long_result: 0,
            system_turns: 1,
            tool_lines: true,
            anchors: false,
            rests: false,
            working_context: false,
            need: None,
            choice: Choice::default(),
        }
    }

    /// The rule for a tool, if there is one.
    pub fn tool(&self, name: &str) -> Option<&ToolRule> {
        self.tools.iter().find(|rule| match rule.tool.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => rule.tool == name,
        })
    }

    /// Whether a rule caps what one result of the tool may take.
    pub(crate) fn has_caps(&self) -> bool {
        self.tools.iter().any(|rule| rule.cap.is_some())
    }

    /// Folds at another cadence. A preset keeps its own trigger.
    pub fn with_cadence(mut self, cadence: Cadence) -> Policy {
        if self.economy.is_some() && cadence == Cadence::Window {
            self.economy = None;
            // Every request is counted before it leaves, so nothing is won by folding earlier.
            self.strategy = Strategy::From(1000);
        }
        self
    }

    /// Forbids touching what people said, even as a last resort before refusing.
    pub fn without_user_text(mut self) -> Policy {
        let is_last_resort =
            |users| matches!(users, Users::Pastes | Users::Oldest | Users::Older | Users::Newest);
        self.stages.retain(|stage| !is_last_resort(stage.reach.users));
        self
    }
}

/// What is known of the tools of the common agents: plans are worth their newest state alone.
fn known_tools() -> Vec<ToolRule> {
    let plans = ["TodoWrite", "update_plan", "todo", "write_todos", "todo_write"];
    let always = |tool: &str| ToolRule { tool: tool.to_owned(), fold: ToolFold::Always, cap: None };
    plans.into_iter().map(always).collect()
}

/// What any client must do when nothing else helps: drop the oldest, then cut what is left.
fn last_resort() -> Stage {
    Stage {
        name: "oldest out",
        tail: 0,
        passes: vec![passes::DROP, passes::SQUEEZE],
        reach: Reach { tail: true, users: Users::Freely, ..Reach::default() },
        above: 1000,
        goal: Some(1000),
        keep: None,
    }
}

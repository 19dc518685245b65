//! What may be folded, from when on, and in which order: plain data.

use std::borrow::Cow;

use crate::actions::tool_rule::ToolRule;
use crate::fold::economy::Economy;
use crate::fold::passes::Pass;
use crate::model::budget::{Cadence, Strategy};
use crate::model::tokens::Tokens;

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
    /// What the results of the newest step may take where the view no longer fits, in per mille of the room; 1000 leaves
    /// them as they are.
    pub arrival: u32,
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
    /// The sentence that tells the model how to open a fold; empty where it can't.
    pub recall: Cow<'static, str>,
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

impl Stage {
    /// A stage that always runs, over old steps, to the low mark of the policy.
    pub(crate) fn new(name: &'static str, passes: Vec<Pass>) -> Stage {
        Stage { name, tail: 1000, passes, reach: Reach::default(), above: 0, goal: None, keep: None }
    }

    /// A stage over the newest entries.
    pub(crate) fn of_newest(name: &'static str, passes: Vec<Pass>) -> Stage {
        let reach = Reach { tail: true, ..Reach::default() };
        Stage { tail: 0, reach, ..Stage::new(name, passes) }
    }
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
    pub late_system: LateSystem,
}

/// How far a stage may touch system text behind the first turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LateSystem {
    /// Not at all.
    #[default]
    Stays,
    /// It may be folded where it stands.
    Folds,
    /// It may go into a segment with what stands around it.
    Goes,
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

impl Policy {
    /// How the model opens a fold where nobody said otherwise.
    pub const RECALL: &'static str = "Recall a [handle] for the original.";

    /// The rule for a tool, if there is one.
    pub fn tool(&self, name: &str) -> Option<&ToolRule> {
        ToolRule::of(&self.tools, name)
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
            self.strategy = Strategy::Threshold(1000);
        }
        self
    }

    /// Folds from another part of the room on, and well below that; a policy that only goes as far as it must goes as far
    /// as that.
    pub fn with_strategy(mut self, strategy: Strategy) -> Policy {
        const WELL_BELOW: u32 = 750;
        if let Some(share) = strategy.share() {
            let goes_below = self.strategy.share().is_none_or(|own| self.low_mark < own);
            let most = if goes_below { share * WELL_BELOW / 1000 } else { share };
            self.low_mark = self.low_mark.min(most);
        }
        self.strategy = strategy;
        self
    }

    /// Whether people's messages are folded like everything else, and not only before refusing.
    pub fn folds_users(&self) -> bool {
        self.stages.iter().any(|stage| stage.reach.users == Users::Freely)
    }

    /// Forbids touching what people said, even as a last resort before refusing.
    pub fn without_user_text(mut self) -> Policy {
        let is_last_resort =
            |users| matches!(users, Users::Pastes | Users::Oldest | Users::Older | Users::Newest);
        self.stages.retain(|stage| !is_last_resort(stage.reach.users));
        // What such a stage folds beside them it still folds.
        self.stages.iter_mut().for_each(|stage| stage.reach.users = Users::Never);
        self
    }
}

//! Policies: rules for when and how a view is folded. Plain data.

use std::borrow::Cow;

use crate::actions::tool_rule::{ToolFold, ToolRule};
use crate::fold::economy::Economy;
use crate::fold::passes::Pass;
use crate::model::budget::{Cadence, Quality, Strategy};
use crate::model::tokens::Tokens;

/// The rules of folding. All differences between policies are values of these fields.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The name in settings.
    pub name: &'static str,
    /// The strategy, which sets the view size that triggers a fold.
    pub strategy: Strategy,
    /// The settings of folding for economy, before the strategy triggers a fold; `None` disables it.
    pub economy: Option<Economy>,
    /// The target size of a fold, in per mille of the room. A low target makes folds rare.
    pub low_mark: u32,
    /// The maximum size of the newest step's results if the view no longer fits, in per mille of the room; 1000
    /// disables the limit.
    pub arrival_share: u32,
    /// The newest entries, which are not folded.
    pub tail: Tail,
    /// The size of the middle zone before the tail, in per mille of the room. Its steps keep the text and the arguments
    /// of the agent, and a line of each result.
    pub middle_share: u32,
    /// The oldest entries, which are not folded.
    pub head: Head,
    /// The form of folded entries.
    pub digest: Digest,
    /// The stages, which run in order until the view fits.
    pub stages: Vec<Stage>,
    /// Per-tool rules.
    pub tools: Vec<ToolRule>,
    /// The length in characters above which some presets fold a result.
    pub long_result_chars: usize,
    /// The number of turns after which system text counts as late, see `LateSystemReach`.
    pub n_system_turns: usize,
    /// True if `Digest::CallLines` writes a line for each call.
    pub has_call_lines: bool,
    /// True if the newest text of the agent stays, however old it is.
    pub keeps_anchor: bool,
    /// True if folding rests after two consecutive folds that saved little, until something changes.
    pub rests: bool,
    /// True if each view ends with the working context.
    pub working_context: bool,
    /// The instruction to the model how to recall an original; empty if it cannot.
    pub recall: Cow<'static, str>,
}

/// The newest entries, which are not folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// Their size, in per mille of the room.
    pub share: u32,
    /// The minimum number of steps, regardless of their cost.
    pub steps: usize,
    /// The minimum number of results, regardless of their cost.
    pub results: usize,
    /// The maximum size including an entry that exceeds the share, in per mille of the share.
    pub ceiling: u32,
}

/// The oldest entries, which are not folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// System text and the first user message, and in the first folds the next few steps.
    FirstTurn {
        /// The maximum number of steps after the message. They are folded when the first segments are merged.
        steps: usize,
        /// The maximum cost of such a step, in per mille of the room.
        share: u32,
    },
    /// A fixed number of messages. A reply is kept with its results.
    Messages(usize),
}

/// The form of folded entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digest {
    /// Segments of the record. They are appended, and merged after several folds.
    Segments {
        /// The maximum size of all segments, in per mille of the room.
        share: u32,
        /// The absolute maximum size of all segments, because every request reads them.
        max_tokens: Tokens,
        /// The number of segments after the first one before all are merged.
        max_appended: usize,
    },
    /// One summary that is rewritten at each fold.
    Summary {
        /// The maximum size, in per mille of the room.
        share: u32,
        /// The maximum numbers of items.
        counts: SummaryCounts,
    },
    /// A line for each call, as assistant text.
    CallLines,
    /// A line with the number of folded messages and the handle.
    Marker,
}

impl Digest {
    /// The number of segments after the first one before all are merged.
    pub(crate) fn max_appended(self) -> usize {
        match self {
            Digest::Segments { max_appended, .. } => max_appended,
            Digest::Summary { .. } | Digest::CallLines | Digest::Marker => 0,
        }
    }
}

/// The maximum numbers of items in a summary. The newest items are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SummaryCounts {
    /// User messages.
    pub asks: usize,
    /// Tool calls.
    pub actions: usize,
    /// Files.
    pub files: usize,
    /// Errors.
    pub errors: usize,
    /// The newest texts of the user and the assistant.
    pub texts: usize,
}

/// A sequence of passes with the parts that they may fold.
#[derive(Debug, Clone)]
pub struct Stage {
    /// The name in receipts.
    pub name: &'static str,
    /// The size of the tail, in per mille of the policy's tail.
    pub tail: u32,
    /// The passes in running order.
    pub passes: Vec<Pass>,
    /// The parts that may be folded in addition to old steps.
    pub reach: Reach,
    /// The size above which the stage runs, in per mille of the room; zero means always.
    pub above: u32,
    /// The target size, in per mille of the room; the policy's low mark by default.
    pub goal: Option<u32>,
    /// The size of an appended segment. Without it, segments may also be merged.
    pub segment_size: Option<SegmentSize>,
}

/// The size of an appended segment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SegmentSize {
    /// In per mille of the folded entries.
    Share(u32),
    /// The size with the lowest price.
    Cheapest(SegmentPrices),
}

/// The price of a segment, in tokens at the base price.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SegmentPrices {
    /// Of each of its tokens, in all requests that are expected.
    pub per_token: f64,
    /// Of each expected use of content that it leaves out.
    pub per_use: f64,
}

impl SegmentPrices {
    /// The price of a segment with the content that it leaves out.
    pub(crate) fn price(&self, tokens: Tokens, expected_uses: f32) -> f64 {
        self.per_token * tokens.0 as f64 + self.per_use * f64::from(expected_uses)
    }
}

impl Stage {
    /// A stage that always runs, on old steps, with the low mark of the policy as its target.
    pub(crate) fn new(name: &'static str, passes: Vec<Pass>) -> Stage {
        Stage { name, tail: 1000, passes, reach: Reach::default(), above: 0, goal: None, segment_size: None }
    }

    /// A stage that may also fold the newest entries.
    pub(crate) fn for_newest(name: &'static str, passes: Vec<Pass>) -> Stage {
        let reach = Reach { tail: true, ..Reach::default() };
        Stage { tail: 0, reach, ..Stage::new(name, passes) }
    }
}

/// The parts that a stage may fold in addition to old steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reach {
    /// True if the newest steps are included.
    pub tail: bool,
    /// The permitted user text.
    pub user_text: UserTextReach,
    /// True if the newest images of the user are included.
    pub images: bool,
    /// The permitted folds of late system text.
    pub late_system: LateSystemReach,
}

/// The permitted folds of system text after the first turns, see `Policy::n_system_turns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LateSystemReach {
    /// None.
    #[default]
    Never,
    /// To a stub.
    Fold,
    /// To a stub, or into a segment with the surrounding entries.
    Absorb,
}

/// The user text that a stage may fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UserTextReach {
    /// None.
    #[default]
    Never,
    /// Large pasted blocks in old messages.
    PastedBlocks,
    /// Old messages, if user text fills more than half of the room.
    Oldest,
    /// All messages except for the first and the newest one.
    Older,
    /// The newest message, which is cut to the size that fits.
    Newest,
    /// All messages after the head, as in the presets that fold user text like any other text.
    Unrestricted,
}

impl Policy {
    /// The default instruction how to recall an original.
    pub const RECALL: &'static str = "Recall #N for the original of step N.";

    /// Finds the rule for a tool.
    pub fn tool(&self, name: &str) -> Option<&ToolRule> {
        ToolRule::find(&self.tools, name)
    }

    /// Returns whether the results of a tool are never folded.
    pub(crate) fn never_folds(&self, tool: &str) -> bool {
        self.tool(tool).is_some_and(|rule| rule.fold == ToolFold::Never)
    }

    /// Returns whether any tool has a cap on the size of its results.
    pub(crate) fn has_caps(&self) -> bool {
        self.tools.iter().any(|rule| rule.cap.is_some())
    }

    /// Changes the cadence. The presets without economy keep their own trigger.
    pub fn with_cadence(mut self, cadence: Cadence) -> Policy {
        if self.economy.is_some() && cadence == Cadence::Window {
            self.economy = None;
            // Every request is counted before it is sent, so it is safe to fold only when the room is full.
            self.strategy = Strategy::Threshold(1000);
        }
        self
    }

    /// Changes the weight of lost content. `Faithful` also replaces an earlier trigger.
    pub fn with_quality(mut self, quality: Quality) -> Policy {
        match quality {
            Quality::Balanced => {}
            Quality::Economy => self.economy = self.economy.map(Economy::ignoring_losses),
            Quality::Faithful => {
                self.economy = None;
                if self.strategy != Strategy::Off {
                    self.strategy = Strategy::Threshold(1000);
                }
            }
        }
        self
    }

    /// Changes the strategy. Lowers the low mark to stay well below the new trigger, or at most equal to it if the
    /// policy does not fold below its trigger.
    pub fn with_strategy(mut self, strategy: Strategy) -> Policy {
        const WELL_BELOW: u32 = 750;
        if let Some(share) = strategy.share() {
            let folds_below_trigger = self.strategy.share().is_none_or(|own| self.low_mark < own);
            let max_low_mark = if folds_below_trigger { share * WELL_BELOW / 1000 } else { share };
            self.low_mark = self.low_mark.min(max_low_mark);
        }
        self.strategy = strategy;
        self
    }

    /// Returns whether user messages are folded like any other text, and not only as a last resort.
    pub fn folds_users(&self) -> bool {
        self.stages.iter().any(|stage| stage.reach.user_text == UserTextReach::Unrestricted)
    }

    /// Forbids folding user text, even as a last resort.
    pub fn without_user_text(mut self) -> Policy {
        let is_last_resort = |reach| {
            matches!(
                reach,
                UserTextReach::PastedBlocks
                    | UserTextReach::Oldest
                    | UserTextReach::Older
                    | UserTextReach::Newest
            )
        };
        self.stages.retain(|stage| !is_last_resort(stage.reach.user_text));
        // A stage with unrestricted user text still folds everything else.
        self.stages.iter_mut().for_each(|stage| stage.reach.user_text = UserTextReach::Never);
        self
    }
}

//! Per-tool rules.

use crate::text::condense::ContentKind;

/// A rule for a tool. The first matching rule applies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolRule {
    /// The name of the tool, or a prefix followed by `*`.
    pub tool: String,
    /// The folding of its results.
    pub fold: ToolFold,
    /// The maximum size of a result, in per mille of the room.
    pub cap: Option<u32>,
    /// The kind of its results, which determines how they are condensed. Detected for each result if not set.
    pub condense: Option<ContentKind>,
    /// The arguments that give the display name of a call, in order. Derived from the action if empty.
    pub target: Vec<String>,
}

impl ToolRule {
    /// Finds the rule for a tool.
    pub(crate) fn find<'r>(rules: &'r [ToolRule], tool: &str) -> Option<&'r ToolRule> {
        rules.iter().find(|rule| match rule.tool.strip_suffix('*') {
            Some(start) => tool.starts_with(start),
            None => rule.tool == tool,
        })
    }
}

/// The folding of a tool's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolFold {
    /// By the passes, like any other result.
    #[default]
    Auto,
    /// Never, except as a last resort.
    Never,
    /// To one line as soon as they are old.
    Always,
}

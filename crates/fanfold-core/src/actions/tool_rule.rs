//! Per-tool rules.

use crate::text::condense::ContentKind;

/// What is said of a tool. The first rule that matches it counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolRule {
    /// The tool's name; a `*` at the end matches any rest.
    pub tool: String,
    /// True if its results may be folded.
    pub fold: ToolFold,
    /// What one result may take at most, in per mille of the room.
    pub cap: Option<u32>,
    /// What its results are, which says how they are condensed; none has each looked at.
    pub condense: Option<ContentKind>,
    /// The arguments that name its target, in the order in which they are told; none leaves it to what is known of it.
    pub target: Vec<String>,
}

impl ToolRule {
    /// The rule for a tool, if there is one among these.
    pub(crate) fn of<'r>(rules: &'r [ToolRule], tool: &str) -> Option<&'r ToolRule> {
        rules.iter().find(|rule| match rule.tool.strip_suffix('*') {
            Some(start) => tool.starts_with(start),
            None => rule.tool == tool,
        })
    }
}

/// True if a tool's results may be folded.
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

//! Rejects tools of a provider whose names are invalid, reserved or easily confused with another tool's.

/// Prefix of fanfold's own tools.
const RESERVED_PREFIX: &str = "fanfold";
/// Maximum length of a tool name.
const MAX_NAME_BYTES: usize = 64;

/// Why a tool is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameConflict {
    /// It has the prefix of fanfold's own tools.
    Reserved,
    /// It has nearly the same name as an earlier tool.
    Duplicate,
    /// It is not a valid tool name.
    Invalid,
}

impl NameConflict {
    /// The reason as a phrase whose subject is the tool.
    pub fn describe(self) -> &'static str {
        match self {
            NameConflict::Reserved => "has a name that is reserved for fanfold's tools",
            NameConflict::Duplicate => "has nearly the same name as another tool",
            NameConflict::Invalid => "has an invalid name",
        }
    }
}

/// Splits tools into accepted and rejected ones. Of two similar names the first is accepted.
pub(crate) fn reject_conflicting_names<T>(
    tools: Vec<T>,
    name: impl Fn(&T) -> &str,
) -> (Vec<T>, Vec<(String, NameConflict)>) {
    let mut seen = Vec::new();
    let (mut accepted, mut rejected) = (Vec::new(), Vec::new());
    for tool in tools {
        let tool_name = name(&tool).to_owned();
        let normalized_name = normalized(&tool_name);
        let conflict = if !is_name(&tool_name) {
            Some(NameConflict::Invalid)
        } else if normalized_name.starts_with(RESERVED_PREFIX) {
            Some(NameConflict::Reserved)
        } else if seen.contains(&normalized_name) {
            Some(NameConflict::Duplicate)
        } else {
            None
        };
        match conflict {
            Some(conflict) => rejected.push((printable(&tool_name), conflict)),
            None => {
                seen.push(normalized_name);
                accepted.push(tool);
            }
        }
    }
    (accepted, rejected)
}

fn is_name(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.chars().all(is_letter)
}

/// A name without case and punctuation, which are easily overlooked.
fn normalized(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// The printable characters of an arbitrary name.
fn printable(name: &str) -> String {
    name.chars().filter(|c| c.is_ascii_graphic()).take(MAX_NAME_BYTES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_imitate_another_tool_are_rejected() {
        let long = "x".repeat(65);
        let names = [
            "search_nodes",
            "fanfold_recall",
            "Fanfold-Recall",
            "search-nodes",
            "search_nodes",
            "",
            "a b",
            "sеarch", // with a letter of another script
            long.as_str(),
            "mem0/search",
        ];
        let (accepted, rejected) = reject_conflicting_names(names.to_vec(), |name| name);
        assert_eq!(accepted, ["search_nodes", "mem0/search"]);
        let why: Vec<NameConflict> = rejected.iter().map(|(_, why)| *why).collect();
        use NameConflict::{Duplicate, Invalid, Reserved};
        assert_eq!(why, [Reserved, Reserved, Duplicate, Duplicate, Invalid, Invalid, Invalid, Invalid]);
        assert!(rejected.iter().all(|(name, _)| name.is_ascii() && name.len() <= MAX_NAME_BYTES));
    }
}

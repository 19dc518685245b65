//! Names of a provider's tools: none may stand for a tool of ours, or for one that it named before.

/// What our own tools begin with.
const RESERVED_PREFIX: &str = "fanfold";
/// A name that is longer is none.
const LONGEST: usize = 64;

/// Why a tool is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameConflict {
    /// It has the name of a tool of fanfold's.
    Reserved,
    /// Another one had the name before.
    Duplicate,
    /// It is no name.
    Invalid,
}

impl NameConflict {
    /// What is wrong, for a person.
    pub fn describe(self) -> &'static str {
        match self {
            NameConflict::Reserved => "has a name of fanfold's own tools",
            NameConflict::Duplicate => "has the name of another one",
            NameConflict::Invalid => "has no name that a tool can have",
        }
    }
}

/// Tells the tools that may be used from those that may not. Of two that look alike the first one counts.
pub fn reject_conflicting_names<T>(
    tools: Vec<T>,
    name: impl Fn(&T) -> &str,
) -> (Vec<T>, Vec<(String, NameConflict)>) {
    let mut seen = Vec::new();
    let (mut sound, mut refused) = (Vec::new(), Vec::new());
    for tool in tools {
        let own = name(&tool).to_owned();
        let alike = normalized(&own);
        let wrong = if !is_name(&own) {
            Some(NameConflict::Invalid)
        } else if alike.starts_with(RESERVED_PREFIX) {
            Some(NameConflict::Reserved)
        } else if seen.contains(&alike) {
            Some(NameConflict::Duplicate)
        } else {
            None
        };
        match wrong {
            Some(wrong) => refused.push((printable(&own), wrong)),
            None => {
                seen.push(alike);
                sound.push(tool);
            }
        }
    }
    (sound, refused)
}

fn is_name(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    !name.is_empty() && name.len() <= LONGEST && name.chars().all(is_letter)
}

/// A name without what the eye passes over.
fn normalized(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// A name that may be anything, as it can be shown.
fn printable(name: &str) -> String {
    name.chars().filter(|c| c.is_ascii_graphic()).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tool_stands_for_another() {
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
        let (sound, refused) = reject_conflicting_names(names.to_vec(), |name| name);
        assert_eq!(sound, ["search_nodes", "mem0/search"]);
        let why: Vec<NameConflict> = refused.iter().map(|(_, why)| *why).collect();
        use NameConflict::{Duplicate, Invalid, Reserved};
        assert_eq!(why, [Reserved, Reserved, Duplicate, Duplicate, Invalid, Invalid, Invalid, Invalid]);
        assert!(refused.iter().all(|(name, _)| name.is_ascii() && name.len() <= LONGEST));
    }
}

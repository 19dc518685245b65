//! Names of a provider's tools: none may stand for a tool of ours, or for one that it named before.

/// What our own tools begin with.
const OURS: &str = "fanfold";
/// A name that is longer is none.
const LONGEST: usize = 64;

/// Why a tool is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shadow {
    /// It has the name of a tool of fanfold's.
    Ours,
    /// Another one had the name before.
    Another,
    /// It is no name.
    NoName,
}

impl Shadow {
    /// What is wrong, for a person.
    pub fn words(self) -> &'static str {
        match self {
            Shadow::Ours => "has a name of fanfold's own tools",
            Shadow::Another => "has the name of another one",
            Shadow::NoName => "has no name that a tool can have",
        }
    }
}

/// Tells the tools that may be used from those that may not. Of two that look alike the first one counts.
pub fn guarded<T>(tools: Vec<T>, name: impl Fn(&T) -> &str) -> (Vec<T>, Vec<(String, Shadow)>) {
    let mut seen = Vec::new();
    let (mut sound, mut refused) = (Vec::new(), Vec::new());
    for tool in tools {
        let own = name(&tool).to_owned();
        let alike = alike(&own);
        let wrong = if !is_name(&own) {
            Some(Shadow::NoName)
        } else if alike.starts_with(OURS) {
            Some(Shadow::Ours)
        } else if seen.contains(&alike) {
            Some(Shadow::Another)
        } else {
            None
        };
        match wrong {
            Some(wrong) => refused.push((shown(&own), wrong)),
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
fn alike(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// A name that may be anything, as it can be shown.
fn shown(name: &str) -> String {
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
        let (sound, refused) = guarded(names.to_vec(), |name| name);
        assert_eq!(sound, ["search_nodes", "mem0/search"]);
        let why: Vec<Shadow> = refused.iter().map(|(_, why)| *why).collect();
        use Shadow::{Another, NoName, Ours};
        assert_eq!(why, [Ours, Ours, Another, Another, NoName, NoName, NoName, NoName]);
        assert!(refused.iter().all(|(name, _)| name.is_ascii() && name.len() <= LONGEST));
    }
}

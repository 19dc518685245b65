//! What can be wrong with a provider. None of it reaches a turn; a person is told once.

use std::time::Duration;

/// Why a provider did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// It could not be started or reached.
    #[error("it can't be reached: {0}")]
    Unreachable(String),
    /// It ended, or the connection broke.
    #[error("it is gone: {0}")]
    Disconnected(String),
    /// It was tried a moment ago, and is left alone for a while.
    #[error("it failed and is tried again in {} s", .0.as_secs().max(1))]
    BackingOff(Duration),
    /// It did not answer at all, for as long as anybody waits for a program or a server.
    #[error("it has not answered for {} s", .0.as_secs())]
    Timeout(Duration),
    /// It did not answer in time for a turn.
    #[error("it did not answer within {} ms", .0.as_millis())]
    Late(Duration),
    /// It answered with more than anybody wants to read.
    #[error("its answer is longer than {0} bytes")]
    TooLong(usize),
    /// It said no, in its own words.
    #[error("it refused: {0}")]
    Refused(String),
    /// It does not have the tool.
    #[error("it has no tool {0}")]
    NoTool(String),
    /// What it said is not understood.
    #[error("its answer is not understood: {0}")]
    InvalidAnswer(String),
}

impl MemoryError {
    /// Its name in a word.
    pub fn name(&self) -> &'static str {
        match self {
            MemoryError::Unreachable(_) => "unreachable",
            MemoryError::Disconnected(_) => "gone",
            MemoryError::BackingOff(_) => "resting",
            MemoryError::Timeout(_) => "silent",
            MemoryError::Late(_) => "late",
            MemoryError::TooLong(_) => "flood",
            MemoryError::Refused(_) => "refused",
            MemoryError::NoTool(_) => "no_tool",
            MemoryError::InvalidAnswer(_) => "broken",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            MemoryError::Unreachable(_) | MemoryError::Disconnected(_) | MemoryError::BackingOff(_) => {
                "check `command` or the address in [memory]; `fanfold memory check` tries it"
            }
            MemoryError::Timeout(_) => {
                "check that it runs by itself, and that `command` or the address in [memory] is a server of memory"
            }
            MemoryError::Late(_) => "try again, or give it more time with `deadline_ms` in [memory]",
            MemoryError::TooLong(_) => "ask it for less: most servers have a setting for the number of hits",
            MemoryError::Refused(_) => {
                "`fanfold memory check` shows which tools are called with which arguments"
            }
            MemoryError::NoTool(_) => "name its tools in [memory]: `search`, `write` and their arguments",
            MemoryError::InvalidAnswer(_) => "check that it is a server of memory, and which kind of one",
        }
    }

    /// Whether the connection is of no use any more.
    pub(crate) fn is_connection_error(&self) -> bool {
        matches!(self, MemoryError::Unreachable(_) | MemoryError::Disconnected(_))
    }
}

/// Words of somebody else's, as they may be shown: one line, without secrets, not long.
pub(crate) fn excerpt(text: &str) -> String {
    const MOST: usize = 200;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let clean = fanfold_redact::redact(&line);
    let end = clean.floor_char_boundary(MOST);
    if end < clean.len() { format!("{}…", &clean[..end]) } else { clean.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_are_short_and_without_secrets() {
        let secret = format!("{}-{}", "sk-ant-api03", "Zk3".repeat(31));
        let shown = excerpt(&format!("no\n  such key: {secret} {}", "x".repeat(500)));
        assert!(
            shown.starts_with("no such key:") && shown.len() < 210 && !shown.contains(&secret),
            "{shown}"
        );
    }
}

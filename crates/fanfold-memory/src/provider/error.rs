//! Errors of a memory provider. They never fail a turn; each is reported once.

use std::time::Duration;

/// Why a provider call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The program did not start, or the server refused the connection.
    #[error("it can't be reached: {0}")]
    Unreachable(String),
    /// The program exited, or the connection broke.
    #[error("the connection was lost: {0}")]
    Disconnected(String),
    /// A recent call failed, and the backoff has not passed yet.
    #[error("it failed recently; the next attempt is in {} s", .0.as_secs().max(1))]
    BackingOff(Duration),
    /// No answer within the timeout of a call.
    #[error("it has not answered for {} s", .0.as_secs())]
    Timeout(Duration),
    /// No answer within the deadline of a turn.
    #[error("it did not answer within {} ms", .0.as_millis())]
    Late(Duration),
    /// The answer exceeds the size limit.
    #[error("its answer is longer than {0} bytes")]
    TooLong(usize),
    /// The provider returned an error, quoted here.
    #[error("it refused: {0}")]
    Refused(String),
    /// The provider lacks a tool or route.
    #[error("it has no tool {0}")]
    NoTool(String),
    /// The answer is malformed.
    #[error("its answer is invalid: {0}")]
    InvalidAnswer(String),
}

impl MemoryError {
    /// A short name for metrics.
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

    /// The next step for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            MemoryError::Unreachable(_) | MemoryError::Disconnected(_) | MemoryError::BackingOff(_) => {
                "check `command` or the address in [memory]; `fanfold memory check` tries it"
            }
            MemoryError::Timeout(_) => {
                "check that it runs by itself, and that `command` or the address in [memory] is a memory server"
            }
            MemoryError::Late(_) => "try again, or give it more time with `deadline_ms` in [memory]",
            MemoryError::TooLong(_) => "ask it for less: most servers have a setting for the number of hits",
            MemoryError::Refused(_) => {
                "`fanfold memory check` shows which tools are called with which arguments"
            }
            MemoryError::NoTool(_) => "name its tools in [memory]: `search`, `write` and their arguments",
            MemoryError::InvalidAnswer(_) => {
                "check that it is a memory server, and which of `command`, `mcp` and `http` it needs"
            }
        }
    }

    /// Returns whether the connection failed, so that a retry may succeed.
    pub(crate) fn is_connection_error(&self) -> bool {
        matches!(self, MemoryError::Unreachable(_) | MemoryError::Disconnected(_))
    }
}

/// The beginning of a provider's message on one line, with secrets redacted.
pub(crate) fn excerpt(text: &str) -> String {
    const MAX_BYTES: usize = 200;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let clean = fanfold_redact::redact(&line);
    let end = clean.floor_char_boundary(MAX_BYTES);
    if end < clean.len() { format!("{}…", &clean[..end]) } else { clean.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_short_and_redacted() {
        let secret = format!("{}-{}", "sk-ant-api03", "Zk3".repeat(31));
        let shown = excerpt(&format!("no\n  such key: {secret} {}", "x".repeat(500)));
        assert!(
            shown.starts_with("no such key:") && shown.len() < 210 && !shown.contains(&secret),
            "{shown}"
        );
    }
}

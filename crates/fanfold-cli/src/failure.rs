//! Why a command stopped, in words for a person, and the exit code that tells a program.

use std::path::Path;
use std::{fmt, io};

use fanfold_core::Overflow;
use fanfold_wire::DecodeError;

/// A command could not do what it was asked to: what went wrong, what to do next, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hint: Option<String>,
    code: u8,
}

impl Failure {
    /// Anything but an overflow.
    pub(crate) const CODE: u8 = 1;
    /// No view fits into the room.
    pub(crate) const OVERFLOW: u8 = 3;

    /// A failure with a hint at what to do next.
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure { message: message.into(), hint: Some(hint.into()), code: Self::CODE }
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    /// What to do next.
    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<&Overflow> for Failure {
    fn from(overflow: &Overflow) -> Failure {
        let whole = overflow.to_string();
        let message = whole.split("\n\nhint:").next().unwrap_or_default().to_owned();
        Failure { message, hint: Some(overflow.remedy.clone()), code: Self::OVERFLOW }
    }
}

/// A file that could not be read.
pub(crate) fn not_read(path: &Path, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "check the path; `-` is stdin where a conversation is read",
        io::ErrorKind::IsADirectory => "give a file, not a directory",
        _ => "check that the file may be read",
    };
    Failure::new(format!("{} could not be read: {}", path.display(), reason(error)), hint)
}

/// A file that could not be written.
pub(crate) fn not_written(path: &Path, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "its directory is not there; make it first",
        io::ErrorKind::PermissionDenied => "choose a directory that you may write to",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room on the disk",
        _ => "choose another path",
    };
    Failure::new(format!("{} could not be written: {}", path.display(), reason(error)), hint)
}

/// The system's words without its number.
fn reason(error: &io::Error) -> String {
    let words = error.to_string();
    words.split(" (os error").next().unwrap_or_default().to_lowercase()
}

/// A body that could not be decoded, with the name of where it came from.
pub(crate) fn not_decoded(source: &str, error: &DecodeError) -> Failure {
    Failure::new(format!("{source}: {error}"), error.hint())
}

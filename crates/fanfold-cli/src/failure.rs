//! Errors with a hint and an exit code.

use std::path::Path;
use std::{fmt, io};

use fanfold_core::Overflow;
use fanfold_engine::{OpError, store_hint, store_message};
use fanfold_store::StoreError;
use fanfold_wire::DecodeError;

/// The result of what a command does.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    cause: Option<String>,
    hint: Option<String>,
    code: u8,
}

impl Failure {
    /// The exit code of everything but an overflow.
    const CODE: u8 = 1;
    /// The exit code when no view fits into the room.
    const OVERFLOW: u8 = 3;

    /// A failure with a hint.
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure { message: message.into(), cause: None, hint: Some(hint.into()), code: Self::CODE }
    }

    /// A failure with a cause and without a hint.
    pub(crate) fn caused_by(message: impl Into<String>, cause: &dyn fmt::Display) -> Failure {
        Failure { message: message.into(), cause: Some(cause.to_string()), hint: None, code: Self::CODE }
    }

    pub(crate) fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The failure as the error of a store that could not be opened.
    pub(crate) fn to_store_error(&self) -> StoreError {
        let hint = self.hint.as_ref().map_or_else(String::new, |hint| format!("\n\nhint: {hint}"));
        StoreError::Unavailable(format!("{}{hint}", self.message))
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<&Overflow> for Failure {
    fn from(overflow: &Overflow) -> Failure {
        let whole = overflow.to_string();
        let message = whole.split("\n\nhint:").next().unwrap_or_default().to_owned();
        Failure { message, cause: None, hint: Some(overflow.remedy.clone()), code: Self::OVERFLOW }
    }
}

impl From<OpError> for Failure {
    fn from(error: OpError) -> Failure {
        Failure::new(error.to_string(), error.hint())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::from(&error)
    }
}

impl From<&StoreError> for Failure {
    fn from(error: &StoreError) -> Failure {
        Failure::new(store_message(error), store_hint(error))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure { message: error.to_string(), cause: None, hint: None, code: Self::CODE }
    }
}

/// A file that could not be read.
pub(crate) fn not_read(path: &Path, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "check the path; `-` reads a conversation from stdin",
        io::ErrorKind::IsADirectory => "give a file, not a directory",
        io::ErrorKind::FileTooLarge => "give a regular file, which may be longer",
        _ => "check the permissions of the file",
    };
    Failure::new(format!("{} could not be read: {}", path.display(), reason(error)), hint)
}

/// A file that could not be written.
pub(crate) fn not_written(path: &Path, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "create its directory first",
        io::ErrorKind::PermissionDenied => "choose a directory that you may write to",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room on the disk",
        _ => "choose another path",
    };
    Failure::new(format!("{} could not be written: {}", path.display(), reason(error)), hint)
}

/// The system's message without its error number.
fn reason(error: &io::Error) -> String {
    let message = error.to_string();
    message.split(" (os error").next().unwrap_or_default().to_lowercase()
}

/// A body that could not be decoded. `source` names where it came from.
pub(crate) fn not_decoded(source: &str, error: &DecodeError) -> Failure {
    Failure::new(format!("{source}: {error}"), error.hint())
}

//! Keys, from the environment or a command. They are read when they are needed, and shown to nobody.

use std::fmt;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use crate::error::{ErrorClass, ProviderError};

/// The longest a command may take to print a key.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);
/// What a command prints beyond this is no key.
const MAX_OUTPUT_BYTES: u64 = 16 << 10;

/// Where a key comes from.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum KeySource {
    /// There is none: local servers want none.
    #[default]
    None,
    /// An environment variable.
    Env(String),
    /// A line for the shell that prints it.
    Command(String),
    /// A key that somebody else had, and gave.
    Forwarded(ForwardedKey),
}

/// A key that was given: of a client, whose request is passed on.
#[derive(Clone, PartialEq, Eq)]
pub struct ForwardedKey(String);

impl ForwardedKey {
    /// Takes a key.
    pub fn new(key: &str) -> ForwardedKey {
        ForwardedKey(key.to_owned())
    }
}

impl fmt::Debug for ForwardedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Given(…)")
    }
}

/// A command may have secrets among its arguments, so only its first word is shown.
impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.describe())
    }
}

/// A key that was read.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    /// The key itself, for a header.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    fn new(text: &str, from: &KeySource) -> Result<Secret, ProviderError> {
        let text = text.trim();
        let is_header = !text.is_empty() && text.bytes().all(|byte| (0x21..0x7f).contains(&byte));
        match text.is_empty() {
            true => Err(ProviderError::new(ErrorClass::Auth, format!("{} is empty", from.describe()))),
            false if !is_header => {
                let words = format!("{} has blanks or letters in it that no key has", from.describe());
                Err(ProviderError::new(ErrorClass::Auth, words))
            }
            false => Ok(Secret(text.to_owned())),
        }
    }
}

impl KeySource {
    /// The key's origin in words for a person.
    pub fn describe(&self) -> String {
        match self {
            KeySource::None => "no key".to_owned(),
            KeySource::Env(name) => format!("the environment variable {name}"),
            KeySource::Command(line) => {
                let program = line.split_whitespace().next().unwrap_or_default();
                format!("the output of `{program} …`")
            }
            KeySource::Forwarded(_) => "the client's key".to_owned(),
        }
    }

    /// Whether reading it again may give another one.
    pub(crate) fn is_command(&self) -> bool {
        matches!(self, KeySource::Command(_))
    }

    /// Reads the key.
    pub(crate) async fn read(&self) -> Result<Option<Secret>, ProviderError> {
        match self {
            KeySource::None => Ok(None),
            KeySource::Forwarded(ForwardedKey(text)) => Secret::new(text, self).map(Some),
            KeySource::Env(name) => match std::env::var(name) {
                Ok(text) => Secret::new(&text, self).map(Some),
                Err(_) => {
                    Err(ProviderError::new(ErrorClass::Auth, format!("{} is not set", self.describe())))
                }
            },
            KeySource::Command(line) => {
                let read = tokio::time::timeout(COMMAND_TIMEOUT, command_output(line)).await;
                let text = match read {
                    Ok(Ok(text)) => text,
                    Ok(Err(why)) => {
                        return Err(ProviderError::new(
                            ErrorClass::Auth,
                            format!("{} can't be had: {why}", self.describe()),
                        ));
                    }
                    Err(_) => {
                        let words = format!(
                            "{} did not come within {} s",
                            self.describe(),
                            COMMAND_TIMEOUT.as_secs()
                        );
                        return Err(ProviderError::new(ErrorClass::Auth, words));
                    }
                };
                Secret::new(&text, self).map(Some)
            }
        }
    }
}

/// What a line for the shell prints. Its words on stderr may quote a key and are not read.
async fn command_output(line: &str) -> Result<String, String> {
    let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut command = Command::new(shell);
    command.arg(flag).arg(line).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child =
        command.kill_on_drop(true).spawn().map_err(|error| format!("{shell} does not start: {error}"))?;
    let mut bytes = Vec::new();
    if let Some(out) = child.stdout.take() {
        out.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes).await.map_err(|error| error.to_string())?;
    }
    let status = child.wait().await.map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(match status.code() {
            Some(code) => format!("it ended with {code}"),
            None => "it was killed".to_owned(),
        });
    }
    String::from_utf8(bytes).map_err(|_| "it printed no text".to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn read(key: &KeySource) -> Result<Option<Secret>, ProviderError> {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(key.read())
    }

    #[test]
    fn a_command_prints_it() {
        let key = KeySource::Command("printf '  not-a-real-%s\\n\\n' key; echo noise >&2".to_owned());
        assert_eq!(read(&key).unwrap().unwrap().reveal(), "not-a-real-key");
        assert!(read(&KeySource::None).unwrap().is_none());
    }

    #[test]
    fn what_is_no_key_is_told_without_it() {
        let cases = [
            (KeySource::Env("FANFOLD_NOT_SET_ANYWHERE".to_owned()), "FANFOLD_NOT_SET_ANYWHERE is not set"),
            (KeySource::Command("echo hidden-words; exit 3".to_owned()), "it ended with 3"),
            (KeySource::Command("true hidden-words".to_owned()), "`true …` is empty"),
            (KeySource::Command("echo hidden words".to_owned()), "blanks"),
            (KeySource::Command("/nowhere/program hidden-words".to_owned()), "it ended with 127"),
            (KeySource::Command("kill -9 $$".to_owned()), "it was killed"),
        ];
        for (key, expected) in cases {
            let fault = read(&key).unwrap_err();
            assert_eq!(fault.class, ErrorClass::Auth);
            assert!(fault.message.contains(expected), "{fault:?}");
            assert!(!format!("{key:?} {fault:?} {fault}").contains("hidden"), "{fault:?}");
        }
    }

    #[test]
    fn a_command_that_floods_is_cut_off() {
        let fault = read(&KeySource::Command("yes 'a b' | head -c 100000".to_owned())).unwrap_err();
        assert_eq!(fault.class, ErrorClass::Auth);
    }
}

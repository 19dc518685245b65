//! API keys from the environment or a command. They are read on use and never printed.

use std::fmt;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use crate::error::{ErrorClass, ProviderError};

/// Time for a command to print a key.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum output of a command.
const MAX_OUTPUT_BYTES: u64 = 16 << 10;

/// Where a key comes from.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum KeySource {
    /// No key, as for most local servers.
    #[default]
    None,
    /// An environment variable.
    Env(String),
    /// A shell command that prints the key.
    Command(String),
    /// A key taken from the request of a client.
    Forwarded(ForwardedKey),
}

/// A key taken from a client's request, to be sent with further requests for that client.
#[derive(Clone, PartialEq, Eq)]
pub struct ForwardedKey(String);

impl ForwardedKey {
    /// Wraps a key.
    pub fn new(key: &str) -> ForwardedKey {
        ForwardedKey(key.to_owned())
    }
}

impl fmt::Debug for ForwardedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ForwardedKey(…)")
    }
}

/// Shows only the first word of a command, since its arguments may contain secrets.
impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.describe())
    }
}

/// A key as it is sent.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ApiKey(String);

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

impl ApiKey {
    /// The key in clear text, for a header.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    fn new(text: &str, source: &KeySource) -> Result<ApiKey, ProviderError> {
        let text = text.trim();
        let is_header = !text.is_empty() && text.bytes().all(|byte| (0x21..0x7f).contains(&byte));
        match text.is_empty() {
            true => Err(ProviderError::new(ErrorClass::Auth, format!("{} is empty", source.describe()))),
            false if !is_header => {
                let message =
                    format!("{} contains characters that are not allowed in a key", source.describe());
                Err(ProviderError::new(ErrorClass::Auth, message))
            }
            false => Ok(ApiKey(text.to_owned())),
        }
    }
}

impl KeySource {
    /// A description of the source for messages.
    pub fn describe(&self) -> String {
        match self {
            KeySource::None => "no key".to_owned(),
            KeySource::Env(name) => format!("the environment variable {name}"),
            KeySource::Command(command_line) => {
                let program = command_line.split_whitespace().next().unwrap_or_default();
                format!("the output of `{program} …`")
            }
            KeySource::Forwarded(_) => "the client's key".to_owned(),
        }
    }

    /// Returns whether another read may give another key.
    pub(crate) fn is_command(&self) -> bool {
        matches!(self, KeySource::Command(_))
    }

    /// Reads the key.
    pub(crate) async fn read(&self) -> Result<Option<ApiKey>, ProviderError> {
        match self {
            KeySource::None => Ok(None),
            KeySource::Forwarded(ForwardedKey(text)) => ApiKey::new(text, self).map(Some),
            KeySource::Env(name) => match std::env::var(name) {
                Ok(text) => ApiKey::new(&text, self).map(Some),
                Err(_) => {
                    Err(ProviderError::new(ErrorClass::Auth, format!("{} is not set", self.describe())))
                }
            },
            KeySource::Command(command_line) => {
                let read = tokio::time::timeout(COMMAND_TIMEOUT, command_output(command_line)).await;
                let text = match read {
                    Ok(Ok(text)) => text,
                    Ok(Err(why)) => {
                        return Err(ProviderError::new(
                            ErrorClass::Auth,
                            format!("cannot read {}: {why}", self.describe()),
                        ));
                    }
                    Err(_) => {
                        let message = format!(
                            "reading {} timed out after {} s",
                            self.describe(),
                            COMMAND_TIMEOUT.as_secs()
                        );
                        return Err(ProviderError::new(ErrorClass::Auth, message));
                    }
                };
                ApiKey::new(&text, self).map(Some)
            }
        }
    }
}

/// The output of a shell command. Its stderr is discarded, since it may quote a key.
async fn command_output(command_line: &str) -> Result<String, String> {
    let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut command = Command::new(shell);
    command.arg(flag).arg(command_line).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child =
        command.kill_on_drop(true).spawn().map_err(|error| format!("cannot start {shell}: {error}"))?;
    let mut bytes = Vec::new();
    if let Some(out) = child.stdout.take() {
        out.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes).await.map_err(|error| error.to_string())?;
    }
    let status = child.wait().await.map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(match status.code() {
            Some(code) => format!("the command exited with status {code}"),
            None => "the command was killed".to_owned(),
        });
    }
    String::from_utf8(bytes).map_err(|_| "the output is not UTF-8".to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn read(key: &KeySource) -> Result<Option<ApiKey>, ProviderError> {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(key.read())
    }

    #[test]
    fn a_command_prints_the_key() {
        let key = KeySource::Command("printf '  not-a-real-%s\\n\\n' key; echo noise >&2".to_owned());
        assert_eq!(read(&key).unwrap().unwrap().reveal(), "not-a-real-key");
        assert!(read(&KeySource::None).unwrap().is_none());
    }

    #[test]
    fn key_errors_do_not_contain_the_key() {
        let cases = [
            (KeySource::Env("FANFOLD_NOT_SET_ANYWHERE".to_owned()), "FANFOLD_NOT_SET_ANYWHERE is not set"),
            (KeySource::Command("echo hidden-words; exit 3".to_owned()), "exited with status 3"),
            (KeySource::Command("true hidden-words".to_owned()), "`true …` is empty"),
            (KeySource::Command("echo hidden words".to_owned()), "not allowed in a key"),
            (KeySource::Command("/nowhere/program hidden-words".to_owned()), "exited with status 127"),
            (KeySource::Command("kill -9 $$".to_owned()), "the command was killed"),
        ];
        for (key, expected) in cases {
            let error = read(&key).unwrap_err();
            assert_eq!(error.class, ErrorClass::Auth);
            assert!(error.message.contains(expected), "{error:?}");
            assert!(!format!("{key:?} {error:?} {error}").contains("hidden"), "{error:?}");
        }
    }

    #[test]
    fn long_output_of_a_command_is_cut() {
        let error = read(&KeySource::Command("yes 'a b' | head -c 100000".to_owned())).unwrap_err();
        assert_eq!(error.class, ErrorClass::Auth);
    }
}

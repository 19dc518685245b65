//! What went wrong, by its class, in the provider's words, and what to do about it.

pub(crate) mod phrases; //     phrases of providers and the class each one means
pub(crate) mod retry_after; // delays that providers ask for
pub(crate) mod classify; //    an error response
pub(crate) mod secret_mask; // removes secrets from messages

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The most letters that are kept of what a provider says.
pub(crate) const MAX_MESSAGE_CHARS: usize = 220;

/// What kind of thing went wrong. What to do next follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorClass {
    /// The key is missing, wrong, or not allowed to do this: 401, 403.
    Auth,
    /// The account has nothing left to spend: 402, or words to that effect.
    Quota,
    /// Too much in too short a time: 429. It passes.
    Rate,
    /// The prompt is too long for the model.
    Overflow,
    /// It took too long: to connect, to begin, between two bytes, or altogether.
    Timeout,
    /// There was no connection: the name, the port, TLS, or it broke before an answer began.
    Connection,
    /// There is no such model, or nothing at that address.
    NoModel,
    /// The request was refused: for what it says, or for how it is made.
    Refused,
    /// What came back is no answer: no JSON, no HTTP, or it broke off.
    Broken,
    /// An answer without a word.
    Empty,
    /// The provider failed: 500, 503, 529.
    Server,
}

impl ErrorClass {
    /// Every class.
    pub const ALL: [ErrorClass; 11] = [
        ErrorClass::Auth,
        ErrorClass::Quota,
        ErrorClass::Rate,
        ErrorClass::Overflow,
        ErrorClass::Timeout,
        ErrorClass::Connection,
        ErrorClass::NoModel,
        ErrorClass::Refused,
        ErrorClass::Broken,
        ErrorClass::Empty,
        ErrorClass::Server,
    ];

    /// Its name, as it is stored and counted.
    pub fn name(self) -> &'static str {
        match self {
            ErrorClass::Auth => "auth",
            ErrorClass::Quota => "quota",
            ErrorClass::Rate => "rate",
            ErrorClass::Overflow => "overflow",
            ErrorClass::Timeout => "timeout",
            ErrorClass::Connection => "connection",
            ErrorClass::NoModel => "no_model",
            ErrorClass::Refused => "refused",
            ErrorClass::Broken => "broken",
            ErrorClass::Empty => "empty",
            ErrorClass::Server => "server",
        }
    }

    /// What happened, in words for a person.
    fn describe(self) -> &'static str {
        match self {
            ErrorClass::Auth => "the key was not accepted",
            ErrorClass::Quota => "the account has nothing left to spend",
            ErrorClass::Rate => "too many requests for now",
            ErrorClass::Overflow => "the prompt is too long",
            ErrorClass::Timeout => "it took too long",
            ErrorClass::Connection => "there is no connection",
            ErrorClass::NoModel => "there is no such model",
            ErrorClass::Refused => "the request was refused",
            ErrorClass::Broken => "the answer is broken",
            ErrorClass::Empty => "the answer is empty",
            ErrorClass::Server => "the provider failed",
        }
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ErrorClass {
    type Err = String;

    fn from_str(name: &str) -> Result<ErrorClass, String> {
        let found = ErrorClass::ALL.into_iter().find(|class| class.name() == name);
        found.ok_or_else(|| format!("there is no class `{}`", name.chars().take(40).collect::<String>()))
    }
}

/// Who was asked, as it may be shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestTarget {
    /// The address, without credentials.
    pub address: String,
    /// The model.
    pub model: String,
    /// Where the key came from: `the environment variable OPENAI_API_KEY`.
    pub credential: String,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderError {
    /// What kind of thing went wrong.
    pub class: ErrorClass,
    /// The status, if there was one.
    pub status: Option<u16>,
    /// What was said, without secrets, at most 220 letters.
    pub message: String,
    /// How long the provider asks to be left alone.
    pub retry_after: Option<Duration>,
    /// How many tokens the model takes, if it said so when it refused a prompt for its length.
    pub limit: Option<u64>,
    /// Who was asked.
    pub target: Box<RequestTarget>,
    /// How many requests were made.
    pub n_tries: u32,
    /// Whether the same request may well succeed a moment later.
    pub(crate) is_transient: bool,
    /// What is to be asked differently, if that would help.
    pub(crate) adaptation: Option<Adaptation>,
}

/// What a refusal teaches about how this server wants to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Adaptation {
    /// The length of the answer is limited under another name.
    CompletionTokens,
    /// So many tokens of output are the most.
    MaxOutput(u64),
    /// A stream does not tell its usage.
    NoUsage,
    /// It does not stream.
    NoStream,
    /// It has no role for a system prompt.
    NoSystem,
    /// The address was right as it was written.
    UrlAsWritten,
}

impl ProviderError {
    /// A fault without a status.
    pub fn new(class: ErrorClass, words: impl Into<String>) -> ProviderError {
        ProviderError {
            class,
            status: None,
            message: single_line(&words.into()),
            retry_after: None,
            limit: None,
            target: Box::default(),
            n_tries: 0,
            is_transient: false,
            adaptation: None,
        }
    }

    /// The same fault, of a request that may well succeed a moment later.
    pub(crate) fn transient(self) -> ProviderError {
        ProviderError { is_transient: true, ..self }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> String {
        let RequestTarget { address: place, model, credential } = &*self.target;
        match self.class {
            ErrorClass::Auth if credential == "no key" => format!("{place} wants a key, and none is set"),
            ErrorClass::Auth => {
                format!("check {credential}: it must be a key for {place} that may use `{model}`")
            }
            ErrorClass::Quota if credential == "no key" => {
                format!("add credit at {place}, or name another model")
            }
            ErrorClass::Quota => format!("add credit to the account of {credential}, or name another model"),
            ErrorClass::Rate => match self.retry_after {
                Some(wait) => format!("try again in {} s, or name another model", wait.as_secs().max(1)),
                None => "try again in a minute, or name another model".to_owned(),
            },
            ErrorClass::Overflow => match self.limit {
                Some(limit) => {
                    format!("it takes {limit} tokens: set the window to that, or name a larger model")
                }
                None => "set a smaller window, or name a model with a larger one".to_owned(),
            },
            ErrorClass::Timeout => {
                "try again; if it stays so, check the server, or allow more time".to_owned()
            }
            ErrorClass::Connection => format!("check that {place} is right and that the server runs"),
            ErrorClass::NoModel => format!("check the name `{model}`, and the address {place}"),
            ErrorClass::Refused => "its words say why; another model may accept it".to_owned(),
            ErrorClass::Broken => {
                format!("try again; if it stays so, check that {place} is the model's own address")
            }
            ErrorClass::Empty => "try again, or name another model".to_owned(),
            ErrorClass::Server => "try again later; it is the provider's".to_owned(),
        }
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.target.address.is_empty() {
            write!(f, "{} at {}: ", self.target.model, self.target.address)?;
        }
        f.write_str(self.class.describe())?;
        if let Some(status) = self.status {
            write!(f, " ({status})")?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        if self.n_tries > 1 {
            write!(f, "; asked {} times", self.n_tries)?;
        }
        Ok(())
    }
}

impl std::error::Error for ProviderError {}

/// A text on one line, cut where it grows too long.
pub(crate) fn single_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MAX_MESSAGE_CHARS {
        return line;
    }
    line.chars().take(MAX_MESSAGE_CHARS - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for class in ErrorClass::ALL {
            assert_eq!(class.to_string().parse::<ErrorClass>().unwrap(), class);
        }
        assert!("weather".parse::<ErrorClass>().is_err());
    }

    #[test]
    fn a_fault_says_who_what_and_what_next() {
        let mut fault = ProviderError::new(ErrorClass::Auth, "Incorrect API key\n  provided");
        fault.status = Some(401);
        *fault.target = RequestTarget {
            address: "https://h/v1".to_owned(),
            model: "m".to_owned(),
            credential: "the environment variable K".to_owned(),
        };
        assert_eq!(
            fault.to_string(),
            "m at https://h/v1: the key was not accepted (401): Incorrect API key provided"
        );
        assert!(fault.hint().contains("environment variable K"));
        for class in ErrorClass::ALL {
            assert!(!ProviderError { class, ..fault.clone() }.hint().is_empty());
        }
    }

    #[test]
    fn words_are_cut_between_letters() {
        assert_eq!(
            ProviderError::new(ErrorClass::Server, "é".repeat(500)).message.chars().count(),
            MAX_MESSAGE_CHARS
        );
        assert_eq!(
            ProviderError::new(ErrorClass::Server, "é".repeat(MAX_MESSAGE_CHARS)).message.chars().count(),
            MAX_MESSAGE_CHARS
        );
    }
}

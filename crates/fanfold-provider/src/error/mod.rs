//! Errors of a provider: class, message and hint.

pub(crate) mod phrases; //     phrases of providers and the class each one means
pub(crate) mod retry_after; // delays that providers ask for
pub(crate) mod classify; //    an error response
pub(crate) mod secret_mask; // removes secrets from messages

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Maximum length of a provider's message.
pub(crate) const MAX_MESSAGE_CHARS: usize = 220;

/// The class of an error. It decides whether and how to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorClass {
    /// The key is missing, wrong, or not allowed to do this: 401, 403.
    Auth,
    /// The account has no credit left: 402, or a message to that effect.
    Quota,
    /// A rate limit, which resets after some time: 429.
    Rate,
    /// The prompt is too long for the model.
    Overflow,
    /// A timeout: while connecting, before the first byte, between two chunks, or in total.
    Timeout,
    /// No connection: unknown host, closed port, TLS error, or a connection that closed before an answer.
    Connection,
    /// The model or the route does not exist.
    NoModel,
    /// The provider refused the request, because of its content or its format.
    Refused,
    /// The response is malformed: neither JSON nor HTTP, or incomplete.
    Broken,
    /// The answer has no text.
    Empty,
    /// The provider failed: 500, 503, 529.
    Server,
}

impl ErrorClass {
    /// All classes.
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

    /// Its name in stored reports and metrics.
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

    /// A sentence for messages.
    fn describe(self) -> &'static str {
        match self {
            ErrorClass::Auth => "the key was not accepted",
            ErrorClass::Quota => "the account has no credit left",
            ErrorClass::Rate => "too many requests",
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
        found.ok_or_else(|| format!("unknown error class `{}`", name.chars().take(40).collect::<String>()))
    }
}

/// The target of a request, safe to print.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestTarget {
    /// The URL without credentials.
    pub address: String,
    /// The model.
    pub model: String,
    /// The source of the key: `the environment variable OPENAI_API_KEY`.
    pub credential: String,
}

/// An error of a request to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderError {
    /// The class of the error.
    pub class: ErrorClass,
    /// The HTTP status, if a response arrived.
    pub status: Option<u16>,
    /// The provider's message without secrets, at most 220 characters.
    pub message: String,
    /// The delay that the provider requested.
    pub retry_after: Option<Duration>,
    /// The context window in tokens, if an overflow error contains it.
    pub limit: Option<u64>,
    /// The target of the request.
    pub target: Box<RequestTarget>,
    /// Number of requests sent.
    pub n_attempts: u32,
    /// True if a retry of the same request may succeed.
    pub(crate) is_transient: bool,
    /// A change of the request that may make it succeed.
    pub(crate) adaptation: Option<Adaptation>,
}

/// A change to requests that an error response calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Adaptation {
    /// Limit the output with `max_completion_tokens` instead of `max_tokens`.
    CompletionTokens,
    /// Limit the output to this number of tokens.
    MaxOutput(u64),
    /// Omit `stream_options`.
    NoUsage,
    /// Do not stream.
    NoStream,
    /// Move the system prompt into the user message.
    NoSystem,
    /// Use the URL as configured, without adding `/v1`.
    UrlAsWritten,
}

impl ProviderError {
    /// An error without a status.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> ProviderError {
        ProviderError {
            class,
            status: None,
            message: single_line(&message.into()),
            retry_after: None,
            limit: None,
            target: Box::default(),
            n_attempts: 0,
            is_transient: false,
            adaptation: None,
        }
    }

    /// The same error, marked as transient.
    pub(crate) fn transient(self) -> ProviderError {
        ProviderError { is_transient: true, ..self }
    }

    /// The next step for the user.
    pub fn hint(&self) -> String {
        let RequestTarget { address, model, credential } = &*self.target;
        match self.class {
            ErrorClass::Auth if credential == "no key" => {
                format!("{address} requires a key, but none is set")
            }
            ErrorClass::Auth => {
                format!("check {credential}: it must be a key for {address} that may use `{model}`")
            }
            ErrorClass::Quota if credential == "no key" => {
                format!("add credit at {address}, or name another model")
            }
            ErrorClass::Quota => format!("add credit to the account of {credential}, or name another model"),
            ErrorClass::Rate => match self.retry_after {
                Some(delay) => format!("try again in {} s, or name another model", delay.as_secs().max(1)),
                None => "try again in a minute, or name another model".to_owned(),
            },
            ErrorClass::Overflow => match self.limit {
                Some(limit) => {
                    format!(
                        "the model accepts {limit} tokens: set the window to that, or name a larger model"
                    )
                }
                None => "set a smaller window, or name a model with a larger one".to_owned(),
            },
            ErrorClass::Timeout => {
                "try again; if it happens again, check the server, or allow more time".to_owned()
            }
            ErrorClass::Connection => {
                format!("check that {address} is correct and that the server is running")
            }
            ErrorClass::NoModel => format!("check the name `{model}` and the address {address}"),
            ErrorClass::Refused => "see the message; another model may accept the request".to_owned(),
            ErrorClass::Broken => {
                format!("try again; if it happens again, check that {address} is the API of the model")
            }
            ErrorClass::Empty => "try again, or name another model".to_owned(),
            ErrorClass::Server => "try again later; the fault is with the provider".to_owned(),
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
        if self.n_attempts > 1 {
            write!(f, "; {} attempts", self.n_attempts)?;
        }
        Ok(())
    }
}

impl std::error::Error for ProviderError {}

/// A text on one line, limited in length.
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
    fn names_parse_back() {
        for class in ErrorClass::ALL {
            assert_eq!(class.to_string().parse::<ErrorClass>().unwrap(), class);
        }
        assert!("weather".parse::<ErrorClass>().is_err());
    }

    #[test]
    fn messages_name_target_class_and_cause() {
        let mut error = ProviderError::new(ErrorClass::Auth, "Incorrect API key\n  provided");
        error.status = Some(401);
        *error.target = RequestTarget {
            address: "https://h/v1".to_owned(),
            model: "m".to_owned(),
            credential: "the environment variable K".to_owned(),
        };
        assert_eq!(
            error.to_string(),
            "m at https://h/v1: the key was not accepted (401): Incorrect API key provided"
        );
        assert!(error.hint().contains("environment variable K"));
        for class in ErrorClass::ALL {
            assert!(!ProviderError { class, ..error.clone() }.hint().is_empty());
        }
    }

    #[test]
    fn messages_are_cut_between_characters() {
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

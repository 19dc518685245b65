//! What went wrong, by its class, in the provider's words, and what to do about it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The most letters that are kept of what a provider says.
pub(crate) const LONGEST: usize = 220;

/// What kind of thing went wrong. What to do next follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
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

impl Class {
    /// Every class.
    pub const ALL: [Class; 11] = [
        Class::Auth,
        Class::Quota,
        Class::Rate,
        Class::Overflow,
        Class::Timeout,
        Class::Connection,
        Class::NoModel,
        Class::Refused,
        Class::Broken,
        Class::Empty,
        Class::Server,
    ];

    /// Its name, as it is stored and counted.
    pub fn name(self) -> &'static str {
        match self {
            Class::Auth => "auth",
            Class::Quota => "quota",
            Class::Rate => "rate",
            Class::Overflow => "overflow",
            Class::Timeout => "timeout",
            Class::Connection => "connection",
            Class::NoModel => "no_model",
            Class::Refused => "refused",
            Class::Broken => "broken",
            Class::Empty => "empty",
            Class::Server => "server",
        }
    }

    /// What happened, in words for a person.
    fn told(self) -> &'static str {
        match self {
            Class::Auth => "the key was not accepted",
            Class::Quota => "the account has nothing left to spend",
            Class::Rate => "too many requests for now",
            Class::Overflow => "the prompt is too long",
            Class::Timeout => "it took too long",
            Class::Connection => "there is no connection",
            Class::NoModel => "there is no such model",
            Class::Refused => "the request was refused",
            Class::Broken => "the answer is broken",
            Class::Empty => "the answer is empty",
            Class::Server => "the provider failed",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Class {
    type Err = String;

    fn from_str(name: &str) -> Result<Class, String> {
        let found = Class::ALL.into_iter().find(|class| class.name() == name);
        found.ok_or_else(|| format!("there is no class `{}`", name.chars().take(40).collect::<String>()))
    }
}

/// Who was asked, as it may be shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asked {
    /// The address, without credentials.
    pub place: String,
    /// The model.
    pub model: String,
    /// Where the key came from: `the environment variable OPENAI_API_KEY`.
    pub credential: String,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What kind of thing went wrong.
    pub class: Class,
    /// The status, if there was one.
    pub status: Option<u16>,
    /// What was said, without secrets, at most 220 letters.
    pub words: String,
    /// How long the provider asks to be left alone.
    pub retry_after: Option<Duration>,
    /// How many tokens the model takes, if it said so when it refused a prompt for its length.
    pub limit: Option<u64>,
    /// Who was asked.
    pub asked: Box<Asked>,
    /// How many requests were made.
    pub n_tries: u32,
    /// Whether the same request may well succeed a moment later.
    pub(crate) is_passing: bool,
    /// What is to be asked differently, if that would help.
    pub(crate) lesson: Option<Lesson>,
}

/// What a refusal teaches about how this server wants to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lesson {
    /// The length of the answer is limited under another name.
    CompletionTokens,
    /// So many tokens of output are the most.
    Output(u64),
    /// A stream does not tell its usage.
    NoUsage,
    /// It does not stream.
    Whole,
    /// It has no role for a system prompt.
    NoSystem,
    /// The address was right as it was written.
    AsWritten,
}

impl Fault {
    /// A fault without a status.
    pub fn new(class: Class, words: impl Into<String>) -> Fault {
        Fault {
            class,
            status: None,
            words: shortened(&words.into()),
            retry_after: None,
            limit: None,
            asked: Box::default(),
            n_tries: 0,
            is_passing: false,
            lesson: None,
        }
    }

    /// The same fault, of a request that may well succeed a moment later.
    pub(crate) fn passing(self) -> Fault {
        Fault { is_passing: true, ..self }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> String {
        let Asked { place, model, credential } = &*self.asked;
        match self.class {
            Class::Auth if credential == "no key" => format!("{place} wants a key, and none is set"),
            Class::Auth => format!("check {credential}: it must be a key for {place} that may use `{model}`"),
            Class::Quota if credential == "no key" => {
                format!("add credit at {place}, or name another model")
            }
            Class::Quota => format!("add credit to the account of {credential}, or name another model"),
            Class::Rate => match self.retry_after {
                Some(wait) => format!("try again in {} s, or name another model", wait.as_secs().max(1)),
                None => "try again in a minute, or name another model".to_owned(),
            },
            Class::Overflow => match self.limit {
                Some(limit) => {
                    format!("it takes {limit} tokens: set the window to that, or name a larger model")
                }
                None => "set a smaller window, or name a model with a larger one".to_owned(),
            },
            Class::Timeout => "try again; if it stays so, check the server, or allow more time".to_owned(),
            Class::Connection => format!("check that {place} is right and that the server runs"),
            Class::NoModel => format!("check the name `{model}`, and the address {place}"),
            Class::Refused => "its words say why; another model may accept it".to_owned(),
            Class::Broken => {
                format!("try again; if it stays so, check that {place} is the model's own address")
            }
            Class::Empty => "try again, or name another model".to_owned(),
            Class::Server => "try again later; it is the provider's".to_owned(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.asked.place.is_empty() {
            write!(f, "{} at {}: ", self.asked.model, self.asked.place)?;
        }
        f.write_str(self.class.told())?;
        if let Some(status) = self.status {
            write!(f, " ({status})")?;
        }
        if !self.words.is_empty() {
            write!(f, ": {}", self.words)?;
        }
        if self.n_tries > 1 {
            write!(f, "; asked {} times", self.n_tries)?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}

/// A text on one line, cut where it grows too long.
pub(crate) fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST {
        return line;
    }
    line.chars().take(LONGEST - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for class in Class::ALL {
            assert_eq!(class.to_string().parse::<Class>().unwrap(), class);
        }
        assert!("weather".parse::<Class>().is_err());
    }

    #[test]
    fn a_fault_says_who_what_and_what_next() {
        let mut fault = Fault::new(Class::Auth, "Incorrect API key\n  provided");
        fault.status = Some(401);
        *fault.asked = Asked {
            place: "https://h/v1".to_owned(),
            model: "m".to_owned(),
            credential: "the environment variable K".to_owned(),
        };
        assert_eq!(
            fault.to_string(),
            "m at https://h/v1: the key was not accepted (401): Incorrect API key provided"
        );
        assert!(fault.hint().contains("environment variable K"));
        for class in Class::ALL {
            assert!(!Fault { class, ..fault.clone() }.hint().is_empty());
        }
    }

    #[test]
    fn words_are_cut_between_letters() {
        assert_eq!(Fault::new(Class::Server, "é".repeat(500)).words.chars().count(), LONGEST);
        assert_eq!(Fault::new(Class::Server, "é".repeat(LONGEST)).words.chars().count(), LONGEST);
    }
}

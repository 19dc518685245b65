//! The changes that messages make to a transcript, and oddities found in them.

use std::fmt;

use fanfold_core::{CallId, Count, Entry, Origin, Outcome, Transcript};

/// A change of a transcript by a message. Changes are applied in order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "changes live for one request, in one vector")]
pub enum Change {
    /// Appends an entry.
    Append(Entry),
    /// Gives a call its result.
    Answer(CallId, Outcome),
}

impl Change {
    /// Counts every text of the change that has not been counted yet.
    ///
    /// A transcript does this itself. A caller with many changes may count them on several threads first.
    pub fn count(&mut self, counter: &dyn Count) {
        match self {
            Change::Append(entry) => entry.count(counter),
            Change::Answer(_, outcome) => outcome.count(counter),
        }
    }

    /// Applies the change.
    pub fn apply(self, transcript: &mut Transcript, counter: &dyn Count) {
        match self {
            Change::Append(entry) => {
                transcript.append(entry, counter);
            }
            Change::Answer(call, outcome) => {
                transcript.set_result(call, outcome, counter);
            }
        }
    }
}

/// An oddity of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The message and its part.
    pub origin: Origin,
    /// The oddity.
    pub oddity: Oddity,
}

impl Repair {
    /// The description in a request without folds, which is sent unchanged.
    pub fn describe_unchanged(&self) -> String {
        format!("{}{}; left unchanged", self.location(), self.oddity.describe().0)
    }

    fn location(&self) -> String {
        if self.origin == Origin::OUTSIDE {
            "system text: ".to_owned()
        } else {
            format!("message {}: ", self.origin.message)
        }
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.location(), self.oddity)
    }
}

/// An oddity of a message. Its text includes the treatment in requests with folds.
///
/// A request without folds is sent unchanged, with its oddities.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Oddity {
    /// A result whose call is missing or already has a result.
    OrphanResult(String),
    /// A call without an id.
    MissingId(String),
    /// A call with the id of another call.
    DuplicateId(String),
    /// A result that names no call.
    UnnamedResult,
    /// A call without the name of a tool.
    NamelessCall,
    /// A call whose arguments are null.
    NoArguments(String),
    /// Arguments that are not JSON.
    ArgumentsNotJson(String),
    /// A result that does not directly follow its call.
    LateResult(String),
    /// Half a surrogate pair in a text.
    LoneSurrogate,
    /// A role of unknown name.
    UnknownRole(String),
    /// An item of the list that is not a message.
    NotAMessage,
    /// More calls in one reply than can be numbered.
    TooManyCalls,
    /// A call that another entry follows instead of a result.
    NeverAnswered(String),
}

impl Oddity {
    /// The oddity, and how it is treated in views with folds.
    fn describe(&self) -> (String, String) {
        let (what, treatment) = match self {
            Oddity::OrphanResult(id) => {
                (format!("a result without its call ({id})"), "sent as text of the harness")
            }
            Oddity::MissingId(id) => return ("a call without an id".to_owned(), format!("renamed to {id}")),
            Oddity::DuplicateId(id) => {
                return ("a call with the id of another".to_owned(), format!("renamed to {id}"));
            }
            Oddity::UnnamedResult => {
                ("a result that names no call".to_owned(), "given to the first waiting call")
            }
            Oddity::NamelessCall => ("a call without the name of a tool".to_owned(), "kept"),
            Oddity::NoArguments(tool) => (format!("the arguments of {tool} are null"), "sent as {}"),
            Oddity::ArgumentsNotJson(tool) => (format!("the arguments of {tool} are not JSON"), "kept"),
            Oddity::LateResult(id) => {
                (format!("the result of {id} does not follow its call"), "moved after it")
            }
            Oddity::LoneSurrogate => {
                ("half a surrogate pair".to_owned(), "decoded as U+FFFD, sent unchanged")
            }
            Oddity::UnknownRole(role) => (format!("the role `{role}` is not known"), "sent unchanged"),
            Oddity::NotAMessage => ("not a message".to_owned(), "sent unchanged"),
            Oddity::TooManyCalls => {
                ("more calls in one reply than can be numbered".to_owned(), "the rest are kept")
            }
            Oddity::NeverAnswered(id) => {
                (format!("a call that was never answered ({id})"), "sent with a placeholder result")
            }
        };
        (what, treatment.to_owned())
    }
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, treatment) = self.describe();
        write!(f, "{what}; {treatment}")
    }
}

#[cfg(test)]
mod tests {
    use fanfold_core::{Body, EntryId, Tokens, Words};

    use super::*;

    #[test]
    fn outcomes_are_counted_before_they_are_applied() {
        let call = CallId { step: EntryId(0), call: 0 };
        let origin = Origin::message(3);
        let outcome = Outcome { body: Body::text("two words"), is_error: true, media: Vec::new(), origin };
        let mut change = Change::Answer(call, outcome.clone());
        change.count(&Words);
        let Change::Answer(_, counted) = change else { panic!("an answer stays an answer") };
        assert_eq!(counted.body.tokens(), Tokens(2));
        assert_eq!((counted.origin, counted.is_error), (outcome.origin, outcome.is_error));
    }
}

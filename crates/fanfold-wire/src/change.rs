//! What arriving messages do to a transcript, and what was odd about them.

use std::fmt;

use fanfold_core::{CallId, Count, Entry, Origin, Outcome, Transcript};

/// One thing that an arriving message does to a transcript. Changes are made in order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "changes live for one request, in one vector")]
pub enum Change {
    /// An entry comes at the end.
    Append(Entry),
    /// A call gets its result.
    Answer(CallId, Outcome),
}

impl Change {
    /// Counts every text of the change that has not been counted yet.
    ///
    /// A transcript does this by itself; a caller with many changes may do it on several threads before.
    pub fn count(&mut self, counter: &dyn Count) {
        match self {
            Change::Append(entry) => entry.count(counter),
            Change::Answer(_, outcome) => outcome.count(counter),
        }
    }

    /// Makes the change.
    pub fn apply(self, transcript: &mut Transcript, counter: &dyn Count) {
        match self {
            Change::Append(entry) => {
                transcript.append(entry, counter);
            }
            Change::Answer(call, outcome) => {
                transcript.answer(call, outcome, counter);
            }
        }
    }
}

/// Something that was odd on arrival, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The message and the part of it.
    pub origin: Origin,
    /// What was odd.
    pub oddity: Oddity,
}

impl Repair {
    /// The words for it where nothing was folded, so that it leaves as it came.
    pub fn left_alone(&self) -> String {
        format!("{}{}; left as it came", self.place(), self.oddity.words().0)
    }

    fn place(&self) -> String {
        if self.origin == Origin::OUTSIDE {
            "system text: ".to_owned()
        } else {
            format!("message {}: ", self.origin.message)
        }
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.place(), self.oddity)
    }
}

/// What was odd on arrival. Each displays with how it is treated.
///
/// A request in which nothing is folded leaves as it came, odd or not.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Oddity {
    /// A result whose call is not there, or has its result already.
    OrphanResult(String),
    /// A call without an id.
    MissingId(String),
    /// A call with the id of another.
    DoubledId(String),
    /// A result that names no call.
    UnnamedResult,
    /// A call without the name of a tool.
    NamelessCall,
    /// A call whose arguments are null.
    NoArguments(String),
    /// Arguments that are no JSON.
    ArgumentsNotJson(String),
    /// A result that stands away from its call.
    LateResult(String),
    /// Half a surrogate pair in a text.
    LoneSurrogate,
    /// A role that is not known.
    UnknownRole(String),
    /// Something in the list that is no message.
    NotAMessage,
    /// More calls in one reply than can be told apart.
    TooManyCalls,
    /// A call that something else follows, and no result.
    NeverAnswered(String),
}

impl Oddity {
    /// What it is, and how it is treated in a view that was touched.
    fn words(&self) -> (String, String) {
        let (what, treated) = match self {
            Oddity::OrphanResult(id) => {
                (format!("a result without its call ({id})"), "sent as text of the harness")
            }
            Oddity::MissingId(id) => return ("a call without an id".to_owned(), format!("called {id}")),
            Oddity::DoubledId(id) => {
                return ("a call with the id of another".to_owned(), format!("called {id}"));
            }
            Oddity::UnnamedResult => {
                ("a result that names no call".to_owned(), "given to the first one waiting")
            }
            Oddity::NamelessCall => ("a call without the name of a tool".to_owned(), "kept"),
            Oddity::NoArguments(tool) => (format!("the arguments of {tool} are null"), "sent as {}"),
            Oddity::ArgumentsNotJson(tool) => (format!("the arguments of {tool} are not JSON"), "kept"),
            Oddity::LateResult(id) => {
                (format!("the result of {id} stands away from its call"), "moved behind it")
            }
            Oddity::LoneSurrogate => ("half a surrogate pair".to_owned(), "read as U+FFFD, kept as it came"),
            Oddity::UnknownRole(role) => (format!("the role `{role}` is not known"), "kept as it came"),
            Oddity::NotAMessage => ("no message".to_owned(), "kept as it came"),
            Oddity::TooManyCalls => {
                ("more calls in one reply than can be told apart".to_owned(), "the rest are kept")
            }
            Oddity::NeverAnswered(id) => {
                (format!("a call that was never answered ({id})"), "sent with a result that says so")
            }
        };
        (what, treated.to_owned())
    }
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, treated) = self.words();
        write!(f, "{what}; {treated}")
    }
}

#[cfg(test)]
mod tests {
    use fanfold_core::{Body, EntryId, Tokens, Words};

    use super::*;

    #[test]
    fn answers_are_counted_before_they_are_made() {
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

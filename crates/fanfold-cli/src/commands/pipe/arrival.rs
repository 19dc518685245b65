//! Whether arriving messages are the whole history or only what is new.
//!
//! A whole history begins with the messages held, byte for byte. What does not is an increment if it comes with the
//! next number and does not begin the conversation anew; everything else is a conversation that was edited or rewound,
//! and starts again. Once a session has shown which of the two it sends, it is held to that.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::value::RawValue;

use crate::failure::Failure;

/// What a session has been seen to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Habit {
    /// Nothing that tells yet.
    Unknown,
    /// The whole history each time.
    Whole,
    /// What is new each time.
    New,
}

/// What to do with arriving messages.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// They are the whole history; what comes after the messages held is new.
    Grown,
    /// All of them are new.
    Added,
    /// They are a history that does not continue the one held.
    Anew,
    /// They have been taken already.
    Again,
}

/// What is known of the session when messages arrive.
pub(crate) struct Known<'a> {
    pub(crate) habit: Habit,
    pub(crate) n_held: usize,
    pub(crate) first_held: Option<&'a str>,
    /// How many of the arriving messages are those held, from the first on.
    pub(crate) n_common: usize,
    /// The number of the last call.
    pub(crate) last_call: Option<u64>,
    /// The print of the last increment.
    pub(crate) last_print: u64,
}

/// What the request says.
pub(crate) struct Said<'a> {
    pub(crate) is_new: Option<bool>,
    pub(crate) call: Option<u64>,
    pub(crate) list: &'a str,
    pub(crate) messages: &'a [&'a RawValue],
}

/// Decides what arriving messages are.
pub(crate) fn arrival(known: &Known<'_>, said: &Said<'_>) -> Result<Arrival, Failure> {
    let is_next = is_next(said.call, known.last_call);
    // Some count from 0.
    let is_first = said.call.is_some_and(|call| call <= 1) && !is_next;
    let is_grown = known.n_common == known.n_held && said.messages.len() >= known.n_held;
    match (said.is_new, known.habit) {
        (Some(true), _) if is_first && known.last_call.is_some() => Ok(Arrival::Anew),
        (Some(true), _) => after_the_last(known, said, is_next || said.call.is_none()),
        (Some(false), _) | (None, Habit::Whole) if is_grown => Ok(Arrival::Grown),
        (Some(false), _) | (None, Habit::Whole) => Ok(Arrival::Anew),
        (None, Habit::New) if is_first || said.call.is_none() => Ok(Arrival::Anew),
        (None, Habit::New) => after_the_last(known, said, is_next),
        (None, Habit::Unknown) if is_grown => Ok(Arrival::Grown),
        (None, Habit::Unknown) => {
            // A whole history that was edited begins as the conversation held does.
            let begins_anew = said.messages.first().map(|first| first.get()) == known.first_held;
            Ok(if is_next && !begins_anew { Arrival::Added } else { Arrival::Anew })
        }
    }
}

/// Whether a call is the one after the last.
pub(crate) fn is_next(call: Option<u64>, last: Option<u64>) -> bool {
    call.zip(last).is_some_and(|(call, last)| last.checked_add(1) == Some(call))
}

/// A number by which a text is known again.
pub(crate) fn print_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn after_the_last(known: &Known<'_>, said: &Said<'_>, is_next: bool) -> Result<Arrival, Failure> {
    if is_next || known.last_call.is_none() {
        return Ok(Arrival::Added);
    }
    if said.call == known.last_call && print_of(said.list) == known.last_print {
        return Ok(Arrival::Again);
    }
    let call = said.call.map_or_else(|| "a call without a number".to_owned(), |call| format!("call {call}"));
    let last = known.last_call.unwrap_or_default();
    Err(Failure::new(
        format!("{call} came after call {last}: messages are missing"),
        "send every call's messages once and in order, or the whole history with \"incremental\": false",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: [&str; 2] = ["{\"role\":\"system\"}", "{\"role\":\"user\"}"];

    fn check(habit: Habit, call: Option<u64>, is_new: Option<bool>, messages: &[&str]) -> Option<Arrival> {
        check_after(4, habit, call, is_new, messages)
    }

    fn check_after(
        last_call: u64,
        habit: Habit,
        call: Option<u64>,
        is_new: Option<bool>,
        messages: &[&str],
    ) -> Option<Arrival> {
        let raws: Vec<Box<RawValue>> =
            messages.iter().map(|m| RawValue::from_string((*m).to_owned()).expect("JSON")).collect();
        let raws: Vec<&RawValue> = raws.iter().map(|raw| &**raw).collect();
        let n_common = HELD.iter().zip(messages).take_while(|(held, new)| held == new).count();
        let known = Known {
            habit,
            n_held: 2,
            first_held: Some(HELD[0]),
            n_common,
            last_call: Some(last_call),
            last_print: print_of("[9]"),
        };
        let list = format!("[{}]", messages.join(","));
        arrival(&known, &Said { is_new, call, list: &list, messages: &raws }).ok()
    }

    #[test]
    fn a_history_that_goes_on_has_grown() {
        let longer = [HELD[0], HELD[1], "3"];
        assert_eq!(check(Habit::Unknown, Some(5), None, &longer), Some(Arrival::Grown));
        assert_eq!(check(Habit::Whole, None, None, &longer), Some(Arrival::Grown));
        assert_eq!(check(Habit::Whole, Some(5), None, &HELD), Some(Arrival::Grown));
    }

    #[test]
    fn the_next_call_with_other_messages_adds_them() {
        assert_eq!(check(Habit::Unknown, Some(5), None, &["3", "4"]), Some(Arrival::Added));
        assert_eq!(check(Habit::New, Some(5), None, &["3"]), Some(Arrival::Added));
        assert_eq!(check(Habit::New, Some(5), None, &[]), Some(Arrival::Added));
        assert_eq!(check(Habit::Unknown, None, Some(true), &["3"]), Some(Arrival::Added));
    }

    #[test]
    fn some_count_from_zero() {
        for is_new in [None, Some(true)] {
            assert_eq!(check_after(0, Habit::New, Some(1), is_new, &["3"]), Some(Arrival::Added));
            assert_eq!(check(Habit::New, Some(0), is_new, &["3"]), Some(Arrival::Anew));
            assert_eq!(check(Habit::New, Some(1), is_new, &["3"]), Some(Arrival::Anew));
        }
        assert_eq!(check_after(0, Habit::Unknown, Some(1), None, &["3"]), Some(Arrival::Added));
    }

    #[test]
    fn an_edited_history_starts_anew() {
        let edited = [HELD[0], "2"];
        assert_eq!(check(Habit::Unknown, Some(5), None, &edited), Some(Arrival::Anew));
        assert_eq!(check(Habit::Whole, Some(5), None, &["1", "2"]), Some(Arrival::Anew));
        assert_eq!(check(Habit::Whole, Some(5), None, &HELD[..1]), Some(Arrival::Anew));
        for habit in [Habit::Unknown, Habit::Whole, Habit::New] {
            assert_eq!(check(habit, Some(1), None, &["3"]), Some(Arrival::Anew));
            assert_eq!(check(habit, None, None, &["3"]), Some(Arrival::Anew));
        }
    }

    #[test]
    fn a_gap_is_an_error_and_a_repetition_is_none() {
        assert_eq!(check(Habit::New, Some(7), None, &["3"]), None);
        assert_eq!(check(Habit::New, Some(4), None, &["9"]), Some(Arrival::Again));
        assert_eq!(check(Habit::New, Some(4), None, &["8"]), None);
    }
}

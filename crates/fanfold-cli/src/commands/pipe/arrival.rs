//! Classifies arriving messages as the whole history or an increment.
//!
//! A whole history begins with the messages of the session, byte for byte. Other messages are an increment if they
//! come with the next call number and with another first message than the session; otherwise the conversation was
//! edited or rewound, and starts again. Once a session has shown which of the two it sends, the other one is not
//! considered.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::value::RawValue;

use crate::failure::{Failure, Result};

/// The messages that a session sends with each call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendMode {
    /// Not known yet.
    Unknown,
    WholeHistory,
    Increments,
}

/// The classification of arriving messages.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The whole history; the messages after those of the session are new.
    Grown,
    /// An increment.
    Added,
    /// A history that does not continue the one of the session.
    Restarted,
    /// A repetition of the last increment.
    Repeated,
}

/// The session when messages arrive.
pub(crate) struct ArrivalState<'a> {
    pub(crate) mode: SendMode,
    pub(crate) n_messages: usize,
    pub(crate) first_message: Option<&'a str>,
    /// The number of leading arriving messages that equal those of the session.
    pub(crate) n_common: usize,
    /// The number of the last call.
    pub(crate) last_call: Option<u64>,
    /// The hash of the last increment.
    pub(crate) last_hash: u64,
}

/// The arriving messages.
pub(crate) struct ArrivingMessages<'a> {
    pub(crate) is_increment: Option<bool>,
    pub(crate) call: Option<u64>,
    pub(crate) list: &'a str,
    pub(crate) messages: &'a [&'a RawValue],
}

/// Classifies arriving messages.
pub(crate) fn classify(session: &ArrivalState<'_>, arriving: &ArrivingMessages<'_>) -> Result<Arrival> {
    let is_next = is_next(arriving.call, session.last_call);
    // Some clients count calls from 0.
    let is_first = arriving.call.is_some_and(|call| call <= 1) && !is_next;
    let is_grown = session.n_common == session.n_messages && arriving.messages.len() >= session.n_messages;
    match (arriving.is_increment, session.mode) {
        (Some(true), _) if is_first && session.last_call.is_some() => Ok(Arrival::Restarted),
        (Some(true), _) => increment(session, arriving, is_next || arriving.call.is_none()),
        (Some(false), _) | (None, SendMode::WholeHistory) if is_grown => Ok(Arrival::Grown),
        (Some(false), _) | (None, SendMode::WholeHistory) => Ok(Arrival::Restarted),
        (None, SendMode::Increments) if is_first || arriving.call.is_none() => Ok(Arrival::Restarted),
        (None, SendMode::Increments) => increment(session, arriving, is_next),
        (None, SendMode::Unknown) if is_grown => Ok(Arrival::Grown),
        (None, SendMode::Unknown) => {
            // An edited history begins with the first message of the session.
            let is_restarted = arriving.messages.first().map(|first| first.get()) == session.first_message;
            Ok(if is_next && !is_restarted { Arrival::Added } else { Arrival::Restarted })
        }
    }
}

/// True if a call is the one after the last.
pub(crate) fn is_next(call: Option<u64>, last: Option<u64>) -> bool {
    call.zip(last).is_some_and(|(call, last)| last.checked_add(1) == Some(call))
}

/// The hash of a text.
pub(crate) fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// An increment, if it follows the last call.
fn increment(session: &ArrivalState<'_>, arriving: &ArrivingMessages<'_>, is_next: bool) -> Result<Arrival> {
    if is_next || session.last_call.is_none() {
        return Ok(Arrival::Added);
    }
    if arriving.call == session.last_call && hash(arriving.list) == session.last_hash {
        return Ok(Arrival::Repeated);
    }
    let call =
        arriving.call.map_or_else(|| "a call without a number".to_owned(), |call| format!("call {call}"));
    let last = session.last_call.unwrap_or_default();
    Err(Failure::new(
        format!("{call} came after call {last}: messages are missing"),
        "send every call's messages once and in order, or the whole history with \"incremental\": false",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: [&str; 2] = ["{\"role\":\"system\"}", "{\"role\":\"user\"}"];

    fn check(
        mode: SendMode,
        call: Option<u64>,
        is_increment: Option<bool>,
        messages: &[&str],
    ) -> Option<Arrival> {
        check_after(4, mode, call, is_increment, messages)
    }

    fn check_after(
        last_call: u64,
        mode: SendMode,
        call: Option<u64>,
        is_increment: Option<bool>,
        messages: &[&str],
    ) -> Option<Arrival> {
        let raws: Vec<Box<RawValue>> =
            messages.iter().map(|m| RawValue::from_string((*m).to_owned()).expect("JSON")).collect();
        let raws: Vec<&RawValue> = raws.iter().map(|raw| &**raw).collect();
        let n_common = SESSION.iter().zip(messages).take_while(|(old, new)| old == new).count();
        let session = ArrivalState {
            mode,
            n_messages: 2,
            first_message: Some(SESSION[0]),
            n_common,
            last_call: Some(last_call),
            last_hash: hash("[9]"),
        };
        let list = format!("[{}]", messages.join(","));
        classify(&session, &ArrivingMessages { is_increment, call, list: &list, messages: &raws }).ok()
    }

    #[test]
    fn longer_history_has_grown() {
        let longer = [SESSION[0], SESSION[1], "3"];
        assert_eq!(check(SendMode::Unknown, Some(5), None, &longer), Some(Arrival::Grown));
        assert_eq!(check(SendMode::WholeHistory, None, None, &longer), Some(Arrival::Grown));
        assert_eq!(check(SendMode::WholeHistory, Some(5), None, &SESSION), Some(Arrival::Grown));
    }

    #[test]
    fn next_call_with_other_messages_is_an_increment() {
        assert_eq!(check(SendMode::Unknown, Some(5), None, &["3", "4"]), Some(Arrival::Added));
        assert_eq!(check(SendMode::Increments, Some(5), None, &["3"]), Some(Arrival::Added));
        assert_eq!(check(SendMode::Increments, Some(5), None, &[]), Some(Arrival::Added));
        assert_eq!(check(SendMode::Unknown, None, Some(true), &["3"]), Some(Arrival::Added));
    }

    #[test]
    fn calls_may_be_counted_from_zero() {
        for is_increment in [None, Some(true)] {
            assert_eq!(
                check_after(0, SendMode::Increments, Some(1), is_increment, &["3"]),
                Some(Arrival::Added)
            );
            assert_eq!(check(SendMode::Increments, Some(0), is_increment, &["3"]), Some(Arrival::Restarted));
            assert_eq!(check(SendMode::Increments, Some(1), is_increment, &["3"]), Some(Arrival::Restarted));
        }
        assert_eq!(check_after(0, SendMode::Unknown, Some(1), None, &["3"]), Some(Arrival::Added));
    }

    #[test]
    fn edited_history_restarts() {
        let edited = [SESSION[0], "2"];
        assert_eq!(check(SendMode::Unknown, Some(5), None, &edited), Some(Arrival::Restarted));
        assert_eq!(check(SendMode::WholeHistory, Some(5), None, &["1", "2"]), Some(Arrival::Restarted));
        assert_eq!(check(SendMode::WholeHistory, Some(5), None, &SESSION[..1]), Some(Arrival::Restarted));
        for mode in [SendMode::Unknown, SendMode::WholeHistory, SendMode::Increments] {
            assert_eq!(check(mode, Some(1), None, &["3"]), Some(Arrival::Restarted));
            assert_eq!(check(mode, None, None, &["3"]), Some(Arrival::Restarted));
        }
    }

    #[test]
    fn gap_is_an_error_and_repetition_is_accepted() {
        assert_eq!(check(SendMode::Increments, Some(7), None, &["3"]), None);
        assert_eq!(check(SendMode::Increments, Some(4), None, &["9"]), Some(Arrival::Repeated));
        assert_eq!(check(SendMode::Increments, Some(4), None, &["8"]), None);
    }
}

//! What a reply copied from what had been said, whatever it is: a measure that knows of no atoms.
//!
//! A *copied span* is a run of 24 or more characters of a reply (its words, and the values of its calls' arguments) that
//! stands byte for byte in an earlier message that is not the system's. The reply is read from its beginning; at each
//! place the longest run wins, among equals the newest; a run is cut after 240 characters, so that a long copy counts as
//! several; the next one begins behind it. Left out are runs with fewer than twelve letters and digits, and what the
//! system prompt or the tool schemas say as well, since that is always in view. A span is *old* if its newest copy stands
//! more than a quarter of the window back, and *there* if one of the messages that hold it is sent as it came, or if
//! rewritten text holds it whole. Of a text that was said very often only the newest eight copies are looked at.
//!
//! Every eighth place of what was said is remembered by the sixteen bytes that stand there, so a run of 24 bytes has at
//! least one such place inside, and a reply costs one look for each of its bytes.
//!
//! What the agent said first it can say again: its commands, its turns of phrase, the files it wrote. Such spans are
//! *coined*, and are counted apart, as the atoms are that it coined.

use memchr::memmem;
use rustc_hash::FxHashMap;

use crate::message::Role;
use crate::text::n_chars;
use crate::trajectory::Trajectory;

const SHORTEST: usize = 24;
const LONGEST: usize = 240;
const FEWEST_LETTERS: usize = 12;
const MOST_COPIES: usize = 8;
const MOST_LOOKS: usize = 64;
const GRAM: usize = 16;
const STRIDE: usize = 8;

/// A span that a reply copied.
#[derive(Debug)]
pub(crate) struct Copied {
    pub(crate) text: String,
    /// The messages that hold it.
    pub(crate) messages: Vec<u32>,
    /// How many tokens back its newest copy stands.
    pub(crate) distance: f64,
    /// Whether the agent said it before anybody else.
    pub(crate) is_coined: bool,
}

/// The copied spans of each reply, in the order of replies.
pub(crate) fn copied_spans(trajectory: &Trajectory<'_>, fixed: &str) -> Vec<Vec<Copied>> {
    let mut index = Index::default();
    let mut n_indexed = 0;
    let mut all = Vec::with_capacity(trajectory.replies.len());
    for &reply in &trajectory.replies {
        for message in n_indexed..reply {
            if trajectory.role(message) != Role::System {
                index.add(message as u32, trajectory.text_of(message as u32).as_bytes());
            }
        }
        n_indexed = reply;
        all.push(spans_of(trajectory, &index, reply, fixed));
    }
    all
}

/// Where sixteen bytes stood.
#[derive(Default)]
struct Index {
    /// The newest and the oldest place, counted from 1.
    ends: FxHashMap<u64, (u32, u32)>,
    places: Vec<Place>,
}

#[derive(Clone, Copy)]
struct Place {
    message: u32,
    at: u32,
    /// The places before and after with the same bytes, counted from 1; 0 is none.
    before: u32,
    after: u32,
}

impl Index {
    fn add(&mut self, message: u32, text: &[u8]) {
        for at in (0..text.len().saturating_sub(GRAM - 1)).step_by(STRIDE) {
            let number = self.places.len() as u32 + 1;
            let (newest, _) = self.ends.entry(gram(&text[at..])).or_insert((0, number));
            let before = std::mem::replace(newest, number);
            self.places.push(Place { message, at: at as u32, before, after: 0 });
            if let Some(before) = (before as usize).checked_sub(1) {
                self.places[before].after = number;
            }
        }
    }

    /// Where these bytes stood, the newest first.
    fn places(&self, gram: u64) -> impl Iterator<Item = Place> {
        let (newest, _) = self.ends.get(&gram).copied().unwrap_or_default();
        self.chain(newest, |place| place.before).take(MOST_COPIES)
    }

    fn chain(&self, first: u32, next: impl Fn(Place) -> u32) -> impl Iterator<Item = Place> {
        let mut number = first;
        std::iter::from_fn(move || {
            let place = *self.places.get((number as usize).checked_sub(1)?)?;
            number = next(place);
            Some(place)
        })
    }

    /// The first message that holds a span. Where its bytes stood too often to look at all, bytes further in are looked for;
    /// nothing where all did.
    fn first_holder<'t>(&self, span: &[u8], text_of: impl Fn(u32) -> &'t str) -> Option<u32> {
        // Of as many places in a row, one is remembered.
        let last = span.len() - (GRAM + STRIDE - 1);
        (0..=last).step_by(STRIDE).find_map(|from| {
            let mut first = u32::MAX;
            for offset in from..from + STRIDE {
                let (_, oldest) = self.ends.get(&gram(&span[offset..])).copied().unwrap_or_default();
                for (n, place) in self.chain(oldest, |place| place.after).enumerate() {
                    if place.message >= first {
                        break;
                    }
                    if n == MOST_LOOKS {
                        return None;
                    }
                    let begin = (place.at as usize).checked_sub(offset);
                    let rest = begin.and_then(|begin| text_of(place.message).as_bytes().get(begin..));
                    if rest.is_some_and(|rest| rest.starts_with(span)) {
                        first = place.message;
                    }
                }
            }
            (first < u32::MAX).then_some(first)
        })
    }
}

fn gram(bytes: &[u8]) -> u64 {
    let half = |from: usize| u64::from_le_bytes(bytes[from..from + 8].try_into().expect("eight bytes"));
    (half(0).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ half(8))
        .wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// A run that a reply shares with a message: where it begins and ends in the reply, and where in the message.
#[derive(Clone, Copy)]
struct Run {
    start: usize,
    end: usize,
    message: u32,
    at: usize,
}

fn spans_of(trajectory: &Trajectory<'_>, index: &Index, reply: usize, fixed: &str) -> Vec<Copied> {
    let text = trajectory.text_of(reply as u32);
    let bytes = text.as_bytes();
    let mut spans = Vec::new();
    let (mut i, mut done) = (0, 0);
    while i + GRAM <= bytes.len() {
        let runs: Vec<Run> = index
            .places(gram(&bytes[i..]))
            .filter_map(|place| run_at(bytes, (i, done), trajectory.text_of(place.message).as_bytes(), place))
            .collect();
        // `max_by_key` gives the last of equals, so the newest goes last.
        let Some(best) = runs.iter().rev().max_by_key(|run| run.end - run.start) else {
            i += 1;
            continue;
        };
        let start = text.ceil_char_boundary(best.start);
        let end = text.floor_char_boundary(best.end.min(start + LONGEST));
        if end < start + SHORTEST {
            i += 1;
            continue;
        }
        let span = &text[start..end];
        if says_something(span) && memmem::find(fixed.as_bytes(), span.as_bytes()).is_none() {
            let whole = runs.iter().filter(|run| run.start <= start && run.end >= end);
            let newest = whole.clone().max_by_key(|run| (run.message, run.at)).unwrap_or(best);
            let first = index.first_holder(span.as_bytes(), |message| trajectory.text_of(message));
            let messages: Vec<u32> = whole.map(|run| run.message).collect();
            let first = first.or(messages.iter().min().copied()).unwrap_or(newest.message);
            spans.push(Copied {
                text: span.to_owned(),
                distance: trajectory.distance(reply, newest.message, newest.at + (start - newest.start)),
                messages,
                is_coined: trajectory.role(first as usize) == Role::Assistant,
            });
        }
        i = end;
        done = end;
    }
    spans
}

/// The run around a place where sixteen bytes agree, not before what was taken already.
fn run_at(reply: &[u8], (i, done): (usize, usize), message: &[u8], place: Place) -> Option<Run> {
    let at = place.at as usize;
    let is_there = message.get(at..at + GRAM)? == reply.get(i..i + GRAM)?;
    let back =
        reply[done..i].iter().rev().zip(message[..at].iter().rev()).take_while(|(a, b)| a == b).count();
    let ahead = reply[i..].iter().zip(&message[at..]).take_while(|(a, b)| a == b).count();
    is_there.then_some(Run { start: i - back, end: i + ahead, message: place.message, at: at - back })
}

fn says_something(span: &str) -> bool {
    n_chars(span) >= SHORTEST
        && span.chars().filter(|c| c.is_alphanumeric()).nth(FEWEST_LETTERS - 1).is_some()
}

#[cfg(test)]
mod tests {
    use fanfold_core::Words;
    use serde_json::json;

    use super::*;
    use crate::atoms::Known;
    use crate::record::Record;

    /// The spans of the last of these messages.
    fn spans(messages: &[(&str, &str)]) -> Vec<Copied> {
        let messages: Vec<_> =
            messages.iter().map(|(role, content)| json!({ "role": role, "content": content })).collect();
        let line = json!({ "id": "x", "messages": messages }).to_string();
        let record = Record::parse(&line, "x").expect("it is a record");
        let mut trajectory = Trajectory::new(&record, &Known::new(), &Words);
        trajectory.copied.pop().expect("there is a reply")
    }

    /// The spans of the last of these messages, each with the messages that hold it.
    fn check(messages: &[(&str, &str)], expected: &[(&str, &[u32])]) {
        let found = spans(messages);
        let found: Vec<(&str, &[u32])> = found.iter().map(|span| (&*span.text, &*span.messages)).collect();
        assert_eq!(found, expected);
    }

    const LINE: &str = "the quick brown fox jumps over";

    #[test]
    fn what_stands_in_an_earlier_message_is_copied() {
        let told = format!("I saw: {LINE}, twice");
        let said = format!("Well, {LINE}.");
        check(&[("user", &told), ("assistant", &said)], &[(" the quick brown fox jumps over", &[0])]);
    }

    #[test]
    fn short_runs_rules_and_what_the_system_says_do_not_count() {
        check(&[("user", "the quick brown fox jum"), ("assistant", LINE)], &[]);
        let rule = "-".repeat(60);
        check(&[("user", &rule), ("assistant", &rule)], &[]);
        check(&[("system", LINE), ("user", LINE), ("assistant", LINE)], &[]);
    }

    #[test]
    fn what_the_agent_said_first_it_coined() {
        let is_coined = |messages: &[(&str, &str)]| {
            let found = spans(messages);
            assert_eq!(found.len(), 1, "{messages:?}");
            found[0].is_coined
        };
        let told = format!("I saw: {LINE}, twice");
        assert!(!is_coined(&[("user", &told), ("assistant", LINE)]));
        assert!(is_coined(&[("user", "no"), ("assistant", LINE), ("user", &told), ("assistant", LINE)]));
        assert!(!is_coined(&[("user", &told), ("assistant", LINE), ("user", LINE), ("assistant", LINE)]));
        // However often it was said since, and whatever else begins like it.
        let mut often = vec![("user", &*told)];
        let other = format!("{}, not", &LINE[..29]);
        (0..300).for_each(|_| often.extend([("assistant", &*other), ("assistant", LINE)]));
        assert!(!is_coined(&often));
        often[0] = ("user", "no");
        assert!(is_coined(&often));
    }

    #[test]
    fn every_message_that_holds_it_is_known_and_long_copies_are_cut() {
        check(&[("user", LINE), ("user", "no"), ("user", LINE), ("assistant", LINE)], &[(LINE, &[2, 0])]);
        let long: String = (0..100).map(|n| format!("w{n} ")).collect();
        check(&[("user", &long), ("assistant", &long)], &[(&long[..240], &[0]), (&long[240..], &[0])]);
    }
}

//! Finds the spans that a reply copied from earlier messages. Unlike atoms, they may be any text.
//!
//! A *copied span* is a run of 24 or more characters of a reply (its text and argument values) that occurs verbatim
//! in an earlier message other than the system prompt. Spans are found from the start of the reply, each as long as
//! possible; runs of more than 240 characters count as several spans. Runs with fewer than twelve letters and
//! digits, and text that is also in the system prompt or the tool schemas, are ignored. A span is *old* if its
//! newest copy is more than a quarter of the window back. It is *there* if a message that contains it is sent
//! verbatim, or if rewritten text contains it.
//!
//! A span whose first copy is the agent's own, such as a command or a file that it wrote, is *coined* and counted
//! separately, because the agent could produce it again.
//!
//! An index maps the sixteen bytes at every eighth offset of earlier messages to their places, so every run of 24 bytes
//! contains an indexed place, and a reply needs one lookup per byte. Only the newest eight places are compared.

use memchr::memmem;
use rustc_hash::FxHashMap;

use super::analysis::RecordAnalysis;
use super::message::ChatRole;
use super::text::n_chars;

/// In characters.
const SHORTEST: usize = 24;
const LONGEST: usize = 240;
const FEWEST_LETTERS: usize = 12;
const MAX_COPIES: usize = 8;
/// Places compared before the search for the first copy tries other bytes of the span.
const MAX_COMPARISONS: usize = 64;
const GRAM: usize = 16;
const STRIDE: usize = 8;

/// A span that a reply copied.
#[derive(Debug)]
pub(crate) struct CopiedSpan {
    pub(crate) text: String,
    /// The messages that contain it.
    pub(crate) messages: Vec<u32>,
    /// The distance of its newest copy, in tokens.
    pub(crate) distance: f64,
    /// True if its first copy is the agent's own.
    pub(crate) is_coined: bool,
}

/// The copied spans of each reply, in the order of replies.
pub(crate) fn copied_spans(analysis: &RecordAnalysis<'_>, fixed: &str) -> Vec<Vec<CopiedSpan>> {
    let mut index = CopyIndex::default();
    let mut n_indexed = 0;
    let mut all = Vec::with_capacity(analysis.replies.len());
    for &reply in &analysis.replies {
        for message in n_indexed..reply {
            if analysis.role(message) != ChatRole::System {
                index.add(message as u32, analysis.text_of(message as u32).as_bytes());
            }
        }
        n_indexed = reply;
        all.push(spans_of(analysis, &index, reply, fixed));
    }
    all
}

/// Maps sixteen bytes to their places in earlier messages.
#[derive(Default)]
struct CopyIndex {
    /// The newest and the oldest place, counted from 1.
    ends: FxHashMap<u64, (u32, u32)>,
    places: Vec<CopyPlace>,
}

#[derive(Clone, Copy)]
struct CopyPlace {
    message: u32,
    at: u32,
    /// The previous and next places with the same bytes, counted from 1; 0 stands for no place.
    before: u32,
    after: u32,
}

impl CopyIndex {
    fn add(&mut self, message: u32, text: &[u8]) {
        for at in (0..text.len().saturating_sub(GRAM - 1)).step_by(STRIDE) {
            let number = self.places.len() as u32 + 1;
            let (newest, _) = self.ends.entry(gram(&text[at..])).or_insert((0, number));
            let before = std::mem::replace(newest, number);
            self.places.push(CopyPlace { message, at: at as u32, before, after: 0 });
            if let Some(before) = (before as usize).checked_sub(1) {
                self.places[before].after = number;
            }
        }
    }

    /// The places of these bytes, the newest first.
    fn places(&self, gram: u64) -> impl Iterator<Item = CopyPlace> {
        let (newest, _) = self.ends.get(&gram).copied().unwrap_or_default();
        self.chain(newest, |place| place.before).take(MAX_COPIES)
    }

    fn chain(&self, first: u32, next: impl Fn(CopyPlace) -> u32) -> impl Iterator<Item = CopyPlace> {
        let mut number = first;
        std::iter::from_fn(move || {
            let place = *self.places.get((number as usize).checked_sub(1)?)?;
            number = next(place);
            Some(place)
        })
    }

    /// The first message that contains a span. If its first bytes have too many places, later bytes are tried;
    /// `None` if all of them have too many.
    fn first_message_with<'t>(&self, span: &[u8], text_of: impl Fn(u32) -> &'t str) -> Option<u32> {
        // One of every `STRIDE` consecutive offsets is indexed.
        let last = span.len() - (GRAM + STRIDE - 1);
        (0..=last).step_by(STRIDE).find_map(|from| {
            let mut first = u32::MAX;
            for offset in from..from + STRIDE {
                let (_, oldest) = self.ends.get(&gram(&span[offset..])).copied().unwrap_or_default();
                for (n, place) in self.chain(oldest, |place| place.after).enumerate() {
                    if place.message >= first {
                        break;
                    }
                    if n == MAX_COMPARISONS {
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
struct CopiedRun {
    start: usize,
    end: usize,
    message: u32,
    at: usize,
}

fn spans_of(analysis: &RecordAnalysis<'_>, index: &CopyIndex, reply: usize, fixed: &str) -> Vec<CopiedSpan> {
    let text = analysis.text_of(reply as u32);
    let bytes = text.as_bytes();
    let mut spans = Vec::new();
    let (mut i, mut done) = (0, 0);
    while i + GRAM <= bytes.len() {
        let runs: Vec<CopiedRun> = index
            .places(gram(&bytes[i..]))
            .filter_map(|place| run_at(bytes, (i, done), analysis.text_of(place.message).as_bytes(), place))
            .collect();
        // `max_by_key` returns the last of equals, so the newest run comes last.
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
        if has_content(span) && memmem::find(fixed.as_bytes(), span.as_bytes()).is_none() {
            let whole = runs.iter().filter(|run| run.start <= start && run.end >= end);
            let newest = whole.clone().max_by_key(|run| (run.message, run.at)).unwrap_or(best);
            let first = index.first_message_with(span.as_bytes(), |message| analysis.text_of(message));
            let messages: Vec<u32> = whole.map(|run| run.message).collect();
            let first = first.or(messages.iter().min().copied()).unwrap_or(newest.message);
            spans.push(CopiedSpan {
                text: span.to_owned(),
                distance: analysis.distance(reply, newest.message, newest.at + (start - newest.start)),
                messages,
                is_coined: analysis.role(first as usize) == ChatRole::Assistant,
            });
        }
        i = end;
        done = end;
    }
    spans
}

/// The run around a place with equal bytes. It does not extend into the previous span.
fn run_at(reply: &[u8], (i, done): (usize, usize), message: &[u8], place: CopyPlace) -> Option<CopiedRun> {
    let at = place.at as usize;
    let is_match = message.get(at..at + GRAM)? == reply.get(i..i + GRAM)?;
    let back =
        reply[done..i].iter().rev().zip(message[..at].iter().rev()).take_while(|(a, b)| a == b).count();
    let ahead = reply[i..].iter().zip(&message[at..]).take_while(|(a, b)| a == b).count();
    is_match.then_some(CopiedRun { start: i - back, end: i + ahead, message: place.message, at: at - back })
}

fn has_content(span: &str) -> bool {
    n_chars(span) >= SHORTEST
        && span.chars().filter(|c| c.is_alphanumeric()).nth(FEWEST_LETTERS - 1).is_some()
}

#[cfg(test)]
mod tests {
    use fanfold_core::Words;
    use serde_json::json;

    use super::*;
    use crate::content::atoms::CommonKnowledge;
    use crate::record::Record;

    /// The spans of the last message.
    fn spans(messages: &[(&str, &str)]) -> Vec<CopiedSpan> {
        let messages: Vec<_> =
            messages.iter().map(|(role, content)| json!({ "role": role, "content": content })).collect();
        let line = json!({ "id": "x", "messages": messages }).to_string();
        let record = Record::parse(&line, "x").expect("a record");
        let mut analysis = RecordAnalysis::new(&record, &CommonKnowledge::new(), &Words);
        analysis.copied.pop().expect("a reply")
    }

    /// Checks the spans of the last message, each with the messages that contain it.
    fn check(messages: &[(&str, &str)], expected: &[(&str, &[u32])]) {
        let found = spans(messages);
        let found: Vec<(&str, &[u32])> = found.iter().map(|span| (&*span.text, &*span.messages)).collect();
        assert_eq!(found, expected);
    }

    const LINE: &str = "the quick brown fox jumps over";

    #[test]
    fn text_of_an_earlier_message_is_copied() {
        let prompt = format!("I saw: {LINE}, twice");
        let reply = format!("Well, {LINE}.");
        check(&[("user", &prompt), ("assistant", &reply)], &[(" the quick brown fox jumps over", &[0])]);
    }

    #[test]
    fn short_runs_rulers_and_the_system_prompt_do_not_count() {
        check(&[("user", "the quick brown fox jum"), ("assistant", LINE)], &[]);
        let rule = "-".repeat(60);
        check(&[("user", &rule), ("assistant", &rule)], &[]);
        check(&[("system", LINE), ("user", LINE), ("assistant", LINE)], &[]);
    }

    #[test]
    fn spans_that_the_agent_wrote_first_are_coined() {
        let is_coined = |messages: &[(&str, &str)]| {
            let found = spans(messages);
            assert_eq!(found.len(), 1, "{messages:?}");
            found[0].is_coined
        };
        let prompt = format!("I saw: {LINE}, twice");
        assert!(!is_coined(&[("user", &prompt), ("assistant", LINE)]));
        assert!(is_coined(&[("user", "no"), ("assistant", LINE), ("user", &prompt), ("assistant", LINE)]));
        assert!(!is_coined(&[("user", &prompt), ("assistant", LINE), ("user", LINE), ("assistant", LINE)]));
        // Also after many more copies, and with other texts that begin like it.
        let mut often = vec![("user", &*prompt)];
        let other = format!("{}, not", &LINE[..29]);
        (0..300).for_each(|_| often.extend([("assistant", &*other), ("assistant", LINE)]));
        assert!(!is_coined(&often));
        often[0] = ("user", "no");
        assert!(is_coined(&often));
    }

    #[test]
    fn spans_list_all_their_messages_and_long_copies_are_cut() {
        check(&[("user", LINE), ("user", "no"), ("user", LINE), ("assistant", LINE)], &[(LINE, &[2, 0])]);
        let long: String = (0..100).map(|n| format!("w{n} ")).collect();
        check(&[("user", &long), ("assistant", &long)], &[(&long[..240], &[0]), (&long[240..], &[0])]);
    }
}

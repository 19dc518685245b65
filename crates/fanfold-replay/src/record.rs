//! A recorded conversation, in chat messages, and the files that hold several of them.

use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::prices::Price;

/// One recorded conversation.
#[derive(Debug, Clone)]
pub struct Record {
    /// Its name.
    pub id: String,
    /// The collection that it is from.
    pub source: String,
    /// The JSON of each chat message.
    pub messages: Vec<Box<RawValue>>,
    /// The JSON of the tool schemas, if it has any.
    pub tools: Option<Box<RawValue>>,
    /// Its length as its file tells it.
    pub tokens: Option<u64>,
    /// The model that wrote the replies.
    pub model: Option<String>,
    /// When each message came, in seconds; empty where nobody noted it.
    pub times: Vec<f64>,
    /// What the provider itself counted, where the session notes it.
    pub reported: Reported,
}

/// Tokens as a provider reported them, added up.
#[derive(Debug, Clone, Default)]
pub struct Reported {
    /// Input at the plain price.
    pub plain: u64,
    /// Written to the cache.
    pub written: u64,
    /// Read from the cache.
    pub read: u64,
    /// Output.
    pub output: u64,
    /// The reply that was noted last, and what it added: its lines all tell the same.
    last: Option<(String, [u64; 4])>,
}

impl Reported {
    /// Takes note of a reply's usage. The last word of a reply is the one that counts.
    pub(crate) fn note(&mut self, reply: &str, usage: &Value) {
        let field = |key: &str| usage[key].as_u64().unwrap_or_default();
        let new = [
            field("input_tokens"),
            field("cache_creation_input_tokens"),
            field("cache_read_input_tokens"),
            field("output_tokens"),
        ];
        let before = self.last.take().filter(|(last, _)| last == reply).map_or([0; 4], |(_, before)| before);
        let sums = [&mut self.plain, &mut self.written, &mut self.read, &mut self.output];
        for (sum, (new, before)) in sums.into_iter().zip(new.into_iter().zip(before)) {
            *sum = (*sum + new).saturating_sub(before);
        }
        self.last = Some((reply.to_owned(), new));
    }

    /// What that cost, in dollars. Which requests passed a cliff is not known.
    pub fn dollars(&self, price: &Price) -> f64 {
        let input = self.plain as f64 + price.write * self.written as f64 + price.read * self.read as f64;
        (price.base * input + price.output * self.output as f64) / 1e6
    }
}

/// Why a line is no record.
#[derive(Debug, thiserror::Error)]
#[error("no record: {0}")]
pub struct RecordError(String);

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    source: Option<String>,
    messages: Vec<Box<RawValue>>,
    #[serde(default)]
    tools: Option<Box<RawValue>>,
    #[serde(default)]
    tokens: Option<u64>,
    #[serde(default)]
    model: Option<String>,
}

impl Record {
    /// Reads one line of a file of records: an object with `id`, `messages` and perhaps `source` and `tools`.
    pub fn parse(line: &str, file: &str) -> Result<Record, RecordError> {
        let line: Line = serde_json::from_str(line).map_err(|error| RecordError(error.to_string()))?;
        let is_some = |tools: &RawValue| !matches!(tools.get().trim(), "null" | "[]" | "{}");
        Ok(Record {
            id: line.id.unwrap_or_else(|| file.to_owned()),
            source: line.source.unwrap_or_else(|| file.to_owned()),
            messages: line.messages,
            tools: line.tools.filter(|tools| is_some(tools)),
            tokens: line.tokens,
            model: line.model,
            times: Vec::new(),
            reported: Reported::default(),
        })
    }

    /// Whether it is one of the fifth that is kept aside: weights are not tuned on those.
    ///
    /// The choice is the first byte of the SHA-256 of its id: where five divides it, it is kept aside.
    pub fn is_aside(&self) -> bool {
        self.hash()[0].is_multiple_of(5)
    }

    fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.id.as_bytes()).into()
    }
}

/// At most so many records, chosen by the hashes of their ids, so that the choice is the same everywhere.
pub fn sample(mut records: Vec<Record>, most: usize) -> Vec<Record> {
    if records.len() > most {
        records.sort_by_cached_key(Record::hash);
        records.truncate(most);
    }
    records
}

/// The records without those that another one begins with: a session that was taken up again is written twice.
pub fn without_beginnings(mut records: Vec<Record>) -> Vec<Record> {
    records.sort_by_key(|record| std::cmp::Reverse(record.messages.len()));
    let mut by_start: FxHashMap<String, Vec<usize>> = FxHashMap::default();
    let mut kept: Vec<Record> = Vec::new();
    for record in records {
        let start: String = record.messages.iter().take(2).map(|message| message.get()).collect();
        let alike = by_start.entry(start).or_default();
        let is_beginning = alike.iter().any(|&at| begins(&kept[at], &record));
        if !is_beginning {
            alike.push(kept.len());
            kept.push(record);
        }
    }
    kept
}

fn begins(long: &Record, short: &Record) -> bool {
    long.messages.iter().zip(&short.messages).all(|(a, b)| a.get() == b.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_up_again_counts_once() {
        let record = |id: &str, messages: &str| {
            Record::parse(&format!(r#"{{"id": "{id}", "messages": {messages}}}"#), "x")
                .expect("it is a record")
        };
        let records = vec![
            record("a", "[1, 2]"),
            record("b", "[1, 2, 3]"),
            record("c", "[1, 2, 4]"),
            record("d", "[2]"),
        ];
        let kept: Vec<String> = without_beginnings(records).into_iter().map(|record| record.id).collect();
        assert_eq!(kept, ["b", "c", "d"]);
    }

    #[test]
    fn the_last_word_on_a_reply_counts() {
        let mut reported = Reported::default();
        let usage = |output: u64| serde_json::json!({ "input_tokens": 5, "output_tokens": output });
        reported.note("a", &usage(1));
        reported.note("a", &usage(9));
        reported.note("b", &usage(2));
        assert_eq!((reported.plain, reported.output), (10, 11));
    }
}

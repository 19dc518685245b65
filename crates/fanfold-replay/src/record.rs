//! A recorded conversation as chat messages, and selections from several of them.

use fanfold_wire::Format;
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
    /// The collection it belongs to.
    pub source: String,
    /// The JSON of each chat message.
    pub messages: Vec<Box<RawValue>>,
    /// The JSON of the tool schemas, if it has any.
    pub tools: Option<Box<RawValue>>,
    /// Its length in tokens, if its file has it.
    pub tokens: Option<u64>,
    /// The model that wrote the replies.
    pub model: Option<String>,
    /// The time of each message, in seconds; empty if the file has no times.
    pub times: Vec<f64>,
    /// The usage that the provider reported, if the file has it.
    pub reported: ReportedUsage,
}

impl Record {
    /// The format of the messages.
    pub fn format() -> Format {
        Format::of_plain_messages()
    }
}

/// The total of the tokens that a provider reported.
#[derive(Debug, Clone, Default)]
pub struct ReportedUsage {
    /// Input at the plain price.
    pub plain: u64,
    /// Written to the cache.
    pub written: u64,
    /// Read from the cache.
    pub read: u64,
    /// Output.
    pub output: u64,
    /// The last reply and what it added. A session repeats the usage of a reply on each of its lines.
    last: Option<(String, [u64; 4])>,
}

impl ReportedUsage {
    /// Adds the usage of a reply. A later report on the same reply replaces the earlier one.
    pub(crate) fn add(&mut self, reply: &str, usage: &Value) {
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

    /// The cost in dollars, without cliffs: the sizes of single requests are unknown.
    pub fn dollars(&self, price: &Price) -> f64 {
        let input = self.plain as f64 + price.write * self.written as f64 + price.read * self.read as f64;
        (price.base * input + price.output * self.output as f64) / 1e6
    }
}

/// Why a line is not a record.
#[derive(Debug, thiserror::Error)]
#[error("not a record: {0}")]
pub struct RecordError(String);

#[derive(Deserialize)]
struct RecordLine {
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
    /// Parses one line of a records file: an object with `messages`, and optionally `id`, `source`, `tools`, `tokens`
    /// and `model`.
    pub fn parse(line: &str, file: &str) -> Result<Record, RecordError> {
        let line: RecordLine = serde_json::from_str(line).map_err(|error| RecordError(error.to_string()))?;
        let is_some = |tools: &RawValue| !matches!(tools.get().trim(), "null" | "[]" | "{}");
        Ok(Record {
            id: line.id.unwrap_or_else(|| file.to_owned()),
            source: line.source.unwrap_or_else(|| file.to_owned()),
            messages: line.messages,
            tools: line.tools.filter(|tools| is_some(tools)),
            tokens: line.tokens,
            model: line.model,
            times: Vec::new(),
            reported: ReportedUsage::default(),
        })
    }

    /// True for the fifth of all records on which weights are not tuned: those whose id has a SHA-256 with a first byte
    /// divisible by five.
    pub fn is_held_out(&self) -> bool {
        self.hash()[0].is_multiple_of(5)
    }

    fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.id.as_bytes()).into()
    }
}

/// At most `max` records, chosen by the hashes of their ids, so that the choice is the same everywhere.
pub fn sample(mut records: Vec<Record>, max: usize) -> Vec<Record> {
    if records.len() > max {
        records.sort_by_cached_key(Record::hash);
        records.truncate(max);
    }
    records
}

/// Removes records that are a prefix of another one: a resumed session is recorded twice.
pub fn without_prefixes(mut records: Vec<Record>) -> Vec<Record> {
    records.sort_by_key(|record| std::cmp::Reverse(record.messages.len()));
    let mut by_start: FxHashMap<String, Vec<usize>> = FxHashMap::default();
    let mut kept: Vec<Record> = Vec::new();
    for record in records {
        let start: String = record.messages.iter().take(2).map(|message| message.get()).collect();
        let alike = by_start.entry(start).or_default();
        let is_prefix = alike.iter().any(|&at| begins_with(&kept[at], &record));
        if !is_prefix {
            alike.push(kept.len());
            kept.push(record);
        }
    }
    kept
}

fn begins_with(long: &Record, short: &Record) -> bool {
    long.messages.iter().zip(&short.messages).all(|(a, b)| a.get() == b.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_session_counts_once() {
        let record = |id: &str, messages: &str| {
            Record::parse(&format!(r#"{{"id": "{id}", "messages": {messages}}}"#), "x").expect("a record")
        };
        let records = vec![
            record("a", "[1, 2]"),
            record("b", "[1, 2, 3]"),
            record("c", "[1, 2, 4]"),
            record("d", "[2]"),
        ];
        let kept: Vec<String> = without_prefixes(records).into_iter().map(|record| record.id).collect();
        assert_eq!(kept, ["b", "c", "d"]);
    }

    #[test]
    fn the_last_report_on_a_reply_counts() {
        let mut reported = ReportedUsage::default();
        let usage = |output: u64| serde_json::json!({ "input_tokens": 5, "output_tokens": output });
        reported.add("a", &usage(1));
        reported.add("a", &usage(9));
        reported.add("b", &usage(2));
        assert_eq!((reported.plain, reported.output), (10, 11));
    }
}

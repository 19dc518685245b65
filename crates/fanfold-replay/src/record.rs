//! A recorded conversation, in chat messages, and the files that hold several of them.

use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

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
}

/// Why a line is no record.
#[derive(Debug, thiserror::Error)]
#[error("no record: {0}")]
pub struct RecordError(String);

#[derive(Deserialize)]
struct Line {
    id: String,
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
        let is_some = |tools: &Box<RawValue>| !matches!(tools.get().trim(), "null" | "[]" | "{}");
        Ok(Record {
            id: line.id,
            source: line.source.unwrap_or_else(|| file.to_owned()),
            messages: line.messages,
            tools: line.tools.filter(is_some),
            tokens: line.tokens,
            model: line.model,
            times: Vec::new(),
        })
    }

    /// Whether it is one of the fifth that is kept aside: weights are not tuned on those.
    ///
    /// The choice is the first byte of the SHA-256 of its id: where five divides it, it is kept aside.
    pub fn is_aside(&self) -> bool {
        self.hash()[0] % 5 == 0
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

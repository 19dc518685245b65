//! Recorded conversations, where they are at hand: they are too large to travel with the code.
//!
//! They lie in `../shared/trajectories` beside the workspace, or where `FANFOLD_TRAJECTORIES` says.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde_json::Value;
use serde_json::value::RawValue;

/// One recorded conversation, in chat messages.
#[derive(Debug, Clone)]
pub struct Trajectory {
    /// Its name.
    pub id: String,
    /// The file it came from, without its endings.
    pub source: String,
    /// The JSON of each message, as it stands in the file.
    pub messages: Vec<Box<RawValue>>,
    /// The JSON of the tool schemas, if it has any.
    pub tools: Option<String>,
}

/// All trajectories, or none where there are none: then a line on stderr says where they were looked for.
pub fn trajectories() -> Option<Vec<Trajectory>> {
    let folder = folder();
    let mut files: Vec<_> = match fs::read_dir(&folder) {
        Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.path())).collect(),
        Err(_) => Vec::new(),
    };
    files.retain(|file| file.to_string_lossy().ends_with(".jsonl.gz"));
    files.sort();
    if files.is_empty() {
        eprintln!("skipped: there are no trajectories in {}", folder.display());
        return None;
    }
    Some(files.iter().flat_map(|file| read(file)).collect())
}

fn folder() -> PathBuf {
    match std::env::var_os("FANFOLD_TRAJECTORIES") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/trajectories"),
    }
}

fn read(file: &Path) -> Vec<Trajectory> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let source = name.trim_end_matches(".jsonl.gz");
    let bytes = File::open(file).expect("the file was listed");
    let lines = BufReader::new(MultiGzDecoder::new(BufReader::new(bytes))).lines();
    lines.map(|line| parse(source, &line.expect("the file can be read"))).collect()
}

fn parse(source: &str, line: &str) -> Trajectory {
    let fields: std::collections::BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(line).expect("a trajectory is an object");
    let field = |key: &str| fields.get(key).map(|value| value.get());
    let id = field("id").and_then(|id| serde_json::from_str::<Value>(id).ok()?.as_str().map(str::to_owned));
    let messages = field("messages").and_then(|messages| serde_json::from_str(messages).ok());
    Trajectory {
        id: id.expect("a trajectory has an id"),
        source: source.to_owned(),
        messages: messages.expect("a trajectory has messages"),
        tools: field("tools").filter(|tools| !matches!(*tools, "null" | "[]")).map(str::to_owned),
    }
}

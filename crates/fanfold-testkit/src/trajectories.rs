//! Recorded conversations. They are too large for the repository, so tests skip them if they are absent.
//!
//! They are read from `../shared/trajectories` next to the workspace, or from the folder in `FANFOLD_TRAJECTORIES`.

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
    /// The name of its file without extensions.
    pub source: String,
    /// The JSON text of each message, byte for byte.
    pub messages: Vec<Box<RawValue>>,
    /// The JSON text of the tool schemas, if there are any.
    pub tools: Option<String>,
}

/// Reads all trajectories. Returns `None` and prints the searched folder to stderr if it has no files.
pub fn trajectories() -> Option<Vec<Trajectory>> {
    let folder = folder();
    let mut files: Vec<_> = match fs::read_dir(&folder) {
        Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.path())).collect(),
        Err(_) => Vec::new(),
    };
    files.retain(|file| file.to_string_lossy().ends_with(".jsonl.gz"));
    files.sort();
    if files.is_empty() {
        eprintln!(
            "skipped: no trajectories in {}\n\nhint: FANFOLD_TRAJECTORIES names another folder",
            folder.display()
        );
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

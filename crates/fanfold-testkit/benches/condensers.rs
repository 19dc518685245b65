//! Measures how many tokens condensing saves and how many key details it keeps, per kind of text in recorded
//! conversations.
//!
//! `cargo bench -p fanfold-testkit --bench condensers` prints a line of tab-separated figures for each kind. With
//! `-- --show KIND N` it prints the Nth text of a kind before and after. `cargo xtask condensers` puts the figures
//! into the guide.

#![allow(clippy::print_stdout, reason = "the measurements are the data")]

use std::collections::BTreeMap;

use fanfold_core::{
    CondenseOptions, Count as _, FileExcerpt, Verb, condense, condense_input, default_room, detect_kind,
    parse_action,
};
use fanfold_testkit::contracts::key_details::find_key_details;
use fanfold_testkit::trajectories::trajectories;
use fanfold_tokens::o200k;
use rayon::prelude::*;
use serde_json::Value;

/// A text that could be condensed, and the path of its file.
struct RecordedText {
    author: Author,
    body: String,
    path: Option<String>,
}

/// The author of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Author {
    /// A tool, as a result.
    Result,
    /// The model, as an argument of a call.
    Argument,
    /// The model, as the text of a reply.
    Reply,
}

impl RecordedText {
    /// The name of its row in the output.
    fn name(&self) -> String {
        match self.author {
            Author::Result => detect_kind(&self.body).name(),
            Author::Argument => "written".to_owned(),
            Author::Reply => "said".to_owned(),
        }
    }

    /// True if the passes would condense it; they skip shorter texts.
    fn is_long(&self) -> bool {
        match self.author {
            Author::Result | Author::Reply => self.body.len() >= 400,
            Author::Argument => self.body.len() > 240,
        }
    }
}

/// The figures of a kind.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    n: usize,
    before: u64,
    after: u64,
    /// Errors, paths and ids: the number before and after.
    details: [(usize, usize); 3],
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let Some(texts) = texts() else { return };
    let long: Vec<&RecordedText> = texts.iter().filter(|text| text.is_long()).collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--show") {
        show(&long, &arguments[at + 1..]);
        return;
    }
    let each: Vec<(String, Sums)> = long.par_iter().map(|text| (text.name(), measure(text))).collect();
    let mut by_name: BTreeMap<String, Sums> = BTreeMap::new();
    for (name, sums) in each {
        by_name.entry(name).or_default().add(&sums);
    }
    for (name, sums) in by_name {
        println!("{name}\t{sums}");
    }
}

/// All results, string arguments and reply texts of the recorded conversations.
fn texts() -> Option<Vec<RecordedText>> {
    let mut found = Vec::new();
    for trajectory in trajectories()? {
        let mut paths: BTreeMap<String, String> = BTreeMap::new();
        for message in &trajectory.messages {
            let message: Value = serde_json::from_str(message.get()).expect("a message is JSON");
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let field = |name: &str| call["function"][name].as_str().unwrap_or_default();
                let deed = parse_action(field("name"), field("arguments"));
                let path = deed.changes.first().cloned();
                let arguments: Value = serde_json::from_str(field("arguments")).unwrap_or_default();
                for body in arguments.as_object().into_iter().flat_map(|fields| fields.values()) {
                    let body = body.as_str().unwrap_or_default().to_owned();
                    found.push(RecordedText { author: Author::Argument, body, path: path.clone() });
                }
                if let (Verb::Read, [only], Some(id)) = (deed.verb, &deed.reads[..], call["id"].as_str()) {
                    paths.insert(id.to_owned(), only.path.clone());
                }
            }
            let body = message["content"].as_str().unwrap_or_default().to_owned();
            if message["role"] == "tool" {
                let path = message["tool_call_id"].as_str().and_then(|id| paths.get(id)).cloned();
                found.push(RecordedText { author: Author::Result, body, path });
            } else if message["role"] == "assistant" {
                found.push(RecordedText { author: Author::Reply, body, path: None });
            }
        }
    }
    Some(found)
}

/// Condenses a text like the pass, without information about used lines.
fn condensed(text: &RecordedText) -> String {
    let room = match text.author {
        Author::Result | Author::Reply => default_room(&text.body),
        Author::Argument => (text.body.len() / 5).clamp(80, 800),
    };
    let is_edited = |_: &str| false;
    let first_line = Some(1);
    let file = text.path.as_deref().map(|path| FileExcerpt { path, first_line, is_edited: &is_edited });
    let options = CondenseOptions { file, ..CondenseOptions::new(room, &|_| 0.0) };
    let condensed = match text.author {
        Author::Result | Author::Reply => condense(&text.body, &options),
        Author::Argument => condense_input(&text.body, &options),
    };
    condensed.unwrap_or_else(|| text.body.clone())
}

fn measure(text: &RecordedText) -> Sums {
    let condensed = condensed(text);
    Sums {
        n: 1,
        before: o200k().count(&text.body).0,
        after: o200k().count(&condensed).0,
        details: find_key_details(&text.body).count_in(&condensed),
    }
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.n += other.n;
        self.before += other.before;
        self.after += other.after;
        for (sum, more) in self.details.iter_mut().zip(other.details) {
            *sum = (sum.0 + more.0, sum.1 + more.1);
        }
    }
}

impl std::fmt::Display for Sums {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\t{}\t{}", self.n, self.before, self.after)?;
        self.details.iter().try_for_each(|(before, after)| write!(f, "\t{before}\t{after}"))
    }
}

fn show(long: &[&RecordedText], wanted: &[String]) {
    let [name, n, ..] = wanted else { return eprintln!("usage: --show KIND N") };
    let n: usize = n.parse().unwrap_or_default();
    match long.iter().filter(|text| text.name() == *name).nth(n) {
        Some(text) => {
            println!("{}\n\n===> {:?}\n\n{}", text.body, text.path, condensed(text));
        }
        None => eprintln!("there are fewer than {} texts of the kind {name}", n + 1),
    }
}

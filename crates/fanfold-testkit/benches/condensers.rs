//! Measures what condensing saves and keeps on recorded conversations, by what the texts are.
//!
//! `cargo bench -p fanfold-testkit --bench condensers`: a line for each kind, its figures separated by tabs.
//! With `-- --show KIND N` it prints the Nth text of a kind before and after, for a person who wants to see.
//! `cargo xtask condensers` puts the figures into the guide.

#![allow(clippy::print_stdout, reason = "the measurements are the data")]

use std::collections::BTreeMap;

use fanfold_core::{
    CondenseOptions, Count as _, FileExcerpt, Verb, condense, condense_input, default_room, detect_kind,
    parse_action,
};
use fanfold_testkit::marks::marks;
use fanfold_testkit::trajectories::trajectories;
use fanfold_tokens::o200k;
use rayon::prelude::*;
use serde_json::Value;

/// A text that could be condensed, and the file that it shows.
struct Text {
    origin: Origin,
    body: String,
    path: Option<String>,
}

/// Who wrote a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A tool.
    Result,
    /// An agent, as an argument of a call.
    Written,
    /// An agent, to be read.
    Said,
}

impl Text {
    /// What it is counted as.
    fn name(&self) -> String {
        match self.origin {
            Origin::Result => format!("{:?}", detect_kind(&self.body)).to_lowercase(),
            Origin::Written => "written".to_owned(),
            Origin::Said => "said".to_owned(),
        }
    }

    /// Shorter ones are left alone, as the passes do.
    fn is_long(&self) -> bool {
        match self.origin {
            Origin::Result | Origin::Said => self.body.len() >= 400,
            Origin::Written => self.body.len() > 240,
        }
    }
}

/// What became of the texts of a kind.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    n: usize,
    before: u64,
    after: u64,
    /// Errors, paths and ids: how many there were, and how many are still there.
    marks: [(usize, usize); 3],
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let Some(texts) = texts() else { return };
    let long: Vec<&Text> = texts.iter().filter(|text| text.is_long()).collect();
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

/// Every result, every argument and every text of an agent's in every conversation.
fn texts() -> Option<Vec<Text>> {
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
                    found.push(Text { origin: Origin::Written, body, path: path.clone() });
                }
                if let (Verb::Read, [only], Some(id)) = (deed.verb, &deed.reads[..], call["id"].as_str()) {
                    paths.insert(id.to_owned(), only.path.clone());
                }
            }
            let body = message["content"].as_str().unwrap_or_default().to_owned();
            if message["role"] == "tool" {
                let path = message["tool_call_id"].as_str().and_then(|id| paths.get(id)).cloned();
                found.push(Text { origin: Origin::Result, body, path });
            } else if message["role"] == "assistant" {
                found.push(Text { origin: Origin::Said, body, path: None });
            }
        }
    }
    Some(found)
}

/// What the pass makes of a text, with nothing known of what is in use.
fn short(text: &Text) -> String {
    let room = match text.origin {
        Origin::Result | Origin::Said => default_room(&text.body),
        Origin::Written => (text.body.len() / 5).clamp(80, 800),
    };
    let is_edited = |_: &str| false;
    let first_line = Some(1);
    let file = text.path.as_deref().map(|path| FileExcerpt { path, first_line, is_edited: &is_edited });
    let wish = CondenseOptions { file, ..CondenseOptions::new(room, &|_| 0.0) };
    let short = match text.origin {
        Origin::Result | Origin::Said => condense(&text.body, &wish),
        Origin::Written => condense_input(&text.body, &wish),
    };
    short.unwrap_or_else(|| text.body.clone())
}

fn measure(text: &Text) -> Sums {
    let short = short(text);
    Sums {
        n: 1,
        before: o200k().count(&text.body).0,
        after: o200k().count(&short).0,
        marks: marks(&text.body).kept_in(&short),
    }
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.n += other.n;
        self.before += other.before;
        self.after += other.after;
        for (sum, more) in self.marks.iter_mut().zip(other.marks) {
            *sum = (sum.0 + more.0, sum.1 + more.1);
        }
    }
}

impl std::fmt::Display for Sums {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\t{}\t{}", self.n, self.before, self.after)?;
        self.marks.iter().try_for_each(|(all, kept)| write!(f, "\t{all}\t{kept}"))
    }
}

fn show(long: &[&Text], wanted: &[String]) {
    let [name, n, ..] = wanted else { return eprintln!("usage: --show KIND N") };
    let n: usize = n.parse().unwrap_or_default();
    match long.iter().filter(|text| text.name() == *name).nth(n) {
        Some(text) => {
            println!("{}\n\n===> {:?}\n\n{}", text.body, text.path, short(text));
        }
        None => eprintln!("there are not so many"),
    }
}

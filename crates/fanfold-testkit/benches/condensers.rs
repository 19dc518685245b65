//! Measures what condensing saves and keeps on recorded conversations, by what the texts are.
//!
//! `cargo bench -p fanfold-testkit --bench condensers`: a line for each kind, its figures separated by tabs.
//! With `-- --show KIND N` it prints the Nth text of a kind before and after, for a person who wants to see.
//! `cargo xtask condensers` puts the figures into the guide.

#![allow(clippy::print_stdout, reason = "the measurements are the data")]

use std::collections::BTreeMap;

use fanfold_core::{Count as _, FileShown, Kind, Verb, Wish, condense, deed_of, kind_of, usual_room};
use fanfold_testkit::marks::marks;
use fanfold_testkit::trajectories::trajectories;
use fanfold_tokens::o200k;
use rayon::prelude::*;
use serde_json::Value;

/// A text that could be condensed, and the file that it shows.
struct Text {
    body: String,
    path: Option<String>,
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
    let Some(texts) = results() else { return };
    let long: Vec<(Kind, &Text)> =
        texts.iter().filter(|text| text.body.len() >= LONG).map(|text| (kind_of(&text.body), text)).collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--show") {
        show(&long, &arguments[at + 1..]);
        return;
    }
    let each: Vec<(Kind, Sums)> = long.par_iter().map(|(kind, text)| (*kind, measure(text))).collect();
    let mut by_kind: BTreeMap<Kind, Sums> = BTreeMap::new();
    for (kind, sums) in each {
        by_kind.entry(kind).or_default().add(&sums);
    }
    for (kind, sums) in by_kind {
        println!("{}\t{sums}", format!("{kind:?}").to_lowercase());
    }
}

/// Shorter results are left alone, as the pass does.
const LONG: usize = 400;

/// Every result of every conversation.
fn results() -> Option<Vec<Text>> {
    let mut found = Vec::new();
    for trajectory in trajectories()? {
        let mut paths: BTreeMap<String, String> = BTreeMap::new();
        for message in &trajectory.messages {
            let message: Value = serde_json::from_str(message.get()).expect("a message is JSON");
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let field = |name: &str| call["function"][name].as_str().unwrap_or_default();
                let deed = deed_of(field("name"), field("arguments"));
                if let (Verb::Read, [only], Some(id)) = (deed.verb, &deed.reads[..], call["id"].as_str()) {
                    paths.insert(id.to_owned(), only.path.clone());
                }
            }
            if message["role"] == "tool" {
                let path = message["tool_call_id"].as_str().and_then(|id| paths.get(id)).cloned();
                found.push(Text { body: message["content"].as_str().unwrap_or_default().to_owned(), path });
            }
        }
    }
    Some(found)
}

/// What the pass makes of a text, with nothing known of what is in use.
fn short(text: &Text) -> String {
    let room = usual_room(&text.body);
    let is_worked_on = |_: &str| false;
    let file = text.path.as_deref().map(|path| FileShown { path, is_worked_on: &is_worked_on });
    let wish = Wish { room, value: &|_| 0.0, file };
    condense(&text.body, &wish).unwrap_or_else(|| text.body.clone())
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

fn show(long: &[(Kind, &Text)], wanted: &[String]) {
    let [kind, n] = wanted else { return eprintln!("usage: --show KIND N") };
    let n: usize = n.parse().unwrap_or_default();
    let mut of_kind = long.iter().filter(|(found, _)| format!("{found:?}").eq_ignore_ascii_case(kind));
    match of_kind.nth(n) {
        Some((_, text)) => {
            println!("{}\n\n===> {:?}\n\n{}", text.body, text.path, short(text));
        }
        None => eprintln!("there are not so many"),
    }
}

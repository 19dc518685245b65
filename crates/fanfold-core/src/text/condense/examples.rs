//! Runs the examples in the headers, which are also shown in the guide.

use crate::text::condense::{CondenseOptions, FileExcerpt, condense, condense_input};

/// The files with an example, by the names of their pages in the guide.
const SOURCES: &[(&str, &str)] = &[
    ("json", include_str!("documents/json.rs")),
    ("log", include_str!("output/log.rs")),
    ("trace", include_str!("output/trace.rs")),
    ("runs", include_str!("output/runs.rs")),
    ("diff", include_str!("source/diff.rs")),
    ("written", include_str!("written.rs")),
    ("code", include_str!("source/code.rs")),
    ("search", include_str!("output/search.rs")),
    ("listing", include_str!("output/listing.rs")),
    ("table", include_str!("documents/table.rs")),
    ("html", include_str!("documents/html.rs")),
    ("prose", include_str!("documents/prose.rs")),
    ("dense", include_str!("documents/dense.rs")),
    ("escaped", include_str!("documents/escaped.rs")),
    ("envelope", include_str!("envelope.rs")),
];

/// An example: the text above `->` and the condensed text below.
struct Example {
    room: usize,
    path: Option<String>,
    /// A string in the edited lines.
    edited: Option<String>,
    before: String,
    after: String,
}

#[test]
fn header_examples_match_the_output() {
    let mut wrong = String::new();
    for (name, source) in SOURCES {
        // Outlines need a parser.
        if *name == "code" && !cfg!(feature = "outline") {
            continue;
        }
        let example = Example::parse(source).unwrap_or_else(|| panic!("{name} has no example"));
        let shown = example.run(name);
        if shown.trim_end() != example.after.trim_end() {
            wrong.push_str(&format!("--- {name}\n{shown}\n"));
        }
    }
    assert!(wrong.is_empty(), "these examples differ from the output:\n{wrong}");
}

impl Example {
    fn parse(source: &str) -> Option<Example> {
        let header = source.lines().take_while(|line| line.starts_with("//!"));
        let header: Vec<&str> = header.map(|line| line.strip_prefix("//! ").unwrap_or("")).collect();
        let start = header.iter().position(|line| *line == "```text")? + 1;
        let arrow = start + header[start..].iter().position(|line| *line == "->")?;
        let end = arrow + header[arrow..].iter().position(|line| *line == "```")?;
        // `src/a.py` in 300 bytes, `that` having been edited:
        let introduction = header[..start - 1].iter().rev().find(|line| !line.is_empty())?;
        let (before, after) = introduction.split_once(" bytes")?;
        let quoted = |text: &str| text.split('`').nth(1).map(str::to_owned);
        Some(Example {
            room: before.rsplit(' ').next()?.parse().ok()?,
            path: quoted(before),
            edited: quoted(after),
            before: header[start..arrow].join("\n"),
            after: header[arrow + 1..end].join("\n"),
        })
    }

    fn run(&self, name: &str) -> String {
        let is_edited = |line: &str| self.edited.as_ref().is_some_and(|words| line.contains(words.as_str()));
        let file =
            self.path.as_deref().map(|path| FileExcerpt { path, first_line: Some(1), is_edited: &is_edited });
        let options = CondenseOptions { file, ..CondenseOptions::new(self.room, &|_| 0.0) };
        let short = match name {
            "written" => condense_input(&self.before, &options),
            _ => condense(&self.before, &options),
        };
        let short = short.unwrap_or_else(|| panic!("{name}: the example is too short to be shortened"));
        assert!(
            short.len() <= self.room,
            "{name}: {} bytes in a room of {}\n{short}",
            short.len(),
            self.room
        );
        short
    }
}

//! Runs the examples in the headers, which are also shown in the guide.

use crate::examples::{header_of, header_with};
use crate::text::condense::{CondenseOptions, ContentKind, FileExcerpt, condense, condense_input};

/// The headers of all files with an example, by the names of their sections in the guide.
fn headers() -> Vec<(String, Vec<String>)> {
    let condenser = |kind| header_with(&format!("kind: ContentKind::{kind:?},\n    detects"));
    let mut headers = ContentKind::ALL.map(|kind| (format!("{kind:?}"), condenser(kind))).to_vec();
    headers.push(("Written".to_owned(), header_of(include_str!("written.rs"))));
    headers.push(("Escaped".to_owned(), header_of(include_str!("documents/escaped.rs"))));
    headers.push(("Envelope".to_owned(), header_of(include_str!("envelope.rs"))));
    headers
}

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
    for (name, header) in headers() {
        // Outlines need a parser.
        if name == "Code" && !cfg!(feature = "outline") {
            continue;
        }
        let example = Example::parse(&header).unwrap_or_else(|| panic!("{name} has no example"));
        let shown = example.run(&name);
        if shown.trim_end() != example.after.trim_end() {
            wrong.push_str(&format!("--- {name}\n{shown}\n"));
        }
    }
    assert!(wrong.is_empty(), "these examples differ from the output:\n{wrong}");
}

impl Example {
    fn parse(header: &[String]) -> Option<Example> {
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
            "Written" => condense_input(&self.before, &options),
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

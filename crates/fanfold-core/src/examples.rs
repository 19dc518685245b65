//! Reads the headers of source files, whose examples run as tests.

use std::fs;
use std::path::Path;

use crate::model::tokens::{Count, FrameCosts, Tokens};

/// Counts four bytes as one token, so that short lines of real text are large enough to fold.
pub(crate) struct FourBytes;

impl Count for FourBytes {
    fn count(&self, text: &str) -> Tokens {
        Tokens(text.len().div_ceil(4) as u64)
    }

    fn frame(&self) -> FrameCosts {
        FrameCosts { message: Tokens(1), call: Tokens(1), media: Tokens(50) }
    }

    fn name(&self) -> &str {
        "four bytes"
    }

    fn is_exact(&self) -> bool {
        true
    }
}

/// The header of the file below `src/` that contains a text, without comment marks.
pub(crate) fn header_with(text: &str) -> Vec<String> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a source folder") {
            let path = entry.expect("a source file").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let source = fs::read_to_string(&path).expect("a source file");
            if source.contains(text) {
                return header_of(&source);
            }
        }
    }
    panic!("no source file contains `{text}`");
}

/// The header of a source file without comment marks.
pub(crate) fn header_of(source: &str) -> Vec<String> {
    let header = source.lines().take_while(|line| line.starts_with("//!"));
    header.map(|line| line.strip_prefix("//! ").unwrap_or_default().to_owned()).collect()
}

/// The example in the header of a file: before and after, separated by a line `->` or by a column of arrows.
pub(crate) fn example(header: &[String]) -> Option<(String, String)> {
    let start = header.iter().position(|line| *line == "```text")? + 1;
    let end = start + header[start..].iter().position(|line| *line == "```")?;
    let lines = &header[start..end];
    if let Some(arrow) = lines.iter().position(|line| *line == "->") {
        return Some((lines[..arrow].join("\n"), lines[arrow + 1..].join("\n")));
    }
    let arrow = lines.iter().find_map(|line| line.find(" ->  "))? + 1;
    let right = arrow + 4;
    let cut = |line: &String| {
        let (left, right) = line.split_at_checked(right).unwrap_or((line.as_str(), ""));
        (left.replace(" ->  ", "").trim_end().to_owned(), right.to_owned())
    };
    let (left, right): (Vec<_>, Vec<_>) = lines.iter().map(cut).unzip();
    Some((left.join("\n"), right.join("\n")))
}

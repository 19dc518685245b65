//! Reads the headers of source files, whose examples run as tests.

use std::fs;
use std::path::Path;

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

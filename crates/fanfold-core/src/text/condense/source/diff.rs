//! Patches: keeps the changed files with their numbers of added and removed lines, the hunk headers and the first
//! changed lines of each hunk.
//!
//! Context lines are left out, because the file has them. Changes of lock files and other generated files are only
//! counted.
//!
//! In 420 bytes:
//!
//! ```text
//! diff --git a/src/parser.rs b/src/parser.rs
//! index 3f1c2aa..9be01d4 100644
//! --- a/src/parser.rs
//! +++ b/src/parser.rs
//! @@ -115,7 +115,7 @@ fn read_header(input: &mut Input) -> Header {
//!      let width = input.next_number();
//!      // The first line is the title, which is not counted.
//! -    let height = input.next_number() - 1;
//! +    let height = input.next_number();
//!      Header { width, height }
//!  }
//!
//! @@ -140,3 +140,9 @@ fn read_row(input: &mut Input) -> Row {
//!      let cells = input.cells();
//!      Row { cells }
//!  }
//! +
//! +/// Reads what follows the last row, if anything does.
//! +fn read_footer(input: &mut Input) -> Option<Footer> {
//! +    input.rest().map(|text| Footer { text })
//! +}
//! diff --git a/Cargo.lock b/Cargo.lock
//! index 77aa012..81c0de9 100644
//! --- a/Cargo.lock
//! +++ b/Cargo.lock
//! @@ -3,2 +3,4 @@
//! +[[package]]
//! +name = "footer"
//! ->
//! src/parser.rs +6 -1
//! @@ -115,7 +115,7 @@ fn read_header(input: &mut Input) -> Header {
//! -    let height = input.next_number() - 1;
//! +    let height = input.next_number();
//! @@ -140,3 +140,9 @@ fn read_row(input: &mut Input) -> Row {
//! … 2 changed
//! +fn read_footer(input: &mut Input) -> Option<Footer> {
//! … 1 changed
//! +}
//! Cargo.lock +2 -0
//! … 2 changed
//! ```

use crate::text::condense::lines::{FRAME, Gap, NONE, PLAIN, Rows, SHAPE};
use crate::text::condense::severity::head;
use crate::text::condense::{CondenseOptions, Condenser, ContentKind, Sample};

pub(crate) const CONDENSER: Condenser = Condenser {
    kind: ContentKind::Diff,
    detects: |sample| is_diff(sample),
    condense: |text, options, _| condense(text, options),
    has_errors: false,
    suits_line_choice: false,
    may_be_code: false,
};

/// Returns whether a text has the header of a patch and mostly lines of one.
fn is_diff(sample: &Sample<'_>) -> bool {
    let is_start = |line: &&str| {
        line.starts_with("@@ -") || line.starts_with("diff --git ") || *line == "*** Begin Patch"
    };
    let is_line = |line: &str| line.starts_with(['+', '-', ' ', '@', 'd', 'i', '*']);
    !sample.is_numbered && sample.lines.iter().any(is_start) && sample.share(is_line) > 0.6
}

fn condense(text: &str, options: &CondenseOptions<'_>) -> String {
    let mut rows = Rows::new(options);
    let mut lines = text.split('\n').peekable();
    let mut files = files(text).into_iter();
    let mut is_generated = false;
    let mut is_head = false;
    let mut n_changed = 0_usize;
    while let Some(line) = lines.next() {
        let is_next_name = lines.peek().is_some_and(|next| next.starts_with("+++ "));
        let starts_file = is_git_head(line)
            || (!is_head && line.starts_with("--- ") && is_next_name)
            || is_codex_head(line);
        if starts_file {
            let file = files.next().unwrap_or_default();
            is_generated = GENERATED.iter().any(|name| file.name.contains(name));
            is_head = true;
            rows.push_owned(file.summary(), FRAME * 2.0);
            rows.gap(Gap::Silent);
        } else if line.starts_with("@@") {
            (is_head, n_changed) = (false, 0);
            // Scale the weight by the length, so that long headers are not at a disadvantage.
            let length_factor = (head(line, 200).len() + 24) as f32 / 24.0;
            rows.push(line, if is_generated { NONE } else { SHAPE * 1.2 * length_factor });
            rows.gap(Gap::Silent);
        } else if is_head && HEAD.iter().any(|mark| line.starts_with(mark)) {
            rows.push("", NONE);
            rows.gap(Gap::Silent);
        } else if line.starts_with(['+', '-']) {
            is_head = false;
            n_changed += 1;
            rows.push(line, weight(line, n_changed, is_generated));
            rows.gap(Gap::Changed);
        } else {
            // Text before the first patch or between patches is a message; context lines are in the file.
            let is_context = line.starts_with([' ', '\\']) || line.is_empty();
            rows.push(line, if is_context { PLAIN / 10.0 } else { SHAPE });
            rows.gap(if is_context { Gap::Silent } else { Gap::Line });
        }
    }
    rows.choose()
}

/// The weight of a changed line: highest for definitions and for the first lines of a hunk.
fn weight(line: &str, n_before: usize, is_generated: bool) -> f32 {
    let bare = &line[1..];
    if is_generated {
        return NONE;
    }
    if bare.trim().len() <= 2 {
        return PLAIN / 10.0;
    }
    let is_definition = crate::text::condense::source::code::weight(bare) >= SHAPE;
    let share = if is_definition { 1.5 } else { 8.0 / (7 + n_before) as f32 };
    // Scale the weight by the length, so that neighbouring lines are chosen together.
    share * SHAPE * (head(line, 200).len() + 24) as f32 / 24.0
}

/// The changes of one file.
#[derive(Debug, Default)]
struct FileChange<'a> {
    name: &'a str,
    /// Such as `new file` or `deleted`.
    note: &'static str,
    n_added: usize,
    n_removed: usize,
}

impl FileChange<'_> {
    /// A line such as `src/a.rs (new file) +12 -3`.
    fn summary(&self) -> String {
        let note = if self.note.is_empty() { String::new() } else { format!(" ({})", self.note) };
        format!("{}{note} +{} -{}", self.name, self.n_added, self.n_removed)
    }
}

/// The files of a patch in order.
fn files(text: &str) -> Vec<FileChange<'_>> {
    let mut files: Vec<FileChange<'_>> = Vec::new();
    let mut is_head = false;
    let mut lines = text.split('\n').peekable();
    while let Some(line) = lines.next() {
        let is_next_name = lines.peek().is_some_and(|next| next.starts_with("+++ "));
        if let Some(names) = line.strip_prefix("diff --git ") {
            let name = names.rsplit_once(" b/").map_or(names, |(_, name)| name);
            files.push(FileChange { name, ..FileChange::default() });
            is_head = true;
        } else if !is_head && line.starts_with("--- ") && is_next_name {
            files.push(FileChange {
                name: name_of(lines.peek().copied().unwrap_or(line), line),
                ..FileChange::default()
            });
            is_head = true;
        } else if is_codex_head(line) {
            let (note, name) = line.split_once(" File: ").unwrap_or(("", line));
            let note = match note {
                "*** Add" => "new file",
                "*** Delete" => "deleted",
                _ => "",
            };
            files.push(FileChange { name, note, ..FileChange::default() });
            is_head = false;
        } else if let Some(file) = files.last_mut() {
            if line.starts_with("@@") {
                is_head = false;
            }
            match line.as_bytes().first() {
                Some(b'n') if is_head && line.starts_with("new file") => file.note = "new file",
                Some(b'd') if is_head && line.starts_with("deleted file") => file.note = "deleted",
                Some(b'r') if is_head && line.starts_with("rename from") => file.note = "renamed",
                Some(b'B') if is_head && line.starts_with("Binary files") => file.note = "binary",
                Some(b'+') if !is_head => file.n_added += 1,
                Some(b'-') if !is_head => file.n_removed += 1,
                _ => {}
            }
        }
    }
    files
}

/// The name in `+++ b/x.rs`, or in `--- a/x.rs` if the file was deleted.
fn name_of<'a>(new: &'a str, old: &'a str) -> &'a str {
    let bare = |line: &'a str| {
        let name = line.get(4..).unwrap_or_default().split('\t').next().unwrap_or_default();
        name.strip_prefix("b/").or(name.strip_prefix("a/")).unwrap_or(name)
    };
    if bare(new) == "/dev/null" { bare(old) } else { bare(new) }
}

fn is_git_head(line: &str) -> bool {
    line.starts_with("diff --git ")
}

/// Returns whether a line is a file header of codex patches: `*** Update File: x.rs`.
fn is_codex_head(line: &str) -> bool {
    line.starts_with("*** ") && line.contains(" File: ")
}

/// Header lines that are redundant with the file name.
const HEAD: [&str; 13] = [
    "index ",
    "--- ",
    "+++ ",
    "new file",
    "deleted file",
    "old mode",
    "new mode",
    "similarity ",
    "rename from",
    "rename to",
    "copy ",
    "Binary files",
    "GIT binary",
];

const GENERATED: [&str; 7] =
    [".lock", "package-lock.json", "pnpm-lock.yaml", "go.sum", ".min.js", ".snap", ".svg"];

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::text::condense::ContentKind;
    use crate::text::condense::check::check;

    #[test]
    fn keeps_files_hunks_and_changes() {
        let text = {
            let context = " same line of code here\n".repeat(20);
            format!(
                "diff --git a/x.rs b/x.rs\nindex 1..2 100644\n--- a/x.rs\n+++ b/x.rs\n@@ -1,9 +1,9 @@ fn main\n{context}-    old();\n+    new();\n{context}@@ -80,2 +80,2 @@ fn more\n{context}+    more();\ndiff --git a/Cargo.lock b/Cargo.lock\nindex 1..2\n--- a/Cargo.lock\n+++ b/Cargo.lock\n@@ -1,2 +1,2 @@\n{}",
                "+  checksum = 1\n".repeat(40)
            )
        };
        check(
            ContentKind::Diff,
            &text,
            200,
            &[],
            &expect![[r#"
                x.rs +2 -1
                @@ -1,9 +1,9 @@ fn main
                -    old();
                +    new();
                @@ -80,2 +80,2 @@ fn more
                +    more();
                Cargo.lock +40 -0
                … 40 changed
            "#]],
        );
    }

    #[test]
    fn keeps_neighbouring_lines_together() {
        let text = {
            let lines: String = (0..80)
                .map(|i| {
                    if i % 3 == 0 {
                        "+    x;\n".to_owned()
                    } else {
                        format!("+    let value_{i} = compute(first, second, {i});\n")
                    }
                })
                .collect();
            format!("--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +1,82 @@\n{lines}")
        };
        check(
            ContentKind::Diff,
            &text,
            260,
            &["value_50"],
            &expect![[r#"
            x.rs +80 -0
            @@ -1,2 +1,82 @@
            +    x;
            +    let value_1 = compute(first, second, 1);
            +    let value_2 = compute(first, second, 2);
            +    x;
            … 46 changed
            +    let value_50 = compute(first, second, 50);
            … 29 changed
        "#]],
        );
    }
}

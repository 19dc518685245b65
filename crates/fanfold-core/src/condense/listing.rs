//! Names of files: grouped by directory, those in use first in line.
//!
//! ```text
//! src/passes/mod.rs
//! src/passes/dedupe.rs      ->  src/passes/ (3): mod.rs dedupe.rs media.rs
//! src/passes/media.rs           src/ (1): lib.rs
//! src/lib.rs
//! ```

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use super::Wish;
use super::lines::{FRAME, PLAIN, Rows, SHAPE};
use super::signs::head;

pub(super) fn condense(text: &str, wish: &Wish<'_>) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    let mut section = "";
    for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with("total "))
    {
        // `ls -R` names the directory first.
        if let Some(name) = line.strip_suffix(':').filter(|name| name.contains('/') || *name == ".") {
            section = name;
            continue;
        }
        let name = name_of(line);
        let (directory, name) = match name.trim_end_matches('/').rfind('/') {
            Some(at) if !name.contains(' ') => name.split_at(at + 1),
            _ => (section, name),
        };
        let at = *known.entry(directory).or_insert_with(|| {
            groups.push((directory, Vec::new()));
            groups.len() - 1
        });
        groups[at].1.push(name);
    }
    let n_names: usize = groups.iter().map(|(_, names)| names.len()).sum();
    let mut rows = Rows::new(wish);
    for (directory, names) in &groups {
        // A directory gets its part of the room, so that none is left out for another's sake.
        let room = (wish.room * names.len() / n_names.max(1)).clamp(40, rows.longest());
        let label = match (directory.is_empty(), names.len()) {
            (true, _) => String::new(),
            (false, 1) => format!("{directory}: "),
            (false, n) => format!("{directory} ({n}): "),
        };
        for (i, line) in joined(&label, names, room, wish).into_iter().enumerate() {
            rows.push_made(line, if i == 0 { FRAME } else { PLAIN });
        }
    }
    rows.raise(0, FRAME + SHAPE);
    rows.choose()
}

/// The names in lines of at most so many bytes; those of value first where not all fit the first line.
fn joined(label: &str, names: &[&str], room: usize, wish: &Wish<'_>) -> Vec<String> {
    let is_long = names.iter().map(|name| name.len() + 1).sum::<usize>() > room;
    let mut order: Vec<&str> = names.to_vec();
    if is_long {
        order.sort_by(|a, b| (wish.value)(b).total_cmp(&(wish.value)(a)));
    }
    let mut lines = vec![label.to_owned()];
    for name in order {
        let is_full = lines.last().is_some_and(|line| {
            line.len() > label.len().min(2) && line.len() + name.len() > room.max(label.len() + 24)
        });
        if is_full {
            lines.push("  ".to_owned());
        }
        if let Some(line) = lines.last_mut() {
            if !line.ends_with(' ') && !line.is_empty() {
                line.push(' ');
            }
            line.push_str(name);
        }
    }
    lines
}

/// Whether a line is the name of a file, alone or in a long listing or a tree.
pub(super) fn is_name(line: &str) -> bool {
    let start = head(line, 300);
    let is_path = !start.contains([' ', '(', '{', ';', '=', '"', ','])
        && start.contains(['/', '.'])
        && line.len() < 300;
    let is_word =
        start.len() < 40 && start.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-*/@.".contains(&b));
    is_path
        || LONG.is_match(start)
        || TREE.is_match(start)
        || (is_word && start.bytes().any(|b| b.is_ascii_alphabetic()))
        || start.starts_with("total ")
}

/// The name in a line of `ls -l` or `tree`, or the line.
fn name_of(line: &str) -> &str {
    if let Some(found) = LONG.find(head(line, 300)) {
        return line[found.end()..].trim_start();
    }
    line
}

static LONG: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[-dlcbsp][-rwxsStT]{9}[.+@]?\s+\d+\s+\S+\s+\S+\s+[\d.,]+[KMGT]?\s+\w+\s+\d+\s+[\d:]+\s")
        .expect("a pattern")
});
static TREE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[│ \u{a0}]*(?:├|└|\|--|`--)").expect("a pattern"));

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::condense::Kind;
    use crate::condense::check::check;

    #[test]
    fn names_are_grouped_by_directory() {
        let text = {
            let names: String = (0..60).map(|i| format!("./src/passes/pass{i}.rs\n")).collect();
            format!("./Cargo.toml\n{names}./src/lib.rs\n./docs/guide.md\n")
        };
        check(
            Kind::Listing,
            &text,
            240,
            &["pass42.rs"],
            &expect![[r#"
                ./: Cargo.toml
                ./src/passes/ (60): pass42.rs pass0.rs pass1.rs pass2.rs pass3.rs pass4.rs pass5.rs pass6.rs pass7.rs pass8.rs pass9.rs
                … 4 lines
                  pass55.rs pass56.rs pass57.rs pass58.rs pass59.rs
                ./src/: lib.rs
                ./docs/: guide.md
            "#]],
        );
    }

    #[test]
    fn long_listings_lose_their_columns() {
        let text = {
            let names: String =
                (0..30).map(|i| format!("-rw-r--r-- 1 root root 4096 Nov 15 04:42 file{i}.txt\n")).collect();
            format!("total 120\n{names}")
        };
        check(
            Kind::Listing,
            &text,
            200,
            &[],
            &expect![[r#"
                file0.txt file1.txt file2.txt file3.txt file4.txt file5.txt file6.txt file7.txt file8.txt file9.txt
                … 2 lines
                  file28.txt file29.txt
            "#]],
        );
    }
}

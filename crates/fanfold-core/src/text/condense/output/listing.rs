//! File names: groups them by directory, names in use first. Sizes, owners and dates are dropped.
//!
//! In 260 bytes:
//!
//! ```text
//! ./Cargo.toml
//! ./src/lib.rs
//! ./src/main.rs
//! ./src/passes/mod.rs
//! ./src/passes/dedupe.rs
//! ./src/passes/media.rs
//! ./src/passes/condense.rs
//! ./src/passes/one_line.rs
//! ./src/passes/anchor.rs
//! ./src/passes/digest.rs
//! ./src/passes/fair_share.rs
//! ./src/passes/squeeze.rs
//! ./src/passes/user_text.rs
//! ./docs/guide.md
//! ./docs/decisions/1-handles.md
//! ./docs/decisions/2-segments.md
//! ->
//! ./: Cargo.toml
//! ./src/ (2): lib.rs main.rs
//! ./src/passes/ (10): mod.rs dedupe.rs media.rs condense.rs … 6 more
//! ./docs/: guide.md
//! ./docs/decisions/ (2): 1-handles.md 2-segments.md
//! ```

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::text::condense::lines::{FRAME, Rows, SHAPE};
use crate::text::condense::severity::head;
use crate::text::condense::{CondenseOptions, Condenser, ContentKind};

pub(crate) const CONDENSER: Condenser = Condenser {
    kind: ContentKind::Listing,
    detects: |sample| !sample.is_numbered && sample.share(is_name) > 0.75,
    condense: |text, options, _| condense(text, options),
    has_errors: false,
    suits_line_choice: true,
    may_be_code: true,
};

fn condense(text: &str, options: &CondenseOptions<'_>) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    let mut section = "";
    for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with("total "))
    {
        // `ls -R` prints the directory before its files.
        if let Some(name) = line.strip_suffix(':').filter(|name| name.contains('/') || *name == ".") {
            section = name;
            continue;
        }
        let name = name_of(line);
        if matches!(name, "." | "..") {
            continue;
        }
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
    let groups: Vec<(&str, Vec<Cow<'_, str>>)> = groups
        .into_iter()
        .map(|(directory, names)| (directory, names.into_iter().map(Cow::Borrowed).collect()))
        .collect();
    by_directory(&groups, options)
}

/// Prints one line per directory with the names that fit its share of the room, and the number of others.
pub(crate) fn by_directory(groups: &[(&str, Vec<Cow<'_, str>>)], options: &CondenseOptions<'_>) -> String {
    let need: Vec<usize> = groups
        .iter()
        .map(|(directory, names)| {
            directory.len() + 16 + names.iter().map(|name| name.len() + 1).sum::<usize>()
        })
        .collect();
    let most = fair_share(need, options.room.saturating_sub(MARK));
    let mut rows = Rows::new(options);
    for (directory, names) in groups {
        let label = match (directory.is_empty(), names.len()) {
            (true, _) => String::new(),
            (false, 1) => format!("{directory}: "),
            (false, n) => format!("{directory} ({n}): "),
        };
        rows.push_uncut(join_names(&label, names, most, options), FRAME);
    }
    rows.raise(0, FRAME + SHAPE);
    rows.choose()
}

/// The room for a gap mark.
const MARK: usize = 24;

/// The fair share of the room: small needs are met in full, and large ones share the rest equally.
fn fair_share(mut need: Vec<usize>, room: usize) -> usize {
    need.sort_unstable();
    let mut left = room;
    let n = need.len();
    for (i, bytes) in need.into_iter().enumerate() {
        let share = left / (n - i);
        if bytes > share {
            return share.max(40);
        }
        left -= bytes;
    }
    room
}

/// Joins names in a line of about `room` bytes, most valuable first if not all fit.
fn join_names(label: &str, names: &[Cow<'_, str>], room: usize, options: &CondenseOptions<'_>) -> String {
    let is_long = label.len() + names.iter().map(|name| name.len() + 1).sum::<usize>() > room;
    let mut order: Vec<&str> = names.iter().map(|name| &**name).collect();
    if is_long {
        order.sort_by(|a, b| (options.value)(b).total_cmp(&(options.value)(a)));
    }
    let mut line = label.to_owned();
    for (i, name) in order.iter().enumerate() {
        let n_more = order.len() - i;
        let more = format!("… {n_more} more");
        let is_full = is_long && line.len() + name.len() + 1 + more.len() > room;
        if is_full && i > 0 {
            line.push_str(&more);
            return line;
        }
        line.push_str(head(name, 160));
        line.push(' ');
    }
    line.truncate(line.trim_end().len());
    line
}

/// Returns whether a line is a file name, alone or in the output of `ls -l` or `tree`.
fn is_name(line: &str) -> bool {
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

/// The file name in a line of `ls -l`; otherwise the whole line.
fn name_of(line: &str) -> &str {
    if let Some(found) = LONG.find(head(line, 300)) {
        return line[found.end()..].trim_start();
    }
    line
}

static LONG: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[-dlcbsp][-rwxsStT]{9}[.+@]?\s+\d+\s+\S+\s+\S+\s+[\d.,]+[KMGT]?\s+\w+\s+\d+\s+[\d:]+\s")
        .expect("a valid pattern")
});
static TREE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[│ \u{a0}]*(?:├|└|\|--|`--)").expect("a valid pattern"));

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::text::condense::ContentKind;
    use crate::text::condense::check::check;

    #[test]
    fn groups_names_by_directory() {
        let text = {
            let names: String = (0..60).map(|i| format!("./src/passes/pass{i}.rs\n")).collect();
            format!("./Cargo.toml\n{names}./src/lib.rs\n./docs/guide.md\n")
        };
        check(
            ContentKind::Listing,
            &text,
            240,
            &["pass42.rs"],
            &expect![[r#"
                ./: Cargo.toml
                ./src/passes/ (60): pass42.rs pass0.rs pass1.rs pass2.rs pass3.rs pass4.rs pass5.rs pass6.rs pass7.rs pass8.rs … 50 more
                ./src/: lib.rs
                ./docs/: guide.md
            "#]],
        );
    }

    #[test]
    fn drops_columns_of_long_listings() {
        let text = {
            let names: String =
                (0..30).map(|i| format!("-rw-r--r-- 1 root root 4096 Nov 15 04:42 file{i}.txt\n")).collect();
            format!("total 120\n{names}")
        };
        check(
            ContentKind::Listing,
            &text,
            200,
            &[],
            &expect![[r#"
                file0.txt file1.txt file2.txt file3.txt file4.txt file5.txt file6.txt file7.txt file8.txt file9.txt file10.txt file11.txt file12.txt file13.txt file14.txt … 15 more
            "#]],
        );
    }
}

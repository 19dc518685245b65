//! Normalises and compares paths as agents write them.

/// Removes `./`, doubled slashes, `x/..`, a `file://` prefix and quotes.
pub(super) fn normal(path: &str) -> String {
    let path = path.trim().trim_matches(['"', '\'', '`']);
    let path = path.strip_prefix("file://").unwrap_or(path);
    // Fast path: most paths are normal already.
    let is_named = |(i, part): (usize, &str)| !matches!(part, "." | "..") && (i == 0 || !part.is_empty());
    if !path.is_empty() && path.split('/').enumerate().all(is_named) {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    let joined = parts.join("/");
    if joined.is_empty() && root.is_empty() && !path.is_empty() {
        ".".to_owned()
    } else {
        format!("{root}{joined}")
    }
}

/// Resolves a path relative to a directory.
pub(super) fn join(directory: Option<&str>, path: &str) -> String {
    let is_rooted = path.starts_with(['/', '~', '$']) || path.contains("://");
    match directory {
        Some(directory) if !is_rooted => normal(&format!("{directory}/{path}")),
        _ => normal(path),
    }
}

/// Returns whether two normalised paths name the same file. A relative path matches the end of a longer path.
///
/// A bare file name such as `mod.rs` matches only itself.
pub(crate) fn is_same_file(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    if short == long {
        return true;
    }
    let is_specific = short.contains('/') && !short.starts_with('/') && !short.starts_with("..");
    is_specific && long.strip_suffix(short).is_some_and(|rest| rest.ends_with('/'))
}

/// Returns whether a word looks like a path.
pub(super) fn is_pathlike(word: &str) -> bool {
    let is_plain =
        !word.is_empty() && word.len() < 300 && !word.contains(['\n', ' ', '\t', '|', '<', '>', '(']);
    is_plain
        && (word.contains('/')
            || word.rsplit_once('.').is_some_and(|(stem, ext)| !stem.is_empty() && is_extension(ext)))
}

fn is_extension(text: &str) -> bool {
    (1..=8).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised() {
        let forms = ["./a//b/../c.rs", "a/c.rs", "/x/./y/", "..//a", "", ".", "\"a b\"", "file:///x"];
        let shown: Vec<_> = forms.iter().map(|path| normal(path)).collect();
        assert_eq!(shown, ["a/c.rs", "a/c.rs", "/x/y", "../a", "", ".", "a b", "/x"]);
        assert_eq!(join(Some("/repo"), "src/a.rs"), "/repo/src/a.rs");
        assert_eq!(join(Some("/repo"), "/etc/hosts"), "/etc/hosts");
    }

    #[test]
    fn relative_paths_match_with_a_directory() {
        assert!(is_same_file("/repo/src/a.rs", "src/a.rs"));
        assert!(!is_same_file("/repo/src/a.rs", "a.rs"));
        assert!(!is_same_file("/repo/src/aa.rs", "c/aa.rs"));
    }
}

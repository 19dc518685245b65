//! Texts that models know without reading them, which are no evidence of what a view contained.

use rustc_hash::FxHashSet;

/// Texts that every model knows: a built-in list, and optionally a list of the user.
#[derive(Debug, Default)]
pub struct CommonKnowledge {
    user_list: FxHashSet<String>,
}

impl CommonKnowledge {
    /// The built-in list alone.
    pub fn new() -> CommonKnowledge {
        CommonKnowledge::default()
    }

    /// The built-in list and a list of texts, one per line. Lines that start with `# ` are comments.
    pub fn with_list(list: &str) -> CommonKnowledge {
        let lines = list.split('\n').filter(|line| !line.trim().is_empty() && !line.starts_with("# "));
        CommonKnowledge { user_list: lines.map(str::to_owned).collect() }
    }

    pub(crate) fn contains(&self, atom: &str) -> bool {
        EVERYDAY.contains(&&*atom.to_lowercase())
            || self.user_list.contains(atom)
            || is_edit_command(atom)
            || is_library(atom)
    }
}

/// Names of encodings, hashes, platforms and sites, and pairs of words with a slash.
#[rustfmt::skip]
const EVERYDAY: &[&str] = &[
    "ascii", "utf8", "utf16", "base64", "md5", "sha1", "sha256",
    "int32", "int64", "uint8", "uint32", "uint64", "float32", "float64",
    "amd64", "arm64", "x86_64", "macos", "http2", "nodejs", "python2", "python3",
    "javascript", "typescript", "mysql", "postgresql", "sqlite", "sqlite3",
    "github", "openai", "chatgpt", "youtube", "linkedin",
    "/dev/null", "2>/dev/null",
    "and/or", "yes/no", "true/false", "n/a", "read/write", "input/output", "client/server",
    "e.g", "i.e", "etc",
    "__init__", "__main__", "__name__", "__file__",
];

/// Modules, packages and objects of standard libraries, and the usual short names of a few others.
#[rustfmt::skip]
const LIBRARIES: &[&str] = &[
    // Go
    "bufio", "bytes", "context", "errors", "exec", "filepath", "fmt", "http", "io", "ioutil", "os", "path",
    "regexp", "slog", "sort", "strconv", "strings", "sync", "testing", "time", "assert", "require", "err",
    "t", "b",
    // Python
    "collections", "copy", "datetime", "functools", "inspect", "itertools", "json", "logging", "math",
    "pathlib", "pytest", "random", "re", "shutil", "subprocess", "sys", "tempfile", "traceback", "typing",
    "unittest", "warnings", "np", "pd", "plt",
    // JavaScript
    "Array", "JSON", "Math", "Object", "Promise", "console", "process",
];

/// Names in standard libraries: `strings.TrimSpace`, `os.path.join`.
fn is_library(atom: &str) -> bool {
    let Some((module, name)) = atom.split_once('.') else { return false };
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c == '.' || crate::content::text::is_word(c));
    is_name && LIBRARIES.contains(&module)
}

/// Commands of line editors: `120,140p`, `/start/d`.
fn is_edit_command(atom: &str) -> bool {
    let is_range = atom.strip_suffix('p').is_some_and(|lines| {
        !lines.is_empty() && lines.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '$'))
    });
    is_range || ["/p", "/d", "/g"].iter().any(|end| atom.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_knowledge_is_recognised() {
        let known = CommonKnowledge::with_list("# a remark\n/testbed\n");
        for atom in ["UTF8", "strings.TrimSpace", "os.path.join", "10,20p", "s/a/b/g", "/testbed"] {
            assert!(known.contains(atom), "{atom}");
        }
        for atom in ["my.module", "os.2", "/testbed/x", "p", "# a remark"] {
            assert!(!known.contains(atom), "{atom}");
        }
    }
}

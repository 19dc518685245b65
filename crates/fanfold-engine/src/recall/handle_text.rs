//! Finds the handle in a text that a model wrote for it.
//!
//! ```text
//! #12   12   [#12]   step 12   recall #12   handle: 12   #12.2   #7-11   #e3      an address
//! #12 bash cargo test                                                             a line copied from a record
//! 291227   "[291227] export.py"   "[… 291227]"   fanfold:291227                   a content hash
//! ```

use fanfold_core::Handle;

/// A text does not name exactly one original.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandleTextError {
    /// The text contains no handle.
    #[error("`{0}` is not a handle")]
    NoHandle(String),
    /// The text contains several handles.
    #[error("these are {} handles: {}", .0.len(), print_handles(.0))]
    Several(Vec<Handle>),
}

impl HandleTextError {
    /// The next step, for a model or a user.
    pub fn hint(&self) -> &'static str {
        match self {
            HandleTextError::NoHandle(_) => "a handle is the number of a step, as in #12, #7-11 or #12.2",
            HandleTextError::Several(_) => "recall one at a time",
        }
    }
}

fn print_handles(handles: &[Handle]) -> String {
    handles.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Content hashes have at least six digits.
const MIN_HASH_DIGITS: usize = 6;

/// Words that may stand before an address without `#`.
const LABELS: [&str; 6] = ["recall", "handle", "step", "steps", "open", "fanfold"];

/// Finds the only handle in a text.
pub fn find_handle(text: &str) -> Result<Handle, HandleTextError> {
    let text = text.trim().trim_matches(['`', '"', '\'']).trim();
    if let Ok(handle) = text.parse() {
        return Ok(handle);
    }
    let finders = [handles_before_text, handles_in_brackets, marked_handles, labelled_addresses];
    let mut handles =
        finders.iter().map(|find| find(text)).find(|handles| !handles.is_empty()).unwrap_or_default();
    handles.sort_unstable();
    handles.dedup();
    match handles.as_slice() {
        [one] => Ok(*one),
        [] => Err(HandleTextError::NoHandle(text.chars().take(60).collect())),
        _ => Err(HandleTextError::Several(handles)),
    }
}

/// The handles of lines copied from a record, such as `#12 bash gh issue view #400`. The rest of such a line may contain
/// other numbers. Empty if the first line does not begin with a handle.
fn handles_before_text(text: &str) -> Vec<Handle> {
    let mut lines = text.lines();
    let Some(first) = lines.next().and_then(handle_before_text) else { return Vec::new() };
    // The indented lines belong to the entry above them.
    let entries = lines.filter(|line| !line.starts_with(char::is_whitespace));
    std::iter::once(first).chain(entries.filter_map(handle_before_text)).collect()
}

/// The handle at the beginning of a line, unless a list of handles begins with it.
fn handle_before_text(line: &str) -> Option<Handle> {
    let (first, rest) = line.trim().split_once(char::is_whitespace)?;
    let bare = match first.strip_prefix('[') {
        Some(bracketed) => bracketed.strip_suffix(']')?,
        None => first.trim_end_matches(':'),
    };
    let handle = bare.parse().ok().filter(|_| bare.starts_with('#'))?;
    let next = rest.split_whitespace().next()?.trim_matches(['[', ']', ',', ';']);
    let is_list = matches!(next, "" | "and" | "or" | "to" | "&" | "+" | "-" | "–" | "—") || is_marked(next);
    (!is_list).then_some(handle)
}

/// The handles at the end of brackets, as in `[lines 1–97 of #3, #12]`; all handles of a bracket with nothing else.
fn handles_in_brackets(text: &str) -> Vec<Handle> {
    let brackets = text.split('[').skip(1).filter_map(|after| Some(after.split_once(']')?.0));
    let handles_of_bracket = |bracket: &str| {
        let mut handles = marked_handles(bracket);
        let n_words = words(bracket).filter(|word| !matches!(*word, "and" | "or")).count();
        if n_words > handles.len() {
            handles.drain(..handles.len().saturating_sub(1));
        }
        handles
    };
    brackets.flat_map(handles_of_bracket).collect()
}

/// The words that are handles wherever they stand: addresses with `#`, and content hashes.
fn marked_handles(text: &str) -> Vec<Handle> {
    words(text).filter(|word| is_marked(word)).filter_map(|word| word.parse().ok()).collect()
}

fn is_marked(word: &str) -> bool {
    let is_hash = word.len() >= MIN_HASH_DIGITS && word.bytes().all(|byte| byte.is_ascii_digit());
    word.starts_with('#') || is_hash
}

/// Addresses without `#`, if the text contains only them and labels: `recall 12`, `handle: 12.2`.
fn labelled_addresses(text: &str) -> Vec<Handle> {
    let is_label = |word: &&str| LABELS.contains(&word.to_lowercase().as_str());
    let handles: Option<Vec<Handle>> =
        words(text).filter(|word| !is_label(word)).map(|word| word.parse().ok()).collect();
    handles.unwrap_or_default()
}

/// The parts of a text that consist of the characters of handles.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_in_handle = |c: char| c.is_alphanumeric() || matches!(c, '#' | '.' | '-' | '–' | '—');
    let words = text.split(move |c: char| !is_in_handle(c)).map(|word| word.trim_end_matches('.'));
    words.filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, handle: &str) {
        let found = find_handle(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(found.to_string(), handle, "{text}");
    }

    #[test]
    fn addresses_are_found_in_many_forms() {
        for text in [
            "#12",
            "12",
            " #12\n",
            "[#12]",
            "`[#12]`",
            "recall #12",
            "recall 12",
            "Handle: 12",
            "handle=#12",
            "fanfold:#12",
            "step 12",
            "open step #12.",
            "[#3 lines 1–97, #12]",
            "[what stands above is left out; all of it: #12]",
            "#12 bash cargo test -p core",
            "[#12] bash cargo test 291227",
            "#12: bash gh issue view #400",
            "#12 read a.rs lines 1-40\n    fn main() {}",
        ] {
            check(text, "#12");
        }
        for (text, handle) in [
            ("#12.2", "#12.2"),
            ("recall 12.2", "#12.2"),
            ("#6.2a", "#6.2a"),
            ("recall #3.1", "#3.1"),
            ("#2-4", "#2-4"),
            ("#7-11 read five files", "#7-11"),
            ("recall 7-11", "#7-11"),
            ("#7 - #11", "#7-11"),
            ("#e3", "#e3"),
            ("recall #e3", "#e3"),
            ("#12.2i1", "#12.2i1"),
        ] {
            check(text, handle);
        }
    }

    #[test]
    fn content_hashes_are_found_in_many_forms() {
        for text in [
            "291227",
            " 291227\n",
            "[291227]",
            "`291227`",
            "`[291227]`",
            "[291227] export.py",
            "[… 291227]",
            "[read again later, 291227]",
            "[045715 lines 1–97, 291227]",
            "recall 291227",
            "handle: 291227",
            "handle=291227",
            "#291227",
            "fanfold:291227",
            "<291227>",
            "[291227] [read] a.rs lines 100000–200000",
            "[read] a.rs (6 lines); succeeded; folded from view, recall 291227",
        ] {
            check(text, "291227");
        }
        check("291227045", "291227045");
    }

    #[test]
    fn several_handles_are_an_error() {
        for (text, error) in [
            ("[291227] and [726019]", "these are 2 handles: 291227, 726019"),
            ("#12 and #13", "these are 2 handles: #12, #13"),
            ("#12, #13", "these are 2 handles: #12, #13"),
            ("[#12, #13.1]", "these are 2 handles: #12, #13.1"),
            ("recall 12 13", "these are 2 handles: #12, #13"),
            ("#12 bash ls\n#13 bash pwd", "these are 2 handles: #12, #13"),
        ] {
            assert_eq!(find_handle(text).expect_err(text).to_string(), error, "{text}");
        }
    }

    #[test]
    fn other_texts_are_an_error() {
        for text in ["", "xyz", "#", "#0", "#6.2b", "the 12 steps", "12 bash ls", "#12.2-3", "[a]", "-7"] {
            assert_eq!(find_handle(text), Err(HandleTextError::NoHandle(text.to_owned())), "{text}");
        }
    }
}

//! Extracts search terms from a question, for servers that only match literal text.

/// Maximum number of terms.
const MAX_TERMS: usize = 5;
/// Minimum length of a term; shorter words occur in most texts.
const MIN_CHARS: usize = 4;

/// Stop words.
const STOP_WORDS: &[&str] = &[
    "about", "after", "again", "also", "another", "because", "been", "before", "being", "below", "between",
    "both", "cannot", "change", "check", "code", "could", "does", "doing", "done", "dont", "each", "else",
    "every", "file", "files", "find", "first", "from", "give", "have", "here", "into", "just", "know",
    "last", "like", "look", "make", "many", "more", "most", "must", "need", "next", "only", "other", "over",
    "please", "same", "shall", "should", "show", "some", "still", "such", "take", "tell", "than", "thank",
    "thanks", "that", "their", "them", "then", "there", "these", "they", "thing", "this", "those", "time",
    "under", "until", "used", "using", "very", "want", "were", "what", "when", "where", "which", "while",
    "whom", "whose", "will", "with", "would", "write", "your", "yours",
];

/// The best terms of a question: names before other words, longer terms before shorter ones.
pub(crate) fn search_terms(question: &str) -> Vec<String> {
    let words = question.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':')));
    let mut found: Vec<(u8, usize, &str)> = Vec::new();
    for word in words {
        let word = word.trim_matches(['-', '.', '/', ':']);
        let n_chars = word.chars().count();
        let is_non_ascii = !word.is_ascii();
        let is_known = found.iter().any(|(_, _, known)| known.eq_ignore_ascii_case(word));
        let is_stop_word = STOP_WORDS.contains(&word.to_ascii_lowercase().as_str());
        // In Chinese and Japanese two characters may be a word.
        if is_known || is_stop_word || n_chars < if is_non_ascii { 2 } else { MIN_CHARS } {
            continue;
        }
        found.push((rank(word), n_chars, word));
    }
    // The sort is stable: equal terms keep their order in the question.
    found.sort_by_key(|(rank, n_chars, _)| (*rank, std::cmp::Reverse(*n_chars)));
    found.into_iter().take(MAX_TERMS).map(|(_, _, word)| word.to_owned()).collect()
}

/// Rank of a term: 0 for identifiers, 1 for capitalised words, 2 for other words.
fn rank(word: &str) -> u8 {
    let has_punctuation =
        word.contains(['_', '-', '.', '/', ':']) || word.contains(|c: char| c.is_ascii_digit());
    let has_capital = word.chars().skip(1).any(char::is_uppercase);
    match (has_punctuation || has_capital, word.starts_with(char::is_uppercase)) {
        (true, _) => 0,
        (false, true) => 1,
        (false, false) => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_rank_before_words() {
        let found = search_terms(
            "Which port does the staging proxy of Billing use in src/serve.rs, and is it set there?",
        );
        assert_eq!(found, ["src/serve.rs", "Billing", "staging", "proxy", "port"]);
        assert_eq!(search_terms("do it"), [""; 0]);
        assert_eq!(search_terms("ポート は 何"), ["ポート"]);
    }
}

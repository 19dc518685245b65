//! The words of a question that are worth looking for, for servers that find a text only as it is written.

/// So many words are looked for.
const MOST: usize = 5;
/// Shorter words are in every text.
const SHORTEST: usize = 4;

/// Words that say nothing of what is asked about.
const COMMON: &[&str] = &[
    "about", "after", "again", "also", "another", "because", "been", "before", "being", "below", "between",
    "both", "cannot", "change", "check", "code", "could", "does", "doing", "done", "dont", "each", "else",
    "every", "file", "files", "find", "first", "from", "give", "have", "here", "into", "just", "know",
    "last", "like", "look", "make", "many", "more", "most", "must", "need", "next", "only", "other", "over",
    "please", "same", "shall", "should", "show", "some", "still", "such", "take", "tell", "than", "thank",
    "thanks", "that", "their", "them", "then", "there", "these", "they", "thing", "this", "those", "time",
    "under", "until", "used", "using", "very", "want", "were", "what", "when", "where", "which", "while",
    "whom", "whose", "will", "with", "would", "write", "your", "yours",
];

/// The words that tell most, best first: names before words, long ones before short ones.
pub(crate) fn search_terms(question: &str) -> Vec<String> {
    let words = question.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':')));
    let mut found: Vec<(u8, usize, &str)> = Vec::new();
    for word in words {
        let word = word.trim_matches(['-', '.', '/', ':']);
        let n_letters = word.chars().count();
        let is_wide = !word.is_ascii();
        let is_known = found.iter().any(|(_, _, known)| known.eq_ignore_ascii_case(word));
        let is_common = COMMON.contains(&word.to_ascii_lowercase().as_str());
        // Two signs of Chinese or Japanese are a word.
        if is_known || is_common || n_letters < if is_wide { 2 } else { SHORTEST } {
            continue;
        }
        found.push((rank(word), n_letters, word));
    }
    // The sort is stable, so among equals the one that came first stays first.
    found.sort_by_key(|(rank, n_letters, _)| (*rank, std::cmp::Reverse(*n_letters)));
    found.into_iter().take(MOST).map(|(_, _, word)| word.to_owned()).collect()
}

/// Names of things before names of people and products before words.
fn rank(word: &str) -> u8 {
    let has_mark = word.contains(['_', '-', '.', '/', ':']) || word.contains(|c: char| c.is_ascii_digit());
    let has_capital = word.chars().skip(1).any(char::is_uppercase);
    match (has_mark || has_capital, word.starts_with(char::is_uppercase)) {
        (true, _) => 0,
        (false, true) => 1,
        (false, false) => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_before_words() {
        let found = search_terms(
            "Which port does the staging proxy of Billing use in src/serve.rs, and is it set there?",
        );
        assert_eq!(found, ["src/serve.rs", "Billing", "staging", "proxy", "port"]);
        assert_eq!(search_terms("do it"), [""; 0]);
        assert_eq!(search_terms("ポート は 何"), ["ポート"]);
    }
}

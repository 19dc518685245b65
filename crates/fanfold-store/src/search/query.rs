//! The query language.
//!
//! ```text
//! parser error             both words, anywhere in a message
//! "parser error"           a phrase; src/main.rs, max_retries and 日本語 are phrases without quotes
//! parse*                   words with this prefix
//! *ars*                    words that contain this part
//! parser OR lexer          either word
//! parser NOT error         the first without the second
//! ```
//!
//! Every text is a valid query: other punctuation only separates words, and an operator without operands is ignored.

use crate::search::text::words::{is_single_char_word, words};

/// The rest of a longer query is ignored.
const MAX_QUERY_CHARS: usize = 2_048;
/// The maximum number of words in a query.
const MAX_WORDS: usize = 64;
/// The maximum number of words that one prefix or part is expanded to.
const MAX_EXPANSIONS: usize = 256;
/// The same for a widened query, for all of its terms together.
const MAX_WIDENED_EXPANSIONS: usize = 96;

/// A parsed query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// A message must match one of these groups.
    pub(crate) alternatives: Vec<TermGroup>,
    /// The maximum number of words that one prefix or part is expanded to.
    pub(crate) max_expansions: usize,
}

/// Terms that a message must contain, and terms that it must not contain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TermGroup {
    /// The message contains all of them.
    pub(crate) required: Vec<Term>,
    /// The message contains none of them.
    pub(crate) excluded: Vec<Term>,
}

/// One or more consecutive words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Term {
    /// Exact words.
    Words(Vec<String>),
    /// The last word is a prefix.
    Prefix(Vec<String>),
    /// The first word is a suffix and the last one a prefix; a single word is a substring.
    Part(Vec<String>),
}

impl Default for Query {
    fn default() -> Query {
        Query { alternatives: Vec::new(), max_expansions: MAX_EXPANSIONS }
    }
}

impl Query {
    /// Parses a query. Every text is valid; one without words yields an empty query.
    pub fn parse(text: &str) -> Query {
        let end = text.char_indices().nth(MAX_QUERY_CHARS).map_or(text.len(), |(at, _)| at);
        let tokens = tokenize(&text[..end]);
        let has_words = tokens.iter().any(|token| matches!(token, QueryToken::Term(_)));
        let mut groups = vec![TermGroup::default()];
        let mut is_negated = false;
        let mut n_words = 0;
        for token in tokens {
            let group = groups.last_mut().expect("there is one group from the start");
            let term = match token {
                QueryToken::Term(term) => term,
                // A query of operators only searches for the operators as words.
                QueryToken::And | QueryToken::Or | QueryToken::Not if !has_words => {
                    Term::Words(vec![token.word().to_owned()])
                }
                QueryToken::And => continue,
                QueryToken::Or => {
                    if !group.required.is_empty() {
                        groups.push(TermGroup::default());
                    }
                    is_negated = false;
                    continue;
                }
                QueryToken::Not => {
                    is_negated = !group.required.is_empty();
                    continue;
                }
            };
            n_words += term.words().len();
            if n_words > MAX_WORDS && n_words > term.words().len() {
                break;
            }
            let terms = if is_negated { &mut group.excluded } else { &mut group.required };
            if !terms.contains(&term) {
                terms.push(term);
            }
            is_negated = false;
        }
        groups.retain(|group| !group.required.is_empty());
        Query { alternatives: groups, ..Query::default() }
    }

    /// Returns whether the query has no words.
    pub(crate) fn is_empty(&self) -> bool {
        self.alternatives.is_empty()
    }

    /// Returns the query with words and prefixes changed to parts of words; `None` if nothing changes.
    pub(crate) fn widened(&self) -> Option<Query> {
        let mut wide = self.clone();
        let n_terms = wide.alternatives.iter().map(|group| group.required.len()).sum::<usize>().max(1);
        wide.max_expansions = (MAX_WIDENED_EXPANSIONS / n_terms).max(4);
        for term in wide.alternatives.iter_mut().flat_map(|group| &mut group.required) {
            if let Term::Words(words) | Term::Prefix(words) = term
                && words.iter().any(|word| !is_single_char_word(word))
                && words.iter().map(|word| word.chars().count()).sum::<usize>() >= 3
            {
                *term = Term::Part(std::mem::take(words));
            }
        }
        (wide.alternatives != self.alternatives).then_some(wide)
    }

    /// Replaces prefixes and parts by words of the vocabulary. `find_words` returns at most the given number of words
    /// that match a pattern.
    pub(crate) fn expand<E>(
        &self,
        find_words: impl FnMut(&WordPattern, usize) -> Result<Vec<String>, E>,
    ) -> Result<ExpandedQuery, E> {
        let mut expansion = Expansion { find_words, limit: self.max_expansions, is_truncated: false };
        let mut alternatives = Vec::new();
        for group in &self.alternatives {
            let required = expansion.terms(&group.required)?;
            let mut excluded = expansion.terms(&group.excluded)?;
            excluded.retain(|phrases| !phrases.is_empty());
            if required.iter().all(|phrases| !phrases.is_empty()) {
                alternatives.push(ExpandedGroup { required, excluded });
            }
        }
        Ok(ExpandedQuery { alternatives, is_truncated: expansion.is_truncated })
    }
}

impl Term {
    /// Returns the words of the term.
    pub(crate) fn words(&self) -> &[String] {
        let (Term::Words(words) | Term::Prefix(words) | Term::Part(words)) = self;
        words
    }
}

/// A query with prefixes and parts expanded to words of the vocabulary.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ExpandedQuery {
    /// A message must match one of these groups; if empty, no message matches.
    pub(crate) alternatives: Vec<ExpandedGroup>,
    /// True if a prefix or part matches more words than it was expanded to.
    pub(crate) is_truncated: bool,
}

impl ExpandedQuery {
    /// Returns every phrase of the required terms.
    pub(crate) fn phrases(&self) -> impl Iterator<Item = &Phrase> {
        self.alternatives.iter().flat_map(|group| &group.required).flatten()
    }
}

/// Terms that a message must contain, and terms that it must not contain. A message contains a term if it contains
/// one of the term's phrases.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ExpandedGroup {
    /// The message contains all of these terms.
    pub(crate) required: Vec<Vec<Phrase>>,
    /// The message contains none of these terms.
    pub(crate) excluded: Vec<Vec<Phrase>>,
}

/// Consecutive words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Phrase {
    /// The words; at least one.
    pub(crate) words: Vec<String>,
}

/// A pattern for words of the vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordPattern<'a> {
    /// The word itself.
    Exact(&'a str),
    /// Words with this prefix.
    StartsWith(&'a str),
    /// Words with this suffix.
    EndsWith(&'a str),
    /// Words with this substring.
    Contains(&'a str),
}

impl WordPattern<'_> {
    /// Returns whether a word matches the pattern.
    pub(crate) fn matches(&self, word: &str) -> bool {
        match self {
            WordPattern::Exact(whole) => word == *whole,
            WordPattern::StartsWith(part) => word.starts_with(part),
            WordPattern::EndsWith(part) => word.ends_with(part),
            WordPattern::Contains(part) => word.contains(part),
        }
    }
}

/// Expands terms to phrases.
struct Expansion<F> {
    /// Returns at most the given number of words that match a pattern.
    find_words: F,
    /// The maximum number of words that one prefix or part is expanded to.
    limit: usize,
    /// Set if a prefix or part matches more words.
    is_truncated: bool,
}

impl<E, F: FnMut(&WordPattern, usize) -> Result<Vec<String>, E>> Expansion<F> {
    fn terms(&mut self, terms: &[Term]) -> Result<Vec<Vec<Phrase>>, E> {
        terms.iter().map(|term| self.term(term)).collect()
    }

    fn term(&mut self, term: &Term) -> Result<Vec<Phrase>, E> {
        let (words, is_open_before) = match term {
            Term::Words(words) => return Ok(vec![Phrase { words: words.clone() }]),
            Term::Prefix(words) => (words, false),
            Term::Part(words) => (words, true),
        };
        // The index has trigrams: shorter parts are in too many words to be worth an index.
        let is_open_before_first = is_open_before && words[0].chars().count() >= 3;
        let [word] = words.as_slice() else {
            // Every first word is combined with every last word, so limit each end to bound the product.
            let limit = if is_open_before { (self.limit / 16).isqrt().max(2) } else { self.limit };
            return self.several_words(words, is_open_before_first, limit);
        };
        let pattern =
            if is_open_before_first { WordPattern::Contains(word) } else { WordPattern::StartsWith(word) };
        let words = self.matching_words(pattern, word, self.limit)?;
        Ok(words.into_iter().map(|word| Phrase { words: vec![word] }).collect())
    }

    /// Expands consecutive words, of which the last is a prefix, and the first a suffix if `is_open_before`. At most
    /// `limit` words are found for each.
    fn several_words(
        &mut self,
        words: &[String],
        is_open_before: bool,
        limit: usize,
    ) -> Result<Vec<Phrase>, E> {
        let (first, last) = (&words[0], &words[words.len() - 1]);
        let between = &words[1..words.len() - 1];
        // Look up the complete words first: that is cheap, and an unknown one makes the slow suffix search unnecessary.
        for word in between.iter().filter(|word| !is_single_char_word(word)) {
            if (self.find_words)(&WordPattern::Exact(word), 1)?.is_empty() {
                return Ok(Vec::new());
            }
        }
        let lasts = self.matching_words(WordPattern::StartsWith(last), last, limit)?;
        if lasts.is_empty() {
            return Ok(Vec::new());
        }
        let firsts = if is_open_before {
            self.matching_words(WordPattern::EndsWith(first), first, limit)?
        } else {
            vec![first.clone()]
        };
        let mut phrases = Vec::with_capacity(firsts.len() * lasts.len());
        for first in &firsts {
            for last in &lasts {
                let words = [std::slice::from_ref(first), between, std::slice::from_ref(last)].concat();
                phrases.push(Phrase { words });
            }
        }
        Ok(phrases)
    }

    /// Returns words that match the pattern of a part, and the part itself unless it is a prefix.
    fn matching_words(
        &mut self,
        pattern: WordPattern,
        part: &String,
        limit: usize,
    ) -> Result<Vec<String>, E> {
        if is_single_char_word(part) {
            return Ok(vec![part.clone()]);
        }
        // Ask for one word more than the limit, to detect that there are more.
        let mut found = (self.find_words)(&pattern, limit + 1)?;
        self.is_truncated |= found.len() > limit;
        found.truncate(limit);
        // The trigram index may lack words of up to three letters, so add the part itself.
        if !matches!(pattern, WordPattern::StartsWith(_)) && !found.contains(part) {
            found.insert(0, part.clone());
        }
        Ok(found)
    }
}

#[derive(Debug)]
enum QueryToken {
    Term(Term),
    And,
    Or,
    Not,
}

impl QueryToken {
    /// The operator as a word to search for.
    fn word(&self) -> &'static str {
        match self {
            QueryToken::Or => "or",
            QueryToken::Not => "not",
            QueryToken::And | QueryToken::Term(_) => "and",
        }
    }
}

/// Splits a query at spaces and quotes. An unmatched quote counts as a space.
fn tokenize(text: &str) -> Vec<QueryToken> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\0');
        let Some(first) = rest.chars().next() else { return tokens };
        let quoted = match first {
            '"' => rest[1..].split_once('"'),
            '“' | '„' | '«' | '「' => rest[first.len_utf8()..].split_once(['”', '“', '»', '」']),
            _ => None,
        };
        if let Some((inside, after)) = quoted {
            let is_prefix = after.starts_with('*');
            tokens.extend(term(inside, false, is_prefix).map(QueryToken::Term));
            rest = after;
            continue;
        }
        let end = rest[first.len_utf8()..]
            .find(|c: char| c.is_whitespace() || matches!(c, '\0' | '"' | '“' | '„' | '«' | '「'));
        let end = end.map_or(rest.len(), |at| at + first.len_utf8());
        let token = &rest[..end];
        rest = &rest[end..];
        match token {
            "AND" | "&&" => tokens.push(QueryToken::And),
            "OR" | "||" | "|" => tokens.push(QueryToken::Or),
            "NOT" => tokens.push(QueryToken::Not),
            _ => {
                tokens
                    .extend(term(token, token.starts_with('*'), token.ends_with('*')).map(QueryToken::Term));
            }
        }
    }
}

fn term(text: &str, is_open_before: bool, is_open_after: bool) -> Option<Term> {
    let words = words(text);
    if words.is_empty() {
        return None;
    }
    Some(match (is_open_before, is_open_after) {
        (true, _) => Term::Part(words),
        (false, true) => Term::Prefix(words),
        (false, false) => Term::Words(words),
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn show(terms: &[Term]) -> String {
        let show = |term: &Term| match term {
            Term::Words(words) => words.join("_"),
            Term::Prefix(words) => words.join("_") + "*",
            Term::Part(words) => format!("*{}*", words.join("_")),
        };
        terms.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    fn check(texts: &[&str], expected: &Expect) {
        let mut actual = String::new();
        for text in texts {
            let groups = Query::parse(text).alternatives;
            let group = |group: &TermGroup| match group.excluded.as_slice() {
                [] => show(&group.required),
                excluded => format!("{} not {}", show(&group.required), show(excluded)),
            };
            let groups: Vec<String> = groups.iter().map(group).collect();
            actual += &format!("{text:28} -> {}\n", groups.join(" | "));
        }
        expected.assert_eq(&actual);
    }

    #[test]
    fn parses_words_phrases_prefixes_and_parts() {
        check(
            &[
                "parser error",
                "\"parser error\" twice",
                "parse* *ars* *ars",
                "\"parser err\"*",
                "日本語 日本*",
                "a OR b c NOT d",
                "a AND b || c",
                "Not or and",
            ],
            &expect![[r#"
                parser error                 -> parser error
                "parser error" twice         -> parser_error twice
                parse* *ars* *ars            -> parse* *ars*
                "parser err"*                -> parser_err*
                日本語 日本*                      -> 日_本_語 日_本*
                a OR b c NOT d               -> a | b c not d
                a AND b || c                 -> a b | c
                Not or and                   -> not or and
            "#]],
        );
    }

    #[test]
    fn other_punctuation_separates_words() {
        check(
            &[
                "src/main.rs:12",
                "max_retries re-try",
                "C:\\Users\\me",
                "\"out of balance",
                "a\"b",
                "NEAR(a b, 5)",
                "AND a OR",
                "NOT a",
                "a OR NOT b",
                "OR",
                "NOT NOT",
                "{col}:^x + -y",
                "***",
                "'); DROP TABLE x; --",
                "",
            ],
            &expect![[r#"
                src/main.rs:12               -> src_main_rs_12
                max_retries re-try           -> max_retries re_try
                C:\Users\me                  -> c_users_me
                "out of balance              -> out of balance
                a"b                          -> a b
                NEAR(a b, 5)                 -> near_a b 5
                AND a OR                     -> a
                NOT a                        -> a
                a OR NOT b                   -> a | b
                OR                           -> or
                NOT NOT                      -> not
                {col}:^x + -y                -> col_x y
                ***                          -> 
                '); DROP TABLE x; --         -> drop table x
                                             -> 
            "#]],
        );
    }

    #[test]
    fn nul_separates_words() {
        assert_eq!(Query::parse("a\0b \0OR\0 c"), Query::parse("a b OR c"));
    }

    #[test]
    fn long_queries_are_truncated() {
        let query = Query::parse(&"x1 y2 \" OR NOT ( ".repeat(3_000));
        assert!(
            query.alternatives.iter().map(|group| group.required.len() + group.excluded.len()).sum::<usize>()
                <= MAX_WORDS
        );
        assert!(!Query::parse(&"ä".repeat(10_000)).is_empty());
    }

    #[test]
    fn prefixes_and_parts_are_expanded_to_known_words() {
        let vocabulary = ["max", "maxretries", "retries", "retry", "rs"];
        let find_words = |pattern: &WordPattern, n: usize| {
            Ok::<_, ()>(
                vocabulary
                    .iter()
                    .filter(|word| pattern.matches(word))
                    .take(n)
                    .map(|word| (*word).to_owned())
                    .collect(),
            )
        };
        let phrases = |text: &str| {
            let expanded = Query::parse(text).expand(find_words).unwrap();
            let show_group = |group: &ExpandedGroup| {
                let show_phrase = |phrase: &Phrase| phrase.words.join("_");
                group
                    .required
                    .iter()
                    .map(|term| term.iter().map(show_phrase).collect::<Vec<_>>().join("|"))
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            expanded.alternatives.iter().map(show_group).collect::<Vec<_>>().join(" OR ")
        };
        assert_eq!(phrases("retr*"), "retries|retry");
        assert_eq!(phrases("*retr*"), "retr|maxretries|retries|retry");
        assert_eq!(
            phrases("*tries.r*"),
            "tries_retries|tries_retry|tries_rs|maxretries_retries|maxretries_retry|maxretries_rs|\
             retries_retries|retries_retry|retries_rs"
        );
        assert_eq!(phrases("\"max ret\"*"), "max_retries|max_retry");
        assert_eq!(phrases("*ax.retry.r*"), "ax_retry_retries|ax_retry_retry|ax_retry_rs");
    }

    #[test]
    fn path_with_an_unknown_word_is_not_searched_by_its_ends() {
        for text in ["*rc/none/main.r*", "*rc/main.non*", "max NOT *a/none/b*"] {
            let expanded = Query::parse(text).expand(|pattern, _| match pattern {
                WordPattern::Exact(word) | WordPattern::StartsWith(word) if *word == "main" => {
                    Ok(vec!["main".to_owned()])
                }
                WordPattern::Exact(_) | WordPattern::StartsWith(_) => Ok(Vec::new()),
                WordPattern::EndsWith(_) | WordPattern::Contains(_) => Err("this search is slow"),
            });
            let groups = expanded.unwrap().alternatives;
            assert_eq!(groups.len(), usize::from(text.starts_with("max")), "{text}");
            assert!(groups.iter().all(|group| group.excluded.is_empty()), "{text}");
        }
    }
}

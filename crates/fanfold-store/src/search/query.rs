//! What somebody looks for, from whatever they wrote.
//!
//! ```text
//! parser error             both words, anywhere in a message
//! "parser error"           one behind the other; so src/main.rs, max_retries and 日本語 without quotes
//! parse*                   words that begin so
//! *ars*                    words with that part
//! parser OR lexer          one of them
//! parser NOT error         the first without the second
//! ```
//!
//! Everything else is safe: other signs only part words, and an operator with nothing to work on is dropped. There is
//! no text that is an error.

use crate::search::text::words::{is_single_char_word, words};

/// No more of a query than this is read.
const MAX_QUERY_CHARS: usize = 2_048;
/// No more words than this are looked for.
const MAX_WORDS: usize = 64;
/// So many words of the vocabulary may stand for one prefix or part.
const MAX_EXPANSIONS: usize = 256;
/// So many stand for all words of a query that nobody wrote as parts.
const MAX_WIDENED_EXPANSIONS: usize = 96;

/// What somebody looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// One of these must hold.
    pub alternatives: Vec<TermGroup>,
    /// How many words of the vocabulary may stand for one prefix or part.
    pub max_expansions: usize,
}

/// Terms that must all be in a message, and ones that must not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TermGroup {
    /// They are in it.
    pub required: Vec<Term>,
    /// They are not.
    pub excluded: Vec<Term>,
}

/// Words behind one another; one word, most of the time. There is always one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Term {
    /// As they are.
    Words(Vec<String>),
    /// The last one begins so.
    Prefix(Vec<String>),
    /// The first one ends so and the last one begins so; a single one has this part.
    Part(Vec<String>),
}

impl Default for Query {
    fn default() -> Query {
        Query { alternatives: Vec::new(), max_expansions: MAX_EXPANSIONS }
    }
}

impl Query {
    /// What a text asks for. Every text asks for something, if only for nothing.
    pub fn parse(text: &str) -> Query {
        let end = text.char_indices().nth(MAX_QUERY_CHARS).map_or(text.len(), |(at, _)| at);
        let pieces = tokenize(&text[..end]);
        let has_words = pieces.iter().any(|piece| matches!(piece, QueryToken::Term(_)));
        let mut any = vec![TermGroup::default()];
        let mut is_negated = false;
        let mut n_words = 0;
        for piece in pieces {
            let group = any.last_mut().expect("there is one from the start");
            let term = match piece {
                QueryToken::Term(term) => term,
                // With nothing to work on, they are what somebody looks for.
                QueryToken::And | QueryToken::Or | QueryToken::Not if !has_words => {
                    Term::Words(vec![piece.word().to_owned()])
                }
                QueryToken::And => continue,
                QueryToken::Or => {
                    if !group.required.is_empty() {
                        any.push(TermGroup::default());
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
        any.retain(|group| !group.required.is_empty());
        Query { alternatives: any, ..Query::default() }
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.alternatives.is_empty()
    }

    /// The same, but a word may be a part of one; none if that is no different.
    pub fn widened(&self) -> Option<Query> {
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

    /// The same with prefixes and parts replaced by words that there are. `alike` gives those of a vocabulary, at
    /// most so many.
    pub fn expand<E>(
        &self,
        mut alike: impl FnMut(&WordPattern, usize) -> Result<Vec<String>, E>,
    ) -> Result<ExpandedQuery, E> {
        let mut expanded = ExpandedQuery::default();
        for group in &self.alternatives {
            let mut terms = |terms: &[Term]| {
                terms
                    .iter()
                    .map(|term| expand(term, self.max_expansions, &mut alike, &mut expanded.is_narrowed))
                    .collect::<Result<Vec<_>, E>>()
            };
            let with = terms(&group.required)?;
            let mut without = terms(&group.excluded)?;
            without.retain(|phrases| !phrases.is_empty());
            if with.iter().all(|phrases| !phrases.is_empty()) {
                expanded.alternatives.push(ExpandedGroup { required: with, excluded: without });
            }
        }
        Ok(expanded)
    }
}

impl Term {
    /// Its words.
    pub fn words(&self) -> &[String] {
        let (Term::Words(words) | Term::Prefix(words) | Term::Part(words)) = self;
        words
    }
}

/// A query in words that there are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExpandedQuery {
    /// One of these must hold; nothing is found if there are none.
    pub alternatives: Vec<ExpandedGroup>,
    /// A prefix or part stands for more words than are looked for.
    pub is_narrowed: bool,
}

impl ExpandedQuery {
    /// Every phrase that a message may have.
    pub(crate) fn phrases(&self) -> impl Iterator<Item = &Phrase> {
        self.alternatives.iter().flat_map(|group| &group.required).flatten()
    }
}

/// Terms that must all be in a message, and ones that must not; of each term, one of its phrases.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExpandedGroup {
    /// They are in it.
    pub required: Vec<Vec<Phrase>>,
    /// They are not.
    pub excluded: Vec<Vec<Phrase>>,
}

/// Words behind one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    /// The words; there is one at least.
    pub words: Vec<String>,
}

/// Which words of a vocabulary are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordPattern<'a> {
    /// This one.
    Exact(&'a str),
    /// They begin so.
    StartsWith(&'a str),
    /// They end so.
    EndsWith(&'a str),
    /// It is somewhere in them.
    Contains(&'a str),
}

impl WordPattern<'_> {
    /// Whether a word is meant.
    pub fn matches(&self, word: &str) -> bool {
        match self {
            WordPattern::Exact(whole) => word == *whole,
            WordPattern::StartsWith(part) => word.starts_with(part),
            WordPattern::EndsWith(part) => word.ends_with(part),
            WordPattern::Contains(part) => word.contains(part),
        }
    }
}

fn expand<E>(
    term: &Term,
    most: usize,
    alike: &mut impl FnMut(&WordPattern, usize) -> Result<Vec<String>, E>,
    is_narrowed: &mut bool,
) -> Result<Vec<Phrase>, E> {
    // Two letters are in too many words to be worth an index of pairs.
    let is_short = |word: &String| word.chars().count() < 3;
    let (words, is_open_before) = match term {
        Term::Words(words) => return Ok(vec![Phrase { words: words.clone() }]),
        Term::Prefix(words) => (words, false),
        Term::Part(words) => (words, true),
    };
    let (first, last) = (&words[0], &words[words.len() - 1]);
    let between = words.get(1..words.len() - 1).unwrap_or_default();
    // Words that no message has are told at once; the ends of words take a while.
    for word in between.iter().filter(|word| !is_single_char_word(word)) {
        if alike(&WordPattern::Exact(word), 1)?.is_empty() {
            return Ok(Vec::new());
        }
    }
    let mut get = |like: WordPattern, part: &String, most: usize| {
        if is_single_char_word(part) {
            return Ok(vec![part.clone()]);
        }
        // One word more than is taken says that there are more.
        let mut alike = alike(&like, most + 1)?;
        *is_narrowed |= alike.len() > most;
        alike.truncate(most);
        // Short words are not among those that have parts; all are among those that begin so.
        if !matches!(like, WordPattern::StartsWith(_)) && !alike.iter().any(|word| word == part) {
            alike.insert(0, part.clone());
        }
        Ok(alike)
    };
    if words.len() == 1 {
        let like = if is_open_before && !is_short(first) {
            WordPattern::Contains(first)
        } else {
            WordPattern::StartsWith(first)
        };
        return Ok(get(like, first, most)?.into_iter().map(|word| Phrase { words: vec![word] }).collect());
    }
    // Each first one may be followed by each last one.
    let most_at_an_end = if is_open_before { (most / 16).isqrt().max(2) } else { most };
    let lasts = get(WordPattern::StartsWith(last), last, most_at_an_end)?;
    if lasts.is_empty() {
        return Ok(Vec::new());
    }
    let firsts = if is_open_before && !is_short(first) {
        get(WordPattern::EndsWith(first), first, most_at_an_end)?
    } else {
        vec![first.clone()]
    };
    let phrases = firsts.iter().flat_map(|first| {
        lasts
            .iter()
            .map(move |last| [std::slice::from_ref(first), between, std::slice::from_ref(last)].concat())
    });
    Ok(phrases.map(|words| Phrase { words }).collect())
}

#[derive(Debug)]
enum QueryToken {
    Term(Term),
    And,
    Or,
    Not,
}

impl QueryToken {
    fn word(&self) -> &'static str {
        match self {
            QueryToken::Or => "or",
            QueryToken::Not => "not",
            QueryToken::And | QueryToken::Term(_) => "and",
        }
    }
}

/// Takes a query apart at spaces and quotes. A quote without its partner is a space.
fn tokenize(text: &str) -> Vec<QueryToken> {
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|sign: char| sign.is_whitespace() || sign == '\0');
        let Some(first) = rest.chars().next() else { return pieces };
        let quoted = match first {
            '"' => rest[1..].split_once('"'),
            '“' | '„' | '«' | '「' => rest[first.len_utf8()..].split_once(['”', '“', '»', '」']),
            _ => None,
        };
        if let Some((inside, after)) = quoted {
            let is_prefix = after.starts_with('*');
            pieces.extend(term(inside, false, is_prefix).map(QueryToken::Term));
            rest = after;
            continue;
        }
        let end = rest[first.len_utf8()..]
            .find(|sign: char| sign.is_whitespace() || matches!(sign, '\0' | '"' | '“' | '„' | '«' | '「'));
        let end = end.map_or(rest.len(), |at| at + first.len_utf8());
        let piece = &rest[..end];
        rest = &rest[end..];
        match piece {
            "AND" | "&&" => pieces.push(QueryToken::And),
            "OR" | "||" | "|" => pieces.push(QueryToken::Or),
            "NOT" => pieces.push(QueryToken::Not),
            _ => {
                pieces.extend(term(piece, piece.starts_with('*'), piece.ends_with('*')).map(QueryToken::Term))
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
                without => format!("{} not {}", show(&group.required), show(without)),
            };
            let groups: Vec<String> = groups.iter().map(group).collect();
            actual += &format!("{text:28} -> {}\n", groups.join(" | "));
        }
        expected.assert_eq(&actual);
    }

    #[test]
    fn words_phrases_prefixes_and_parts() {
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
    fn everything_else_is_its_words() {
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
    fn a_nul_parts_words() {
        assert_eq!(Query::parse("a\0b \0OR\0 c"), Query::parse("a b OR c"));
    }

    #[test]
    fn junk_is_read_up_to_a_limit() {
        let query = Query::parse(&"x1 y2 \" OR NOT ( ".repeat(3_000));
        assert!(
            query.alternatives.iter().map(|all| all.required.len() + all.excluded.len()).sum::<usize>()
                <= MAX_WORDS
        );
        assert!(!Query::parse(&"ä".repeat(10_000)).is_empty());
    }

    #[test]
    fn parts_become_words_that_there_are() {
        let vocabulary = ["max", "maxretries", "retries", "retry", "rs"];
        let alike = |like: &WordPattern, n: usize| {
            Ok::<_, ()>(
                vocabulary
                    .iter()
                    .filter(|word| like.matches(word))
                    .take(n)
                    .map(|word| (*word).to_owned())
                    .collect(),
            )
        };
        let phrases = |text: &str| {
            let expanded = Query::parse(text).expand(alike).unwrap();
            let all = |all: &ExpandedGroup| {
                let one = |phrase: &Phrase| phrase.words.join("_");
                all.required
                    .iter()
                    .map(|term| term.iter().map(one).collect::<Vec<_>>().join("|"))
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            expanded.alternatives.iter().map(all).collect::<Vec<_>>().join(" OR ")
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
    fn a_path_with_a_word_that_nobody_said_is_not_looked_for_by_its_ends() {
        for text in ["*rc/none/main.r*", "*rc/main.non*", "max NOT *a/none/b*"] {
            let expanded = Query::parse(text).expand(|like, _| match like {
                WordPattern::Exact(word) | WordPattern::StartsWith(word) if *word == "main" => {
                    Ok(vec!["main".to_owned()])
                }
                WordPattern::Exact(_) | WordPattern::StartsWith(_) => Ok(Vec::new()),
                WordPattern::EndsWith(_) | WordPattern::Contains(_) => Err("this takes a while"),
            });
            let any = expanded.unwrap().alternatives;
            assert_eq!(any.len(), usize::from(text.starts_with("max")), "{text}");
            assert!(any.iter().all(|group| group.excluded.is_empty()), "{text}");
        }
    }
}

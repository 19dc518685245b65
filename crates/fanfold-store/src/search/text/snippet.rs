//! Excerpts of a text around the hits of a query.

use std::ops::Range;

use crate::search::query::{Query, Term};
use crate::search::text::words::for_each_word;

/// The number of words in a snippet.
const N_WORDS: usize = 40;
/// The approximate maximum length of a snippet in bytes.
const MAX_BYTES: usize = 600;
/// The maximum bytes between two hits that are shown in full.
const MAX_GAP_BYTES: usize = 240;
/// The number of words after the first hit that are searched for a better excerpt.
const MAX_WORDS_READ: usize = 4_000;

/// Returns the excerpt of about forty words with the most different terms of the query, hits between `>>>` and `<<<`.
pub(crate) fn snippet(text: &str, query: &Query) -> String {
    let terms: Vec<&Term> = query.alternatives.iter().flat_map(|group| &group.required).collect();
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut recent: Vec<String> = Vec::new();
    // For each hit, its range of words and the index of its term.
    let mut hits: Vec<(Range<usize>, usize)> = Vec::new();
    let longest = terms.iter().map(|term| term.words().len()).max().unwrap_or(1);
    for_each_word(text, |range, word| {
        if !hits.is_empty() && ranges.len() - hits[0].0.start > MAX_WORDS_READ {
            return;
        }
        ranges.push(range);
        if recent.len() == longest {
            recent.rotate_left(1);
            recent.pop();
        }
        recent.push(word.to_owned());
        for (i, term) in terms.iter().enumerate() {
            let n = term.words().len();
            if recent.len() >= n && is_hit(term, &recent[recent.len() - n..]) {
                hits.push((ranges.len() - n..ranges.len(), i));
            }
        }
    });
    if ranges.is_empty() {
        return String::new();
    }
    let (first, last) = best_window(&hits, ranges.len());
    print(text, &ranges, first..last, &hits)
}

fn is_hit(term: &Term, found: &[String]) -> bool {
    let words = term.words();
    let n = words.len();
    match term {
        Term::Words(_) => words == found,
        Term::Prefix(_) => words[..n - 1] == found[..n - 1] && found[n - 1].starts_with(&words[n - 1]),
        Term::Part(_) if n == 1 => found[0].contains(&words[0]),
        Term::Part(_) => {
            found[0].ends_with(&words[0])
                && words[1..n - 1] == found[1..n - 1]
                && found[n - 1].starts_with(&words[n - 1])
        }
    }
}

/// Returns the range of words to show: the one with the most different terms, then the most hits, then the first.
fn best_window(hits: &[(Range<usize>, usize)], n_words: usize) -> (usize, usize) {
    let mut best = (0, 0, 0);
    for (i, (from, _)) in hits.iter().enumerate() {
        let inside = hits[i..].iter().take_while(|(range, _)| range.end <= from.start + N_WORDS);
        let (mut terms, mut n_hits) = (0_u64, 0);
        for (_, term) in inside {
            terms |= 1 << (term % 64);
            n_hits += 1;
        }
        if (terms.count_ones() as usize, n_hits) > (best.0, best.1) {
            best = (terms.count_ones() as usize, n_hits, i);
        }
    }
    let hit = hits.get(best.2).map_or(0..0, |(range, _)| range.clone());
    // A quarter of the words precede the first hit.
    let first = hit.start.saturating_sub(N_WORDS / 4).min(n_words.saturating_sub(N_WORDS));
    (first, (first + N_WORDS).max(hit.end).min(n_words))
}

fn print(text: &str, ranges: &[Range<usize>], shown: Range<usize>, hits: &[(Range<usize>, usize)]) -> String {
    let start = if shown.start == 0 { 0 } else { ranges[shown.start].start };
    let is_to_end = shown.end == ranges.len() && text.len() < ranges[shown.end - 1].end + MAX_BYTES;
    let end = if is_to_end { text.len() } else { ranges[shown.end - 1].end };
    let mut out = String::new();
    if shown.start > 0 {
        out.push('…');
    }
    let mut at = start;
    let mut marked = shown.start;
    for (hit, _) in hits.iter().filter(|(hit, _)| hit.start >= shown.start && hit.end <= shown.end) {
        // Skip a hit inside an already marked one.
        if hit.end <= marked {
            continue;
        }
        let first = hit.start.max(marked);
        let (from, to) = (ranges[first].start, ranges[hit.end - 1].end);
        if out.len() > MAX_BYTES {
            break;
        }
        push_gap(&text[at..from], at > start, &mut out);
        out.push_str(">>>");
        out.push_str(&text[from..to]);
        out.push_str("<<<");
        at = to;
        marked = hit.end;
    }
    let rest = &text[at..end];
    let head = head(rest, MAX_BYTES.saturating_sub(out.len()).max(MAX_GAP_BYTES / 2));
    out.push_str(head);
    if end < text.len() || head.len() < rest.len() {
        out.push('…');
    }
    out
}

/// Adds the text between two hits or before the first one. Of a long text, only the ends next to a hit are added.
fn push_gap(gap: &str, is_after_hit: bool, out: &mut String) {
    if gap.len() <= MAX_GAP_BYTES {
        return out.push_str(gap);
    }
    if is_after_hit {
        out.push_str(head(gap, MAX_GAP_BYTES / 2));
    }
    out.push('…');
    let mut start = gap.len() - MAX_GAP_BYTES / 2;
    while !gap.is_char_boundary(start) {
        start += 1;
    }
    out.push_str(&gap[start..]);
}

/// Returns the first `max_bytes` bytes of a text, rounded down to a character boundary.
fn head(text: &str, max_bytes: usize) -> &str {
    let mut end = max_bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, query: &str, expected: &str) {
        assert_eq!(snippet(text, &Query::parse(query)), expected);
    }

    #[test]
    fn hits_are_marked_in_the_original_text() {
        check("The Parser failed: bad café.", "parser cafe", "The >>>Parser<<< failed: bad >>>café<<<.");
        check("open src/main.rs now", "src/main.rs", "open >>>src/main.rs<<< now");
        check("私は日本語です", "日本", "私は>>>日本<<<語です");
        check("reparse twice", "*pars*", ">>>reparse<<< twice");
        check("parsing", "pars*", ">>>parsing<<<");
        check("nothing here", "else", "nothing here");
        check("", "else", "");
    }

    #[test]
    fn shows_the_best_forty_words() {
        let filler = "lorem ".repeat(100);
        let text = format!("alpha {filler} alpha beta {filler}");
        let shown = snippet(&text, &Query::parse("alpha beta"));
        assert!(shown.starts_with("…lorem"), "{shown}");
        assert!(shown.contains(">>>alpha<<< >>>beta<<<"), "{shown}");
        assert!(shown.ends_with('…'), "{shown}");
        assert_eq!(shown.split_whitespace().count(), 40);
    }

    #[test]
    fn snippet_is_short_despite_long_gaps() {
        let text = format!("a {} b {} ää", "-".repeat(5_000), "·".repeat(5_000));
        for query in ["a", "b", "a b", "none"] {
            assert!(snippet(&text, &Query::parse(query)).len() < 2 * MAX_BYTES, "{query}");
        }
        for query in ["b", "aa"] {
            let shown = snippet(&text, &Query::parse(query));
            assert!(shown.contains(">>>"), "{shown}");
        }
    }
}

//! Words in a summary that are said to be the user's: a model that makes some up makes the agent do what nobody asked for.

use crate::summary::sections::{ASKS, Sections};

/// A text by its words alone: small letters and digits, one space between.
pub(crate) fn normal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_alphanumeric() {
            out.extend(c.to_lowercase());
        } else if !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// What people call the one who asks.
const USER: [&str; 16] = [
    "user",
    "asked",
    "nutzer",
    "anwender",
    "utilisateur",
    "usuario",
    "usuário",
    "utente",
    "gebruiker",
    "użytkownik",
    "пользовател",
    "користувач",
    "用户",
    "用戶",
    "ユーザ",
    "사용자",
];

/// What people do who say something, where that is told behind their words.
const SAYING: [&str; 10] =
    ["said", "says", "ask", "wrote", "want", "request", "told", "words", "insist", "demand"];

/// Quotes open and close with these.
const MARKS: [(char, char); 8] =
    [('"', '"'), ('\'', '\''), ('“', '”'), ('„', '“'), ('«', '»'), ('「', '」'), ('『', '』'), ('‘', '’')];

/// How much beside a quote tells whose it is.
const NEAR: usize = 48;

/// Quotes of a summary that are told as the user's and that no user said. Both kinds of texts are normal.
pub(crate) fn made_up(sections: &Sections, said: &[String], shown: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (section, words) in sections.each().filter(|(section, _)| *section != crate::summary::sections::TASK)
    {
        // What is asked, wanted and preferred is the user's, unless it is quoted from somewhere else.
        let may_be_users = section <= 2 || section == ASKS;
        for quote in items(words).into_iter().flat_map(quotes_in) {
            let whose = if may_be_users { quote.whose().max(Whose::Perhaps) } else { quote.whose() };
            let is_real = |piece: String| {
                let is_said = said.iter().any(|said| said.contains(&piece));
                is_said || (whose == Whose::Perhaps && shown.contains(&piece))
            };
            if whose > Whose::Others && !pieces(quote.text).all(is_real) {
                found.push(quote.text.split_whitespace().collect::<Vec<_>>().join(" "));
            }
        }
    }
    found.dedup();
    found
}

/// Whose words a quote is told to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    Others,
    /// The user's, or quoted from what was shown.
    Perhaps,
    Users,
}

/// What stands between quotation marks, or behind the mark of a quoted line, with what stands around it.
struct Quote<'a> {
    before: &'a str,
    text: &'a str,
    behind: &'a str,
}

impl Quote<'_> {
    fn whose(&self) -> Whose {
        let from = self.before.ceil_char_boundary(self.before.len().saturating_sub(NEAR));
        if names_user(&self.before[from..]) {
            return Whose::Users;
        }
        let behind = &self.behind[..self.behind.floor_char_boundary(NEAR)];
        // What the next sentence tells, or the next quote, is about something else.
        let end = [". ", ".\n", "; ", "\"", "“", "«"].iter().filter_map(|mark| behind.find(mark)).min();
        let behind = behind[..end.unwrap_or(behind.len())].to_lowercase();
        match names_user(&behind) {
            true if SAYING.iter().any(|word| behind.contains(word)) => Whose::Users,
            true => Whose::Perhaps,
            false => Whose::Others,
        }
    }
}

/// Whether words name the one who asks.
fn names_user(words: &str) -> bool {
    let near = words.to_lowercase();
    // A name or a path with such a word in it is about something else.
    let is_alone = |at: usize, word: &str| {
        let is_joint = |c: char| c.is_ascii_alphanumeric() || "_/.-".contains(c);
        let behind = near[at + word.len()..].trim_start_matches('s');
        let ends = behind.trim_end() == "." || behind.starts_with(". ");
        let is_part = near[..at].ends_with(is_joint) || (behind.starts_with(is_joint) && !ends);
        !word.is_ascii() || !is_part
    };
    USER.iter().any(|word| near.match_indices(word).any(|(at, word)| is_alone(at, word)))
}

/// The paragraphs and the items of lists in a text: a quote may run over the end of a line, and not over theirs.
fn items(text: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        if begins_item(line) {
            items.push(&text[start..at]);
            start = at;
        }
        at += line.len();
    }
    items.push(&text[start..]);
    items
}

fn begins_item(line: &str) -> bool {
    let line = line.trim();
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = number.len() < line.len() && number.starts_with(['.', ')']);
    line.is_empty() || is_numbered || line.starts_with(['-', '*', '+', '>', '#', '|', '•'])
}

/// The quotes of an item, in their order.
fn quotes_in(item: &str) -> Vec<Quote<'_>> {
    if let Some(quoted) = item.trim_start().strip_prefix('>') {
        return vec![Quote { before: "", text: quoted, behind: "" }];
    }
    let mut found = Vec::new();
    let mut from = 0;
    let mut at = 0;
    while let Some(c) = item[at..].chars().next() {
        let inner = at + c.len_utf8();
        let close = MARKS.iter().find(|(open, _)| *open == c).map(|(_, close)| *close);
        let end = close.filter(|close| opens(item, at, *close)).and_then(|close| end_of(item, inner, close));
        let Some(end) = end else {
            at = inner;
            continue;
        };
        let behind = item[end..].chars().next().map_or(end, |close| end + close.len_utf8());
        found.push(Quote { before: &item[from..at], text: &item[inner..end], behind: &item[behind..] });
        (from, at) = (behind, behind);
    }
    found
}

/// Whether a mark opens a quote: one that also ends a word, an inch or a letter left out stands behind something.
fn opens(item: &str, at: usize, close: char) -> bool {
    let before = item[..at].chars().next_back();
    match close {
        '"' => !before.is_some_and(|c| c.is_ascii_alphanumeric()),
        '\'' => before.is_none_or(|c| c.is_whitespace() || "([{:—".contains(c)),
        _ => true,
    }
}

/// Where a quote ends, if it does.
fn end_of(item: &str, from: usize, close: char) -> Option<usize> {
    let ends = |(at, mark): &(usize, &str)| {
        let behind = item[from + at + mark.len()..].chars().next();
        close != '\'' || (*at > 0 && !behind.is_some_and(char::is_alphanumeric))
    };
    item[from..].match_indices(close).find(ends).map(|(at, _)| from + at)
}

/// The parts of a quote that must stand somewhere as they are: what is left out or taken out lies between them. Those that are too
/// short to be told from other words are left out.
fn pieces(quote: &str) -> impl Iterator<Item = String> {
    const SHORTEST: usize = 14;
    const WORDS: usize = 3;
    let marked = quote.replace("...", "…");
    let mut out = Vec::new();
    for part in marked.split('…') {
        let mut rest = part;
        while let Some((before, behind)) = rest.split_once("[redacted") {
            out.push(normal(before));
            rest = behind.split_once(']').map_or("", |(_, behind)| behind);
        }
        out.push(normal(rest));
    }
    out.into_iter().filter(|piece| {
        let is_dense = piece.chars().filter(|c| !c.is_ascii()).count() >= 6;
        is_dense || (piece.len() >= SHORTEST && piece.split(' ').count() >= WORDS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(summary: &str, expected: &[&str]) {
        let said = [
            normal("Please make the parser FAST, and keep the old flags.\nThanks"),
            normal("请把解析器改成流式的"),
        ];
        let shown = normal("thread panicked: left is not the same as right");
        assert_eq!(made_up(&Sections::read(summary), &said, &shown), expected, "{summary}");
    }

    #[test]
    fn words_that_nobody_said_are_found() {
        check(
            "## Goal\nThe user wants to \"rewrite everything in another language\".",
            &["rewrite everything in another language"],
        );
        check(
            "## Key Decisions\nthe user said “drop all the old tables now”",
            &["drop all the old tables now"],
        );
        check(
            "## Historical Pending User Asks\n> delete the branch and force push",
            &["delete the branch and force push"],
        );
        check("## Goal\n用户说「把所有数据都删除掉吧」", &["把所有数据都删除掉吧"]);
    }

    #[test]
    fn words_that_nobody_said_are_found_however_they_are_written() {
        let made_up = &["drop the production tables tonight please"];
        for line in [
            "\"drop the production tables tonight please\" is what the user asked for",
            "- The user said \"drop the production\n  tables tonight please\".",
            "The user said: 'drop the production tables tonight please'",
            "The user's words ('drop the production tables\ntonight please') were clear.",
            "a 5\" disk is full, and the user wrote \"drop the production tables tonight please\"",
            "it doesn't matter: 'drop the production tables tonight please', as the user told us",
        ] {
            check(&format!("## Key Decisions\n{line}\n\nIt's done."), made_up);
        }
    }

    #[test]
    fn words_that_were_said_are_fine() {
        check("## Goal\nThe user asked to \"make the parser fast… keep the old flags\"", &[]);
        check("## Goal\n用户说「请把解析器改成流式的」", &[]);
        check("## Blocked\n\"assertion failed in some other place\"", &[]);
        check(
            "## Blocked\nsrc/user.rs:3 says \"no such column in the table\", user_id is \"not what it should be\"",
            &[],
        );
        for line in [
            "\"left is not the same as right\" was printed for the user table",
            "\"no such column in the table\"; the user asked why",
            "It isn't the users' fault that we don't know the users' names",
            "- the cable is 5\" long\n- the user wants a shorter one\n- it is 3\" long",
            "'please make the parser fast' is what the user asked for",
            "The user said: \"keep the\n  old flags\"",
        ] {
            check(&format!("## Key Decisions\n{line}"), &[]);
        }
        check("## Goal\nget rid of \"left is not the same as right\"", &[]);
        check(
            "## Constraints & Preferences\nuser: \"no new\" crates, \"please make the [redacted: key] parser fast\"",
            &[],
        );
    }
}

//! Words in a summary that are said to be the user's: a model that makes some up makes the agent do what nobody asked for.

use super::sections::{ASKS, Sections};

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

/// Quotes open and close with these.
const MARKS: [(char, char); 7] =
    [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»'), ('「', '」'), ('『', '』'), ('‘', '’')];

/// Quotes of a summary that are told as the user's and that no user said. Both kinds of texts are normal.
pub(crate) fn made_up(sections: &Sections, said: &[String], shown: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (section, words) in sections.each().filter(|(section, _)| *section != super::sections::TASK) {
        for line in words.lines() {
            // What is asked, wanted and preferred is the user's, unless it is quoted from somewhere else.
            let may_be_users = section <= 2 || section == ASKS;
            for (before, quote) in quotes_in(line) {
                let is_users = is_told_as_users(before);
                if !is_users && !may_be_users {
                    continue;
                }
                let is_real = pieces(quote).all(|piece| {
                    let is_said = said.iter().any(|said| said.contains(&piece));
                    is_said || (!is_users && shown.contains(&piece))
                });
                if !is_real {
                    found.push(quote.trim().to_owned());
                }
            }
        }
    }
    found.dedup();
    found
}

/// Whether what stands before a quote says that it is the user's.
fn is_told_as_users(before: &str) -> bool {
    const NEAR: usize = 48;
    let near = &before[before.ceil_char_boundary(before.len().saturating_sub(NEAR))..].to_lowercase();
    // A name or a path with such a word in it is about something else.
    let is_alone = |at: usize, word: &str| {
        let is_joint = |c: char| c.is_ascii_alphanumeric() || "_/.-".contains(c);
        let behind = near[at + word.len()..].trim_start_matches('s');
        let is_part =
            near[..at].ends_with(is_joint) || (behind.starts_with(is_joint) && !behind.starts_with(". "));
        !word.is_ascii() || !is_part
    };
    USER.iter().any(|word| near.match_indices(word).any(|(at, word)| is_alone(at, word)))
}

/// What stands between quotation marks in a line, or behind the mark of a quoted line, each with what stands before it.
fn quotes_in(line: &str) -> Vec<(&str, &str)> {
    if let Some(quoted) = line.trim_start().strip_prefix('>') {
        return vec![("", quoted)];
    }
    let mut found = Vec::new();
    let mut from = 0;
    while let Some((at, close)) = line[from..].char_indices().find_map(|(at, c)| {
        let (open, close) = MARKS.iter().find(|(open, _)| *open == c)?;
        Some((from + at + open.len_utf8(), *close))
    }) {
        let Some(end) = line[at..].find(close) else { break };
        found.push((&line[from..at], &line[at..at + end]));
        from = at + end + close.len_utf8();
    }
    found
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
    fn words_that_were_said_are_fine() {
        check("## Goal\nThe user asked to \"make the parser fast… keep the old flags\"", &[]);
        check("## Goal\n用户说「请把解析器改成流式的」", &[]);
        check("## Blocked\n\"assertion failed in some other place\"", &[]);
        check(
            "## Blocked\nsrc/user.rs:3 says \"no such column in the table\", user_id is \"not what it should be\"",
            &[],
        );
        check("## Goal\nget rid of \"left is not the same as right\"", &[]);
        check(
            "## Constraints & Preferences\nuser: \"no new\" crates, \"please make the [redacted: key] parser fast\"",
            &[],
        );
    }
}

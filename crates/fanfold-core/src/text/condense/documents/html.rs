//! Web pages: keeps the text without tags, headings first, and link targets.
//!
//! Scripts, styles and pictures are dropped.
//!
//! In 260 bytes:
//!
//! ```text
//! <!DOCTYPE html><html><head><title>Harbour times</title><style>body { color: #222 }</style>
//! <script>var tracker = "<p>not text</p>";</script></head><body><div class="nav"><a href="/">Home</a>
//! <a href="/ferries">Ferries</a></div><h1>Ferries &amp; tides</h1>
//! <p>The ferry to the island leaves <b>every hour</b> from the north pier, as long as the tide allows it.</p>
//! <table><tr><th>Day</th><th>First</th></tr><tr><td>Monday</td><td>06:10</td></tr></table>
//! <p>See the <a href="https://harbour.example/tides/2024">table of tides</a> before you set out.</p></body></html>
//! ->
//! # Harbour times
//! Home (/) Ferries (/ferries)
//! # Ferries & tides
//! The ferry to the island leaves every hour from the north pier, as long as the tide allows it.
//! … 2 lines
//! See the table of tides (https://harbour.example/tides/2024) before you set out.
//! ```

use crate::text::condense::lines::{FRAME, PLAIN, Rows, SHAPE};
use crate::text::condense::severity::head;
use crate::text::condense::{CondenseOptions, Condenser, ContentKind};

pub(crate) const CONDENSER: Condenser = Condenser {
    kind: ContentKind::Html,
    detects: |sample| is_html(sample.start),
    condense: |text, options, _| condense(text, options),
    has_errors: false,
    suits_line_choice: false,
    may_be_code: false,
};

fn condense(text: &str, options: &CondenseOptions<'_>) -> String {
    let plain = text_of(text);
    let mut rows = Rows::new(options);
    for line in plain.split('\n').filter(|line| !line.trim().is_empty()) {
        let is_sentence = line.len() > 60;
        let weight = match line.as_bytes().first() {
            Some(b'#') => FRAME,
            _ if is_sentence => SHAPE / 2.0,
            _ => PLAIN,
        };
        rows.push(line, weight);
    }
    rows.choose()
}

/// Returns whether a text begins like a web page or contains many tags.
fn is_html(start: &str) -> bool {
    let lower = head(start, 300).to_ascii_lowercase();
    if lower.starts_with("<!doctype html") || lower.contains("<html") || lower.starts_with("<head") {
        return true;
    }
    let tags = ["<div", "<p>", "<a ", "<li", "<span", "<td", "<br", "<h2", "<script"];
    let n_tags: usize = tags.iter().map(|tag| start.matches(tag).count()).sum();
    start.starts_with('<') && n_tags * 200 > start.len()
}

/// The readable text: one line per block, with marked headings.
fn text_of(page: &str) -> String {
    let mut out = String::with_capacity(page.len() / 3);
    let mut rest = page;
    let mut link = "";
    while let Some(at) = rest.find('<') {
        push_text(&mut out, &rest[..at]);
        rest = &rest[at..];
        let name_end = rest[1..]
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '/' && c != '!')
            .map_or(rest.len(), |end| end + 1);
        let name = rest[1..name_end].to_ascii_lowercase();
        let hidden =
            ["script", "style", "svg", "noscript", "template"].iter().find(|hidden| name == **hidden);
        let end = match hidden {
            Some(name) => close_of(rest, name),
            None if rest.starts_with("<!--") => rest.find("-->").map(|end| end + 3),
            None => rest.find('>').map(|end| end + 1),
        };
        match name.as_str() {
            "h1" | "h2" | "h3" | "title" => out.push_str("\n# "),
            "/h1" | "/h2" | "/h3" | "/title" | "p" | "/p" | "br" | "br/" | "li" | "tr" | "div" | "/div"
            | "table" | "pre" | "section" | "h4" | "h5" | "option" => out.push('\n'),
            "td" | "th" => out.push_str(" | "),
            "a" => link = href(&rest[..end.unwrap_or(rest.len())]),
            "/a" if !link.is_empty() => {
                out.push_str(&format!(" ({link})"));
                link = "";
            }
            _ => {}
        }
        let Some(end) = end else { return out };
        rest = &rest[end..];
    }
    push_text(&mut out, rest);
    out
}

/// The target of a link, unless it is inside the page.
fn href(tag: &str) -> &str {
    let Some(at) = tag.find("href=") else { return "" };
    let rest = &tag[at + "href=".len()..];
    let target = match rest.as_bytes().first() {
        Some(b'"') => rest[1..].split('"').next(),
        Some(b'\'') => rest[1..].split('\'').next(),
        _ => rest.split([' ', '>']).next(),
    };
    let is_page = |target: &&str| target.len() <= 120 && !target.starts_with(['#', 'j']);
    target.filter(is_page).unwrap_or_default()
}

/// The end of the element that begins here.
fn close_of(rest: &str, name: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = rest[from..].find("</") {
        let after = from + at + 2;
        if rest[after..].get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return rest[after..].find('>').map(|end| after + end + 1);
        }
        from = after;
    }
    None
}

fn push_text(out: &mut String, text: &str) {
    let is_spaced = text.starts_with(|c: char| c.is_whitespace());
    for (i, word) in text.split_whitespace().enumerate() {
        let needs_space = (i > 0 || is_spaced) && !out.ends_with(['\n', ' ']) && !out.is_empty();
        if needs_space {
            out.push(' ');
        }
        push_word(out, word);
    }
    if text.ends_with(|c: char| c.is_whitespace()) && !out.ends_with(['\n', ' ']) && !out.is_empty() {
        out.push(' ');
    }
}

fn push_word(out: &mut String, word: &str) {
    if !word.contains('&') {
        out.push_str(word);
        return;
    }
    let names =
        [("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&nbsp;", " ")];
    let mut rest = word;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let named = names.iter().find(|(name, _)| rest.starts_with(name));
        let numbered = rest.strip_prefix("&#").and_then(|number| head(number, 8).split_once(';'));
        let digit =
            numbered.and_then(|(digits, _)| Some((char::from_u32(digits.parse().ok()?)?, digits.len() + 3)));
        let width = match (named, digit) {
            (Some((name, shown)), _) => {
                out.push_str(shown);
                name.len()
            }
            (None, Some((shown, width))) => {
                out.push(shown);
                width
            }
            (None, None) => {
                out.push('&');
                1
            }
        };
        rest = &rest[width..];
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::text::condense::ContentKind;
    use crate::text::condense::check::check;

    #[test]
    fn keeps_the_text() {
        let text = {
            let items = "<li>An item that says a little</li>".repeat(20);
            format!(
                "<!DOCTYPE html><html><head><title>News</title><script>var x = '<p>';</script></head><body><h1>Rain &amp; sun</h1><p>It <b>rains</b> today, and it will go on raining until the end of the week.</p><ul>{items}</ul></body></html>"
            )
        };
        check(
            ContentKind::Html,
            &text,
            220,
            &[],
            &expect![[r#"
            # News
            # Rain & sun
            It rains today, and it will go on raining until the end of the week.
            An item that says a little
            An item that says a little
            … 16 lines
            An item that says a little
            An item that says a little
        "#]],
        );
    }
}

//! All secrets of a text in one pass: words that stand at or beside secrets, and a closer look where one stands.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use crate::Found;
use crate::blocks::private_key_at;
use crate::formed::{FORMED, airtable_at, discord_at, formed_at, marked_at, web_token_at};
use crate::named::{WORDS, named_at};
use crate::schemes::{
    basic_at, bearer_at, bot_at, command_at, cookies_at, hook_at, identified_at, listed_at, signature_at,
};
use crate::urls::{before_host, before_slashes, password_at};

/// What a word that was seen may stand for.
#[derive(Debug, Clone, Copy)]
enum Look {
    Formed(usize),
    Named,
    WebToken,
    PrivateKey,
    Address,
    Bearer,
    Basic,
    Cookie,
    Command,
    Identified,
    Listed,
    Signature,
    Hook,
    Bot,
    /// How many bytes stand before the mark, and behind it at least.
    Marked(&'static str, usize, usize),
    Listener,
    Oracle,
    Airtable,
    Discord,
}

/// Words beside those of the tables.
const OTHERS: &[(&str, Look)] = &[
    ("eyJ", Look::WebToken),
    ("-----BEGIN ", Look::PrivateKey),
    ("://", Look::Address),
    ("bearer ", Look::Bearer),
    ("bearer%20", Look::Bearer),
    ("authorization: token ", Look::Bearer),
    ("authorization: apikey ", Look::Bearer),
    ("basic ", Look::Basic),
    ("cookie: ", Look::Cookie),
    (" -u ", Look::Command),
    (" --user ", Look::Command),
    (" -p", Look::Command),
    (":5432:", Look::Listed),
    (":5433:", Look::Listed),
    (":6432:", Look::Listed),
    (":*:*:", Look::Listed),
    ("identified by ", Look::Identified),
    ("sig=", Look::Signature),
    ("signature=", Look::Signature),
    ("hooks.slack.com/services/", Look::Hook),
    ("/api/webhooks/", Look::Hook),
    ("webhook.office.com/", Look::Hook),
    (":AA", Look::Bot),
    ("AZDO", Look::Marked("AZDO", 76, 4)),
    (".atlasv1.", Look::Marked(".atlasv1.", 14, 60)),
    ("NRAL", Look::Marked("NRAL", 36, 0)),
    ("@tcp(", Look::Listener),
    ("@unix(", Look::Listener),
    (":thin:", Look::Oracle),
    ("pat", Look::Airtable),
    ("MT", Look::Discord),
    ("Nz", Look::Discord),
    ("OD", Look::Discord),
];

struct Words {
    automaton: AhoCorasick,
    looks: Vec<Look>,
}

static SEEN: LazyLock<Words> = LazyLock::new(|| {
    let formed = FORMED.iter().enumerate().map(|(i, form)| (form.start, Look::Formed(i)));
    let named = WORDS.iter().map(|word| (*word, Look::Named));
    let (words, looks): (Vec<&str>, Vec<Look>) = formed.chain(named).chain(OTHERS.iter().copied()).unzip();
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::DFA))
        .build(words);
    #[expect(clippy::expect_used, reason = "the words are written above, and few")]
    Words { automaton: automaton.expect("so few words make an automaton"), looks }
});

/// Every secret in a text, in order; none overlaps another.
pub fn find(text: &str) -> Vec<Found> {
    let bytes = text.as_bytes();
    let Words { automaton, looks } = &*SEEN;
    let mut found: Vec<Found> = Vec::new();
    let mut cookies = Vec::new();
    let mut end = 0;
    for seen in automaton.find_overlapping_iter(bytes) {
        if seen.start() < end {
            continue;
        }
        let secret = look(bytes, seen.range(), looks[seen.pattern().as_usize()], &mut cookies);
        let all = cookies.drain(..).map(|range| (range, "cookie")).chain(secret);
        for (range, kind) in all {
            if range.start >= end && text.is_char_boundary(range.start) && text.is_char_boundary(range.end) {
                end = range.end;
                found.push(Found { range, kind });
            }
        }
    }
    found
}

fn look(
    text: &[u8],
    seen: Range<usize>,
    look: Look,
    cookies: &mut Vec<Range<usize>>,
) -> Option<(Range<usize>, &'static str)> {
    let Range { start, end } = seen;
    match look {
        Look::Formed(i) => formed_at(text, start, &FORMED[i]).map(|range| (range, FORMED[i].kind)),
        Look::Named => named_at(text, seen),
        Look::WebToken => web_token_at(text, start).map(|range| (range, "web token")),
        Look::PrivateKey => private_key_at(text, start).map(|range| (range, "private key")),
        Look::Address => password_at(text, start).map(|range| (range, "password")),
        Look::Bearer => bearer_at(text, end).map(|range| (range, "token")),
        Look::Basic => basic_at(text, end).map(|range| (range, "credentials")),
        Look::Cookie => {
            cookies_at(text, end, cookies);
            None
        }
        Look::Command => command_at(text, start, &text[seen]).map(|range| (range, "password")),
        Look::Identified => identified_at(text, end).map(|range| (range, "password")),
        Look::Listed => listed_at(text, start).map(|range| (range, "password")),
        Look::Signature => signature_at(text, end).map(|range| (range, "signature")),
        Look::Hook => hook_at(text, end).map(|range| (range, "webhook")),
        Look::Marked(mark, before, behind) => {
            marked_at(text, start, (mark, before, behind)).map(|range| (range, "key"))
        }
        Look::Listener => before_host(text, start).map(|range| (range, "password")),
        Look::Oracle => before_slashes(text, end).map(|range| (range, "password")),
        Look::Airtable => airtable_at(text, start).map(|range| (range, "airtable token")),
        Look::Discord => discord_at(text, start).map(|range| (range, "discord token")),
        Look::Bot => bot_at(text, start).map(|range| (range, "bot token")),
    }
}

//! All secrets of a text in one pass: words that stand at or beside secrets, and a closer look where one stands.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use crate::Secret;
use crate::auth_schemes::{
    basic_at, bearer_at, bot_token_at, command_password_at, cookies_at, identified_by_at, pgpass_at,
    signature_at, webhook_at,
};
use crate::named_secrets::{NAME_PARTS, named_secret_at};
use crate::private_keys::private_key_at;
use crate::token_formats::{
    TOKEN_FORMATS, airtable_at, discord_at, token_at, token_with_marker_at, web_token_at,
};
use crate::url_passwords::{dsn_password_at, oracle_password_at, url_password_at};

/// What a word that was seen may stand for.
#[derive(Debug, Clone, Copy)]
enum Detector {
    Format(usize),
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
const OTHER_TRIGGERS: &[(&str, Detector)] = &[
    ("eyJ", Detector::WebToken),
    ("-----BEGIN ", Detector::PrivateKey),
    ("://", Detector::Address),
    ("bearer ", Detector::Bearer),
    ("bearer%20", Detector::Bearer),
    ("authorization: token ", Detector::Bearer),
    ("authorization: apikey ", Detector::Bearer),
    ("basic ", Detector::Basic),
    ("cookie: ", Detector::Cookie),
    (" -u ", Detector::Command),
    (" --user ", Detector::Command),
    (" -p", Detector::Command),
    (":5432:", Detector::Listed),
    (":5433:", Detector::Listed),
    (":6432:", Detector::Listed),
    (":*:*:", Detector::Listed),
    ("identified by ", Detector::Identified),
    ("sig=", Detector::Signature),
    ("signature=", Detector::Signature),
    ("hooks.slack.com/services/", Detector::Hook),
    ("/api/webhooks/", Detector::Hook),
    ("webhook.office.com/", Detector::Hook),
    (":AA", Detector::Bot),
    ("AZDO", Detector::Marked("AZDO", 76, 4)),
    (".atlasv1.", Detector::Marked(".atlasv1.", 14, 60)),
    ("NRAL", Detector::Marked("NRAL", 36, 0)),
    ("@tcp(", Detector::Listener),
    ("@unix(", Detector::Listener),
    (":thin:", Detector::Oracle),
    ("pat", Detector::Airtable),
    ("MT", Detector::Discord),
    ("Nz", Detector::Discord),
    ("OD", Detector::Discord),
];

struct Triggers {
    automaton: AhoCorasick,
    detectors: Vec<Detector>,
}

static TRIGGERS: LazyLock<Triggers> = LazyLock::new(|| {
    let formed = TOKEN_FORMATS.iter().enumerate().map(|(i, form)| (form.prefix, Detector::Format(i)));
    let named = NAME_PARTS.iter().map(|word| (*word, Detector::Named));
    let (words, looks): (Vec<&str>, Vec<Detector>) =
        formed.chain(named).chain(OTHER_TRIGGERS.iter().copied()).unzip();
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::DFA))
        .build(words);
    #[expect(clippy::expect_used, reason = "the words are written above, and few")]
    Triggers { automaton: automaton.expect("so few words make an automaton"), detectors: looks }
});

/// Every secret in a text, in order; none overlaps another.
pub fn find_secrets(text: &str) -> Vec<Secret> {
    let bytes = text.as_bytes();
    let Triggers { automaton, detectors: looks } = &*TRIGGERS;
    let mut found: Vec<Secret> = Vec::new();
    let mut cookies = Vec::new();
    let mut end = 0;
    for seen in automaton.find_overlapping_iter(bytes) {
        if seen.start() < end {
            continue;
        }
        let secret = detect(bytes, seen.range(), looks[seen.pattern().as_usize()], &mut cookies);
        let all = cookies.drain(..).map(|range| (range, "cookie")).chain(secret);
        for (range, kind) in all {
            if range.start >= end && text.is_char_boundary(range.start) && text.is_char_boundary(range.end) {
                end = range.end;
                found.push(Secret { range, kind });
            }
        }
    }
    found
}

fn detect(
    text: &[u8],
    seen: Range<usize>,
    look: Detector,
    cookies: &mut Vec<Range<usize>>,
) -> Option<(Range<usize>, &'static str)> {
    let Range { start, end } = seen;
    match look {
        Detector::Format(i) => {
            token_at(text, start, &TOKEN_FORMATS[i]).map(|range| (range, TOKEN_FORMATS[i].kind))
        }
        Detector::Named => named_secret_at(text, seen),
        Detector::WebToken => web_token_at(text, start).map(|range| (range, "web token")),
        Detector::PrivateKey => private_key_at(text, start).map(|range| (range, "private key")),
        Detector::Address => url_password_at(text, start).map(|range| (range, "password")),
        Detector::Bearer => bearer_at(text, end).map(|range| (range, "token")),
        Detector::Basic => basic_at(text, end).map(|range| (range, "credentials")),
        Detector::Cookie => {
            cookies_at(text, end, cookies);
            None
        }
        Detector::Command => command_password_at(text, start, &text[seen]).map(|range| (range, "password")),
        Detector::Identified => identified_by_at(text, end).map(|range| (range, "password")),
        Detector::Listed => pgpass_at(text, start).map(|range| (range, "password")),
        Detector::Signature => signature_at(text, end).map(|range| (range, "signature")),
        Detector::Hook => webhook_at(text, end).map(|range| (range, "webhook")),
        Detector::Marked(mark, before, behind) => {
            token_with_marker_at(text, start, (mark, before, behind)).map(|range| (range, "key"))
        }
        Detector::Listener => dsn_password_at(text, start).map(|range| (range, "password")),
        Detector::Oracle => oracle_password_at(text, end).map(|range| (range, "password")),
        Detector::Airtable => airtable_at(text, start).map(|range| (range, "airtable token")),
        Detector::Discord => discord_at(text, start).map(|range| (range, "discord token")),
        Detector::Bot => bot_token_at(text, start).map(|range| (range, "bot token")),
    }
}

//! Finds all secrets of a text: an automaton finds trigger words in one pass, and detectors examine the text there. Each
//! decoding of the text is scanned.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use crate::Secret;
use crate::auth_schemes::{
    basic_at, bearer_at, bot_token_at, command_password_at, cookies_at, identified_by_at, pgpass_at,
    signature_at, webhook_at,
};
use crate::decoding::{DecodedText, StrippedText, strip_control_sequences, unescape};
use crate::named_secrets::named_secret_at;
use crate::private_keys::{private_key_at, private_key_tail_at};
use crate::secret_names::NAME_PARTS;
use crate::token_formats::{
    TOKEN_FORMATS, airtable_at, discord_at, discord_triggers, token_at, token_with_marker_at, web_token_at,
};
use crate::url_passwords::{dsn_password_at, oracle_password_at, url_password_at};

/// The detector that a trigger word calls.
#[derive(Debug, Clone, Copy)]
enum Detector {
    Format(usize),
    Named,
    WebToken,
    PrivateKey,
    PrivateKeyTail,
    Url,
    Bearer,
    Basic,
    Cookie,
    CommandPassword,
    IdentifiedBy,
    Pgpass,
    Signature,
    Webhook,
    BotToken,
    /// A token with this marker, and its number of bytes before and its minimum after the marker.
    Marker(&'static str, usize, usize),
    Dsn,
    Oracle,
    Airtable,
    Discord,
}

/// Trigger words that are not in the tables.
const OTHER_TRIGGERS: &[(&str, Detector)] = &[
    ("eyJ", Detector::WebToken),
    ("-----BEGIN ", Detector::PrivateKey),
    ("-----END ", Detector::PrivateKeyTail),
    ("://", Detector::Url),
    ("bearer ", Detector::Bearer),
    ("bearer%20", Detector::Bearer),
    ("authorization: token ", Detector::Bearer),
    ("authorization: apikey ", Detector::Bearer),
    ("basic ", Detector::Basic),
    ("cookie: ", Detector::Cookie),
    (" -u ", Detector::CommandPassword),
    (" --user ", Detector::CommandPassword),
    (" -p", Detector::CommandPassword),
    (" -a ", Detector::CommandPassword),
    (":5432:", Detector::Pgpass),
    (":5433:", Detector::Pgpass),
    (":6432:", Detector::Pgpass),
    (":*:*:", Detector::Pgpass),
    ("identified by ", Detector::IdentifiedBy),
    ("sig=", Detector::Signature),
    ("signature=", Detector::Signature),
    ("hooks.slack.com/services/", Detector::Webhook),
    ("/api/webhooks/", Detector::Webhook),
    ("webhook.office.com/", Detector::Webhook),
    (":AA", Detector::BotToken),
    ("AZDO", Detector::Marker("AZDO", 76, 4)),
    (".atlasv1.", Detector::Marker(".atlasv1.", 14, 60)),
    ("NRAL", Detector::Marker("NRAL", 36, 0)),
    ("@tcp(", Detector::Dsn),
    ("@unix(", Detector::Dsn),
    (":thin:", Detector::Oracle),
    ("pat", Detector::Airtable),
];

struct Triggers {
    automaton: AhoCorasick,
    detectors: Vec<Detector>,
}

static TRIGGERS: LazyLock<Triggers> = LazyLock::new(|| {
    let formats = TOKEN_FORMATS.iter().enumerate().map(|(i, format)| (format.prefix, Detector::Format(i)));
    let named = NAME_PARTS.iter().map(|word| (*word, Detector::Named));
    let discord = discord_triggers();
    let discord = discord.iter().map(|start| (start.as_str(), Detector::Discord));
    let (words, detectors): (Vec<&str>, Vec<Detector>) =
        formats.chain(named).chain(discord).chain(OTHER_TRIGGERS.iter().copied()).unzip();
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::DFA))
        .build(words);
    #[expect(clippy::expect_used, reason = "the patterns are constants")]
    Triggers { automaton: automaton.expect("the patterns fit into an automaton"), detectors }
});

/// Maximum number of levels of escapes that are decoded, such as JSON within JSON.
const MAX_LEVELS: usize = 6;

/// All secrets of a text, in order and without overlaps.
///
/// The text is scanned as it is, and again after each level of escapes is decoded. Control sequences are removed from
/// each of these texts first.
pub fn find_secrets(text: &str) -> Vec<Secret> {
    let mut found = find_decoded(text, MAX_LEVELS);
    found.sort_by_key(|secret| (secret.range.start, Reverse(secret.range.end)));
    found.dedup_by(|next, secret| {
        let is_overlap = next.range.start < secret.range.end;
        if is_overlap {
            secret.range = merged(text, &secret.range, &next.range);
        }
        is_overlap
    });
    found
}

/// Both of two overlapping ranges, without colours at their ends. The first range begins first.
fn merged(text: &str, first: &Range<usize>, second: &Range<usize>) -> Range<usize> {
    let (inner_end, end) = (first.end.min(second.end), first.end.max(second.end));
    let is_coloured = |range: Range<usize>| !range.is_empty() && is_invisible(&text[range], MAX_LEVELS);
    let start = if is_coloured(first.start..second.start) { second.start } else { first.start };
    start..if is_coloured(inner_end..end) { inner_end } else { end }
}

/// Returns whether a text consists of control sequences, which may be escaped.
fn is_invisible(text: &str, n_levels: usize) -> bool {
    const MAX_BYTES: usize = 100;
    let is_stripped =
        || strip_control_sequences(text).is_some_and(|stripped| stripped.joined.text.is_empty());
    let is_decoded = || unescape(text).is_some_and(|decoded| is_invisible(&decoded.text, n_levels - 1));
    text.len() <= MAX_BYTES && (is_stripped() || (n_levels > 0 && is_decoded()))
}

fn find_decoded(text: &str, n_levels: usize) -> Vec<Secret> {
    let mut found = match strip_control_sequences(text) {
        None => scan(text),
        Some(StrippedText { joined, spaced, contents }) => {
            let contents = contents.into_iter().flat_map(|content| {
                scan(&text[content.clone()]).into_iter().map(move |secret| secret.shifted(content.start))
            });
            contents
                .chain(originals(&joined, scan(&joined.text)))
                .chain(originals(&spaced, scan(&spaced.text)))
                .collect()
        }
    };
    if n_levels > 0
        && let Some(decoded) = unescape(text)
    {
        found.extend(originals(&decoded, find_decoded(&decoded.text, n_levels - 1)));
    }
    found
}

/// Maps secrets of a decoded text back to its original.
fn originals(decoded: &DecodedText, found: Vec<Secret>) -> impl Iterator<Item = Secret> {
    found.into_iter().map(|Secret { range, kind }| Secret { range: decoded.original(range), kind })
}

/// The secrets of a text without escapes and control sequences.
fn scan(text: &str) -> Vec<Secret> {
    let bytes = text.as_bytes();
    let Triggers { automaton, detectors } = &*TRIGGERS;
    let mut found: Vec<Secret> = Vec::new();
    let mut cookies = Vec::new();
    let mut end = 0;
    for trigger in automaton.find_overlapping_iter(bytes) {
        if trigger.start() < end {
            continue;
        }
        let secret = detect(bytes, trigger.range(), detectors[trigger.pattern().as_usize()], &mut cookies);
        let all = cookies.drain(..).map(|range| (range, "cookie")).chain(secret);
        for (range, kind) in all {
            if text.is_char_boundary(range.start) && text.is_char_boundary(range.end) {
                end = end.max(range.end);
                found.push(Secret { range, kind });
            }
        }
    }
    found
}

fn detect(
    text: &[u8],
    trigger: Range<usize>,
    detector: Detector,
    cookies: &mut Vec<Range<usize>>,
) -> Option<(Range<usize>, &'static str)> {
    let Range { start, end } = trigger;
    match detector {
        Detector::Format(i) => {
            token_at(text, start, &TOKEN_FORMATS[i]).map(|range| (range, TOKEN_FORMATS[i].kind))
        }
        Detector::Named => named_secret_at(text, trigger),
        Detector::WebToken => web_token_at(text, start).map(|range| (range, "web token")),
        Detector::PrivateKey => private_key_at(text, start).map(|range| (range, "private key")),
        Detector::PrivateKeyTail => private_key_tail_at(text, start).map(|range| (range, "private key")),
        Detector::Url => url_password_at(text, start).map(|range| (range, "password")),
        Detector::Bearer => bearer_at(text, end).map(|range| (range, "token")),
        Detector::Basic => basic_at(text, end).map(|range| (range, "credentials")),
        Detector::Cookie => {
            cookies_at(text, end, cookies);
            None
        }
        Detector::CommandPassword => {
            command_password_at(text, start, &text[trigger]).map(|range| (range, "password"))
        }
        Detector::IdentifiedBy => identified_by_at(text, end).map(|range| (range, "password")),
        Detector::Pgpass => pgpass_at(text, start).map(|range| (range, "password")),
        Detector::Signature => signature_at(text, end).map(|range| (range, "signature")),
        Detector::Webhook => webhook_at(text, end).map(|range| (range, "webhook")),
        Detector::Marker(marker, before, after) => {
            token_with_marker_at(text, start, (marker, before, after)).map(|range| (range, "key"))
        }
        Detector::Dsn => dsn_password_at(text, start).map(|range| (range, "password")),
        Detector::Oracle => oracle_password_at(text, end).map(|range| (range, "password")),
        Detector::Airtable => airtable_at(text, start).map(|range| (range, "airtable token")),
        Detector::Discord => discord_at(text, start).map(|range| (range, "discord token")),
        Detector::BotToken => bot_token_at(text, start).map(|range| (range, "bot token")),
    }
}

//! Secrets told by the way they are sent: headers, cookies, commands, signed addresses.

use std::ops::Range;

use crate::char_class::{is_name_byte, is_token68, run_len};
use crate::heuristics::{CharStats, is_placeholder};
use crate::value::{quote_at, skip_spaces, value_at};

/// `Bearer token`, `Token token`: what comes after the word.
pub(crate) fn bearer_at(text: &[u8], at: usize) -> Option<Range<usize>> {
    let from = skip_spaces(text, at);
    let n = run_len(text, from, is_token68);
    let value = &text[from..from + n];
    let mix = CharStats::new(value);
    let is_drawn = mix.is_random() || (mix.n_digits >= 1 && mix.n_changes >= 2);
    let is_secret = n >= 12 && is_drawn && !is_placeholder(&value[..n.min(24)]);
    is_secret.then_some(from..from + n)
}

/// `Basic credentials`: base64 of a name, a colon and a password.
pub(crate) fn basic_at(text: &[u8], at: usize) -> Option<Range<usize>> {
    let from = skip_spaces(text, at);
    let n = run_len(text, from, is_token68);
    let decoded = decode_base64(&text[from..from + n])?;
    let is_printed = decoded.iter().all(|byte| (b' '..0x7f).contains(byte));
    (n >= 8 && is_printed && decoded.contains(&b':')).then_some(from..from + n)
}

/// The values of the cookies on a line, after `Cookie:`.
pub(crate) fn cookies_at(text: &[u8], at: usize, found: &mut Vec<Range<usize>>) {
    let rest = &text[at..text.len().min(at + 4_000)];
    let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'"' | b'\'' | b'\\')).unwrap_or(rest.len());
    let mut start = at;
    for cookie in rest[..end].split(|byte| *byte == b';') {
        if let Some(equals) = cookie.iter().position(|byte| *byte == b'=') {
            let value = cookie[equals + 1..].trim_ascii_end();
            let mix = CharStats::new(value);
            if value.len() >= 12
                && mix.n_digits >= 2
                && !is_placeholder(&value[..value.len().min(24)])
                && !value.contains(&b' ')
            {
                found.push(start + equals + 1..start + equals + 1 + value.len());
            }
        }
        start += cookie.len() + 1;
    }
}

/// The password behind `-u name:` of curl and `-p` of mysql and its kin, of `sshpass` and `docker login`, on the line of the command.
pub(crate) fn command_password_at(text: &[u8], at: usize, flag: &[u8]) -> Option<Range<usize>> {
    let line = command_before(text, at);
    let is_of = |command: &[u8]| line.windows(command.len()).any(|window| window == command);
    let from = at + flag.len();
    if flag == b" -p" {
        // These take a password there and nothing else.
        let is_login = is_sshpass_flag(line) || ((is_of(b"docker") || is_of(b"podman")) && is_of(b" login"));
        if is_login {
            let from = from + usize::from(text.get(from) == Some(&b'='));
            let value = value_at(text, from)?;
            let bytes = &text[value.range.clone()];
            return (bytes.len() >= 4 && !is_placeholder(bytes)).then_some(value.range);
        }
        let is_client = is_of(b"mysql") || is_of(b"mariadb");
        let value = value_at(text, from).filter(|_| is_client && text.get(from) != Some(&b' '))?;
        let bytes = &text[value.range.clone()];
        let is_secret =
            bytes.len() >= 4 && !is_placeholder(bytes) && CharStats::new(bytes).is_password_like();
        return is_secret.then_some(value.range);
    }
    let value = value_at(text, from).filter(|_| is_of(b"curl") || is_of(b"http") || is_of(b"wget"))?;
    let bytes = &text[value.range.clone()];
    let colon = bytes.iter().position(|byte| *byte == b':')?;
    let password = &bytes[colon + 1..];
    (password.len() >= 3 && !is_placeholder(password)).then(|| value.range.start + colon + 1..value.range.end)
}

/// Whether a flag behind this is one of `sshpass` itself: what it starts has a port at a flag of the same name.
fn is_sshpass_flag(line: &[u8]) -> bool {
    const NAME: &[u8] = b"sshpass";
    let Some(at) = line.windows(NAME.len()).rposition(|window| window == NAME) else { return false };
    let mut words = line[at + NAME.len()..].split(|byte| *byte == b' ');
    words.all(|word| word.is_empty() || word.starts_with(b"-"))
}

/// What stands before a place in its command: from the last one on the line, or from the line that this one goes on with.
fn command_before(text: &[u8], at: usize) -> &[u8] {
    const LONGEST: usize = 400;
    let from = at.saturating_sub(LONGEST);
    let before = &text[from..at];
    let begins = |i: usize| match before[i] {
        b'\n' => i == 0 || before[i - 1] != b'\\',
        b';' | b'|' => true,
        b'&' => i > 0 && before[i - 1] == b'&',
        _ => false,
    };
    let start = (0..before.len()).rev().find(|i| begins(*i)).map_or(0, |i| i + 1);
    &before[start..]
}

/// The password of a line of `.pgpass`, `host:port:database:user:password`, by the usual ports and by stars.
pub(crate) fn pgpass_at(text: &[u8], at: usize) -> Option<Range<usize>> {
    let is_field = |byte: &u8| is_name_byte(*byte) || matches!(byte, b'.' | b'*');
    let has_host = text[..at].last().is_some_and(is_field);
    let mut from = at;
    // The port, the database and the user.
    for _ in 0..3 {
        let n = text[from + 1..].iter().take_while(|byte| is_field(byte)).count();
        from += 1 + n;
        if n == 0 || text.get(from) != Some(&b':') {
            return None;
        }
    }
    let value = value_at(text, from + 1).filter(|value| value.range.start == from + 1)?;
    let password = &text[value.range.clone()];
    (has_host && password.len() >= 4 && !is_placeholder(password)).then_some(value.range)
}

/// `IDENTIFIED BY 'password'`.
pub(crate) fn identified_by_at(text: &[u8], at: usize) -> Option<Range<usize>> {
    let from = skip_spaces(text, at);
    // Backticks name things in prose.
    quote_at(text, from).filter(|quote| !quote.ends_with(b"`"))?;
    let value = value_at(text, from)?;
    let bytes = &text[value.range.clone()];
    (bytes.len() >= 4 && CharStats::new(bytes).is_password_like() && !is_placeholder(bytes))
        .then_some(value.range)
}

/// A signature in an address: `sig=`, `Signature=`.
pub(crate) fn signature_at(text: &[u8], at: usize) -> Option<Range<usize>> {
    let n = run_len(text, at, |byte| is_token68(byte) || byte == b'%');
    let value = &text[at..at + n];
    (n >= 40 && CharStats::new(value).is_random()).then_some(at..at + n)
}

/// What follows one of the addresses that hooks are called by.
pub(crate) fn webhook_at(text: &[u8], at: usize) -> Option<Range<usize>> {
    let n = run_len(text, at, |byte| is_name_byte(byte) || byte == b'/');
    let value = &text[at..at + n];
    (n >= 30 && CharStats::new(value).n_digits >= 3 && !is_placeholder(&value[..24])).then_some(at..at + n)
}

/// A bot's token around a place: `123456789:AA…`, whose colon it is.
pub(crate) fn bot_token_at(text: &[u8], at: usize) -> Option<Range<usize>> {
    let n_digits =
        text[at.saturating_sub(12)..at].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = run_len(text, at + 1, is_name_byte);
    ((8..=10).contains(&n_digits) && (33..=36).contains(&rest)).then_some(at - n_digits..at + 1 + rest)
}

fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_suffix(b"==").or(text.strip_suffix(b"=")).unwrap_or(text);
    let mut decoded = Vec::with_capacity(text.len());
    let (mut held, mut n_bits) = (0_u32, 0);
    for byte in text {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        held = (held << 6) | u32::from(six);
        n_bits += 6;
        if n_bits >= 8 {
            n_bits -= 8;
            decoded.push((held >> n_bits) as u8);
            held &= (1 << n_bits) - 1;
        }
    }
    Some(decoded)
}

//! Secrets that are recognised by their transport: headers, cookies, command lines, signed URLs.

use std::ops::Range;

use crate::char_class::{is_name_byte, is_token68, run_len};
use crate::heuristics::{CharStats, is_placeholder};
use crate::value::{quote_at, skip_spaces, value_at};

/// The token after `Bearer` or `Token`.
pub(crate) fn bearer_at(text: &[u8], at: usize) -> Option<Range<usize>> {
    let from = skip_spaces(text, at);
    let n = run_len(text, from, is_token68);
    let value = &text[from..from + n];
    let stats = CharStats::new(value);
    let looks_random = stats.is_random() || (stats.n_digits >= 1 && stats.n_changes >= 2);
    let is_secret = n >= 12 && looks_random && !is_placeholder(&value[..n.min(24)]);
    is_secret.then_some(from..from + n)
}

/// The credentials after `Basic`: base64 of a name, a colon and a password.
pub(crate) fn basic_at(text: &[u8], at: usize) -> Option<Range<usize>> {
    let from = skip_spaces(text, at);
    let n = run_len(text, from, is_token68);
    let decoded = decode_base64(&text[from..from + n])?;
    let is_printable = decoded.iter().all(|byte| (b' '..0x7f).contains(byte));
    (n >= 8 && is_printable && decoded.contains(&b':')).then_some(from..from + n)
}

/// The values of the cookies after `Cookie:`, up to the end of the line.
pub(crate) fn cookies_at(text: &[u8], at: usize, found: &mut Vec<Range<usize>>) {
    let rest = &text[at..text.len().min(at + 4_000)];
    let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'"' | b'\'' | b'\\')).unwrap_or(rest.len());
    let mut start = at;
    for cookie in rest[..end].split(|byte| *byte == b';') {
        if let Some(equals) = cookie.iter().position(|byte| *byte == b'=') {
            let value = cookie[equals + 1..].trim_ascii_end();
            let stats = CharStats::new(value);
            if value.len() >= 12
                && stats.n_digits >= 2
                && !is_placeholder(&value[..value.len().min(24)])
                && !value.contains(&b' ')
            {
                found.push(start + equals + 1..start + equals + 1 + value.len());
            }
        }
        start += cookie.len() + 1;
    }
}

/// The password in a command line: `curl -u name:password`, `mysql -ppassword`, `sshpass -p`, `docker login -p`.
pub(crate) fn command_password_at(text: &[u8], at: usize, flag: &[u8]) -> Option<Range<usize>> {
    let line = command_before(text, at);
    let contains = |command: &[u8]| line.windows(command.len()).any(|window| window == command);
    let from = at + flag.len();
    if flag == b" -p" {
        // For these programs `-p` always takes a password.
        let is_login =
            is_sshpass_flag(line) || ((contains(b"docker") || contains(b"podman")) && contains(b" login"));
        if is_login {
            let from = from + usize::from(text.get(from) == Some(&b'='));
            let value = value_at(text, from)?;
            let bytes = &text[value.range.clone()];
            return (bytes.len() >= 4 && !is_placeholder(bytes)).then_some(value.range);
        }
        let is_client = contains(b"mysql") || contains(b"mariadb");
        let value = value_at(text, from).filter(|_| is_client && text.get(from) != Some(&b' '))?;
        let bytes = &text[value.range.clone()];
        let is_secret =
            bytes.len() >= 4 && !is_placeholder(bytes) && CharStats::new(bytes).is_password_like();
        return is_secret.then_some(value.range);
    }
    if flag == b" -a " {
        let value = value_at(text, from).filter(|_| contains(b"redis-cli"))?;
        return (!is_placeholder(&text[value.range.clone()])).then_some(value.range);
    }
    let value =
        value_at(text, from).filter(|_| contains(b"curl") || contains(b"http") || contains(b"wget"))?;
    let bytes = &text[value.range.clone()];
    let colon = bytes.iter().position(|byte| *byte == b':')?;
    let password = &bytes[colon + 1..];
    (password.len() >= 3 && !is_placeholder(password)).then(|| value.range.start + colon + 1..value.range.end)
}

/// Returns whether the next flag belongs to `sshpass` and not to the command that it starts, such as `ssh -p PORT`.
fn is_sshpass_flag(line: &[u8]) -> bool {
    const NAME: &[u8] = b"sshpass";
    let Some(at) = line.windows(NAME.len()).rposition(|window| window == NAME) else { return false };
    let mut words = line[at + NAME.len()..].split(|byte| *byte == b' ');
    words.all(|word| word.is_empty() || word.starts_with(b"-"))
}

/// The command that contains an offset, up to that offset. It may begin on an earlier line that ends with a backslash.
fn command_before(text: &[u8], at: usize) -> &[u8] {
    const MAX_COMMAND_BYTES: usize = 400;
    let from = at.saturating_sub(MAX_COMMAND_BYTES);
    let before = &text[from..at];
    let is_start = |i: usize| match before[i] {
        b'\n' => i == 0 || before[i - 1] != b'\\',
        b';' | b'|' => true,
        b'&' => i > 0 && before[i - 1] == b'&',
        _ => false,
    };
    let start = (0..before.len()).rev().find(|i| is_start(*i)).map_or(0, |i| i + 1);
    &before[start..]
}

/// The password in a line of `.pgpass`, `host:port:database:user:password`. `at` is the colon before the port.
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
    // Prose puts names into backticks.
    quote_at(text, from).filter(|quote| !quote.ends_with(b"`"))?;
    let value = value_at(text, from)?;
    let bytes = &text[value.range.clone()];
    (bytes.len() >= 4 && CharStats::new(bytes).is_password_like() && !is_placeholder(bytes))
        .then_some(value.range)
}

/// The signature in a signed URL, after `sig=` or `Signature=`.
pub(crate) fn signature_at(text: &[u8], at: usize) -> Option<Range<usize>> {
    let n = run_len(text, at, |byte| is_token68(byte) || byte == b'%');
    let value = &text[at..at + n];
    (n >= 40 && CharStats::new(value).is_random()).then_some(at..at + n)
}

/// The secret path of a webhook URL.
pub(crate) fn webhook_at(text: &[u8], at: usize) -> Option<Range<usize>> {
    let n = run_len(text, at, |byte| is_name_byte(byte) || byte == b'/');
    let value = &text[at..at + n];
    (n >= 30 && CharStats::new(value).n_digits >= 3 && !is_placeholder(&value[..24])).then_some(at..at + n)
}

/// A Telegram bot token, `123456789:AA…`. `at` is its colon.
pub(crate) fn bot_token_at(text: &[u8], at: usize) -> Option<Range<usize>> {
    let n_digits =
        text[at.saturating_sub(12)..at].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = run_len(text, at + 1, is_name_byte);
    ((8..=10).contains(&n_digits) && (33..=36).contains(&rest)).then_some(at - n_digits..at + 1 + rest)
}

fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_suffix(b"==").or(text.strip_suffix(b"=")).unwrap_or(text);
    let mut decoded = Vec::with_capacity(text.len());
    let (mut bits, mut n_bits) = (0_u32, 0);
    for byte in text {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(six);
        n_bits += 6;
        if n_bits >= 8 {
            n_bits -= 8;
            decoded.push((bits >> n_bits) as u8);
            bits &= (1 << n_bits) - 1;
        }
    }
    Some(decoded)
}

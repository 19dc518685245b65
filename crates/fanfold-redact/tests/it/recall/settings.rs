//! The settings: changes that programs, terminals and clients make to a text with a secret.

use super::planted::PlantedText;

/// A change of a text.
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) apply: fn(PlantedText) -> PlantedText,
}

const fn setting(name: &'static str, apply: fn(PlantedText) -> PlantedText) -> Setting {
    Setting { name, apply }
}

/// All settings.
#[rustfmt::skip]
pub(super) const SETTINGS: &[Setting] = &[
    setting("plain", |text| text),
    setting("crlf", |text| text.escape(|c| if c == '\n' { "\r\n".to_owned() } else { c.to_string() })),
    setting("coloured secret", |text| coloured(&text)),
    setting("coloured part", |text| text.insert("\u{1b}[01;31m\u{1b}[K", "\u{1b}[m\u{1b}[K", "")),
    setting("coloured lines", |text| text.prefix_lines(|n| format!("\u{1b}[0m\u{1b}[38;5;{n}m"))),
    setting("coloured word before", |text| text.insert("\u{1b}[36mat\u{1b}[0m\u{1b}[1m", "", "")),
    setting("hyperlink", |text| hyperlink(&text)),
    setting("single quotes", |text| text.wrap("print '", "' again")),
    setting("double quotes", |text| json_string(&text).wrap("echo ", " again")),
    setting("reply quotes", |text| text.prefix_lines(|_| "> ".to_owned())),
    setting("json", |text| json(&text)),
    setting("json unicode before", |text| json_ascii(&after_unicode(&text))),
    setting("json coloured", |text| json(&coloured(&text))),
    setting("json in json", |text| json(&json(&text))),
    setting("json in json unicode", |text| json_ascii(&json_ascii(&after_unicode(&text)))),
    setting("json in json coloured", |text| json(&json(&coloured(&text)))),
    setting("json in json in json", |text| json(&json(&json(&text)))),
    setting("json of grep", |text| json(&text.prefix_lines(|n| format!("conf/prod.env:{n}:")))),
    setting("grep -rn", |text| text.prefix_lines(|n| format!("conf/prod.env:{}:", n + 7))),
    setting("grep -r", |text| text.prefix_lines(|_| "./deploy/values.yaml:".to_owned())),
    setting("grep -A", |text| text.prefix_lines(|n| format!("conf/a.pem{0}{1}{0}", if n == 1 { ":" } else { "-" }, n + 7))),
    setting("grep --color", |text| text.prefix_lines(|n| format!("\u{1b}[35mconf/prod.env\u{1b}[m\u{1b}[36m:\u{1b}[m\u{1b}[32m{n}\u{1b}[m\u{1b}[36m:\u{1b}[m"))),
    setting("diff added", |text| text.prefix_lines(|_| "+".to_owned())),
    setting("diff removed", |text| text.prefix_lines(|_| "-".to_owned())),
    setting("cat -n", |text| text.prefix_lines(|n| format!("{n:>6}\t"))),
    setting("arrow numbers", |text| text.prefix_lines(|n| format!("{:>6}\u{2192}", n + 96))),
    setting("log prefix", |text| text.prefix_lines(|n| format!("2025-11-04T10:11:{n:02}Z app-1  | "))),
];

/// As a terminal shows a value in green.
fn coloured(text: &PlantedText) -> PlantedText {
    text.insert("\u{1b}[32m", "", "\u{1b}[0m")
}

/// As a terminal links a value.
fn hyperlink(text: &PlantedText) -> PlantedText {
    text.insert("\u{1b}]8;;https://acme.dev/a\u{1b}\\", "", "\u{1b}]8;;\u{1b}\\")
}

/// Words in another script before the text. They touch a secret that stands alone.
fn after_unicode(text: &PlantedText) -> PlantedText {
    text.wrap("\u{5bc6}\u{7801}", "\u{3002}")
}

fn json_string(text: &PlantedText) -> PlantedText {
    text.escape(|c| escape(c, false)).wrap("\"", "\"")
}

/// The arguments of a tool call.
fn json(text: &PlantedText) -> PlantedText {
    json_string(text).wrap("{\"command\":", "}")
}

/// As Python writes JSON.
fn json_ascii(text: &PlantedText) -> PlantedText {
    text.escape(|c| escape(c, true)).wrap("{\"command\": \"", "\"}")
}

fn escape(c: char, is_ascii: bool) -> String {
    match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        c if c < ' ' || (is_ascii && !c.is_ascii()) => {
            c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
        }
        c => c.to_string(),
    }
}

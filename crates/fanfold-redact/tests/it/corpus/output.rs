//! Settings that are what programs and people print: logs, traces, diffs, tables, prose.

use super::item::{Item, Shown};
use super::kinds::Shape;
use super::rng::Rng;

pub(super) fn log_bare(rng: &mut Rng, item: &Item) -> Shown {
    let written = item.shell_word();
    let name = item.name.any(rng);
    let text = match rng.below(3) {
        0 => format!(
            "2025-11-04T10:11:12Z INFO connecting host=db.internal {name}={} attempt=1",
            written.value
        ),
        1 => format!("level=debug ts=1762251072 msg=loaded {name}={}", written.value),
        _ => format!("[worker-3] WARN retry {name}={}, waiting 250ms", written.value),
    };
    written.shown(text)
}

pub(super) fn log_quoted(rng: &mut Rng, item: &Item) -> Shown {
    let written = item.in_double();
    let name = item.name.any(rng);
    let text = match rng.below(2) {
        0 => {
            format!("time=\"2025-11-04T10:11:12Z\" level=info {name}=\"{}\" caller=main.go:42", written.value)
        }
        _ => format!("DEBUG acme::config: loaded {name}=\"{}\" in 3ms", written.value),
    };
    written.shown(text)
}

/// An exception that repeats what it was called with.
pub(super) fn stack_trace(rng: &mut Rng, item: &Item) -> Shown {
    let head = "Traceback (most recent call last):\n  File \"/srv/app/main.py\", line 41, in connect\n";
    let tells_by_itself = matches!(item.kind.shape, Shape::Whole | Shape::Token | Shape::Address);
    if tells_by_itself {
        if rng.one_in(3) {
            let written = item.in_double();
            let before = "panicked at src/main.rs:12:5:\ncalled `unwrap()` on an `Err` value";
            let text = format!("{before}: Refused(\"{}\")", written.value);
            return written.shown(text);
        }
        let written = item.raw();
        let text = match rng.below(2) {
            0 => format!(
                "{head}    raise ConfigError(value)\nConfigError: rejected by the server: {}",
                written.value
            ),
            _ => format!(
                "Error: 401 Unauthorized\n    at request (/srv/app/http.js:88:13)\n    sent: {}\n    at async main",
                written.value
            ),
        };
        return written.shown(text);
    }
    let written = item.in_single();
    let name = item.name.snake();
    let text = match rng.below(3) {
        0 => format!("{head}    connect(user='app', {name}='{}')\nOperationalError: timeout", written.value),
        1 => format!("{head}TypeError: bad options {{'host': 'db', '{name}': '{}'}}", written.value),
        _ => format!(
            "AuthError: invalid {}: '{}'\n    at login (/srv/app/auth.js:17:9)",
            item.name.0, written.value
        ),
    };
    written.shown(text)
}

/// What `{:?}` of Rust, `repr` of Python or `console.log` make of a struct.
pub(super) fn debug_print(rng: &mut Rng, item: &Item) -> Shown {
    if rng.one_in(2) {
        let written = item.in_single();
        let text = match rng.below(2) {
            0 => {
                format!("Settings(host='db.internal', {}='{}', port=5432)", item.name.snake(), written.value)
            }
            _ => format!("{{ host: 'db.internal', {}: '{}' }}", item.name.camel(), written.value),
        };
        return written.shown(text);
    }
    let written = item.in_double();
    let text = match rng.below(2) {
        0 => format!(
            "Config {{ host: \"db.internal\", {}: \"{}\", port: 5432 }}",
            item.name.snake(),
            written.value
        ),
        _ => {
            format!("Config {{\n    {}: Some(\n        \"{}\",\n    ),\n}}", item.name.snake(), written.value)
        }
    };
    written.shown(text)
}

pub(super) fn git_diff(rng: &mut Rng, item: &Item) -> Shown {
    let lines = item.lines(rng);
    let sign = rng.pick(&["+", "-"]);
    let changed = each_line(&lines.text, |_, line| format!("{sign}{line}"));
    let text = format!(
        "--- a/config/app\n+++ b/config/app\n@@ -3,6 +3,7 @@ app\n host = db.internal\n{changed}\n port = 5432"
    );
    Shown { text, secret: lines.secret }
}

/// As `cat -n` and the file tools of agents print a file.
pub(super) fn numbered_lines(rng: &mut Rng, item: &Item) -> Shown {
    let lines = item.lines(rng);
    let first = 1 + rng.below(90);
    let mark = rng.pick(&["\t", "→", " | "]);
    let text = each_line(&lines.text, |n, line| format!("{:>6}{mark}{line}", first + n));
    Shown { text, secret: lines.secret }
}

pub(super) fn grep(rng: &mut Rng, item: &Item) -> Shown {
    let lines = item.lines(rng);
    let file = rng.pick(&["config/prod.env", "src/settings.py", "./deploy/values.yaml"]);
    let first = 1 + rng.below(90);
    let text = each_line(&lines.text, |n, line| format!("{file}:{}:{line}", first + n));
    Shown { text, secret: lines.secret }
}

pub(super) fn markdown_table(rng: &mut Rng, item: &Item) -> Shown {
    let written = item.raw();
    let name = item.name.any(rng);
    let text = match rng.below(2) {
        0 => {
            format!("| name | value |\n| --- | --- |\n| host | db.internal |\n| {name} | {} |", written.value)
        }
        _ => format!(
            "| setting | default | note |\n|---|---|---|\n| `{name}` | `{}` | rotate |",
            written.value
        ),
    };
    written.shown(text)
}

pub(super) fn prose(rng: &mut Rng, item: &Item) -> Shown {
    let written = item.raw();
    let value = &written.value;
    let name = &item.name.0;
    let tells_by_itself = matches!(item.kind.shape, Shape::Whole | Shape::Token | Shape::Address);
    let text = match (tells_by_itself, rng.below(3)) {
        (true, 0) => format!("I tried it with {value} and it still says 401, can you look?"),
        (true, 1) => format!("Use `{value}` for staging."),
        (true, _) => format!("The server was given:\n\n{value}\n\nwhich expired."),
        (false, 0) => format!("The {name} is {value}"),
        (false, 1) => format!("log in as deploy, {name}: {value}"),
        (false, _) => format!("I set the {name} to `{value}` and restarted the server."),
    };
    written.shown(text)
}

pub(super) fn plain(_rng: &mut Rng, item: &Item) -> Shown {
    let written = item.raw();
    let text = written.value.clone();
    written.shown(text)
}

fn each_line(text: &str, change: impl Fn(usize, &str) -> String) -> String {
    text.lines().enumerate().map(|(n, line)| change(n, line)).collect::<Vec<_>>().join("\n")
}

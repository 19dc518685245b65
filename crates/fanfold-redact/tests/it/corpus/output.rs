//! Contexts in output of programs and people: logs, traces, diffs, tables, prose.

use super::kinds::Shape;
use super::rng::CorpusRng;
use super::sample::{NamedSample, RenderedSample};

pub(super) fn log_bare(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.shell_word();
    let name = sample.name.any(rng);
    let text = match rng.below(3) {
        0 => format!(
            "2025-11-04T10:11:12Z INFO connecting host=db.internal {name}={} attempt=1",
            escaped.value
        ),
        1 => format!("level=debug ts=1762251072 msg=loaded {name}={}", escaped.value),
        _ => format!("[worker-3] WARN retry {name}={}, waiting 250ms", escaped.value),
    };
    escaped.render(text)
}

pub(super) fn log_quoted(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.in_double();
    let name = sample.name.any(rng);
    let text = match rng.below(2) {
        0 => {
            format!("time=\"2025-11-04T10:11:12Z\" level=info {name}=\"{}\" caller=main.go:42", escaped.value)
        }
        _ => format!("DEBUG acme::config: loaded {name}=\"{}\" in 3ms", escaped.value),
    };
    escaped.render(text)
}

/// An exception with the arguments of the failed call.
pub(super) fn stack_trace(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let head = "Traceback (most recent call last):\n  File \"/srv/app/main.py\", line 41, in connect\n";
    let is_self_contained = matches!(sample.kind.shape, Shape::Whole | Shape::Token | Shape::Address);
    if is_self_contained {
        if rng.one_in(3) {
            let escaped = sample.in_double();
            let before = "panicked at src/main.rs:12:5:\ncalled `unwrap()` on an `Err` value";
            let text = format!("{before}: Refused(\"{}\")", escaped.value);
            return escaped.render(text);
        }
        let escaped = sample.raw();
        let text = match rng.below(2) {
            0 => format!(
                "{head}    raise ConfigError(value)\nConfigError: rejected by the server: {}",
                escaped.value
            ),
            _ => format!(
                "Error: 401 Unauthorized\n    at request (/srv/app/http.js:88:13)\n    sent: {}\n    at async main",
                escaped.value
            ),
        };
        return escaped.render(text);
    }
    let escaped = sample.in_single();
    let name = sample.name.snake();
    let text = match rng.below(3) {
        0 => format!("{head}    connect(user='app', {name}='{}')\nOperationalError: timeout", escaped.value),
        1 => format!("{head}TypeError: bad options {{'host': 'db', '{name}': '{}'}}", escaped.value),
        _ => format!(
            "AuthError: invalid {}: '{}'\n    at login (/srv/app/auth.js:17:9)",
            sample.name.0, escaped.value
        ),
    };
    escaped.render(text)
}

/// A struct as printed by `{:?}` in Rust, `repr` in Python or `console.log`.
pub(super) fn debug_print(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    if rng.one_in(2) {
        let escaped = sample.in_single();
        let text = match rng.below(2) {
            0 => {
                format!(
                    "Settings(host='db.internal', {}='{}', port=5432)",
                    sample.name.snake(),
                    escaped.value
                )
            }
            _ => format!("{{ host: 'db.internal', {}: '{}' }}", sample.name.camel(), escaped.value),
        };
        return escaped.render(text);
    }
    let escaped = sample.in_double();
    let text = match rng.below(2) {
        0 => format!(
            "Config {{ host: \"db.internal\", {}: \"{}\", port: 5432 }}",
            sample.name.snake(),
            escaped.value
        ),
        _ => {
            format!(
                "Config {{\n    {}: Some(\n        \"{}\",\n    ),\n}}",
                sample.name.snake(),
                escaped.value
            )
        }
    };
    escaped.render(text)
}

pub(super) fn git_diff(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let lines = sample.lines(rng);
    let sign = rng.pick(&["+", "-"]);
    let changed = each_line(&lines.text, |_, line| format!("{sign}{line}"));
    let text = format!(
        "--- a/config/app\n+++ b/config/app\n@@ -3,6 +3,7 @@ app\n host = db.internal\n{changed}\n port = 5432"
    );
    RenderedSample { text, secret: lines.secret }
}

/// A file with line numbers, as printed by `cat -n` and the file tools of agents.
pub(super) fn numbered_lines(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let lines = sample.lines(rng);
    let first = 1 + rng.below(90);
    let mark = rng.pick(&["\t", "→", " | "]);
    let text = each_line(&lines.text, |n, line| format!("{:>6}{mark}{line}", first + n));
    RenderedSample { text, secret: lines.secret }
}

pub(super) fn grep(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let lines = sample.lines(rng);
    let file = rng.pick(&["config/prod.env", "src/settings.py", "./deploy/values.yaml"]);
    let first = 1 + rng.below(90);
    let text = each_line(&lines.text, |n, line| format!("{file}:{}:{line}", first + n));
    RenderedSample { text, secret: lines.secret }
}

pub(super) fn markdown_table(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.raw();
    let name = sample.name.any(rng);
    let text = match rng.below(2) {
        0 => {
            format!("| name | value |\n| --- | --- |\n| host | db.internal |\n| {name} | {} |", escaped.value)
        }
        _ => format!(
            "| setting | default | note |\n|---|---|---|\n| `{name}` | `{}` | rotate |",
            escaped.value
        ),
    };
    escaped.render(text)
}

pub(super) fn prose(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.raw();
    let value = &escaped.value;
    let name = &sample.name.0;
    let is_self_contained = matches!(sample.kind.shape, Shape::Whole | Shape::Token | Shape::Address);
    let text = match (is_self_contained, rng.below(3)) {
        (true, 0) => format!("I tried it with {value} and it still says 401, can you look?"),
        (true, 1) => format!("Use `{value}` for staging."),
        (true, _) => format!("The server was given:\n\n{value}\n\nwhich expired."),
        (false, 0) => format!("The {name} is {value}"),
        (false, 1) => format!("log in as deploy, {name}: {value}"),
        (false, _) => format!("I set the {name} to `{value}` and restarted the server."),
    };
    escaped.render(text)
}

pub(super) fn plain(_rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.raw();
    let text = escaped.value.clone();
    escaped.render(text)
}

fn each_line(text: &str, change: impl Fn(usize, &str) -> String) -> String {
    text.lines().enumerate().map(|(n, line)| change(n, line)).collect::<Vec<_>>().join("\n")
}

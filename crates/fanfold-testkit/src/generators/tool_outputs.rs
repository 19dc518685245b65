//! Tool outputs of every content kind, from a seed. They contain errors, paths and ids.

use fanfold_core::ContentKind;

use crate::Rng;

/// All content kinds.
pub const KINDS: &[ContentKind] = &ContentKind::ALL;

/// A text of a kind, and the name of a file it could come from.
pub fn tool_output(kind: ContentKind, rng: &mut Rng) -> (String, &'static str) {
    let n = 12 + rng.below(90);
    match kind {
        ContentKind::Json => (json(rng, n), "answer.json"),
        ContentKind::Log => (log(rng, n), "app.log"),
        ContentKind::Trace => (trace(rng, 6 + n / 6), "trace.txt"),
        ContentKind::Tests => (tests(rng, n), "tests.txt"),
        ContentKind::Diff => (diff(rng, 1 + n / 20), "change.patch"),
        ContentKind::Code => code(rng, 4 + n / 6),
        ContentKind::Search => (
            lines(n, |_| {
                format!(
                    "{}:{}:    let {} = {}({});",
                    path(rng),
                    rng.below(900),
                    word(rng),
                    word(rng),
                    id(rng)
                )
            }),
            "hits.txt",
        ),
        ContentKind::Listing => (lines(n, |_| path(rng)), "files.txt"),
        ContentKind::Table => (table(rng, n), "rows.txt"),
        ContentKind::Html => (html(rng, n), "page.html"),
        ContentKind::Prose => (prose(rng, 3 + n / 8), "README.md"),
        ContentKind::Dense => (dense(rng, n * 20), "data.b64"),
    }
}

fn word<'a>(rng: &mut Rng) -> &'a str {
    rng.pick(&[
        "order", "parser", "width", "shop", "header", "basket", "queue", "lexer", "total", "footer", "index",
    ])
}

fn path(rng: &mut Rng) -> String {
    let ending = rng.pick(&["rs", "py", "go", "ts"]);
    format!("src/{}/{}_{}.{ending}", word(rng), word(rng), rng.below(40))
}

fn id(rng: &mut Rng) -> String {
    match rng.below(3) {
        0 => format!("W{:07}", rng.below(9_999_999)),
        1 => format!("{:08x}", rng.number() as u32),
        _ => format!("{}_{}_{:04}", word(rng), word(rng), rng.below(9_999)),
    }
}

fn error(rng: &mut Rng) -> String {
    match rng.below(4) {
        0 => format!("error: no {} in {}", word(rng), path(rng)),
        1 => format!("ValueError: {} {} is not a number", word(rng), id(rng)),
        2 => format!("thread 'main' panicked at {}:{}:9:", path(rng), rng.below(400)),
        _ => format!("fatal: {} {} is gone", word(rng), id(rng)),
    }
}

fn lines(n: usize, mut line: impl FnMut(usize) -> String) -> String {
    (0..n).map(|i| line(i) + "\n").collect()
}

fn log(rng: &mut Rng, n: usize) -> String {
    let stamp = |i: usize| format!("2024-05-15 10:{:02}:{:02}", i / 60 % 60, i % 60);
    lines(n, |i| match rng.below(20) {
        0 => format!("{} ERROR {}", stamp(i), error(rng)),
        1 => format!("{} WARN  {} is slow: {}", stamp(i), word(rng), id(rng)),
        _ => format!("{} INFO  got {} jobs from {}", stamp(i), rng.below(50), word(rng)),
    })
}

fn trace(rng: &mut Rng, n: usize) -> String {
    let frames = lines(n, |_| {
        let file = if rng.percent(60) {
            format!("/usr/lib/python3/site-packages/{}.py", word(rng))
        } else {
            path(rng)
        };
        format!("  File \"{file}\", line {}, in {}\n    return {}()", rng.below(500), word(rng), word(rng))
    });
    format!(
        "Traceback (most recent call last):\n{frames}ValueError: {} {} is not a number",
        word(rng),
        id(rng)
    )
}

fn tests(rng: &mut Rng, n: usize) -> String {
    let mut failed = Vec::new();
    let ran = lines(n, |i| {
        let name = format!("{}::{}_{i}", word(rng), word(rng));
        if rng.below(24) == 0 {
            failed.push(name.clone());
            format!("test {name} ... FAILED")
        } else {
            format!("test {name} ... ok")
        }
    });
    let failures: String = failed
        .iter()
        .map(|name| {
            let position = format!("{}:{}:5", path(rng), rng.below(300));
            format!("---- {name} stdout ----\nthread '{name}' panicked at {position}:\nassertion `left == right` failed\n  left: {}\n right: {}\n\n", rng.below(9), rng.below(9))
        })
        .collect();
    let verdict = if failed.is_empty() { "ok" } else { "FAILED" };
    format!(
        "running {n} tests\n{ran}\n{failures}test result: {verdict}. {} passed; {} failed; 0 ignored",
        n - failed.len(),
        failed.len()
    )
}

fn diff(rng: &mut Rng, n: usize) -> String {
    lines(n, |_| {
        let file = path(rng);
        let hunk = lines(4 + rng.below(20), |_| {
            let sign = rng.pick(&["+", "-", " ", " "]);
            format!("{sign}    let {} = {}(\"{}\");", word(rng), word(rng), id(rng))
        });
        format!(
            "diff --git a/{file} b/{file}\nindex 1a2b3c4..5d6e7f8 100644\n--- a/{file}\n+++ b/{file}\n@@ -1,9 +1,9 @@ fn {}\n{}",
            word(rng),
            hunk.trim_end()
        )
    })
}

fn code(rng: &mut Rng, n: usize) -> (String, &'static str) {
    let body = |rng: &mut Rng, indent: &str, end: &str| {
        lines(1 + rng.below(6), |_| format!("{indent}{} = {}({}){end}", word(rng), word(rng), rng.below(99)))
    };
    match rng.below(3) {
        0 => (
            lines(n, |i| {
                format!(
                    "def {}_{i}({}, count=1):\n    \"\"\"See {}.\"\"\"\n{}",
                    word(rng),
                    word(rng),
                    path(rng),
                    body(rng, "    ", "")
                )
            }),
            "src/shop.py",
        ),
        1 => (
            lines(n, |i| {
                format!(
                    "/// See {}.\npub fn {}_{i}({}: u32) -> u32 {{\n{}    {}\n}}\n",
                    path(rng),
                    word(rng),
                    word(rng),
                    body(rng, "    let x = ", ";"),
                    rng.below(9)
                )
            }),
            "src/shop.rs",
        ),
        _ => (
            format!(
                "package shop\n\n{}",
                lines(n, |i| format!(
                    "func {}{i}({} int) error {{\n{}\treturn nil\n}}\n",
                    word(rng),
                    word(rng),
                    body(rng, "\t", "")
                )),
            ),
            "src/shop.go",
        ),
    }
}

fn json(rng: &mut Rng, n: usize) -> String {
    let items: Vec<_> = (0..n)
        .map(|i| serde_json::json!({ "id": id(rng), "name": word(rng), "path": path(rng), "n": i, "note": null }))
        .collect();
    serde_json::json!({ "status": "failed", "error": error(rng), "order": id(rng), "items": items })
        .to_string()
}

fn table(rng: &mut Rng, n: usize) -> String {
    let rows = lines(n, |i| format!("| {i:5} | {:12} | {} |", word(rng), id(rng)));
    format!("|    id | name         | key |\n|-------|--------------|-----|\n{rows}")
}

fn html(rng: &mut Rng, n: usize) -> String {
    let items = lines(n, |_| {
        format!("<li>The {} of <a href=\"/{}\">{}</a> is {}</li>", word(rng), path(rng), word(rng), id(rng))
    });
    format!(
        "<!DOCTYPE html><html><head><title>{}</title><script>var x = 1;</script></head><body><h1>{}</h1><ul>{items}</ul></body></html>",
        word(rng),
        word(rng)
    )
}

fn prose(rng: &mut Rng, n: usize) -> String {
    lines(n, |_| {
        let sentences: String = (0..2 + rng.below(4))
            .map(|_| {
                format!(
                    "The {} is kept in `{}` for as long as the {} needs it. ",
                    word(rng),
                    path(rng),
                    word(rng)
                )
            })
            .collect();
        format!("## The {}\n\n{}\n", word(rng), sentences.trim_end())
    })
}

fn dense(rng: &mut Rng, n: usize) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    (0..n.max(600)).map(|_| char::from(letters[rng.below(letters.len())])).collect()
}

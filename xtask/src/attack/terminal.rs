//! Control sequences in conversations, names and headers must reach neither a terminal nor a log.

use fanfold_testkit::Rng;
use serde_json::{Value, json};

use super::Trial;
use super::http::{exchange, request};
use super::provider::Provider;
use super::sandbox::{FinishedRun, Sandbox};
use super::table::Row;

/// Colours and cursor, titles, links, the clipboard, device strings, 8-bit forms, editing characters, text direction.
const SEQUENCES: [&str; 17] = [
    "\u{1b}[5;41m",
    "\u{1b}[2J",
    "\u{1b}]0;title\u{7}",
    "\u{1b}]8;;http://x\u{1b}\\",
    "\u{1b}]52;c;ZXZpbA==\u{7}",
    "\u{1b}P1$r0m\u{1b}\\",
    "\u{1b}_x\u{1b}\\",
    "\u{1b}^x\u{1b}\\",
    "\u{1b}Xx\u{1b}\\",
    "\u{9b}31m",
    "\u{9d}52;c;ZXZpbA==\u{9c}",
    "\u{8}\u{8}\u{8}",
    "\r",
    "\u{7f}",
    "\u{7}",
    "\u{202e}",
    "\u{2066}",
];
const COLOURS: [&str; 2] = ["never", "always"];

pub(super) fn run(trial: &Trial) -> anyhow::Result<Vec<Row>> {
    let mut row =
        Row::new("control sequences in conversations", "no control character in stdout, stderr, log");
    let sandbox = Sandbox::new(trial, "terminal")?;
    let mut rng = Rng::new(trial.seed);
    let messages: Vec<Value> = (0..SEQUENCES.len()).map(|n| message(n, &mut rng)).collect();
    for (n, sequence) in SEQUENCES.iter().enumerate() {
        sandbox.write("one.json", json!({ "model": "gpt-4o", "messages": [messages[n]] }).to_string())?;
        sandbox.run(&format!("fold --session s{n} one.json -w 8k --store x.db -o out.json"))?;
        let text = format!("goal {sequence} end");
        sandbox.run_with(&["sessions", "goal", &format!("s{n}"), &text, "--store", "x.db"], None)?;
        sandbox.run_with(&["sessions", "title", &format!("s{n}"), &text, "--store", "x.db"], None)?;
    }
    sandbox.write("all.json", json!({ "model": "gpt-4o", "messages": messages }).to_string())?;
    sandbox.run("fold --session all all.json -w 8k --store x.db -o out.json")?;
    for colour in COLOURS {
        check_outputs(&sandbox, colour, &mut row)?;
    }
    check_terminal(&sandbox, &mut row)?;
    check_log(&sandbox, &mut row)?;
    Ok(vec![row])
}

/// A message with a sequence between words that can be searched.
fn message(n: usize, rng: &mut Rng) -> Value {
    let role = rng.pick(&["user", "assistant"]);
    json!({ "role": role, "content": format!("before{n} {} marker{n} after", SEQUENCES[n]) })
}

/// Commands that print conversations for people.
const LINES: [&str; 10] = [
    "show all.json",
    "show all.json --folded -w 8k",
    "show --session all --store x.db",
    "search --session all --store x.db",
    "search --store x.db",
    "sessions list --store x.db",
    "inspect all.json",
    "inspect --session all --store x.db",
    "fold all.json -w 2k --explain -o out.json",
    "doctor --store x.db",
];

/// Checks the commands in a terminal. `recall` prints exact bytes elsewhere.
fn check_terminal(sandbox: &Sandbox, row: &mut Row) -> anyhow::Result<()> {
    for line in LINES.into_iter().chain(["recall --session all #1 --store x.db"]) {
        let Some(mut ran) = sandbox.run_in_terminal(&format!("{line} --color never"))? else {
            eprintln!("  `script` is missing: outputs to a terminal are not checked");
            return Ok(());
        };
        // The terminal itself adds a carriage return to each line end.
        ran.out = ran.out_text().replace("\r\n", "\n").into_bytes();
        check(&ran, &format!("{line} in a terminal"), row);
    }
    Ok(())
}

/// Checks the commands and errors when they print to a file.
fn check_outputs(sandbox: &Sandbox, colour: &str, row: &mut Row) -> anyhow::Result<()> {
    for line in LINES {
        check(&sandbox.run(&format!("{line} --color {colour}"))?, line, row);
    }
    for (n, sequence) in SEQUENCES.iter().enumerate() {
        let found = sandbox.run(&format!("search marker{n} --session s{n} --store x.db --json"))?.json();
        let id = found["results"][0]["match_message_id"].as_u64().unwrap_or(1);
        let lines = [
            format!("search marker{n} --store x.db"),
            format!("search --session s{n} --around {id} --store x.db"),
            format!("sessions show s{n} --store x.db"),
        ];
        for line in lines {
            check(&sandbox.run(&format!("{line} --color {colour}"))?, &line, row);
        }
        // Errors quote the names they were given.
        let name = format!("no{sequence}file");
        for arguments in [["show", &name], ["show", "--session"]] {
            let mut arguments = arguments.to_vec();
            if arguments[1] == "--session" {
                arguments.extend([&*name, "--store", "x.db"]);
            }
            arguments.extend(["--color", colour]);
            check(&sandbox.run_with(&arguments, None)?, "an error of `show`", row);
        }
    }
    Ok(())
}

/// Checks the log of a proxy whose client sends sequences in headers and paths.
fn check_log(sandbox: &Sandbox, row: &mut Row) -> anyhow::Result<()> {
    let provider = Provider::start(Vec::new())?;
    let server = sandbox.serve(&provider.url(), "x.db", &["--talk", "debug"])?;
    for sequence in SEQUENCES {
        let body =
            json!({ "model": sequence, "messages": [{ "role": "user", "content": sequence }] }).to_string();
        let headers = [("x-fanfold-session", sequence), ("user-agent", sequence)];
        for path in ["/v1/chat/completions".to_owned(), format!("/v1/{sequence}/chat/completions")] {
            let bytes = request("POST", &path, server.port, &headers, body.as_bytes());
            exchange(server.port, &bytes, std::time::Duration::from_secs(10));
            let bytes = request("POST", &path, server.port, &[], body.as_bytes());
            exchange(server.port, &bytes, std::time::Duration::from_secs(10));
        }
    }
    for line in server.log().split('\n') {
        let found = forbidden(line);
        row.count(found.is_none(), || format!("the log of serve has {found:?}: {line}"));
    }
    Ok(())
}

fn check(ran: &FinishedRun, line: &str, row: &mut Row) {
    let found = forbidden(&ran.out_text()).or_else(|| forbidden(&ran.err_text()));
    row.count(found.is_none() && ran.crash().is_none(), || format!("`{line}` prints {found:?}"));
}

/// The first character that controls a terminal, without the colours of the program itself.
fn forbidden(text: &str) -> Option<char> {
    if text.contains(SEQUENCES[0]) {
        return Some('\u{1b}');
    }
    without_colours(text).chars().find(|c| match c {
        '\n' | '\t' => false,
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    })
}

/// A text without `ESC [ … m`.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(part.len());
        match part[end..].strip_prefix('m') {
            Some(rest) => kept.push_str(rest),
            None => kept.push_str(&format!("\u{1b}[{part}")),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::forbidden;

    #[test]
    fn own_colours_are_allowed_and_others_are_found() {
        assert_eq!(forbidden("\u{1b}[1;34mblue\u{1b}[0m\tand\n"), None);
        assert_eq!(forbidden("\u{1b}[2Jcleared"), Some('\u{1b}'));
        assert_eq!(forbidden("\u{1b}[5;41mloud"), Some('\u{1b}'));
        assert_eq!(forbidden("a\u{202e}b"), Some('\u{202e}'));
        assert_eq!(forbidden("a\u{9b}b"), Some('\u{9b}'));
    }
}

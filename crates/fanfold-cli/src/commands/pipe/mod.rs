//! `fanfold pipe`: JSON lines in, JSON lines out, for programs in any language.

mod request; //   what a line asks for
mod wanted; //    what a session's requests have said of how it is folded
mod offer; //     how each session is folded
mod held; //      the sessions that are kept
mod ops; //       what else is asked of them
mod forgotten; // those that no longer are
mod arrival; //   whether messages are a whole history or what is new
mod answer; //    what a line is answered with

use std::io::{BufRead as _, Write as _};

use anyhow::Context as _;

use self::held::Sessions;
use self::offer::Offer;
use self::request::Request;
use super::Say;
use crate::failure::Failure;
use crate::flags::PipeArgs;
use crate::settings::Options;

pub(crate) fn run(args: &PipeArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    // What is wrong with the settings is told now, not in every answer.
    let mut sessions = Sessions::new(Offer::new(options)?, args.incremental);
    say.waits();
    let mut stdin = std::io::stdin().lock();
    let mut stdout = std::io::stdout().lock();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let n_bytes = stdin.read_until(b'\n', &mut line).context("stdin could not be read")?;
        if n_bytes == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let answer = answer_line(&mut sessions, &line).unwrap_or_else(|failure| {
            say.note(&format!("line {number}: {failure}\n"));
            answer::failure(&failure, number)
        });
        let written = stdout.write_all(answer.as_bytes()).and_then(|()| stdout.write_all(b"\n"));
        match written.and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            written => written.context("stdout could not be written")?,
        }
    }
    Ok(())
}

fn answer_line(sessions: &mut Sessions, line: &[u8]) -> Result<String, Failure> {
    let text = std::str::from_utf8(line).map_err(|error| {
        Failure::new(format!("not UTF-8: {error}"), "send JSON in UTF-8, one object per line")
    })?;
    let request = Request::parse(text)?;
    match request.op.as_deref() {
        None => sessions.fold(&request),
        Some(op) => sessions.operate(op, &request),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_folded_by_the_selected_engine() {
        let options = Options { engine: Some("newest".to_owned()), ..Options::default() };
        let mut sessions = Sessions::new(Offer::new(&options).unwrap(), false);
        let words = "some words ".repeat(200);
        let messages: Vec<_> = (0..20)
            .map(|i| serde_json::json!({ "role": "user", "content": format!("message {i} {words}") }))
            .collect();
        let line = serde_json::json!({ "session": "a", "window": 2_000, "messages": messages }).to_string();
        let answer = answer_line(&mut sessions, line.as_bytes()).unwrap();
        assert!(answer.contains("earlier entries are left out") && answer.contains("message 19"), "{answer}");
        assert!(!answer.contains("message 2 "), "{answer}");
    }
}

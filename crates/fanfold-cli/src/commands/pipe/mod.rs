//! `fanfold pipe`: folds conversations for another program, over JSON lines.

mod request; //        parses a line
mod session_terms; //  the terms that the requests of a session set
mod terms_factory; //  the terms of each session
mod sessions; //       the sessions in memory
mod operations; //     operations besides folding
mod evicted; //        traces of sessions no longer in memory
mod arrival; //        classifies messages as a whole history or an increment
mod answer; //         the answer to a line

use std::io::{BufRead as _, Write as _};

use clap::Args;

use self::request::Request;
use self::sessions::Sessions;
use self::terms_factory::TermsFactory;
use crate::failure::{Failure, Result};
use crate::settings::{FoldFlags, Options};
use crate::terminal::Reporter;

const HELP: &str = r##"Each line of stdin is a JSON object, answered by a line on stdout:
  {"session": "a", "call": 1, "window": 32000, "messages": [...], "tools": [...]}
  {"messages": [...], "handles": [{"id": "#12", "covers": [7]}], "report": {...}}

`messages` is the whole history, or an increment: the messages since the last call.
It is an increment if it does not begin with the messages of the session and `call`
is one more than in the last call, or if the request has "incremental": true.
`window` is the size for messages and tools: nothing is reserved for the reply
unless "reserve" or --reserve is given. "model" and "format" are optional; omitted
fields keep their last values. With a "model" whose price is known, the conversation
is folded when that saves money (--cadence); "idle" is the number of seconds since
the last request to the provider, from which fanfold knows whether its cache expired.

Operations on a session, named by "session":
  {"op": "recall", "handle": "#12"}        answered by {"content": "..."}; with "lines":
                                           [1, 40] or "search": "text"; without a handle,
                                           searches everything folded
  {"op": "pin", "entry": 3}                and "unpin"; entries are counted from 0
  {"op": "focus", "topic": "the parser"}   keeps more of a topic; "" ends it
  {"op": "fold", "from": 2, "to": 9}       without the range: folds whatever is old,
                                           keeping more of a "topic"; see `report.feedback`
  {"op": "unfold", "handle": ...}
  {"op": "report"}

Errors are answered by {"error": {"message", "hint", "line"}}. If nothing fits, "kind"
is "overflow" and "original" is true: send the messages unchanged.

Example: fanfold pipe --policy fanfold < requests.jsonl"##;

/// Fold conversations for another program, over JSON lines
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct PipeArgs {
    #[command(flatten)]
    pub(super) fold: FoldFlags,
    /// Treat the messages of every request as an increment
    #[arg(long)]
    incremental: bool,
}

pub(crate) fn run(args: &PipeArgs, options: &Options, reporter: Reporter) -> Result<()> {
    // Invalid settings fail here, and not in each answer.
    let mut sessions = Sessions::new(TermsFactory::new(options)?, args.incremental);
    reporter.announce_stdin();
    let mut stdin = std::io::stdin().lock();
    let mut stdout = std::io::stdout().lock();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = stdin.read_until(b'\n', &mut line);
        let n_bytes = read.map_err(|error| Failure::caused_by("stdin could not be read", &error))?;
        if n_bytes == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let answer = answer_line(&mut sessions, &line).unwrap_or_else(|failure| {
            reporter.line(format!("line {number}: {failure}"));
            answer::failure(&failure, number)
        });
        let written = stdout.write_all(answer.as_bytes()).and_then(|()| stdout.write_all(b"\n"));
        match written.and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            written => written.map_err(|error| Failure::caused_by("stdout could not be written", &error))?,
        }
    }
    Ok(())
}

fn answer_line(sessions: &mut Sessions, line: &[u8]) -> Result<String> {
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
        let mut sessions = Sessions::new(TermsFactory::new(&options).unwrap(), false);
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

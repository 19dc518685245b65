//! `fanfold inspect --requests` and `--request`: the requests of a stored session.

use fanfold_core::{Tokens, thousands};
use fanfold_engine::{SessionEngine, SessionEvent};
use fanfold_store::SessionId;
use serde_json::{Value, json};

use crate::failure::{Failure, Result};
use crate::setup::terms::restore;
use crate::terminal::{self, Reporter};

/// Rebuilds a request and checks it against the bytes that were sent.
pub(super) fn rebuild(
    engine: &SessionEngine,
    id: &SessionId,
    number: usize,
    is_json: bool,
    reporter: Reporter,
) -> Result<()> {
    let rebuilt = engine.rebuild(id, number, &restore)?;
    let sent = &rebuilt.sent;
    let verdict = if rebuilt.is_same { "the bytes that were sent" } else { "NOT the bytes that were sent" };
    if is_json {
        terminal::print_json(&json!({ "session": id.0, "request": number, "same": rebuilt.is_same,
            "hash": sent.hash, "bytes": sent.n_bytes, "tokens": sent.tokens, "policy": sent.policy,
            "counter": sent.counter, "format": sent.format, "original": sent.bypass_reason, "body": rebuilt.body }))?;
    } else {
        terminal::print_body(&rebuilt.body)?;
    }
    let bytes = thousands(sent.n_bytes);
    reporter.line(format!("\nrequest {number} of {id}: {bytes} bytes, {verdict} ({})", &sent.hash[..16]));
    if rebuilt.is_same {
        return Ok(());
    }
    Err(Failure::new(
        format!("request {number} could be rebuilt, but not byte for byte"),
        "it was made by another version of fanfold or with other files (rules, tokenizer); its folds can still be recalled",
    ))
}

/// Lists the requests of a session.
pub(super) fn list(engine: &SessionEngine, id: &SessionId, is_json: bool) -> Result<()> {
    let requests = engine.requests(id)?;
    let sent = requests.iter().filter_map(|noted| match &noted.event {
        SessionEvent::Request(sent) => Some((noted.at, sent)),
        _ => None,
    });
    if is_json {
        let all: Value = sent
            .enumerate()
            .map(|(i, (at, sent))| json!({ "request": i + 1, "at": at.0, "sent": sent }))
            .collect();
        return terminal::print_json(&all);
    }
    let mut page = String::new();
    for (i, (at, sent)) in sent.enumerate() {
        let tokens = sent.tokens.map_or_else(|| "-".to_owned(), |tokens| Tokens(tokens).to_string());
        let why = sent.bypass_reason.as_ref().map_or_else(String::new, |why| format!("  unchanged: {why}"));
        let (bytes, hash) = (thousands(sent.n_bytes), &sent.hash[..16]);
        page.push_str(&format!("{:>4}  {at}  {bytes:>9} bytes {tokens:>9} tokens  {hash}{why}\n", i + 1));
    }
    terminal::print_page(page)
}

//! Requests of real clients: Codex and Claude Code, installed from npm and connected to a scripted provider on
//! loopback.
//!
//! Every body is recognised, sent unchanged while it fits, and valid when folded. Without node, the npm registry,
//! python3 or the script of the provider, a test prints the reason and passes.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail, and reports what it skipped")]

use std::path::Path;

use fanfold_core::{
    Budget, Count as _, Entry, Extent, Policy, Session, Tokens, Transcript, ViewError, check_deeply,
};
use fanfold_testkit::clients::programs::{self, CLAUDE_CODE, CODEX, ClientProgram, N_STEPS};
use fanfold_testkit::contracts::message_list;
use fanfold_testkit::generators::bodies::BodyFormat;
use fanfold_tokens::o200k;
use fanfold_wire::{Change, Conversation, Format, detect};

/// The room for steps, in addition to tools, system messages and user messages, which are not folded.
const ROOM: Tokens = Tokens(1_500);

#[test]
fn requests_of_codex_are_folded_correctly() {
    check(&CODEX, Format::Responses);
}

#[test]
fn requests_of_claude_code_are_folded_correctly() {
    check(&CLAUDE_CODE, Format::Anthropic);
}

fn check(client: &ClientProgram, format: Format) {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..");
    match programs::run(client, &target) {
        Ok(run) => check_all(client, format, &run.bodies),
        Err(why) => println!("skipped: {} {}: {why}", client.name, client.version),
    }
}

fn check_all(client: &ClientProgram, format: Format, bodies: &[String]) {
    let ClientProgram { program, version, .. } = client;
    assert!(bodies.len() >= N_STEPS, "{program} sent {} requests", bodies.len());
    for (i, body) in bodies.iter().enumerate() {
        assert_eq!(detect(body), Some(format), "request {i}");
        assert_eq!(message_list::check(kind(format), body), Ok(()), "request {i}, as {program} sent it");
        check_unfolded(i, body);
    }
    let mut faults = Vec::new();
    let mut n_folded = 0;
    for (i, body) in bodies.iter().enumerate() {
        for name in Policy::NAMES {
            match check_folded(body, &Policy::named(name).unwrap()) {
                Ok(is_folded) => n_folded += usize::from(is_folded),
                Err(why) => faults.push(format!("request {i}, {name}: {why}")),
            }
        }
    }
    let n = bodies.len();
    println!(
        "{program} {version}: {n} requests recognised as {format} and sent byte for byte while they fit"
    );
    println!("{program} {version}: {n_folded} of {} views folded and valid", n * Policy::NAMES.len());
    assert!(faults.is_empty(), "{} views are not valid:\n{}", faults.len(), faults.join("\n"));
    assert!(n_folded > 0, "no request of {program} was folded");
}

fn check_unfolded(i: usize, body: &str) {
    let (conversation, changes) = Conversation::decode(body, None).unwrap();
    let mut session = Session::new(Policy::fanfold(), Budget::of_window(Tokens(10_000_000)), o200k());
    append_all(&mut session, &conversation, changes);
    let view = session.view().unwrap().clone();
    let encoded = conversation.encode(session.transcript(), &view);
    assert!(encoded == body, "request {i} is changed without a fold");
    let oddities: Vec<String> = conversation.repairs().iter().map(ToString::to_string).collect();
    assert!(oddities.is_empty(), "request {i}: {oddities:?}");
}

/// Folds a body into a small window and checks the result. Returns whether anything was folded.
fn check_folded(body: &str, policy: &Policy) -> Result<bool, String> {
    let (conversation, changes) = Conversation::decode(body, None).unwrap();
    let budget = Budget::with_reserve(unfoldable_tokens(&conversation, &changes) + ROOM, Tokens::ZERO);
    let mut session = Session::new(policy.clone(), budget, o200k());
    append_all(&mut session, &conversation, changes);
    let view = match session.view() {
        Ok(view) => view.clone(),
        Err(ViewError::Overflow(overflow)) => return Err(overflow.to_string()),
        Err(ViewError::Fault(fault)) => return Err(fault.to_string()),
    };
    let encoded = conversation.encode(session.transcript(), &view);
    message_list::check(kind(conversation.format()), &encoded)?;
    check_deeply(session.transcript(), session.ledger(), &view, o200k())
        .map_err(|fault| fault.to_string())?;
    for &handle in &view.handles {
        session.recall(handle, &Extent::Whole).map_err(|error| error.to_string())?;
        if !encoded.contains(&handle.to_string()) {
            return Err(format!("{handle} is not in the folded body"));
        }
    }
    Ok(!view.handles.is_empty())
}

/// The tokens that are not folded: tools, system messages and user messages.
fn unfoldable_tokens(conversation: &Conversation, changes: &[Change]) -> Tokens {
    let mut transcript = Transcript::new();
    for change in changes {
        if let Change::Append(entry @ Entry::Prompt(_)) = change {
            transcript.append(entry.clone(), o200k());
        }
    }
    transcript.set_tools(schemas(conversation));
    transcript.total()
}

fn append_all(session: &mut Session<'_>, conversation: &Conversation, changes: Vec<Change>) {
    session.set_tools(schemas(conversation));
    for change in changes {
        match change {
            Change::Append(entry) => {
                session.append(entry);
            }
            Change::Answer(call, outcome) => {
                assert!(session.set_result(call, outcome), "{call:?} is unknown");
            }
        }
    }
}

fn schemas(conversation: &Conversation) -> Tokens {
    conversation.tools().map_or(Tokens::ZERO, |tools| o200k().count(tools))
}

fn kind(format: Format) -> BodyFormat {
    match format {
        Format::Chat => BodyFormat::Chat,
        Format::Responses => BodyFormat::Responses,
        Format::Anthropic => BodyFormat::Anthropic,
        Format::ShareGpt => BodyFormat::ShareGpt,
        Format::Hermes => BodyFormat::Hermes,
    }
}

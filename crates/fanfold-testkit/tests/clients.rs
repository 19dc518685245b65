//! What real clients send: Codex and Claude Code, installed from npm, talking to a scripted provider on loopback.
//!
//! Every body they send is recognised, leaves as it came while it fits, and is still valid once it is folded. The test
//! says so and passes where it can't be made: without node, npm's registry, python3 or the script of the provider.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail, and says what it did not do")]

use std::path::Path;

use fanfold_core::{
    Budget, Count as _, Entry, Extent, Policy, Session, Tokens, Transcript, ViewError, check_deeply,
};
use fanfold_testkit::bodies::Kind;
use fanfold_testkit::clients::{self, CLAUDE_CODE, CODEX, Client, N_STEPS};
use fanfold_testkit::valid;
use fanfold_tokens::o200k;
use fanfold_wire::{Change, Conversation, Format, detect};

/// What is left for the steps beside tools, system text and what people said, which can't be folded.
const ROOM: Tokens = Tokens(1_500);

#[test]
fn what_codex_sends_goes_through() {
    check(&CODEX, Format::Responses);
}

#[test]
fn what_claude_code_sends_goes_through() {
    check(&CLAUDE_CODE, Format::Anthropic);
}

fn check(client: &Client, format: Format) {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..");
    match clients::run(client, &target) {
        Ok(ran) => check_all(client, format, &ran.bodies),
        Err(why) => println!("skipped: {} {}: {why}", client.name, client.version),
    }
}

fn check_all(client: &Client, format: Format, bodies: &[String]) {
    let Client { program, version, .. } = client;
    assert!(bodies.len() >= N_STEPS, "{program} sent {} requests", bodies.len());
    for (i, body) in bodies.iter().enumerate() {
        assert_eq!(detect(body), Some(format), "request {i}");
        assert_eq!(valid::check(kind(format), body), Ok(()), "request {i}, as {program} sent it");
        check_untouched(i, body);
    }
    let mut faults = Vec::new();
    let mut n_folded = 0;
    for (i, body) in bodies.iter().enumerate() {
        for name in Policy::NAMES {
            match folded(body, &Policy::named(name).unwrap()) {
                Ok(is_folded) => n_folded += usize::from(is_folded),
                Err(why) => faults.push(format!("request {i}, {name}: {why}")),
            }
        }
    }
    let n = bodies.len();
    println!(
        "{program} {version}: {n} requests recognised as {format}, each leaving byte for byte while it fits"
    );
    println!("{program} {version}: {n_folded} of {} views folded and sound", n * Policy::NAMES.len());
    assert!(faults.is_empty(), "{} views are not sound:\n{}", faults.len(), faults.join("\n"));
    assert!(n_folded > 0, "nothing of {program} was folded");
}

fn check_untouched(i: usize, body: &str) {
    let (conversation, changes) = Conversation::decode(body, None).unwrap();
    let mut session = Session::new(Policy::fanfold(), Budget::of_window(Tokens(10_000_000)), o200k());
    follow(&mut session, &conversation, changes);
    let view = session.view().unwrap().clone();
    let encoded = conversation.encode(session.transcript(), &view);
    assert!(encoded == body, "request {i} does not leave as it came");
    let oddities: Vec<String> = conversation.repairs().iter().map(ToString::to_string).collect();
    assert!(oddities.is_empty(), "request {i}: {oddities:?}");
}

/// Folds a body into a small window. Says whether anything was folded, or what is wrong with what leaves.
fn folded(body: &str, policy: &Policy) -> Result<bool, String> {
    let (conversation, changes) = Conversation::decode(body, None).unwrap();
    let budget = Budget::with_reserve(unfoldable(&conversation, &changes) + ROOM, Tokens::ZERO);
    let mut session = Session::new(policy.clone(), budget, o200k());
    follow(&mut session, &conversation, changes);
    let view = match session.view() {
        Ok(view) => view.clone(),
        Err(ViewError::Overflow(overflow)) => return Err(overflow.to_string()),
        Err(ViewError::Fault(fault)) => return Err(fault.to_string()),
    };
    let encoded = conversation.encode(session.transcript(), &view);
    valid::check(kind(conversation.format()), &encoded)?;
    check_deeply(session.transcript(), session.ledger(), &view, o200k())
        .map_err(|fault| fault.to_string())?;
    for &handle in &view.handles {
        session.recall(handle, &Extent::Whole).map_err(|error| error.to_string())?;
        if !encoded.contains(&handle.to_string()) {
            return Err(format!("{handle} is not sent"));
        }
    }
    Ok(!view.handles.is_empty())
}

/// What can't be folded: tools, system text, what people said.
fn unfoldable(conversation: &Conversation, changes: &[Change]) -> Tokens {
    let mut transcript = Transcript::new();
    for change in changes {
        if let Change::Append(entry @ Entry::Prompt(_)) = change {
            transcript.append(entry.clone(), o200k());
        }
    }
    transcript.set_tools(schemas(conversation));
    transcript.total()
}

fn follow(session: &mut Session<'_>, conversation: &Conversation, changes: Vec<Change>) {
    session.set_tools(schemas(conversation));
    for change in changes {
        match change {
            Change::Append(entry) => {
                session.append(entry);
            }
            Change::Answer(call, outcome) => {
                assert!(session.set_result(call, outcome), "{call:?} is not there")
            }
        }
    }
}

fn schemas(conversation: &Conversation) -> Tokens {
    conversation.tools().map_or(Tokens::ZERO, |tools| o200k().count(tools))
}

fn kind(format: Format) -> Kind {
    match format {
        Format::Chat => Kind::Chat,
        Format::Responses => Kind::Responses,
        Format::Anthropic => Kind::Anthropic,
        Format::ShareGpt => Kind::ShareGpt,
        Format::Hermes => Kind::Hermes,
    }
}

//! 9. If folding fails, the request is sent unchanged.
//!
//! These tests show that malformed input causes no panic, that an unfolded body is encoded byte for byte, and that
//! an overflow leaves the session intact. The tests of the engine show that the request is then sent unchanged.

use fanfold_core::{
    Body, Budget, Call, Entry, EntryId, Extent, Handle, Item, Origin, Outcome, Policy, Session, Step, Tokens,
    View, ViewError, Words, parse, print_view,
};
use fanfold_testkit::Rng;
use fanfold_testkit::generators::bodies::{BodyFormat, hostile, rich};
use fanfold_testkit::generators::conversations::{ConversationSize, chat_body, conversation};
use fanfold_wire::{Conversation, Format};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::cases::{Verdict, catch_panic, check_cases, fail, is_fast};
use crate::drivers::apply;
use crate::{budget, lossless, running_calls};

pub(crate) fn format_of(kind: BodyFormat) -> Format {
    match kind {
        BodyFormat::Chat => Format::Chat,
        BodyFormat::Responses => Format::Responses,
        BodyFormat::Anthropic => Format::Anthropic,
        BodyFormat::ShareGpt => Format::ShareGpt,
        BodyFormat::Hermes => Format::Hermes,
    }
}

/// The view without folds.
fn whole(session: &Session<'_>) -> View {
    let ids = (0..session.transcript().len()).map(EntryId::from);
    View { items: ids.map(Item::Whole).collect(), ..View::default() }
}

/// Folds a body in a small window: it is folded without losses, or overflows.
fn check_body(body: &str, format: Format, seed: u64) -> Verdict {
    let policy = Policy::named(Policy::NAMES[seed as usize % 6]).unwrap();
    let window = Tokens([8, 20, 40, 100, 1_000][seed as usize % 5]);
    let Ok((conversation, changes)) = Conversation::decode(body, Some(format)) else { return Ok(()) };
    let mut session = Session::new(policy, Budget::with_reserve(window, Tokens::ZERO), &Words);
    let mut handles: Vec<Handle> = Vec::new();
    for change in changes {
        apply(&mut session, change);
        match session.view().cloned() {
            Err(ViewError::Fault(fault)) => return fail(fault.to_string()),
            Err(ViewError::Overflow(_)) => {}
            Ok(view) => {
                budget::check_view(&session, &view)?;
                lossless::check(&session, &view)?;
                running_calls::check(&session, &view)?;
                handles.extend(&view.handles);
            }
        }
    }
    if conversation.encode(session.transcript(), &whole(&session)) != body {
        return fail("an unfolded body is encoded differently");
    }
    if let Some(invalid) = handles.iter().find(|handle| session.recall(**handle, &Extent::Whole).is_err()) {
        return fail(format!("{invalid} can no longer be recalled"));
    }
    if let Ok(view) = session.view().cloned() {
        let encoded = conversation.encode(session.transcript(), &view);
        if !view.is_untouched()
            && serde_json::from_str::<Value>(&encoded).is_err()
            && serde_json::from_str::<Value>(body).is_ok()
        {
            return fail(format!("the received body is JSON, but the encoded one is not: {encoded}"));
        }
        let is_missing = |handle: &&Handle| !encoded.contains(&handle.to_string());
        if let Some(missing) = view.handles.iter().find(is_missing) {
            return fail(format!("{missing} is in the view but not in the encoded body: {encoded}"));
        }
    }
    Ok(())
}

/// Checks generated bodies and panics with the first that fails.
fn check_bodies(n_cases: u64, generate: impl Fn(u64) -> (Format, String) + Sync) {
    // Bodies are cheap to check, so the number is only reduced for fast tests.
    let n_cases = if is_fast() { n_cases / 16 } else { n_cases };
    let failed = (0..n_cases).into_par_iter().find_map_first(|seed| {
        let (format, body) = generate(seed);
        let verdict = catch_panic(|| check_body(&body, format, seed))
            .unwrap_or_else(|panic| Err(format!("panicked: {panic}")));
        verdict.err().map(|message| (seed, format, body, message))
    });
    if let Some((seed, format, body, message)) = failed {
        panic!("{message}\n\nseed {seed}, {format}: {body}");
    }
}

#[test]
fn hostile_bodies_do_no_harm() {
    check_bodies(10_000, |seed| {
        let kind = BodyFormat::ALL[seed as usize % BodyFormat::ALL.len()];
        (format_of(kind), hostile(kind, seed))
    });
}

#[test]
fn rich_bodies_do_no_harm() {
    check_bodies(5_000, |seed| {
        let kind = BodyFormat::ALL[seed as usize % BodyFormat::ALL.len()];
        (format_of(kind), rich(kind, seed))
    });
}

#[test]
fn malformed_transcripts_do_no_harm() {
    check_bodies(10_000, |seed| (Format::Chat, malformed_transcript(seed)));
}

/// A conversation with missing, duplicated, moved or changed messages.
fn malformed_transcript(seed: u64) -> String {
    let mut rng = Rng::new(seed ^ 0xbe27);
    let size = if rng.percent(80) { ConversationSize::Short } else { ConversationSize::Medium };
    let mut body: Value = serde_json::from_str(&chat_body(&conversation(seed, size))).unwrap();
    let messages = body["messages"].as_array_mut().unwrap();
    for _ in 0..1 + rng.below(5) {
        if messages.is_empty() {
            break;
        }
        let (at, other) = (rng.below(messages.len()), rng.below(messages.len()));
        let text = json!([null, 7, { "type": "text" }, { "type": "text", "text": "t" }, "s"]);
        let calls = json!([{ "id": "call_1", "function": { "name": null, "arguments": { "a": 1 } } }, {}]);
        let (key, value) = match rng.below(8) {
            0 => {
                messages.remove(at);
                continue;
            }
            1 => {
                messages.insert(other, messages[at].clone());
                continue;
            }
            2 => {
                messages.swap(at, other);
                continue;
            }
            3 => ("role", rng.pick(&["user", "assistant", "tool", "system", "developer", "x"]).into()),
            4 => ("content", text),
            5 => ("tool_call_id", "call_1".into()),
            6 => ("tool_calls", calls),
            _ => ("content", [Value::Null, json!(3), json!({}), json!([])][rng.below(4)].clone()),
        };
        messages[at][key] = value;
    }
    body.to_string()
}

/// Bodies with changed bytes, which usually are not JSON.
#[test]
fn corrupt_bytes_do_no_harm() {
    check_bodies(4_000, |seed| {
        let mut rng = Rng::new(seed);
        let kind = BodyFormat::ALL[seed as usize % BodyFormat::ALL.len()];
        let mut bytes = rich(kind, seed).into_bytes();
        for _ in 0..1 + rng.below(4) {
            if bytes.is_empty() {
                break;
            }
            let at = rng.below(bytes.len());
            match rng.below(3) {
                0 => drop(bytes.remove(at)),
                1 => bytes[at] = b"\"{}[],:\\x0n"[rng.below(10)],
                _ => bytes.truncate(at),
            }
        }
        (format_of(kind), String::from_utf8_lossy(&bytes).into_owned())
    });
}

/// An overflow leaves the transcript and the folds intact, and a larger window gives a view again.
#[test]
fn an_overflow_leaves_the_session_intact() {
    check_cases(3_000, &Policy::NAMES, |case| {
        let mut session = case.session();
        for (i, entry) in case.entries.iter().enumerate() {
            session.append(entry.clone());
            let Err(ViewError::Overflow(_)) = session.view() else { continue };
            if session.transcript().len() != i + 1 {
                return fail("an entry is missing after an overflow");
            }
            let overflows_again = session.view().is_err();
            if !overflows_again {
                return fail("a repeated view does not overflow");
            }
            let room = session.transcript().total();
            session.apply(fanfold_core::Event::Budget(Budget::with_reserve(room + Tokens(10), Tokens::ZERO)));
            let view = session.view().cloned().map_err(|refusal| refusal.to_string())?;
            budget::check_view(&session, &view)?;
            lossless::check(&session, &view)?;
            return Ok(());
        }
        Ok(())
    });
}

/// A long command of two-byte characters, at every alignment, is cut at a character boundary.
#[test]
fn arguments_are_cut_at_character_boundaries() {
    let origin = Origin::message(0);
    for n in 0..4 {
        let arguments = format!("{}{} <<EOF\nhello\nEOF\n", "x".repeat(n), "é".repeat(4_000));
        let outcome = Outcome { body: Body::text("done"), is_error: false, media: Vec::new(), origin };
        let call = Call {
            id: "1".to_owned(),
            tool: "run".to_owned(),
            arguments: Body::text(arguments),
            result: Some(outcome),
            origin,
        };
        let step = Step { text: Body::text("I do."), reasoning: Body::text(""), calls: vec![call], origin };
        let budget = Budget::with_reserve(Tokens(400), Tokens::ZERO);
        let mut session = Session::new(Policy::fanfold(), budget, fanfold_tokens::o200k());
        for entry in parse("user    go on\n").expect("notation") {
            session.append(entry);
        }
        session.append(Entry::Step(step));
        let view = session.view().expect("it fits when the arguments are cut").clone();
        let sent = print_view(session.transcript(), &view);
        assert!(sent.contains('é') && sent.len() < 4_000, "{sent}");
    }
}

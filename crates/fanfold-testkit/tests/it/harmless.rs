//! 9. If anything of ours fails, the request goes out as it came in.
//!
//! What can be shown here: nothing panics, what is untouched leaves byte for byte, and a refusal costs nothing. That the
//! request then goes out is the engine's to show.

use fanfold_core::{
    Body, Budget, Call, Entry, EntryId, Extent, Handle, Item, Origin, Outcome, Policy, Session, Step, Tokens,
    View, ViewError, Words, parse, print_view,
};
use fanfold_testkit::Rng;
use fanfold_testkit::bodies::{Kind, hostile, rich};
use fanfold_testkit::conversations::{Size, chat_body, conversation};
use fanfold_wire::{Conversation, Format};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::cases::{Verdict, hold, is_fast, no, quietly};
use crate::walks::apply;
use crate::{budget, lossless, running};

pub(crate) fn format_of(kind: Kind) -> Format {
    match kind {
        Kind::Chat => Format::Chat,
        Kind::Responses => Format::Responses,
        Kind::Anthropic => Format::Anthropic,
        Kind::ShareGpt => Format::ShareGpt,
        Kind::Hermes => Format::Hermes,
    }
}

/// The view in which everything is as it came.
fn whole(session: &Session<'_>) -> View {
    let ids = (0..session.transcript().len()).map(EntryId::from);
    View { items: ids.map(Item::Whole).collect(), ..View::default() }
}

/// Takes a body in a small window: it is folded or refused, and nothing of it is lost.
fn check_body(body: &str, format: Format, seed: u64) -> Verdict {
    let policy = Policy::named(Policy::NAMES[seed as usize % 6]).unwrap();
    let window = Tokens([8, 20, 40, 100, 1_000][seed as usize % 5]);
    let Ok((conversation, changes)) = Conversation::decode(body, Some(format)) else { return Ok(()) };
    let mut session = Session::new(policy, Budget::with_reserve(window, Tokens::ZERO), &Words);
    let mut handles: Vec<Handle> = Vec::new();
    for change in changes {
        apply(&mut session, change);
        match session.view().cloned() {
            Err(ViewError::Fault(fault)) => return no(fault.to_string()),
            Err(ViewError::Overflow(_)) => {}
            Ok(view) => {
                budget::check_view(&session, &view)?;
                lossless::check(&session, &view)?;
                running::check(&session, &view)?;
                handles.extend(&view.handles);
            }
        }
    }
    if conversation.encode(session.transcript(), &whole(&session)) != body {
        return no("what is untouched leaves as something else");
    }
    if let Some(shut) = handles.iter().find(|handle| session.recall(**handle, &Extent::Whole).is_err()) {
        return no(format!("{shut} no longer opens"));
    }
    if let Ok(view) = session.view().cloned() {
        let encoded = conversation.encode(session.transcript(), &view);
        if !view.is_untouched()
            && serde_json::from_str::<Value>(&encoded).is_err()
            && serde_json::from_str::<Value>(body).is_ok()
        {
            return no(format!("JSON came and this leaves: {encoded}"));
        }
        let is_missing = |handle: &&Handle| !encoded.contains(&handle.to_string());
        if let Some(missing) = view.handles.iter().find(is_missing) {
            return no(format!("{missing} stands in the view and not in what leaves: {encoded}"));
        }
    }
    Ok(())
}

/// Tries bodies, and prints the first that fails.
fn hold_for_bodies(n_cases: u64, make: impl Fn(u64) -> (Format, String) + Sync) {
    // Bodies are cheap: 10,000 of them are 10,000 unless only the quick tests are wanted.
    let n_cases = if is_fast() { n_cases / 16 } else { n_cases };
    let failed = (0..n_cases).into_par_iter().find_map_first(|seed| {
        let (format, body) = make(seed);
        let verdict = quietly(|| check_body(&body, format, seed))
            .unwrap_or_else(|panic| Err(format!("panicked: {panic}")));
        verdict.err().map(|message| (seed, format, body, message))
    });
    if let Some((seed, format, body, message)) = failed {
        panic!("{message}\n\nseed {seed}, {format}: {body}");
    }
}

#[test]
fn hostile_bodies_do_no_harm() {
    hold_for_bodies(10_000, |seed| {
        let kind = Kind::ALL[seed as usize % Kind::ALL.len()];
        (format_of(kind), hostile(kind, seed))
    });
}

#[test]
fn rich_bodies_do_no_harm() {
    hold_for_bodies(5_000, |seed| {
        let kind = Kind::ALL[seed as usize % Kind::ALL.len()];
        (format_of(kind), rich(kind, seed))
    });
}

#[test]
fn malformed_transcripts_do_no_harm() {
    hold_for_bodies(10_000, |seed| (Format::Chat, bent(seed)));
}

/// A conversation whose messages were lost, doubled, moved or changed on the way.
fn bent(seed: u64) -> String {
    let mut rng = Rng::new(seed ^ 0xbe27);
    let size = if rng.percent(80) { Size::Short } else { Size::Middling };
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

/// Bytes changed anywhere: mostly no JSON at all.
#[test]
fn broken_bytes_do_no_harm() {
    hold_for_bodies(4_000, |seed| {
        let mut rng = Rng::new(seed);
        let kind = Kind::ALL[seed as usize % Kind::ALL.len()];
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

/// After a refusal all is as it was: what was said, what was folded, and a larger window takes it again.
#[test]
fn a_refusal_costs_nothing() {
    hold(3_000, &Policy::NAMES, |case| {
        let mut session = case.session();
        for (i, entry) in case.entries.iter().enumerate() {
            session.append(entry.clone());
            let Err(ViewError::Overflow(_)) = session.view() else { continue };
            if session.transcript().len() != i + 1 {
                return no("an entry is missing after a refusal");
            }
            let again = session.view().is_err();
            if !again {
                return no("it is refused, and asked again it is not");
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

/// A command that is longer than its script, of letters that take two bytes: wherever it is cut, it is between two of them.
#[test]
fn arguments_are_cut_between_letters() {
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
        let view = session.view().expect("it fits once the arguments are cut").clone();
        let sent = print_view(session.transcript(), &view);
        assert!(sent.contains('é') && sent.len() < 4_000, "{sent}");
    }
}

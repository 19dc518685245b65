//! A request body in one of the formats: untouched it leaves as it came; folded it is still a body, with nothing lost.

use fanfold_core::{EntryId, Extent, Item, Refusal, Session, Tokens, View, recount};
use fanfold_testkit::bodies::Kind;
use fanfold_testkit::valid;
use fanfold_wire::{Change, Conversation, Format, detect};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::choice::{Choice, choice};

/// Decodes, folds, encodes and decodes again. Panics where a promise is broken.
pub fn check(data: &[u8], format: Format) {
    let Some((&byte, body)) = data.split_first() else { return };
    let Ok(body) = std::str::from_utf8(body) else { return };
    let is_recognised = detect(body).is_some();
    assert_eq!(is_recognised, Conversation::decode(body, None).is_ok(), "recognised or not");
    let Ok((conversation, changes)) = Conversation::decode(body, Some(format)) else { return };
    let choice = choice(byte);

    let mut session = large(&choice);
    make(&mut session, &conversation, changes.clone(), Watch::No);
    let view = session.view().expect("it fits").clone();
    assert_eq!(view.items, whole(session.transcript().len()).items, "nothing is folded in a large window");
    assert_eq!(conversation.encode(session.transcript(), &view), body, "untouched");

    let mut session = Session::new(choice.policy.clone(), choice.budget, choice.counter);
    make(&mut session, &conversation, changes.clone(), Watch::No);
    let seen = view_of(&mut session);
    if choice.is_watched {
        let mut watched = Session::new(choice.policy.clone(), choice.budget, choice.counter);
        make(&mut watched, &conversation, changes, Watch::Yes);
        assert_eq!(view_of(&mut watched), seen, "it matters that somebody looked");
    }
    let Some(view) = seen else { return };
    check_view(&session, &view);
    let is_touched = view.items != whole(session.transcript().len()).items;
    if is_touched {
        check_encoded(body, &conversation, &session, &view);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Watch {
    No,
    Yes,
}

fn large(choice: &Choice) -> Session<'static> {
    // The other policies fold by their own thresholds, some of them always.
    let policy = fanfold_core::Policy::fanfold();
    Session::new(policy, fanfold_core::Budget::of_window(Tokens(u64::MAX / 4)), choice.counter)
}

fn make(session: &mut Session<'_>, conversation: &Conversation, changes: Vec<Change>, watch: Watch) {
    let schemas = conversation.tools().map_or(Tokens::ZERO, |tools| session.counter().count(tools));
    session.set_tools(schemas);
    for change in changes {
        match change {
            Change::Append(entry) => {
                session.append(entry);
            }
            Change::Answer(call, outcome) => {
                assert!(session.answer(call, outcome), "there is no such call");
            }
        }
        if watch == Watch::Yes {
            view_of(session);
        }
    }
}

fn view_of(session: &mut Session<'_>) -> Option<View> {
    match session.view() {
        Ok(view) => Some(view.clone()),
        Err(Refusal::Overflow(_)) => None,
        Err(Refusal::Fault(fault)) => panic!("a promise is broken: {fault}"),
    }
}

fn whole(n_entries: usize) -> View {
    View { items: (0..n_entries).map(|i| Item::Whole(EntryId::from(i))).collect(), ..View::default() }
}

/// What `check` leaves out because it is dear: the count, and that every handle opens.
fn check_view(session: &Session<'_>, view: &View) {
    assert_eq!(recount(session.transcript(), view, session.counter()), view.tokens, "the count");
    for &handle in &view.handles {
        let recalled = session.recall(handle, &Extent::Whole);
        assert!(recalled.is_ok(), "{handle} does not open: {recalled:?}");
    }
}

fn check_encoded(body: &str, conversation: &Conversation, session: &Session<'_>, view: &View) {
    let encoded = conversation.encode(session.transcript(), view);
    for handle in view.handles.iter().map(ToString::to_string) {
        assert!(encoded.contains(&handle), "{handle} is not in\n{encoded}");
    }
    for value in serde_json::Deserializer::from_str(&encoded).into_iter::<&RawValue>() {
        assert!(value.is_ok(), "not JSON: {value:?}\n{encoded}");
    }
    if let Err(error) = Conversation::decode(&encoded, Some(conversation.format())) {
        panic!("does not decode again: {error}\n{encoded}");
    }
    check_users(session, view, &encoded);
    let kind = kind(conversation.format());
    let is_sound = conversation.repairs().is_empty() && valid::check(kind, body).is_ok();
    if is_sound && let Err(why) = valid::check(kind, &encoded) {
        panic!("valid before and not after: {why}\n{body}\n{encoded}");
    }
}

/// What people said is there again, line by line: somewhere, for it may be read as something else next time.
fn check_users(session: &Session<'_>, view: &View, encoded: &str) {
    let mut after = String::new();
    for value in serde_json::Deserializer::from_str(encoded).into_iter::<Value>() {
        // Half a surrogate pair is no text of Rust's.
        let Ok(value) = value else { return };
        collect_texts(&value, &mut after);
    }
    for item in &view.items {
        let Item::Whole(id) = item else { continue };
        let entry = session.transcript().entry(*id);
        let Some(prompt) = entry.prompt().filter(|_| entry.is_user()) else { continue };
        for line in prompt.body.as_str().lines() {
            // A content may also be something else than a text.
            let is_there = after.contains(line.trim()) || encoded.contains(line.trim());
            assert!(is_there, "{line:?} is lost in\n{encoded}");
        }
    }
}

fn collect_texts(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => {
            out.push_str(text);
            out.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, out)),
        Value::Object(fields) => fields.values().for_each(|field| collect_texts(field, out)),
        _ => {}
    }
}

/// The format by the name it has in the testkit.
pub fn kind(format: Format) -> Kind {
    match format {
        Format::Chat => Kind::Chat,
        Format::Responses => Kind::Responses,
        Format::Anthropic => Kind::Anthropic,
        Format::ShareGpt => Kind::ShareGpt,
        Format::Hermes => Kind::Hermes,
    }
}

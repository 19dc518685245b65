//! Request bodies: an unfolded body is encoded byte for byte, a folded one is still valid and loses nothing.

use fanfold_core::{EntryId, Extent, Item, Session, Tokens, View, ViewError, recount};
use fanfold_testkit::contracts::message_list;
use fanfold_testkit::generators::bodies::BodyFormat;
use fanfold_wire::{Change, Conversation, Format, detect};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::settings::{FuzzSettings, settings};

/// Decodes, folds, encodes and decodes again. Panics if an invariant is broken.
pub fn check(data: &[u8], format: Format) {
    let Some((&byte, body)) = data.split_first() else { return };
    let Ok(body) = std::str::from_utf8(body) else { return };
    let is_recognised = detect(body).is_some();
    assert_eq!(is_recognised, Conversation::decode(body, None).is_ok(), "detection and decoding disagree");
    let Ok((conversation, changes)) = Conversation::decode(body, Some(format)) else { return };
    let settings = settings(byte);

    let mut session = large(&settings);
    append_all(&mut session, &conversation, changes.clone(), ViewEachStep::No);
    let view = session.view().expect("everything fits a large window").clone();
    assert_eq!(view.items, whole(session.transcript().len()).items, "nothing is folded in a large window");
    assert_eq!(conversation.encode(session.transcript(), &view), body, "an unfolded body changed");

    let mut session = Session::new(settings.policy.clone(), settings.budget, settings.counter);
    append_all(&mut session, &conversation, changes.clone(), ViewEachStep::No);
    let view = view_of(&mut session);
    if settings.has_intermediate_views {
        let mut viewed = Session::new(settings.policy.clone(), settings.budget, settings.counter);
        append_all(&mut viewed, &conversation, changes, ViewEachStep::Yes);
        assert_eq!(view_of(&mut viewed), view, "intermediate views changed the last one");
    }
    let Some(view) = view else { return };
    check_view(&session, &view);
    let is_folded = view.items != whole(session.transcript().len()).items;
    if is_folded {
        check_encoded(body, &conversation, &session, &view);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ViewEachStep {
    No,
    Yes,
}

fn large(settings: &FuzzSettings) -> Session<'static> {
    // Other policies may fold although everything fits.
    let policy = fanfold_core::Policy::fanfold();
    Session::new(policy, fanfold_core::Budget::of_window(Tokens(u64::MAX / 4)), settings.counter)
}

fn append_all(
    session: &mut Session<'_>,
    conversation: &Conversation,
    changes: Vec<Change>,
    view_each_step: ViewEachStep,
) {
    let schemas = conversation.tools().map_or(Tokens::ZERO, |tools| session.counter().count(tools));
    session.set_tools(schemas);
    for change in changes {
        match change {
            Change::Append(entry) => {
                session.append(entry);
            }
            Change::Answer(call, outcome) => {
                assert!(session.set_result(call, outcome), "unknown call");
            }
        }
        if view_each_step == ViewEachStep::Yes {
            view_of(session);
        }
    }
}

fn view_of(session: &mut Session<'_>) -> Option<View> {
    match session.view() {
        Ok(view) => Some(view.clone()),
        Err(ViewError::Overflow(_)) => None,
        Err(ViewError::Fault(fault)) => panic!("broken invariant: {fault}"),
    }
}

fn whole(n_entries: usize) -> View {
    View { items: (0..n_entries).map(|i| Item::Whole(EntryId::from(i))).collect(), ..View::default() }
}

/// Checks that are too expensive for `check` in core: the token count, and the recall of every handle.
fn check_view(session: &Session<'_>, view: &View) {
    assert_eq!(recount(session.transcript(), view, session.counter()), view.tokens, "the count");
    for &handle in &view.handles {
        let recalled = session.recall(handle, &Extent::Whole);
        assert!(recalled.is_ok(), "cannot recall {handle}: {recalled:?}");
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
    let is_valid = conversation.repairs().is_empty() && message_list::check(kind, body).is_ok();
    if is_valid && let Err(why) = message_list::check(kind, &encoded) {
        panic!("folding made the body invalid: {why}\n{body}\n{encoded}");
    }
}

/// Checks that every line of a user message is somewhere in the encoded body.
fn check_users(session: &Session<'_>, view: &View, encoded: &str) {
    let mut texts = String::new();
    for value in serde_json::Deserializer::from_str(encoded).into_iter::<Value>() {
        // Half a surrogate pair cannot be a Rust string.
        let Ok(value) = value else { return };
        collect_texts(&value, &mut texts);
    }
    for item in &view.items {
        let Item::Whole(id) = item else { continue };
        let entry = session.transcript().entry(*id);
        let Some(prompt) = entry.prompt().filter(|_| entry.is_user()) else { continue };
        for line in prompt.body.as_str().lines() {
            // A content may also be JSON other than a string.
            let is_sent = texts.contains(line.trim()) || encoded.contains(line.trim());
            assert!(is_sent, "{line:?} is lost in\n{encoded}");
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

/// The testkit's name of a format.
pub fn kind(format: Format) -> BodyFormat {
    match format {
        Format::Chat => BodyFormat::Chat,
        Format::Responses => BodyFormat::Responses,
        Format::Anthropic => BodyFormat::Anthropic,
        Format::ShareGpt => BodyFormat::ShareGpt,
        Format::Hermes => BodyFormat::Hermes,
    }
}

//! Items, into entries: those that the model made in a row are one step.

use fanfold_core::{Body, Call, Origin, Speaker, Step};

use super::{Kind, arguments, call_id, kind};
use crate::book::{Book, Portion, Role, What};
use crate::change::Oddity;
use crate::chat::read_arguments;
use crate::content::Content;
use crate::json::{self, Object};
use crate::pairing::Ids;

/// Reads items that arrived together.
///
/// A step ends with them: what arrives later begins another, because a transcript only grows.
pub(crate) fn decode(book: &mut Book, items: &[&str]) {
    let mut making = None;
    for raw in items {
        book.begin_message();
        item(book, &mut making, raw);
    }
    finish(book, &mut making);
}

/// A reply in the making.
#[derive(Default)]
struct Making<'a> {
    portions: Vec<Portion>,
    texts: Vec<(Content<'a>, &'a str)>,
    said: Option<Origin>,
    thoughts: Vec<(String, &'a str)>,
    calls: Vec<Call>,
    ids: Vec<Option<String>>,
    used: Ids,
}

fn item<'a>(book: &mut Book, making: &mut Option<Making<'a>>, raw: &'a str) {
    if raw.starts_with('"') {
        finish(book, making);
        let content = Content::read(Some(raw));
        book.mark_odd();
        book.prompt(0, Speaker::User, content.body(), Vec::new());
        return;
    }
    let Some(object) = Object::parse(raw) else {
        finish(book, making);
        book.strange(raw, Oddity::NotAMessage);
        return;
    };
    match kind(&object) {
        Kind::Message => message(book, making, raw, &object),
        Kind::Reasoning => {
            if let Some(note) = book.notes.last_mut() {
                note.is_reasoning = true;
            }
            own(book, making, What::Own).thoughts.push((thought(&object), raw));
        }
        Kind::Call => call(book, making, &object),
        Kind::Made => {
            own(book, making, What::Loose);
        }
        Kind::Output => {
            finish(book, making);
            book.set_role(Role::Tool);
            let content = Content::read(object.get("output"));
            if content.is_broken {
                book.repair(0, Oddity::LoneSurrogate);
            }
            let id = call_id(&object);
            if id.is_none() {
                book.repair(0, Oddity::UnnamedResult);
                book.mark_odd();
            }
            book.result(0, id.as_deref(), &content, false);
        }
        Kind::Compaction => {
            finish(book, making);
            book.prompt(0, Speaker::Provider, Body::text(raw), Vec::new()).is_kept = true;
        }
        Kind::Unknown => unknown(book, making, raw),
    }
}

/// A piece of the reply that is in the making, or of a new one.
fn own<'m, 'a>(book: &mut Book, making: &'m mut Option<Making<'a>>, what: What) -> &'m mut Making<'a> {
    book.set_role(Role::Assistant);
    let making = making.get_or_insert_with(Making::default);
    making.portions.push(Portion { origin: book.origin(0), what });
    making
}

fn message<'a>(book: &mut Book, making: &mut Option<Making<'a>>, raw: &'a str, object: &Object<'a>) {
    let content = Content::read(object.get("content"));
    if content.is_broken {
        book.repair(0, Oddity::LoneSurrogate);
    }
    if matches!(object.get("content"), Some("null" | "[]")) {
        book.mark_odd();
    }
    let role = object.text("role").unwrap_or_default();
    let speaker = match &*role {
        "assistant" => {
            let origin = book.origin(0);
            let making = own(book, making, What::Own);
            making.texts.push((content, raw));
            making.said.get_or_insert(origin);
            return;
        }
        "system" | "developer" => Speaker::System,
        "user" if object.text("name").is_some_and(|name| name == "harness") => Speaker::Harness,
        "user" => Speaker::User,
        _ => {
            finish(book, making);
            book.strange(raw, Oddity::UnknownRole(role.chars().take(60).collect()));
            return;
        }
    };
    finish(book, making);
    if speaker == Speaker::System {
        book.set_role(Role::System);
    }
    let media = content.media(book.message());
    book.prompt(0, speaker, content.body(), media);
}

fn call<'a>(book: &mut Book, making: &mut Option<Making<'a>>, object: &Object<'a>) {
    let step = book.next_entry();
    let tool = object.text("name").or_else(|| object.text("type")).unwrap_or_default().into_owned();
    let value = arguments(object);
    let is_free_text = object.get("arguments").is_none();
    let body = if is_free_text { Content::read(value).body() } else { read_arguments(book, 0, &tool, value) };
    let origin = book.origin(0);
    let made = own(book, making, What::Own);
    if made.calls.len() >= usize::from(u16::MAX) {
        book.repair(0, Oddity::TooManyCalls);
        return;
    }
    let raw_id = call_id(object);
    let id = made.used.claim(raw_id.as_deref(), step, made.calls.len());
    if raw_id.as_deref() != Some(&*id) {
        let oddity =
            if raw_id.is_none() { Oddity::MissingId(id.clone()) } else { Oddity::DoubledId(id.clone()) };
        book.repair(0, oddity);
        book.mark_odd();
    }
    made.calls.push(Call { id, tool, arguments: body, result: None, origin });
    made.ids.push(raw_id.map(|id| id.into_owned()));
}

/// What is not known travels with what is beside it.
fn unknown(book: &mut Book, making: &mut Option<Making<'_>>, raw: &str) {
    if let Some(making) = making {
        book.set_role(Role::Assistant);
        making.portions.push(Portion { origin: book.origin(0), what: What::Loose });
        return;
    }
    if !book.attach() {
        book.strange(raw, Oddity::NotAMessage);
    }
}

fn finish(book: &mut Book, making: &mut Option<Making<'_>>) {
    let Some(made) = making.take() else { return };
    let origin = made.portions.first().map_or(Origin::message(0), |portion| portion.origin);
    let text = match made.texts.as_slice() {
        [] => Body::text(""),
        [(content, _)] => content.body(),
        many => {
            let texts: Vec<_> = many.iter().map(|(content, _)| &*content.text).collect();
            Body::with_raw(texts.join("\n"), list(many.iter().map(|(_, raw)| *raw)))
        }
    };
    let reasoning = match made.thoughts.as_slice() {
        [] => Body::text(""),
        [(thought, raw)] => Body::with_raw(thought.as_str(), *raw),
        many => {
            let texts: Vec<_> = many.iter().map(|(thought, _)| thought.as_str()).collect();
            Body::with_raw(texts.join("\n"), list(many.iter().map(|(_, raw)| *raw)))
        }
    };
    let step = Step { text, reasoning, calls: made.calls, origin };
    let has_loose = made.portions.iter().any(|portion| portion.what == What::Loose);
    let anchor = book.step(step, made.portions, &made.ids);
    anchor.said = made.said;
    anchor.has_loose = has_loose;
}

fn list<'a>(raws: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", raws.collect::<Vec<_>>().join(","))
}

/// What can be read of a reasoning item.
fn thought(item: &Object<'_>) -> String {
    let texts = ["summary", "content"].into_iter().filter_map(|key| {
        let parts = item.get(key).and_then(json::array)?;
        let content = Content::of_parts(&parts, "".into());
        Some(content.text.into_owned()).filter(|text| !text.is_empty())
    });
    texts.collect::<Vec<_>>().join("\n")
}

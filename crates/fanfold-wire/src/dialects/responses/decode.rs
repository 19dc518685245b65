//! Decodes items into entries. Adjacent items of the model make one step.

use fanfold_core::{Body, Call, Origin, Speaker, Step};

use super::{ItemKind, arguments, call_id, kind};
use crate::content::Content;
use crate::conversation::change::Oddity;
use crate::conversation::entry_map::{EntryMap, EntryRole, Portion, PortionRole};
use crate::conversation::pairing::Ids;
use crate::dialects::chat::read_arguments;
use crate::json::{self, Object};

/// Decodes items that arrived together.
///
/// A step ends with them. Later items begin another one, because steps in a transcript never change.
pub(crate) fn decode(map: &mut EntryMap, items: &[&str]) {
    let mut open = None;
    for raw in items {
        map.begin_message();
        item(map, &mut open, raw);
    }
    finish(map, &mut open);
}

/// A step that is being decoded.
#[derive(Default)]
struct OpenStep<'a> {
    portions: Vec<Portion>,
    texts: Vec<(Content<'a>, &'a str)>,
    first_text: Option<Origin>,
    thoughts: Vec<(String, &'a str)>,
    calls: Vec<Call>,
    ids: Vec<Option<String>>,
    used: Ids,
}

fn item<'a>(map: &mut EntryMap, open: &mut Option<OpenStep<'a>>, raw: &'a str) {
    if raw.starts_with('"') {
        finish(map, open);
        let content = Content::read(Some(raw));
        map.require_encoding();
        map.add_prompt(0, Speaker::User, content.body(), Vec::new());
        return;
    }
    let Some(object) = Object::parse(raw) else {
        finish(map, open);
        map.add_unknown(raw, Oddity::NotAMessage);
        return;
    };
    match kind(&object) {
        ItemKind::Message => message(map, open, raw, &object),
        ItemKind::Reasoning => {
            if let Some(facts) = map.messages.last_mut() {
                facts.is_reasoning = true;
            }
            add_item(map, open, PortionRole::Own).thoughts.push((thought(&object), raw));
        }
        ItemKind::Call => call(map, open, &object),
        ItemKind::ModelItem => {
            add_item(map, open, PortionRole::Attached);
        }
        ItemKind::Output => {
            finish(map, open);
            map.set_role(EntryRole::Tool);
            let content = Content::read(object.get("output"));
            map.report_broken(0, &content);
            let id = call_id(&object);
            if id.is_none() {
                map.repair(0, Oddity::UnnamedResult);
                map.require_encoding();
            }
            map.add_result(0, id.as_deref(), &content, false);
        }
        ItemKind::Compaction => {
            finish(map, open);
            map.add_prompt(0, Speaker::Provider, Body::text(raw), Vec::new()).is_always_sent = true;
        }
        ItemKind::Unknown if object.text("role").is_some_and(|role| role == "user") => {
            finish(map, open);
            map.repair(0, Oddity::NotAMessage);
            map.add_prompt(0, Speaker::User, Body::text(raw), Vec::new());
        }
        ItemKind::Unknown => attach_unknown(map, open, raw),
    }
}

/// Adds an item to the open step, or to a new one.
fn add_item<'m, 'a>(
    map: &mut EntryMap,
    open: &'m mut Option<OpenStep<'a>>,
    role: PortionRole,
) -> &'m mut OpenStep<'a> {
    map.set_role(EntryRole::Assistant);
    let open = open.get_or_insert_with(OpenStep::default);
    open.portions.push(Portion { origin: map.origin(0), role });
    open
}

fn message<'a>(map: &mut EntryMap, open: &mut Option<OpenStep<'a>>, raw: &'a str, object: &Object<'a>) {
    let content = Content::read(object.get("content"));
    map.report_broken(0, &content);
    if matches!(object.get("content"), Some("null" | "[]")) {
        map.require_encoding();
    }
    let role = object.text("role").unwrap_or_default();
    let speaker = match &*role {
        "assistant" => {
            let origin = map.origin(0);
            let open = add_item(map, open, PortionRole::Own);
            open.texts.push((content, raw));
            open.first_text.get_or_insert(origin);
            return;
        }
        "system" | "developer" => Speaker::System,
        "user" if object.text("name").is_some_and(|name| name == "harness") => Speaker::Harness,
        "user" => Speaker::User,
        _ => {
            finish(map, open);
            map.add_unknown(raw, Oddity::UnknownRole(role.chars().take(60).collect()));
            return;
        }
    };
    finish(map, open);
    if speaker == Speaker::System {
        map.set_role(EntryRole::System);
    }
    let media = content.media(map.message());
    map.add_prompt(0, speaker, content.body(), media);
}

fn call<'a>(map: &mut EntryMap, open: &mut Option<OpenStep<'a>>, object: &Object<'a>) {
    let step = map.next_entry();
    let tool = object.text("name").or_else(|| object.text("type")).unwrap_or_default().into_owned();
    let value = arguments(object);
    let is_free_text = object.get("arguments").is_none();
    let body = if is_free_text { Content::read(value).body() } else { read_arguments(map, 0, &tool, value) };
    let origin = map.origin(0);
    let step_items = add_item(map, open, PortionRole::Own);
    if step_items.calls.len() >= usize::from(u16::MAX) {
        map.repair(0, Oddity::TooManyCalls);
        return;
    }
    let raw_id = call_id(object);
    let id = step_items.used.claim(raw_id.as_deref(), step, step_items.calls.len());
    if raw_id.as_deref() != Some(&*id) {
        let oddity =
            if raw_id.is_none() { Oddity::MissingId(id.clone()) } else { Oddity::DuplicateId(id.clone()) };
        map.repair(0, oddity);
        map.require_encoding();
    }
    step_items.calls.push(Call { id, tool, arguments: body, result: None, origin });
    step_items.ids.push(raw_id.map(|id| id.into_owned()));
}

/// Attaches an unknown item to its neighbour.
fn attach_unknown(map: &mut EntryMap, open: &mut Option<OpenStep<'_>>, raw: &str) {
    if let Some(open) = open {
        map.set_role(EntryRole::Assistant);
        open.portions.push(Portion { origin: map.origin(0), role: PortionRole::Attached });
        return;
    }
    if !map.attach() {
        map.add_unknown(raw, Oddity::NotAMessage);
    }
}

fn finish(map: &mut EntryMap, open: &mut Option<OpenStep<'_>>) {
    let Some(step_items) = open.take() else { return };
    let origin = step_items.portions.first().map_or(Origin::message(0), |portion| portion.origin);
    let text = match step_items.texts.as_slice() {
        [] => Body::text(""),
        [(content, _)] => content.body(),
        many => {
            let texts: Vec<_> = many.iter().map(|(content, _)| &*content.text).collect();
            Body::with_raw(texts.join("\n"), list(many.iter().map(|(_, raw)| *raw)))
        }
    };
    let reasoning = match step_items.thoughts.as_slice() {
        [] => Body::text(""),
        [(thought, raw)] => Body::with_raw(thought.as_str(), *raw),
        many => {
            let texts: Vec<_> = many.iter().map(|(thought, _)| thought.as_str()).collect();
            Body::with_raw(texts.join("\n"), list(many.iter().map(|(_, raw)| *raw)))
        }
    };
    let step = Step { text, reasoning, calls: step_items.calls, origin };
    let has_attached = step_items.portions.iter().any(|portion| portion.role == PortionRole::Attached);
    let anchor = map.add_step(step, step_items.portions, &step_items.ids);
    anchor.first_text = step_items.first_text;
    anchor.has_attached = has_attached;
}

fn list<'a>(raws: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", raws.collect::<Vec<_>>().join(","))
}

/// The text of a reasoning item.
fn thought(item: &Object<'_>) -> String {
    let texts = ["summary", "content"].into_iter().filter_map(|key| {
        let parts = item.get(key).and_then(json::array)?;
        let content = Content::from_parts(&parts, "".into());
        Some(content.text.into_owned()).filter(|text| !text.is_empty())
    });
    texts.collect::<Vec<_>>().join("\n")
}

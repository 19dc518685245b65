//! Decodes messages of blocks into entries.

use std::borrow::Cow;

use fanfold_core::{Body, Call, Speaker, Step};

use super::{BlockKind, is_blank, kind, kind_of};
use crate::content::Content;
use crate::conversation::change::Oddity;
use crate::conversation::entry_map::{EntryMap, EntryRole, Portion, PortionRole};
use crate::json::{self, Object};

/// Decodes one message.
pub(crate) fn decode(map: &mut EntryMap, raw: &str) {
    map.begin_message();
    let Some(message) = Object::parse(raw) else {
        map.add_unknown(raw, Oddity::NotAMessage);
        return;
    };
    let content = message.get("content");
    match message.text("role").as_deref().unwrap_or_default() {
        "user" => user(map, content),
        "assistant" => assistant(map, content),
        "system" | "developer" => {
            map.set_role(EntryRole::System);
            let content = Content::read(content);
            let media = content.media(map.message());
            map.add_prompt(0, Speaker::System, content.body(), media);
        }
        other => map.add_unknown(raw, Oddity::UnknownRole(other.chars().take(60).collect())),
    }
}

fn user(map: &mut EntryMap, value: Option<&str>) {
    let blocks = value.and_then(json::array).unwrap_or_default();
    if blocks.is_empty() {
        let content = Content::read(value);
        if content.text.trim().is_empty() {
            map.require_encoding();
        }
        map.report_broken(0, &content);
        map.add_prompt(0, Speaker::User, content.body(), Vec::new());
        return;
    }
    let kinds: Vec<_> = blocks.iter().map(|block| kind_of(block)).collect();
    let starts: Vec<_> = (0..blocks.len())
        .filter(|i| {
            let follows_run = *i > 0 && kinds[i - 1] != BlockKind::ToolResult;
            kinds[*i] == BlockKind::ToolResult || !follows_run
        })
        .collect();
    map.set_portions(starts.len());
    for (n, start) in starts.iter().enumerate() {
        let end = starts.get(n + 1).copied().unwrap_or(blocks.len());
        if kinds[*start] == BlockKind::ToolResult {
            result(map, *start, blocks[*start]);
        } else {
            prompt(map, *start, &blocks[*start..end], value.unwrap_or_default());
        }
    }
    if kinds.contains(&BlockKind::Blank) {
        map.require_encoding();
    }
}

fn prompt(map: &mut EntryMap, part: usize, run: &[&str], value: &str) {
    let (Some(first), Some(last)) = (run.first(), run.last()) else { return };
    let place = json::span(value, first).start..json::span(value, last).end;
    let content = Content::from_parts(run, Cow::Owned(format!("[{}]", &value[place])));
    map.report_broken(part, &content);
    let mut media = content.media(map.message());
    for media in &mut media {
        media.origin.part += part as u32;
    }
    map.add_prompt(part, Speaker::User, content.body(), media);
}

fn result(map: &mut EntryMap, part: usize, raw: &str) {
    let Some(block) = Object::parse(raw) else { return };
    let value = block.get("content");
    let content = Content::read(value);
    map.report_broken(part, &content);
    let has_blank_part = value
        .and_then(json::array)
        .is_some_and(|parts| parts.iter().any(|part| kind_of(part) == BlockKind::Blank));
    if has_blank_part {
        map.require_encoding();
    }
    let id = block.text("tool_use_id").filter(|id| !id.is_empty());
    if id.is_none() {
        map.repair(part, Oddity::UnnamedResult);
        map.require_encoding();
    }
    let is_error = block.get("is_error") == Some("true");
    map.add_result(part, id.as_deref(), &content, is_error);
}

fn assistant(map: &mut EntryMap, value: Option<&str>) {
    map.set_role(EntryRole::Assistant);
    let origin = map.origin(0);
    let portion = vec![Portion { origin, role: PortionRole::Own }];
    let blocks = value.and_then(json::array).unwrap_or_default();
    if blocks.is_empty() {
        let content = Content::read(value);
        map.report_broken(0, &content);
        if value.is_none_or(|value| is_blank(value) || matches!(value, "null" | "[]")) {
            map.require_encoding();
        }
        let step = Step { text: content.body(), reasoning: Body::text(""), calls: Vec::new(), origin };
        map.add_step(step, portion, &[]);
        return;
    }
    let (mut texts, mut thoughts, mut calls, mut ids) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut is_only_thought = true;
    for (part, raw) in blocks.iter().enumerate() {
        let Some(block) = Object::parse(raw) else { continue };
        let kind = kind(&block);
        is_only_thought &= matches!(kind, BlockKind::Thinking | BlockKind::Blank);
        match kind {
            BlockKind::Text => texts.push((block, *raw)),
            BlockKind::Thinking => thoughts.push((block, *raw)),
            BlockKind::ToolUse => read_call(map, part, &block, &mut calls, &mut ids),
            BlockKind::Blank => map.require_encoding(),
            BlockKind::ToolResult | BlockKind::Other => {}
        }
    }
    if is_only_thought {
        map.require_encoding();
    }
    let step = Step { text: text_of(map, &texts), reasoning: thoughts_of(map, &thoughts), calls, origin };
    map.add_step(step, portion, &ids);
}

/// The text of a reply; plain if it is one block of only text.
fn text_of(map: &mut EntryMap, blocks: &[(Object<'_>, &str)]) -> Body {
    let text = join(map, blocks, "text");
    match blocks {
        [] => Body::text(""),
        [(block, _)] if block.fields.len() == 2 && text.is_exact => Body::text(text.text),
        many => Body::with_raw(text.text, raw_of(many)),
    }
}

/// The thoughts of a reply, with their signatures. The provider requires them unchanged, or not at all.
fn thoughts_of(map: &mut EntryMap, blocks: &[(Object<'_>, &str)]) -> Body {
    if blocks.is_empty() {
        return Body::text("");
    }
    Body::with_raw(join(map, blocks, "thinking").text, raw_of(blocks))
}

/// The text that blocks have under a key, and whether all of it could be decoded.
struct JoinedText {
    text: String,
    is_exact: bool,
}

fn join(map: &mut EntryMap, blocks: &[(Object<'_>, &str)], key: &str) -> JoinedText {
    let texts = blocks.iter().filter_map(|(block, _)| block.get(key).and_then(json::string));
    let texts: Vec<_> = texts.collect();
    let is_exact = texts.iter().all(|text| text.is_exact);
    if !is_exact {
        map.repair(0, Oddity::LoneSurrogate);
    }
    JoinedText { text: texts.iter().map(|text| &*text.text).collect::<Vec<_>>().join("\n"), is_exact }
}

fn raw_of(blocks: &[(Object<'_>, &str)]) -> String {
    match blocks {
        [(_, raw)] => (*raw).to_owned(),
        many => format!("[{}]", many.iter().map(|(_, raw)| *raw).collect::<Vec<_>>().join(",")),
    }
}

fn read_call(
    map: &mut EntryMap,
    part: usize,
    block: &Object<'_>,
    calls: &mut Vec<Call>,
    ids: &mut Vec<Option<String>>,
) {
    if calls.len() >= usize::from(u16::MAX) {
        map.repair(part, Oddity::TooManyCalls);
        return;
    }
    let step = map.next_entry();
    let raw_id = block.text("id").filter(|id| !id.is_empty());
    let id = map.ids.claim(raw_id.as_deref(), step, calls.len());
    if raw_id.as_deref() != Some(&*id) {
        let oddity =
            if raw_id.is_none() { Oddity::MissingId(id.clone()) } else { Oddity::DuplicateId(id.clone()) };
        map.repair(part, oddity);
        map.require_encoding();
    }
    let tool = block.text("name").unwrap_or_default().into_owned();
    if tool.is_empty() {
        map.repair(part, Oddity::NamelessCall);
    }
    let is_rejected = block.get("input").is_none_or(|input| !input.starts_with('{'));
    if is_rejected {
        map.require_encoding();
    }
    let arguments = match block.get("input") {
        None => Body::text(""),
        Some("null") => Body::with_raw("", "null"),
        Some(input) => Body::text(input),
    };
    calls.push(Call { id, tool, arguments, result: None, origin: map.origin(part) });
    ids.push(raw_id.map(Cow::into_owned));
}

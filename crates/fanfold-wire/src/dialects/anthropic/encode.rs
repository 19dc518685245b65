//! Encodes messages of blocks.

use std::borrow::Cow;

use fanfold_core::{CallId, EntryId, Place, Voice};

use super::blocks::{join_results, with_blocks};
use super::breakpoints::{add_breakpoint, limit, lost_in_edit, lost_in_gap, mark_fold, run_end};
use super::{BlockKind, is_blank, kind, kind_of};
use crate::content::ContentEdit;
use crate::content::text_calls::wrap_as_object;
use crate::conversation::entry_map::EntryRole;
use crate::conversation::outgoing::{
    EncodeSource, NO_RESULT, OutMessage, OutPortion, SendItem, open_with_user,
};
use crate::dialects::chat::set_text;
use crate::json::Splices;
use crate::json::{self, Object};

/// Encodes messages.
pub(crate) fn encode<'a>(
    source: &EncodeSource<'a, '_>,
    items_to_send: &[SendItem<'_>],
    n_breakpoints_outside: usize,
) -> Vec<OutMessage<'a>> {
    let thinking = step_with_thoughts(source, items_to_send);
    let mut outs: Vec<OutMessage<'a>> = Vec::with_capacity(items_to_send.len());
    let mut newest_note = None;
    for send in items_to_send {
        match send {
            SendItem::Group { message, portions, is_raw, .. } => {
                let facts = source.map.messages.get(*message).copied().unwrap_or_default();
                let raw = source.raw(*message);
                if *is_raw {
                    outs.push(OutMessage { role: facts.role, json: raw.into() });
                    continue;
                }
                let Some(json) = render(source, raw, facts.role, portions, thinking) else { continue };
                let lost = lost_in_edit(raw, &json, portions, facts.n_portions);
                outs.push(OutMessage { role: facts.role, json });
                move_back(&mut outs, lost.as_deref());
            }
            SendItem::Note { text, voice } => {
                newest_note = Some(outs.len());
                outs.push(note(text, *voice));
            }
            SendItem::Missing(call) => outs.extend(missing(source, *call)),
            SendItem::Gap(gap) => move_back(&mut outs, lost_in_gap(source, gap.clone()).as_deref()),
        }
    }
    if let Some(note) = newest_note {
        mark_fold(&mut outs[note..]);
    }
    move_system_after_users(&mut outs);
    let mut outs = join_results(outs);
    open_with_user(&mut outs, |text| note(text, Voice::Fanfold).json.into_owned());
    limit(&mut outs, n_breakpoints_outside);
    outs
}

/// Moves system messages after the user messages that follow them, because the provider requires an assistant's message
/// after them.
fn move_system_after_users(outs: &mut [OutMessage<'_>]) {
    // From the end, so that one pass suffices.
    for i in (0..outs.len().saturating_sub(1)).rev() {
        let mut at = i;
        while at + 1 < outs.len()
            && outs[at].role == EntryRole::System
            && outs[at + 1].role == EntryRole::User
        {
            outs.swap(at, at + 1);
            at += 1;
        }
    }
}

/// Puts a breakpoint on the newest block that accepts it.
fn move_back(outs: &mut [OutMessage<'_>], breakpoint: Option<&str>) {
    let Some(breakpoint) = breakpoint else { return };
    for out in outs.iter_mut().rev() {
        if out.role != EntryRole::System && add_breakpoint(out, breakpoint) {
            return;
        }
    }
}

/// The step whose thoughts the provider requires: the last one, while its calls are being answered.
fn step_with_thoughts(source: &EncodeSource<'_, '_>, items_to_send: &[SendItem<'_>]) -> Option<EntryId> {
    let last = items_to_send.iter().rev().find_map(|send| match send {
        SendItem::Group { portions, .. } => {
            portions.iter().rev().map(|portion| portion.entry).find(|e| source.step(*e).is_some())
        }
        SendItem::Note { .. } | SendItem::Missing(_) | SendItem::Gap(_) => None,
    })?;
    source.step(last).filter(|step| !step.calls.is_empty()).map(|_| last)
}

fn note(text: &str, voice: Voice) -> OutMessage<'static> {
    let (role, name) = match voice {
        Voice::Fanfold => (EntryRole::User, "user"),
        Voice::Assistant => (EntryRole::Assistant, "assistant"),
    };
    let text = json::quote(text);
    let json = format!(r#"{{"role":"{name}","content":[{{"type":"text","text":{text}}}]}}"#);
    OutMessage { role, json: Cow::Owned(json) }
}

fn missing(source: &EncodeSource<'_, '_>, id: CallId) -> Option<OutMessage<'static>> {
    let id = json::quote(&source.call(id)?.id);
    let block = format!(r#"{{"type":"tool_result","tool_use_id":{id},"content":"{NO_RESULT}"}}"#);
    Some(OutMessage {
        role: EntryRole::User,
        json: Cow::Owned(format!(r#"{{"role":"user","content":[{block}]}}"#)),
    })
}

/// A message with only these portions; `None` if the provider would reject the rest.
fn render<'a>(
    source: &EncodeSource<'a, '_>,
    raw: &'a str,
    role: EntryRole,
    portions: &[OutPortion<'_>],
    thinking: Option<EntryId>,
) -> Option<Cow<'a, str>> {
    let first = portions.first()?;
    let stub = first.stub(Place::Text(first.entry));
    let known = Object::parse(raw).filter(|object| {
        matches!(object.text("role").as_deref(), Some("user" | "assistant" | "system" | "developer"))
    });
    let Some((object, value)) = known.and_then(|object| object.get("content").map(|value| (object, value)))
    else {
        return Some(stub.map_or(raw.into(), |stub| note(stub, Voice::Fanfold).json));
    };
    let Some(blocks) = json::array(value) else {
        if stub.is_none() && (is_blank(value) || value == "null") {
            return None;
        }
        let Some(stub) = stub else { return Some(raw.into()) };
        let mut splices = Splices::default();
        splices.replace(object.span(value), json::quote(stub));
        return Some(Cow::Owned(splices.apply(raw)));
    };
    let edited = if role == EntryRole::Assistant {
        reply(source, &blocks, first, thinking)
    } else {
        user(source, &blocks, portions)
    };
    let is_rejected = edited.iter().all(|(_, block)| kind_of(block) == BlockKind::Thinking);
    if is_rejected {
        return None;
    }
    let is_in_order = edited.windows(2).all(|pair| pair[0].0 < pair[1].0);
    if !is_in_order {
        let blocks: Vec<_> = edited.into_iter().map(|(_, block)| block).collect();
        return Some(Cow::Owned(with_blocks(raw, &blocks)));
    }
    let mut splices = Splices::default();
    let members: Vec<_> = blocks.iter().map(|block| object.span(block)).collect();
    splices.cut(&members, |i| edited.binary_search_by_key(&i, |(from, _)| *from).is_err());
    for (i, new) in &edited {
        if new != blocks[*i] {
            splices.replace(members[*i].clone(), new.as_ref());
        }
    }
    Some(if splices.is_empty() { raw.into() } else { Cow::Owned(splices.apply(raw)) })
}

/// An encoded block, and the position of the original.
type Block<'a> = (usize, Cow<'a, str>);

fn reply<'a>(
    source: &EncodeSource<'_, '_>,
    blocks: &[&'a str],
    portion: &OutPortion<'_>,
    thinking: Option<EntryId>,
) -> Vec<Block<'a>> {
    let is_thoughtless =
        portion.stub(Place::Reasoning(portion.entry)).is_some() && thinking != Some(portion.entry);
    let mut text = portion.stub(Place::Text(portion.entry));
    let is_text_edited = text.is_some();
    let calls = source.step(portion.entry).map(|step| step.calls.as_slice()).unwrap_or_default();
    let mut kept = Vec::with_capacity(blocks.len());
    for (i, block) in blocks.iter().enumerate() {
        let Some(object) = Object::parse(block) else {
            kept.push((i, Cow::Borrowed(*block)));
            continue;
        };
        let mut splices = Splices::default();
        match kind(&object) {
            BlockKind::Thinking if is_thoughtless => continue,
            BlockKind::Blank => continue,
            BlockKind::Text if is_text_edited => {
                let (Some(stub), Some(value)) = (text.take(), object.get("text")) else { continue };
                splices.replace(object.span(value), json::quote(stub));
            }
            BlockKind::ToolUse => {
                let found = calls.binary_search_by_key(&(i as u32), |call| call.origin.part);
                if let Ok(n) = found {
                    set_text(&mut splices, &object, 0, "id", &calls[n].id);
                    let stub = portion.stub(Place::Arguments(CallId { step: portion.entry, call: n as u16 }));
                    match (stub, object.get("input")) {
                        (Some(stub), Some(value)) => {
                            splices.replace(object.span(value), wrap_as_object(stub));
                        }
                        (None, Some(value)) if !value.starts_with('{') => {
                            let input =
                                if value == "null" { Cow::Borrowed("{}") } else { wrap_as_object(value) };
                            splices.replace(object.span(value), input);
                        }
                        (Some(_), None) | (None, Some(_)) => {}
                        (None, None) => insert_empty_input(&mut splices, &object),
                    }
                }
            }
            BlockKind::Text | BlockKind::Thinking | BlockKind::ToolResult | BlockKind::Other => {}
        }
        kept.push((i, spliced(block, splices)));
    }
    kept
}

/// Adds an empty input, because the provider requires one.
fn insert_empty_input(splices: &mut Splices, block: &Object<'_>) {
    let end = block.raw.trim_end().len() - 1;
    splices.replace(end..end, r#", "input": {}"#);
}

fn spliced(block: &str, splices: Splices) -> Cow<'_, str> {
    if splices.is_empty() { Cow::Borrowed(block) } else { Cow::Owned(splices.apply(block)) }
}

fn user<'a>(
    source: &EncodeSource<'_, '_>,
    blocks: &[&'a str],
    portions: &[OutPortion<'_>],
) -> Vec<Block<'a>> {
    let mut kept = Vec::with_capacity(blocks.len());
    let borrowed: Vec<_> = blocks.iter().map(|block| Cow::Borrowed(*block)).collect();
    for portion in portions {
        let start = portion.source.origin.part as usize;
        let Some(block) = blocks.get(start) else { continue };
        if let Some(id) = portion.result() {
            kept.push((start, result(source, block, portion, id)));
        } else if kind_of(block) == BlockKind::ToolResult {
            kept.extend(orphan_as_blocks(source, block, portion).into_iter().map(|block| (start, block)));
        } else {
            let end = run_end(&borrowed, start);
            prompt(source, &blocks[start..end], start, portion, &mut kept);
        }
    }
    kept
}

fn prompt<'a>(
    source: &EncodeSource<'_, '_>,
    run: &[&'a str],
    start: usize,
    portion: &OutPortion<'_>,
    kept: &mut Vec<Block<'a>>,
) {
    let media = source.prompt(portion.entry).map(|prompt| portion.prompt_media(prompt)).unwrap_or_default();
    let mut text = portion.stub(Place::Text(portion.entry));
    let is_text_edited = text.is_some();
    for (i, block) in run.iter().enumerate() {
        let Some(object) = Object::parse(block) else {
            kept.push((start + i, Cow::Borrowed(*block)));
            continue;
        };
        let mut splices = Splices::default();
        match kind(&object) {
            BlockKind::Blank => continue,
            BlockKind::Text if is_text_edited => {
                let (Some(stub), Some(value)) = (text.take(), object.get("text")) else { continue };
                splices.replace(object.span(value), json::quote(stub));
            }
            _ => {
                if let Some((_, stub)) = media.iter().find(|(part, _)| *part == start + i) {
                    let part = crate::content::text_part("text", stub, Some(&object));
                    splices.replace(0..block.len(), part);
                }
            }
        }
        kept.push((start + i, spliced(block, splices)));
    }
}

fn result<'a>(
    source: &EncodeSource<'_, '_>,
    block: &'a str,
    portion: &OutPortion<'_>,
    id: CallId,
) -> Cow<'a, str> {
    let (Some(object), Some(call)) = (Object::parse(block), source.call(id)) else { return block.into() };
    let mut splices = Splices::default();
    set_text(&mut splices, &object, 0, "tool_use_id", &call.id);
    if let Some(value) = object.get("content") {
        let media = ContentEdit { text: None, media: portion.result_media(id, call) };
        if let Some(stub) = portion.stub(Place::Result(id)) {
            let is_list = value.starts_with('[');
            let stub = json::quote(stub);
            let new = if is_list { format!(r#"[{{"type":"text","text":{stub}}}]"#) } else { stub };
            splices.replace(object.span(value), new);
        } else if !media.is_empty() {
            splices.replace(object.span(value), media.apply(value, "text"));
        } else if value == "null" {
            splices.replace(object.span(value), "\"\"");
        } else {
            cut_blanks(&mut splices, &object, value);
        }
    }
    spliced(block, splices)
}

/// Removes blank texts from a result.
fn cut_blanks(splices: &mut Splices, object: &Object<'_>, value: &str) {
    let Some(parts) = json::array(value) else { return };
    let is_blank: Vec<_> = parts.iter().map(|part| kind_of(part) == BlockKind::Blank).collect();
    let members: Vec<_> = parts.iter().map(|part| object.span(part)).collect();
    splices.cut(&members, |i| is_blank[i]);
}

/// A result without its call as other blocks, because the provider rejects it as a result.
fn orphan_as_blocks<'a>(
    source: &EncodeSource<'_, '_>,
    block: &'a str,
    portion: &OutPortion<'_>,
) -> Vec<Cow<'a, str>> {
    let stub = portion.stub(Place::Text(portion.entry));
    let parts = Object::parse(block).and_then(|block| block.get("content")).and_then(json::array);
    if let Some(parts) = parts.filter(|_| stub.is_none()) {
        let parts =
            parts.into_iter().filter(|part| kind_of(part) != BlockKind::Blank && part.starts_with('{'));
        return parts.map(Cow::Borrowed).collect();
    }
    let body = source.prompt(portion.entry).map(|prompt| prompt.body.as_str()).unwrap_or_default();
    let text = stub.unwrap_or(body);
    if text.trim().is_empty() {
        return Vec::new();
    }
    vec![Cow::Owned(crate::content::text_part("text", text, Object::parse(block).as_ref()))]
}

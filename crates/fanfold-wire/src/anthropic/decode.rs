//! Messages of blocks, into entries.

use std::borrow::Cow;

use fanfold_core::{Body, Call, Speaker, Step};

use super::{Kind, is_blank, kind, kind_of};
use crate::book::{Book, Portion, Role, What};
use crate::change::Oddity;
use crate::content::Content;
use crate::json::{self, Object};

/// Reads one message.
pub(crate) fn decode(book: &mut Book, raw: &str) {
    book.begin_message();
    let Some(message) = Object::parse(raw) else {
        book.strange(raw, Oddity::NotAMessage);
        return;
    };
    let content = message.get("content");
    match message.text("role").as_deref().unwrap_or_default() {
        "user" => user(book, content),
        "assistant" => assistant(book, content),
        "system" | "developer" => {
            book.set_role(Role::System);
            let content = Content::read(content);
            let media = content.media(book.message());
            book.prompt(0, Speaker::System, content.body(), media);
        }
        other => book.strange(raw, Oddity::UnknownRole(other.chars().take(60).collect())),
    }
}

fn user(book: &mut Book, value: Option<&str>) {
    let blocks = value.and_then(json::array).unwrap_or_default();
    if blocks.is_empty() {
        let content = Content::read(value);
        if content.text.trim().is_empty() {
            book.mark_odd();
        }
        say_if_broken(book, 0, &content);
        book.prompt(0, Speaker::User, content.body(), Vec::new());
        return;
    }
    let kinds: Vec<_> = blocks.iter().map(|block| kind_of(block)).collect();
    let starts: Vec<_> = (0..blocks.len())
        .filter(|i| {
            let follows_run = *i > 0 && kinds[i - 1] != Kind::ToolResult;
            kinds[*i] == Kind::ToolResult || !follows_run
        })
        .collect();
    book.set_parts(starts.len());
    for (n, start) in starts.iter().enumerate() {
        let end = starts.get(n + 1).copied().unwrap_or(blocks.len());
        if kinds[*start] == Kind::ToolResult {
            result(book, *start, blocks[*start]);
        } else {
            prompt(book, *start, &blocks[*start..end], value.unwrap_or_default());
        }
    }
    if kinds.contains(&Kind::Blank) {
        book.mark_odd();
    }
}

fn prompt(book: &mut Book, part: usize, run: &[&str], value: &str) {
    let (Some(first), Some(last)) = (run.first(), run.last()) else { return };
    let place = json::span(value, first).start..json::span(value, last).end;
    let content = Content::of_parts(run, Cow::Owned(format!("[{}]", &value[place])));
    say_if_broken(book, part, &content);
    let mut media = content.media(book.message());
    for media in &mut media {
        media.origin.part += part as u32;
    }
    book.prompt(part, Speaker::User, content.body(), media);
}

fn result(book: &mut Book, part: usize, raw: &str) {
    let Some(block) = Object::parse(raw) else { return };
    let value = block.get("content");
    let content = Content::read(value);
    say_if_broken(book, part, &content);
    let has_blank_part = value
        .and_then(json::array)
        .is_some_and(|parts| parts.iter().any(|part| kind_of(part) == Kind::Blank));
    if has_blank_part {
        book.mark_odd();
    }
    let id = block.text("tool_use_id").filter(|id| !id.is_empty());
    if id.is_none() {
        book.repair(part, Oddity::UnnamedResult);
        book.mark_odd();
    }
    let is_error = block.get("is_error") == Some("true");
    book.result(part, id.as_deref(), &content, is_error);
}

fn say_if_broken(book: &mut Book, part: usize, content: &Content<'_>) {
    if content.is_broken {
        book.repair(part, Oddity::LoneSurrogate);
    }
}

fn assistant(book: &mut Book, value: Option<&str>) {
    book.set_role(Role::Assistant);
    let origin = book.origin(0);
    let portion = vec![Portion { origin, what: What::Own }];
    let blocks = value.and_then(json::array).unwrap_or_default();
    if blocks.is_empty() {
        let content = Content::read(value);
        say_if_broken(book, 0, &content);
        if value.is_none_or(|value| is_blank(value) || matches!(value, "null" | "[]")) {
            book.mark_odd();
        }
        let step = Step { text: content.body(), reasoning: Body::text(""), calls: Vec::new(), origin };
        book.step(step, portion, &[]);
        return;
    }
    let (mut texts, mut thoughts, mut calls, mut ids) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut is_only_thought = true;
    for (part, raw) in blocks.iter().enumerate() {
        let Some(block) = Object::parse(raw) else { continue };
        let kind = kind(&block);
        is_only_thought &= matches!(kind, Kind::Thinking | Kind::Blank);
        match kind {
            Kind::Text => texts.push((block, *raw)),
            Kind::Thinking => thoughts.push((block, *raw)),
            Kind::ToolUse => read_call(book, part, &block, &mut calls, &mut ids),
            Kind::Blank => book.mark_odd(),
            Kind::ToolResult | Kind::Other => {}
        }
    }
    if is_only_thought {
        book.mark_odd();
    }
    let step = Step { text: said(book, &texts), reasoning: thought(book, &thoughts), calls, origin };
    book.step(step, portion, &ids);
}

/// What was said: a plain text where one block says nothing else.
fn said(book: &mut Book, blocks: &[(Object<'_>, &str)]) -> Body {
    let text = joined(book, blocks, "text");
    match blocks {
        [] => Body::text(""),
        [(block, _)] if block.fields.len() == 2 && text.is_exact => Body::text(text.text),
        many => Body::with_raw(text.text, raw_of(many)),
    }
}

/// What was thought: sealed, signed or not. The provider wants it back as it came, or not at all.
fn thought(book: &mut Book, blocks: &[(Object<'_>, &str)]) -> Body {
    if blocks.is_empty() {
        return Body::text("");
    }
    Body::with_raw(joined(book, blocks, "thinking").text, raw_of(blocks))
}

/// The text that blocks have under a key, and whether it is all that stands there.
struct Joined {
    text: String,
    is_exact: bool,
}

fn joined(book: &mut Book, blocks: &[(Object<'_>, &str)], key: &str) -> Joined {
    let texts = blocks.iter().filter_map(|(block, _)| block.get(key).and_then(json::string));
    let texts: Vec<_> = texts.collect();
    let is_exact = texts.iter().all(|text| text.is_exact);
    if !is_exact {
        book.repair(0, Oddity::LoneSurrogate);
    }
    Joined { text: texts.iter().map(|text| &*text.text).collect::<Vec<_>>().join("\n"), is_exact }
}

fn raw_of(blocks: &[(Object<'_>, &str)]) -> String {
    match blocks {
        [(_, raw)] => (*raw).to_owned(),
        many => format!("[{}]", many.iter().map(|(_, raw)| *raw).collect::<Vec<_>>().join(",")),
    }
}

fn read_call(
    book: &mut Book,
    part: usize,
    block: &Object<'_>,
    calls: &mut Vec<Call>,
    ids: &mut Vec<Option<String>>,
) {
    if calls.len() >= usize::from(u16::MAX) {
        book.repair(part, Oddity::TooManyCalls);
        return;
    }
    let step = book.next_entry();
    let raw_id = block.text("id").filter(|id| !id.is_empty());
    let id = book.ids.claim(raw_id.as_deref(), step, calls.len());
    if raw_id.as_deref() != Some(&*id) {
        let oddity =
            if raw_id.is_none() { Oddity::MissingId(id.clone()) } else { Oddity::DoubledId(id.clone()) };
        book.repair(part, oddity);
        book.mark_odd();
    }
    let tool = block.text("name").unwrap_or_default().into_owned();
    if tool.is_empty() {
        book.repair(part, Oddity::NamelessCall);
    }
    let is_refused = block.get("input").is_none_or(|input| !input.starts_with('{'));
    if is_refused {
        book.mark_odd();
    }
    let arguments = match block.get("input") {
        None => Body::text(""),
        Some("null") => Body::with_raw("", "null"),
        Some(input) => Body::text(input),
    };
    calls.push(Call { id, tool, arguments, result: None, origin: book.origin(part) });
    ids.push(raw_id.map(Cow::into_owned));
}

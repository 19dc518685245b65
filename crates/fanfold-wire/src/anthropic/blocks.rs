//! Messages as lists of blocks: taken apart, put together, merged where one role speaks twice.

use std::borrow::Cow;

use super::{Kind, is_blank, kind_of};
use crate::json::{self, Object};
use crate::outgoing::Out;

/// The blocks of a message; a text is one block, and what says nothing is none.
pub(super) fn blocks_of(message: &str) -> Vec<Cow<'_, str>> {
    let Some(value) = Object::parse(message).and_then(|object| object.get("content")) else {
        return Vec::new();
    };
    if let Some(blocks) = json::array(value) {
        return blocks.into_iter().map(Cow::Borrowed).collect();
    }
    if is_blank(value) || !value.starts_with('"') {
        return Vec::new();
    }
    vec![Cow::Owned(format!(r#"{{"type":"text","text":{value}}}"#))]
}

/// A message with other blocks.
pub(super) fn with_blocks(message: &str, blocks: &[Cow<'_, str>]) -> String {
    let content = format!("[{}]", blocks.join(", "));
    let place =
        Object::parse(message).and_then(|object| object.get("content").map(|value| object.span(value)));
    match place {
        Some(place) => [&message[..place.start], &content, &message[place.end..]].concat(),
        None => format!(r#"{{"role":"user","content":{content}}}"#),
    }
}

/// Merges neighbours of one role: the provider wants them to alternate.
pub(super) fn alternate(outs: Vec<Out<'_>>) -> Vec<Out<'_>> {
    let mut merged: Vec<Out<'_>> = Vec::with_capacity(outs.len());
    let mut run: Vec<Out<'_>> = Vec::new();
    for out in outs {
        let is_same = run
            .last()
            .is_some_and(|last| last.role == out.role && can_merge(&last.json) && can_merge(&out.json));
        if !is_same {
            merged.extend(merge(std::mem::take(&mut run)));
        }
        run.push(out);
    }
    merged.extend(merge(run));
    merged
}

/// Whether a message is one of a conversation: what is strange stays as it came.
pub(super) fn can_merge(message: &str) -> bool {
    let Some(object) = Object::parse(message) else { return false };
    let is_known = matches!(object.text("role").as_deref(), Some("user" | "assistant" | "system"));
    is_known && object.get("content").is_some_and(|content| content.starts_with(['"', '[']))
}

fn merge(mut run: Vec<Out<'_>>) -> Option<Out<'_>> {
    if run.len() <= 1 {
        return run.pop();
    }
    let role = run[0].role;
    // The message with the most fields gives the frame, so that fields we do not know stay.
    let n_fields = |out: &Out<'_>| Object::parse(&out.json).map_or(0, |object| object.fields.len());
    let frame = run.iter().rev().max_by_key(|out| n_fields(out)).map(|out| out.json.clone().into_owned())?;
    let mut blocks: Vec<Cow<'_, str>> = Vec::new();
    for out in &run {
        let next = blocks_of(&out.json);
        let n_thoughts = next.iter().take_while(|block| kind_of(block) == Kind::Thinking).count();
        let has_thought = n_thoughts == 0 || blocks.iter().any(|block| kind_of(block) == Kind::Thinking);
        if has_thought {
            blocks.extend(next);
        } else {
            // A reply has to begin with its thoughts.
            blocks.splice(0..0, next[..n_thoughts].iter().cloned());
            blocks.extend(next.into_iter().skip(n_thoughts));
        }
    }
    Some(Out { role, json: Cow::Owned(with_blocks(&frame, &blocks)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::Role;

    fn out(role: Role, json: &str) -> Out<'_> {
        Out { role, json: Cow::Borrowed(json) }
    }

    #[test]
    fn neighbours_of_one_role_become_one_message() {
        let outs = vec![
            out(Role::User, r#"{"role":"user","content":"a"}"#),
            out(Role::User, r#"{"role":"user","content":[{"type":"text","text":"b"}],"x":1}"#),
            out(Role::Assistant, r#"{"role":"assistant","content":"c"}"#),
        ];
        let merged: Vec<_> = alternate(outs).into_iter().map(|out| out.json).collect();
        assert_eq!(
            merged,
            [
                r#"{"role":"user","content":[{"type":"text","text":"a"}, {"type":"text","text":"b"}],"x":1}"#,
                r#"{"role":"assistant","content":"c"}"#
            ]
        );
    }

    #[test]
    fn thoughts_stay_in_front() {
        let outs = vec![
            out(Role::Assistant, r#"{"role":"assistant","content":"note"}"#),
            out(
                Role::Assistant,
                r#"{"role":"assistant","content":[{"type":"thinking","thinking":"t"},{"type":"tool_use"}]}"#,
            ),
        ];
        let merged = alternate(outs);
        let kinds: Vec<_> = blocks_of(&merged[0].json).iter().map(|block| kind_of(block)).collect();
        assert_eq!(kinds, [Kind::Thinking, Kind::Text, Kind::ToolUse]);
    }
}

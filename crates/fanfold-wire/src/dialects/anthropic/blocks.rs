//! Messages as lists of blocks, and how neighbours of one role are merged.

use std::borrow::Cow;

use super::{BlockKind, is_blank, kind_of};
use crate::conversation::entry_map::EntryRole;
use crate::conversation::outgoing::OutMessage;
use crate::json::{self, Object};

/// The blocks of a message. A text is one block, a blank text none.
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
    let range =
        Object::parse(message).and_then(|object| object.get("content").map(|value| object.span(value)));
    match range {
        Some(range) => [&message[..range.start], &content, &message[range.end..]].concat(),
        None => format!(r#"{{"role":"user","content":{content}}}"#),
    }
}

/// Merges neighbours of one role.
pub(super) fn alternate_roles<'a>(items: &[&'a str]) -> Vec<Cow<'a, str>> {
    let outs = items.iter().map(|item| {
        let role = Object::parse(item).and_then(|message| message.text("role"));
        let role = match role.as_deref() {
            Some("assistant") => EntryRole::Assistant,
            Some("system") => EntryRole::System,
            _ => EntryRole::User,
        };
        OutMessage { role, json: Cow::Borrowed(*item) }
    });
    merge_where(outs.collect(), |_, _| true).into_iter().map(|out| out.json).collect()
}

/// Merges neighbours of one role that have results, because the provider requires all results of a reply in one
/// message. It accepts other neighbours of one role, so a person's message stays unchanged.
pub(super) fn join_results(outs: Vec<OutMessage<'_>>) -> Vec<OutMessage<'_>> {
    merge_where(outs, |last, next| last.role != EntryRole::User || has_result(last) || has_result(next))
}

fn has_result(out: &OutMessage<'_>) -> bool {
    out.json.contains("tool_result")
        && blocks_of(&out.json).iter().any(|block| kind_of(block) == BlockKind::ToolResult)
}

/// Merges neighbours of one role if `are_one` holds for them.
fn merge_where<'a>(
    outs: Vec<OutMessage<'a>>,
    are_one: impl Fn(&OutMessage<'_>, &OutMessage<'_>) -> bool,
) -> Vec<OutMessage<'a>> {
    let mut merged: Vec<OutMessage<'a>> = Vec::with_capacity(outs.len());
    let mut run: Vec<OutMessage<'a>> = Vec::new();
    for out in outs {
        let is_same = run.last().is_some_and(|last| {
            let is_neighbour = last.role == out.role && can_merge(&last.json) && can_merge(&out.json);
            is_neighbour && are_one(last, &out)
        });
        if !is_same {
            merged.extend(merge(std::mem::take(&mut run)));
        }
        run.push(out);
    }
    merged.extend(merge(run));
    merged
}

/// Returns whether a message has a known form. Others stay unchanged.
pub(super) fn can_merge(message: &str) -> bool {
    let Some(object) = Object::parse(message) else { return false };
    let is_known = matches!(object.text("role").as_deref(), Some("user" | "assistant" | "system"));
    is_known && object.get("content").is_some_and(|content| content.starts_with(['"', '[']))
}

fn merge(mut run: Vec<OutMessage<'_>>) -> Option<OutMessage<'_>> {
    if run.len() <= 1 {
        return run.pop();
    }
    let role = run[0].role;
    // The message with the most fields is the frame, so that unknown fields are kept.
    let n_fields = |out: &OutMessage<'_>| Object::parse(&out.json).map_or(0, |object| object.fields.len());
    let frame = run.iter().rev().max_by_key(|out| n_fields(out)).map(|out| out.json.clone().into_owned())?;
    let mut blocks: Vec<Cow<'_, str>> = Vec::new();
    for out in &run {
        let next = blocks_of(&out.json);
        let n_thoughts = next.iter().take_while(|block| kind_of(block) == BlockKind::Thinking).count();
        let has_thought = n_thoughts == 0 || blocks.iter().any(|block| kind_of(block) == BlockKind::Thinking);
        if has_thought {
            blocks.extend(next);
        } else {
            // The provider requires thoughts at the start of a reply.
            blocks.splice(0..0, next[..n_thoughts].iter().cloned());
            blocks.extend(next.into_iter().skip(n_thoughts));
        }
    }
    Some(OutMessage { role, json: Cow::Owned(with_blocks(&frame, &blocks)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_alternating_roles_merge_prompts() {
        let items = [
            r#"{"role":"user","content":"a"}"#,
            r#"{"role":"user","content":[{"type":"text","text":"b"}],"x":1}"#,
            r#"{"role":"assistant","content":"c"}"#,
        ];
        assert_eq!(
            alternate_roles(&items),
            [
                r#"{"role":"user","content":[{"type":"text","text":"a"}, {"type":"text","text":"b"}],"x":1}"#,
                r#"{"role":"assistant","content":"c"}"#
            ]
        );
        let outs = items.map(|item| OutMessage { role: EntryRole::User, json: item.into() });
        let apart: Vec<_> = join_results(outs.into()).into_iter().map(|out| out.json).collect();
        assert_eq!(apart, items, "else they stay as they are");
    }

    #[test]
    fn results_are_merged_into_one_message() {
        let result = |id: u8| {
            format!(
                r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"r"}}]}}"#
            )
        };
        let all = [result(1), result(2), r#"{"role":"user","content":"note"}"#.to_owned()];
        let outs = all.map(|json| OutMessage { role: EntryRole::User, json: Cow::Owned(json) });
        let merged = join_results(outs.into());
        assert_eq!(merged.len(), 1);
        let kinds: Vec<_> = blocks_of(&merged[0].json).iter().map(|block| kind_of(block)).collect();
        assert_eq!(kinds, [BlockKind::ToolResult, BlockKind::ToolResult, BlockKind::Text]);
    }

    #[test]
    fn thoughts_stay_first() {
        let items = [
            r#"{"role":"assistant","content":"note"}"#,
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"t"},{"type":"tool_use"}]}"#,
        ];
        let outs = items.map(|item| OutMessage { role: EntryRole::Assistant, json: item.into() });
        let merged = join_results(outs.into());
        let kinds: Vec<_> = blocks_of(&merged[0].json).iter().map(|block| kind_of(block)).collect();
        assert_eq!(kinds, [BlockKind::Thinking, BlockKind::Text, BlockKind::ToolUse]);
    }
}

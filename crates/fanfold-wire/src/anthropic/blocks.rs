//! Messages as lists of blocks: taken apart, put together, merged where one role speaks twice.

use std::borrow::Cow;

use super::{Kind, is_blank, kind_of};
use crate::book::Role;
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

/// Messages in which no role speaks twice in a row.
pub(crate) fn alternating<'a>(items: &[&'a str]) -> Vec<Cow<'a, str>> {
    let outs = items.iter().map(|item| {
        let role = Object::parse(item).and_then(|message| message.text("role"));
        let role = match role.as_deref() {
            Some("assistant") => Role::Assistant,
            Some("system") => Role::System,
            _ => Role::User,
        };
        Out { role, json: Cow::Borrowed(*item) }
    });
    merge_where(outs.collect(), |_, _| true).into_iter().map(|out| out.json).collect()
}

/// Merges neighbours of one role where results are among them: the provider wants all of a reply's results in one message.
/// It takes other neighbours for one turn, so what a person wrote stays a message of its own, as it came.
pub(super) fn join_results(outs: Vec<Out<'_>>) -> Vec<Out<'_>> {
    merge_where(outs, |last, next| last.role != Role::User || has_result(last) || has_result(next))
}

fn has_result(out: &Out<'_>) -> bool {
    out.json.contains("tool_result")
        && blocks_of(&out.json).iter().any(|block| kind_of(block) == Kind::ToolResult)
}

/// Merges neighbours of one role that are to be one.
fn merge_where<'a>(outs: Vec<Out<'a>>, are_one: impl Fn(&Out<'_>, &Out<'_>) -> bool) -> Vec<Out<'a>> {
    let mut merged: Vec<Out<'a>> = Vec::with_capacity(outs.len());
    let mut run: Vec<Out<'a>> = Vec::new();
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

    #[test]
    fn neighbours_of_one_role_become_one_message_where_that_is_wanted() {
        let items = [
            r#"{"role":"user","content":"a"}"#,
            r#"{"role":"user","content":[{"type":"text","text":"b"}],"x":1}"#,
            r#"{"role":"assistant","content":"c"}"#,
        ];
        assert_eq!(
            alternating(&items),
            [
                r#"{"role":"user","content":[{"type":"text","text":"a"}, {"type":"text","text":"b"}],"x":1}"#,
                r#"{"role":"assistant","content":"c"}"#
            ]
        );
        let outs = items.map(|item| Out { role: Role::User, json: item.into() });
        let apart: Vec<_> = join_results(outs.into()).into_iter().map(|out| out.json).collect();
        assert_eq!(apart, items, "else they stay as they are");
    }

    #[test]
    fn results_stand_in_one_message() {
        let result = |id: u8| {
            format!(
                r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"r"}}]}}"#
            )
        };
        let all = [result(1), result(2), r#"{"role":"user","content":"note"}"#.to_owned()];
        let outs = all.map(|json| Out { role: Role::User, json: Cow::Owned(json) });
        let merged = join_results(outs.into());
        assert_eq!(merged.len(), 1);
        let kinds: Vec<_> = blocks_of(&merged[0].json).iter().map(|block| kind_of(block)).collect();
        assert_eq!(kinds, [Kind::ToolResult, Kind::ToolResult, Kind::Text]);
    }

    #[test]
    fn thoughts_stay_in_front() {
        let items = [
            r#"{"role":"assistant","content":"note"}"#,
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"t"},{"type":"tool_use"}]}"#,
        ];
        let outs = items.map(|item| Out { role: Role::Assistant, json: item.into() });
        let merged = join_results(outs.into());
        let kinds: Vec<_> = blocks_of(&merged[0].json).iter().map(|block| kind_of(block)).collect();
        assert_eq!(kinds, [Kind::Thinking, Kind::Text, Kind::ToolUse]);
    }
}

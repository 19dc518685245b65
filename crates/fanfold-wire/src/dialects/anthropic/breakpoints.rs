//! Cache breakpoints: they move from removed blocks to earlier ones, and are limited to four.

use std::borrow::Cow;
use std::ops::Range;

use super::blocks::{blocks_of, can_merge, with_blocks};
use super::{BlockKind, kind};
use crate::conversation::entry_map::PortionRole;
use crate::conversation::outgoing::{EncodeSource, OutMessage, OutPortion};
use crate::json::Splices;
use crate::json::{self, Object};

/// The provider's limit in one request.
const LIMIT: usize = 4;
const MARKER: &str = "\"cache_control\"";

/// The last breakpoint of entries that the view leaves out.
pub(super) fn lost_in_gap(source: &EncodeSource<'_, '_>, gap: Range<usize>) -> Option<String> {
    let anchors = source.map.anchors.get(gap)?;
    let portions = anchors.iter().rev().flat_map(|anchor| anchor.portions.iter().rev());
    for portion in portions {
        let raw = source.raw(portion.origin.message as usize);
        if !raw.contains(MARKER) {
            continue;
        }
        let is_whole = source
            .map
            .messages
            .get(portion.origin.message as usize)
            .is_none_or(|facts| facts.n_portions == 1);
        let blocks = blocks_of(raw);
        let part = portion.origin.part as usize;
        let range = match portion.role {
            _ if is_whole => 0..blocks.len(),
            PortionRole::Result(_) => part..part + 1,
            PortionRole::Own | PortionRole::Attached => part..run_end(&blocks, part),
        };
        let found =
            blocks.get(range).unwrap_or_default().iter().rev().find_map(|block| breakpoints(block).pop());
        if found.is_some() {
            return found;
        }
    }
    None
}

/// The end of a run of a prompt's blocks.
pub(super) fn run_end(blocks: &[Cow<'_, str>], start: usize) -> usize {
    let is_result =
        |block: &str| Object::parse(block).is_some_and(|block| kind(&block) == BlockKind::ToolResult);
    if blocks.get(start).is_some_and(|block| is_result(block)) {
        return start + 1;
    }
    (start..blocks.len()).find(|i| is_result(&blocks[*i])).unwrap_or(blocks.len())
}

/// The breakpoint that an edit of a message removed.
pub(super) fn lost_in_edit(
    raw: &str,
    rendered: &str,
    portions: &[OutPortion<'_>],
    n_portions: u32,
) -> Option<String> {
    let is_all = portions.len() == n_portions as usize;
    if !is_all || !raw.contains(MARKER) {
        return None;
    }
    let all =
        |message: &str| blocks_of(message).iter().flat_map(|block| breakpoints(block)).collect::<Vec<_>>();
    let (before, after) = (all(raw), all(rendered));
    if after.len() < before.len() { before.into_iter().next_back() } else { None }
}

/// The breakpoints of a block: its own, and those inside a result.
fn breakpoints(block: &str) -> Vec<String> {
    if !block.contains(MARKER) {
        return Vec::new();
    }
    let Some(object) = Object::parse(block) else { return Vec::new() };
    let inner = object.get("content").and_then(json::array).unwrap_or_default();
    let inner = inner.iter().filter_map(|part| Object::parse(part)?.some("cache_control"));
    inner.chain(object.some("cache_control")).map(str::to_owned).collect()
}

/// Puts a breakpoint on the last block that accepts one, unless it has one. Returns whether there is such a block.
pub(super) fn add_breakpoint(out: &mut OutMessage<'_>, breakpoint: &str) -> bool {
    if !can_merge(&out.json) {
        return false;
    }
    let mut blocks: Vec<_> = blocks_of(&out.json).into_iter().map(Cow::into_owned).collect();
    let position = blocks.iter().rposition(|block| accepts_breakpoint(block));
    let Some(position) = position else { return false };
    if breakpoints(&blocks[position]).is_empty() {
        let end = blocks[position].trim_end().len() - 1;
        blocks[position].insert_str(end, &format!(",\"cache_control\":{breakpoint}"));
        let blocks: Vec<_> = blocks.into_iter().map(Cow::Owned).collect();
        out.json = Cow::Owned(with_blocks(&out.json, &blocks));
    }
    true
}

fn accepts_breakpoint(block: &str) -> bool {
    let Some(object) = Object::parse(block) else { return false };
    let is_known = matches!(
        object.text("type").as_deref(),
        Some("text" | "image" | "document" | "tool_use" | "tool_result")
    );
    is_known && kind(&object) != BlockKind::Blank
}

/// Puts a breakpoint on the note of a fold, if a later message has one. The next fold begins after the note, and the
/// prefix stays cached. The breakpoint is a copy of the next one, because a longer lifetime must not follow a shorter.
pub(super) fn mark_fold(from_note: &mut [OutMessage<'_>]) {
    let Some((note, later)) = from_note.split_first_mut() else { return };
    let mut found = later.iter().flat_map(|out| blocks_of(&out.json)).filter(|block| block.contains(MARKER));
    if let Some(breakpoint) = found.find_map(|block| breakpoints(&block).into_iter().next()) {
        add_breakpoint(note, &breakpoint);
    }
}

/// Removes the oldest breakpoints beyond the limit.
pub(super) fn limit(outs: &mut [OutMessage<'_>], n_outside: usize) {
    let counted: Vec<usize> = outs.iter().map(|out| count(&out.json)).collect();
    let mut excess = (n_outside + counted.iter().sum::<usize>()).saturating_sub(LIMIT);
    for (out, n) in outs.iter_mut().zip(counted) {
        let n_cut = n.min(excess);
        if n_cut == 0 {
            continue;
        }
        excess -= n_cut;
        let mut left = n_cut;
        let blocks: Vec<_> =
            blocks_of(&out.json).iter().map(|block| Cow::Owned(without(block, &mut left))).collect();
        out.json = Cow::Owned(with_blocks(&out.json, &blocks));
    }
}

fn count(message: &str) -> usize {
    if !message.contains(MARKER) {
        return 0;
    }
    blocks_of(message).iter().map(|block| breakpoints(block).len()).sum()
}

/// A block without its first `left` breakpoints.
fn without(block: &str, left: &mut usize) -> String {
    let Some(object) = Object::parse(block) else { return block.to_owned() };
    let mut splices = Splices::default();
    for part in object.get("content").and_then(json::array).unwrap_or_default() {
        if let Some(part) = Object::parse(part) {
            cut_marker(&mut splices, &part, object.span(part.raw).start, left);
        }
    }
    cut_marker(&mut splices, &object, 0, left);
    splices.apply(block)
}

fn cut_marker(splices: &mut Splices, object: &Object<'_>, offset: usize, left: &mut usize) {
    if *left == 0 || object.some("cache_control").is_none() {
        return;
    }
    *left -= 1;
    splices.cut_fields(object, offset, |key| key == "cache_control");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::entry_map::EntryRole;

    fn out(json: &str) -> OutMessage<'_> {
        OutMessage { role: EntryRole::User, json: Cow::Borrowed(json) }
    }

    #[test]
    fn a_breakpoint_goes_to_the_last_block_that_accepts_it() {
        let mut message = out(r#"{"role":"user","content":"hi"}"#);
        assert!(add_breakpoint(&mut message, r#"{"type":"ephemeral"}"#));
        assert_eq!(
            message.json,
            r#"{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}"#
        );
        let mut thought = out(r#"{"role":"assistant","content":[{"type":"thinking","thinking":"t"}]}"#);
        assert!(!add_breakpoint(&mut thought, "{}"));
    }

    #[test]
    fn the_note_of_a_fold_copies_the_next_breakpoint() {
        let note = r#"{"role":"user","content":[{"type":"text","text":"folded"}]}"#;
        let newest = r#"{"role":"user","content":[{"type":"text","text":"a","cache_control":{"ttl":"1h"}}]}"#;
        let mut outs = [out(note), out(r#"{"role":"assistant","content":"b"}"#), out(newest)];
        mark_fold(&mut outs);
        assert_eq!(
            outs[0].json,
            r#"{"role":"user","content":[{"type":"text","text":"folded","cache_control":{"ttl":"1h"}}]}"#
        );
        // A client that sets none has no cache.
        let mut outs = [out(note), out(r#"{"role":"assistant","content":"b"}"#)];
        mark_fold(&mut outs);
        assert_eq!(outs[0].json, note);
    }

    #[test]
    fn the_oldest_breakpoints_are_removed_first() {
        let message = r#"{"role":"user","content":[{"type":"text","text":"a","cache_control":{}},{"type":"tool_result","content":[{"type":"text","text":"b","cache_control":{}}],"cache_control":{}}]}"#;
        let mut outs = [out(message), out(message)];
        limit(&mut outs, 1);
        let counts: Vec<_> = outs.iter().map(|out| count(&out.json)).collect();
        assert_eq!(counts, [0, 3]);
        assert!(json::is_valid(&outs[0].json));
    }
}

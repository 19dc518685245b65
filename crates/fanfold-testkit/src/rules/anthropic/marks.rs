//! Where caches may end: at most four marks, in the order in which a request is read.

use serde_json::Value;

use super::blocks;
use super::names::{MARK, MARK_ORDER, MARKED, N_MARKS};
use crate::rules::look::{Look, has, list, text};

pub(super) fn check(body: &Value, look: &mut Look) {
    let mut marks = Vec::new();
    for (i, tool) in list(body, "tools").iter().enumerate() {
        mark(tool, format!("tools[{i}]"), &mut marks, look);
    }
    for (i, block) in list(body, "system").iter().enumerate() {
        mark(block, format!("system[{i}]"), &mut marks, look);
    }
    for (i, message) in list(body, "messages").iter().enumerate() {
        for (n, block) in list(message, "content").iter().enumerate() {
            let place = format!("messages[{i}].content[{n}]");
            for (k, part) in list(block, "content").iter().enumerate() {
                mark(part, format!("{place}.content[{k}]"), &mut marks, look);
            }
            mark(block, place, &mut marks, look);
        }
    }
    let n_marks = marks.len() + usize::from(has(body, "cache_control"));
    look.holds(n_marks <= 4, N_MARKS, format!("{n_marks} marks"));
    let mut is_past_short = false;
    for (place, is_long) in marks {
        look.holds(!is_long || !is_past_short, MARK_ORDER, place);
        is_past_short |= !is_long;
    }
}

fn mark(block: &Value, place: String, marks: &mut Vec<(String, bool)>, look: &mut Look) {
    let Some(mark) = block.get("cache_control").filter(|mark| !mark.is_null()) else { return };
    let ttl = if has(mark, "ttl") { text(mark, "ttl") } else { "5m" };
    let is_good = text(mark, "type") == "ephemeral" && matches!(ttl, "5m" | "1h");
    look.holds(is_good, MARK, &place);
    let kind = text(block, "type");
    let is_empty = kind == "text" && text(block, "text").is_empty();
    look.holds(!blocks::is_thought(kind) && !is_empty, MARKED, &place);
    marks.push((place, ttl == "1h"));
}

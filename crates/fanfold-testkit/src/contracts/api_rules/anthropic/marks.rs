//! Checks the number and the order of cache markers.

use serde_json::Value;

use super::blocks;
use super::names::{MARK, MARK_ORDER, MARKED, N_MARKS};
use crate::contracts::api_rules::findings::{Findings, has, list, text};

pub(super) fn check(body: &Value, findings: &mut Findings) {
    let mut marks = Vec::new();
    for (i, tool) in list(body, "tools").iter().enumerate() {
        mark(tool, format!("tools[{i}]"), &mut marks, findings);
    }
    for (i, block) in list(body, "system").iter().enumerate() {
        mark(block, format!("system[{i}]"), &mut marks, findings);
    }
    for (i, message) in list(body, "messages").iter().enumerate() {
        for (n, block) in list(message, "content").iter().enumerate() {
            let position = format!("messages[{i}].content[{n}]");
            for (k, part) in list(block, "content").iter().enumerate() {
                mark(part, format!("{position}.content[{k}]"), &mut marks, findings);
            }
            mark(block, position, &mut marks, findings);
        }
    }
    let n_marks = marks.len() + usize::from(has(body, "cache_control"));
    findings.require(n_marks <= 4, N_MARKS, format!("{n_marks} marks"));
    let mut is_past_short = false;
    for (position, is_long) in marks {
        findings.require(!is_long || !is_past_short, MARK_ORDER, position);
        is_past_short |= !is_long;
    }
}

fn mark(block: &Value, position: String, marks: &mut Vec<(String, bool)>, findings: &mut Findings) {
    let Some(mark) = block.get("cache_control").filter(|mark| !mark.is_null()) else { return };
    let ttl = if has(mark, "ttl") { text(mark, "ttl") } else { "5m" };
    let is_valid = text(mark, "type") == "ephemeral" && matches!(ttl, "5m" | "1h");
    findings.require(is_valid, MARK, &position);
    let kind = text(block, "type");
    let is_empty = kind == "text" && text(block, "text").is_empty();
    findings.require(!blocks::is_thinking_block(kind) && !is_empty, MARKED, &position);
    marks.push((position, ttl == "1h"));
}

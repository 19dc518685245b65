//! Checks the messages of lanes. A repair puts a placeholder where a message is lost, keeps what is there of a
//! damaged one, and computes the ids of all later messages again, so that chains are complete and match their ids.

use std::collections::{BTreeMap, HashMap};

use serde_json::json;

use super::{CheckMode, Examination, lanes};
use crate::database::sql::{Sql, SqlValue, query_row};
use crate::database::tables::{self, Lane, NewMessageRow, Position, StoredMessage};
use crate::model::{Millis, NodeId, Role};
use crate::search;
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

pub(super) fn check(examination: &mut Examination<'_>) -> Result<()> {
    let mut walk = LaneWalk { lanes: lanes::check(examination)?, ..LaneWalk::default() };
    let mut last = (i64::MIN, 0);
    loop {
        let nodes = tables::nodes_after(examination.sql, last)?;
        let Some(end) = nodes.last() else { break };
        last = (end.position.lane, end.position.depth);
        for node in nodes {
            walk.examine(examination, &node)?;
        }
    }
    rename_in_events(examination, &walk.new_ids)
}

/// Replaces former ids of messages in events, so that folds and checkpoints still find them.
fn rename_in_events(examination: &mut Examination<'_>, new_ids: &HashMap<NodeId, NodeId>) -> Result<()> {
    let mut last = 0;
    while !new_ids.is_empty() {
        let text = "SELECT number, body FROM events WHERE number > $1 ORDER BY number LIMIT 256";
        let rows = examination.sql.query(text, &[SqlValue::Int(last)])?;
        if rows.is_empty() {
            break;
        }
        for mut row in rows {
            last = row.int()?;
            let body = row.text()?;
            let words = body.split(|c: char| !c.is_ascii_hexdigit()).filter_map(|word| word.parse().ok());
            let renamed: BTreeMap<NodeId, NodeId> =
                words.filter_map(|id: NodeId| Some((id, *new_ids.get(&id)?))).collect();
            let new_body = renamed
                .iter()
                .fold(body.clone(), |body, (former, id)| body.replace(&former.to_string(), &id.to_string()));
            if new_body != body {
                let values = [SqlValue::Json(&new_body), SqlValue::Int(last)];
                examination.sql.execute("UPDATE events SET body = $1 WHERE number = $2", &values)?;
            }
        }
    }
    Ok(())
}

/// A walk along all lanes, each lane after its parent.
#[derive(Default)]
struct LaneWalk {
    lanes: BTreeMap<i64, Lane>,
    lane: Option<i64>,
    /// The depth that the next message must have.
    next: u32,
    /// The ids of the preceding message before and after the repair; `None` at the start or after a gap.
    parent: Option<NodeId>,
    new_parent: Option<NodeId>,
    /// The former ids of repaired messages by lane and depth; `None` for placeholders.
    former_ids: HashMap<(i64, u32), Option<NodeId>>,
    /// The new ids of repaired messages by their former ids.
    new_ids: HashMap<NodeId, NodeId>,
}

impl LaneWalk {
    fn examine(&mut self, examination: &mut Examination<'_>, node: &StoredMessage) -> Result<()> {
        let position = node.position;
        if self.lane != Some(position.lane) {
            self.enter(examination, position.lane)?;
        }
        let is_after_gap = position.depth != self.next || (position.depth > 0 && self.parent.is_none());
        if is_after_gap {
            let text = format!(
                "the messages before it from depth {} are missing from lane {}; a repair puts placeholders there",
                self.next, position.lane
            );
            examination.report_repairable(format!("message {}", position.number), text);
            self.parent = None;
            if examination.mode == CheckMode::Repair && !self.close_gap(examination, position)? {
                return Ok(());
            }
        }
        let json = self.checked_json(examination, node, is_after_gap)?;
        let mut id = node.id;
        if examination.mode == CheckMode::Repair {
            id = NodeId::new(self.new_parent, &json);
            if id != node.id || json != node.json || node.is_damaged {
                let statement = "UPDATE nodes SET id = $1, json = $2, role = $3 WHERE number = $4";
                let role = Role::from_message(&json).name();
                let values = [
                    SqlValue::Bytes(&id.0),
                    SqlValue::Json(&json),
                    SqlValue::Text(role),
                    SqlValue::Int(position.number),
                ];
                examination.sql.execute(statement, &values)?;
                self.former_ids.insert((position.lane, position.depth), Some(node.id));
                self.new_ids.insert(node.id, id);
            }
        }
        (self.next, self.parent, self.new_parent) = (position.depth + 1, Some(node.id), Some(id));
        Ok(())
    }

    /// Starts to walk a lane.
    fn enter(&mut self, examination: &mut Examination<'_>, lane: i64) -> Result<()> {
        lanes::restore(examination, &mut self.lanes, lane)?;
        let start = self.lanes[&lane].start;
        (self.lane, self.next) = (Some(lane), start);
        (self.parent, self.new_parent) = (None, None);
        if let Some((owner, depth)) = self.position_before(lane, start) {
            self.new_parent = tables::node_id_at(examination.sql, owner, depth)?;
            self.parent = self.former_ids.get(&(owner, depth)).copied().unwrap_or(self.new_parent);
        }
        Ok(())
    }

    /// The lane and depth of the message before a depth of a lane.
    fn position_before(&self, lane: i64, depth: u32) -> Option<(i64, u32)> {
        let depth = depth.checked_sub(1)?;
        let mut lane = lane;
        while let Some(row) = self.lanes.get(&lane).filter(|row| row.start > depth) {
            // A lane's parent is older. Any other parent is corrupt and could form a cycle.
            lane = row.parent.filter(|parent| *parent < lane)?;
        }
        Some((lane, depth))
    }

    /// Checks the content and the role of a message. Returns the content that a repair stores.
    fn checked_json(
        &self,
        examination: &mut Examination<'_>,
        node: &StoredMessage,
        is_after_gap: bool,
    ) -> Result<String> {
        let position = node.position;
        let name = format!("message {}", position.number);
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&node.json).is_ok();
        // Without the message before it, the id of a message cannot be checked.
        let is_changed =
            if is_after_gap { !is_json } else { node.id != NodeId::new(self.parent, &node.json) };
        if is_changed || node.is_damaged {
            let owners = tables::owners(examination.sql, position)?;
            let owners: Vec<String> = owners.into_iter().map(|id| id.0).collect();
            let damage =
                if node.is_damaged { "it is not UTF-8" } else { "its content does not match its id" };
            let text =
                format!("{damage}; a repair keeps what is readable; sessions with it: {}", owners.join(", "));
            examination.report_repairable(name, text);
            return Ok(if is_json { node.json.clone() } else { placeholder(position.number, &node.json) });
        }
        if node.role != Role::from_message(&node.json) {
            let statement = "UPDATE nodes SET role = $1 WHERE number = $2";
            let values =
                [SqlValue::Text(Role::from_message(&node.json).name()), SqlValue::Int(position.number)];
            let text = "its role does not match its content".into();
            examination.repair_with(name, text, statement, &values)?;
        }
        Ok(node.json.clone())
    }

    /// Fills the gap before a message with placeholders. If the gap cannot be that long, the
    /// position of the message is damaged, and it is deleted. Returns whether the message is still there.
    fn close_gap(&mut self, examination: &mut Examination<'_>, position: Position) -> Result<bool> {
        // Lanes from the message back to the last one with messages before it.
        let (mut lane, mut end) = (position.lane, position.depth);
        let mut gaps = Vec::new();
        let mut last = None;
        while let Some((owner, depth)) = self.position_before(lane, end) {
            let text = "SELECT number, depth, id FROM nodes WHERE lane = $1 AND depth <= $2 ORDER BY depth DESC LIMIT 1";
            let values = [SqlValue::Int(owner), SqlValue::Int(depth.into())];
            let found = query_row(examination.sql, text, &values)?;
            let start = self.lanes.get(&owner).map_or(0, |lane| lane.start);
            if let Some(mut row) = found {
                last = Some((row.int()?, row.integer::<u32>()?, row.node_id()?));
            }
            let from = last.map_or(start, |(_, depth, _)| depth + 1);
            gaps.push((owner, from..depth + 1));
            if last.is_some() {
                break;
            }
            (lane, end) = (owner, start);
        }
        let (mut number, _, mut parent) =
            last.map_or((0, 0, None), |(number, depth, id)| (number, depth, Some(id)));
        let n_missing: i64 = gaps.iter().map(|(_, depths)| depths.len() as i64).sum();
        // Numbers increase along a chain, so the lost messages had numbers in between.
        if n_missing >= position.number - number {
            let statement = "DELETE FROM nodes WHERE number = $1";
            examination.sql.execute(statement, &[SqlValue::Int(position.number)])?;
            return Ok(false);
        }
        for (lane, depth) in
            gaps.into_iter().rev().flat_map(|(lane, depths)| depths.map(move |depth| (lane, depth)))
        {
            number = free_number(examination.sql, number)?;
            parent = Some(insert_placeholder(examination, Position { number, lane, depth }, parent)?);
            self.former_ids.insert((lane, depth), None);
        }
        self.new_parent = parent;
        Ok(true)
    }
}

/// Returns the first unused message number after a number.
fn free_number(sql: &mut dyn Sql, number: i64) -> Result<i64> {
    let text = "SELECT n.number + 1 FROM nodes n WHERE n.number > $1 \
         AND NOT EXISTS (SELECT 1 FROM nodes m WHERE m.number = n.number + 1) ORDER BY n.number LIMIT 1";
    let is_used = tables::node_by_number(sql, number + 1)?.is_some();
    if !is_used {
        return Ok(number + 1);
    }
    query_row(sql, text, &[SqlValue::Int(number)])?.map_or(Ok(number + 1), |mut row| row.int())
}

fn insert_placeholder(
    examination: &mut Examination<'_>,
    position: Position,
    parent: Option<NodeId>,
) -> Result<NodeId> {
    let json = placeholder(position.number, "");
    let near = "SELECT at FROM nodes WHERE number > $1 ORDER BY number LIMIT 1";
    let near = query_row(examination.sql, near, &[SqlValue::Int(position.number)])?;
    let at = Millis(near.map_or(Ok(0), |mut row| row.int())?);
    let (id, role) = (NodeId::new(parent, &json), Role::from_message(&json));
    // The lost message with this number may be in the index.
    let lost = StoredMessage { id, position, role, at, json: json.clone(), is_damaged: false };
    search::remove_messages(examination.sql, examination.index, vec![lost])?;
    tables::insert_nodes(examination.sql, &[NewMessageRow { id, position, role, at, json: &json }])?;
    Ok(id)
}

/// Returns a message that says that the message with this number is lost, with the readable beginning of its JSON.
fn placeholder(number: i64, json: &str) -> String {
    let is_damage = |c: char| c == '\u{fffd}' || (c.is_control() && !c.is_whitespace());
    let readable = json.split(is_damage).next().unwrap_or_default();
    let content = match readable {
        "" => format!("[fanfold: message {number} is lost]"),
        readable => format!("[fanfold: message {number} is damaged; its readable part:]\n{readable}"),
    };
    json!({ "role": "user", "content": content }).to_string()
}

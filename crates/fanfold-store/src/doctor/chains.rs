//! Checks lanes and their messages.

use std::collections::BTreeMap;

use super::Examination;
use crate::database::sql::SqlValue;
use crate::database::tables::{self, Lane, StoredMessage};
use crate::model::{NodeId, Role};
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

pub(super) fn check(examination: &mut Examination<'_>) -> Result<()> {
    let lanes = lanes(examination)?;
    let mut walk = LaneWalk::default();
    let mut last = (i64::MIN, 0);
    let mut used = Vec::new();
    loop {
        let nodes = tables::nodes_after(examination.sql, last)?;
        let Some(end) = nodes.last() else { break };
        last = (end.position.lane, end.position.depth);
        for node in nodes {
            if used.last() != Some(&node.position.lane) {
                used.push(node.position.lane);
            }
            walk.examine(examination, &lanes, &node)?;
        }
    }
    for lane in lanes.keys().filter(|lane| used.binary_search(lane).is_err()) {
        let has_children = lanes.values().any(|other| other.parent == Some(*lane));
        let (location, text) = (format!("lane {lane}"), "it has no messages".to_owned());
        if has_children {
            examination.report_lost(location, text);
        } else {
            examination.repair_with(
                location,
                text,
                "DELETE FROM lanes WHERE lane = $1",
                &[SqlValue::Int(*lane)],
            )?;
        }
    }
    Ok(())
}

/// Reads the lanes and checks that each one branches off an older lane, after that lane's start.
fn lanes(examination: &mut Examination<'_>) -> Result<BTreeMap<i64, Lane>> {
    let mut lanes = BTreeMap::new();
    for mut row in examination.sql.query("SELECT lane, parent, start FROM lanes", &[])? {
        lanes.insert(row.int()?, Lane { parent: row.opt_int()?, start: row.integer()? });
    }
    for (number, lane) in &lanes {
        let is_sound = match lane.parent {
            None => lane.start == 0,
            Some(parent) => {
                parent < *number && lanes.get(&parent).is_some_and(|parent| parent.start < lane.start)
            }
        };
        if !is_sound {
            let text =
                format!("it starts at depth {} of lane {:?}, which is impossible", lane.start, lane.parent);
            examination.report_lost(format!("lane {number}"), text);
        }
    }
    Ok(lanes)
}

/// The progress of a walk along a lane.
#[derive(Default)]
struct LaneWalk {
    lane: Option<i64>,
    /// The depth that the next message must have.
    next: u32,
    /// The id of the preceding message; `None` at the start or after a gap.
    parent: Option<NodeId>,
}

impl LaneWalk {
    fn examine(
        &mut self,
        examination: &mut Examination<'_>,
        lanes: &BTreeMap<i64, Lane>,
        node: &StoredMessage,
    ) -> Result<()> {
        let position = node.position;
        let name = format!("message {}", position.number);
        if self.lane != Some(position.lane) {
            let Some(lane) = lanes.get(&position.lane) else {
                self.lane = None;
                examination.report_lost(name, format!("its lane {} is missing", position.lane));
                return Ok(());
            };
            let parent = match (lane.parent, lane.start.checked_sub(1)) {
                (Some(parent), Some(depth)) => tables::node_id_at(examination.sql, parent, depth)?,
                _ => None,
            };
            *self = LaneWalk { lane: Some(position.lane), next: lane.start, parent };
        }
        let is_after_gap = position.depth != self.next || (position.depth > 0 && self.parent.is_none());
        if is_after_gap {
            let text = format!(
                "the messages before it from depth {} are missing from lane {}",
                self.next, position.lane
            );
            examination.report_lost(name, text);
        } else if node.id != NodeId::new(self.parent, &node.json) {
            let owners = tables::owners(examination.sql, position)?;
            let owners: Vec<String> = owners.into_iter().map(|id| id.0).collect();
            let text = format!("its content does not match its id; sessions with it: {}", owners.join(", "));
            examination.report_lost(name, text);
        } else if node.role != Role::from_message(&node.json) {
            let statement = "UPDATE nodes SET role = $1 WHERE number = $2";
            let values =
                [SqlValue::Text(Role::from_message(&node.json).name()), SqlValue::Int(position.number)];
            examination.repair_with(
                name,
                "its role does not match its content".into(),
                statement,
                &values,
            )?;
        }
        (self.next, self.parent) = (position.depth + 1, Some(node.id));
        Ok(())
    }
}

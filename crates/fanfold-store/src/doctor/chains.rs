//! Lanes, and the messages in them.

use std::collections::BTreeMap;

use super::Examination;
use crate::database::sql::SqlValue;
use crate::database::tables::{self, Lane, StoredMessage};
use crate::model::{NodeId, role_of};
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

pub(super) fn check(examination: &mut Examination<'_>) -> Result<()> {
    let lanes = lanes(examination)?;
    let mut run = LaneWalk::default();
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
            run.examine(examination, &lanes, &node)?;
        }
    }
    for lane in lanes.keys().filter(|lane| used.binary_search(lane).is_err()) {
        let has_children = lanes.values().any(|other| other.parent == Some(*lane));
        let (place, text) = (format!("lane {lane}"), "it has no message".to_owned());
        if has_children {
            examination.report_lost(place, text);
        } else {
            examination.repair_with(
                place,
                text,
                "DELETE FROM lanes WHERE lane = $1",
                &[SqlValue::Int(*lane)],
            )?;
        }
    }
    Ok(())
}

/// The lanes; a message stands where each of them leaves its parent.
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
            let text = format!("it begins at {} of lane {:?}, which can't be", lane.start, lane.parent);
            examination.report_lost(format!("lane {number}"), text);
        }
    }
    Ok(lanes)
}

/// The lane that is being walked along.
#[derive(Default)]
struct LaneWalk {
    lane: Option<i64>,
    next: u32,
    parent: Option<NodeId>,
}

impl LaneWalk {
    fn examine(
        &mut self,
        examination: &mut Examination<'_>,
        lanes: &BTreeMap<i64, Lane>,
        node: &StoredMessage,
    ) -> Result<()> {
        let place = node.position;
        let name = format!("message {}", place.number);
        if self.lane != Some(place.lane) {
            let Some(lane) = lanes.get(&place.lane) else {
                self.lane = None;
                examination
                    .report_lost(name, format!("it stands in lane {}, which is not there", place.lane));
                return Ok(());
            };
            let parent = match (lane.parent, lane.start.checked_sub(1)) {
                (Some(parent), Some(depth)) => tables::node_id_at(examination.sql, parent, depth)?,
                _ => None,
            };
            *self = LaneWalk { lane: Some(place.lane), next: lane.start, parent };
        }
        let is_behind_a_gap = place.depth != self.next || (place.depth > 0 && self.parent.is_none());
        if is_behind_a_gap {
            let text = format!("the messages from {} up to it are gone from lane {}", self.next, place.lane);
            examination.report_lost(name, text);
        } else if node.id != NodeId::new(self.parent, &node.json) {
            let owners = tables::owners(examination.sql, place)?;
            let owners: Vec<String> = owners.into_iter().map(|id| id.0).collect();
            let text = format!("it is not what was written; sessions that have it: {}", owners.join(", "));
            examination.report_lost(name, text);
        } else if node.role != role_of(&node.json) {
            let cure = "UPDATE nodes SET role = $1 WHERE number = $2";
            let values = [SqlValue::Text(role_of(&node.json).name()), SqlValue::Int(place.number)];
            examination.repair_with(name, "it has another role than its message".into(), cure, &values)?;
        }
        (self.next, self.parent) = (place.depth + 1, Some(node.id));
        Ok(())
    }
}

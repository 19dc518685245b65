//! Checks lanes: where they branch off, and that they have messages.

use std::collections::{BTreeMap, BTreeSet};

use super::Examination;
use crate::database::sql::SqlValue;
use crate::database::tables::{self, Lane};
use crate::model::NodeId;
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

/// Deletes lanes without messages, unless another lane branches off them.
pub(super) fn check_empty(examination: &mut Examination<'_>) -> Result<()> {
    let text = "SELECT l.lane, l.parent, (SELECT min(n.depth) FROM nodes n WHERE n.lane = l.lane) FROM lanes l \
         ORDER BY l.lane DESC";
    let mut parents = BTreeSet::new();
    for mut row in examination.sql.query(text, &[])? {
        let (lane, parent, first) = (row.int()?, row.opt_int()?, row.opt_int()?);
        if first.is_some() || parents.contains(&lane) {
            parents.extend(parent);
        }
        if first.is_none() {
            let (location, text) = (format!("lane {lane}"), "it has no messages".to_owned());
            if parents.contains(&lane) {
                examination.report_repairable(location, text);
            } else {
                let statement = "DELETE FROM lanes WHERE lane = $1";
                examination.repair_with(location, text, statement, &[SqlValue::Int(lane)])?;
            }
        }
    }
    Ok(())
}

/// Reads the lanes and checks that each one branches off an older lane, after that lane's start.
pub(super) fn check(examination: &mut Examination<'_>) -> Result<BTreeMap<i64, Lane>> {
    let mut lanes = BTreeMap::new();
    for mut row in examination.sql.query("SELECT lane, parent, start FROM lanes", &[])? {
        lanes.insert(row.int()?, Lane { parent: row.opt_int()?, start: row.integer()? });
    }
    let missing: Vec<i64> = lanes
        .iter()
        .filter_map(|(lane, row)| row.parent.filter(|parent| parent < lane))
        .filter(|parent| !lanes.contains_key(parent))
        .collect();
    for lane in missing {
        restore(examination, &mut lanes, lane)?;
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

/// Adds a missing lane: after the message that its first message continues, or without a parent.
pub(super) fn restore(
    examination: &mut Examination<'_>,
    lanes: &mut BTreeMap<i64, Lane>,
    lane: i64,
) -> Result<()> {
    let is_known = lanes.contains_key(&lane);
    if is_known {
        return Ok(());
    }
    let first = tables::nodes_after(examination.sql, (lane, 0))?;
    let first = match tables::node_id_at(examination.sql, lane, 0)? {
        Some(_) => None,
        None => first.into_iter().next().filter(|node| node.position.lane == lane),
    };
    let mut restored = Lane { parent: None, start: 0 };
    if let Some(first) = first {
        let before = "SELECT id, lane FROM nodes WHERE depth = $1 AND lane < $2";
        let depth = i64::from(first.position.depth) - 1;
        for mut row in examination.sql.query(before, &[SqlValue::Int(depth), SqlValue::Int(lane)])? {
            let (id, parent) = (row.node_id()?, row.int()?);
            if NodeId::new(Some(id), &first.json) == first.id {
                restored = Lane { parent: Some(parent), start: first.position.depth };
            }
        }
    }
    let statement = "INSERT INTO lanes (lane, parent, start) VALUES ($1, $2, $3)";
    let values = [SqlValue::Int(lane), SqlValue::int(restored.parent), SqlValue::Int(restored.start.into())];
    examination.repair_with(format!("lane {lane}"), "it is missing".into(), statement, &values)?;
    lanes.insert(lane, restored);
    Ok(())
}

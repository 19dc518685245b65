//! Finds the sessions that contain a message.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use crate::database::chain;
use crate::database::sql::{Sql, SqlRow, SqlValue};
use crate::database::tables::{self, read_session, session_columns};
use crate::model::SessionRow;
use crate::search::spec::{Candidate, HitCollector, Ownership, SearchSpec};
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

/// The maximum number of lanes that a query excludes.
const MAX_EXCLUDED_LANES: usize = 500;

/// Finds the owners of candidates, with a cache of the sessions on each lane.
pub(crate) struct OwnerLookup<'a> {
    spec: &'a SearchSpec,
    /// The lanes of the caller's session with their depths.
    caller_lanes: Vec<(i64, Range<u32>)>,
    /// For each lane, the sessions that contain messages of it, each with the last depth that it contains.
    lanes: HashMap<i64, Vec<(u32, SessionRow)>>,
}

impl<'a> OwnerLookup<'a> {
    pub(crate) fn new(sql: &mut dyn Sql, spec: &'a SearchSpec) -> Result<OwnerLookup<'a>> {
        let caller_tip = match &spec.live {
            Some(live) => tables::session(sql, &live.session)?.and_then(|session| session.tip_position),
            None => None,
        };
        let caller_lanes = caller_tip
            .map_or(Ok(Vec::new()), |place| chain::lane_ranges(sql, place.lane, 0..place.depth + 1))?;
        Ok(OwnerLookup { spec, caller_lanes, lanes: HashMap::new() })
    }

    /// Returns the cached lanes whose sessions all belong to lineages that already had a candidate.
    pub(crate) fn finished_lanes(&self, collector: &HitCollector) -> Vec<i64> {
        let is_done = |rows: &[(u32, SessionRow)]| rows.iter().all(|(_, row)| collector.has_seen(&row.root));
        let done = self.lanes.iter().filter(|(_, rows)| is_done(rows)).map(|(lane, _)| *lane);
        done.take(MAX_EXCLUDED_LANES).collect()
    }

    /// Returns the sessions that contain a message.
    pub(crate) fn owners_of(&mut self, sql: &mut dyn Sql, found: &Candidate) -> Result<Ownership> {
        let is_own = self
            .caller_lanes
            .iter()
            .any(|(lane, depths)| *lane == found.lane && depths.contains(&found.depth));
        let is_live = is_own && self.spec.live.as_ref().is_some_and(|live| live.contains(found.depth));
        if is_live {
            return Ok(Ownership { owners: Vec::new(), is_live });
        }
        let sharing = match self.lanes.entry(found.lane) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(sessions_on_lane(sql, found.lane)?),
        };
        let owners = sharing.iter().filter(|(last, _)| *last >= found.depth).map(|(_, row)| row.clone());
        Ok(Ownership { owners: owners.collect(), is_live })
    }
}

/// Returns the sessions that contain messages of a lane, the oldest first, each with the last depth that it contains.
fn sessions_on_lane(sql: &mut dyn Sql, lane: i64) -> Result<Vec<(u32, SessionRow)>> {
    const TEXT: &str = concat!(
        "WITH RECURSIVE sharing (lane, last) AS (SELECT lane, 4294967295 FROM lanes WHERE lane = $1 \
         UNION ALL SELECT l.lane, CASE WHEN l.start <= sharing.last THEN l.start - 1 ELSE sharing.last END \
         FROM lanes l JOIN sharing ON l.parent = sharing.lane) SELECT sharing.last, ",
        session_columns!(),
        // CROSS JOIN fixes the join order: SQLite would otherwise scan all sessions first.
        " FROM sharing CROSS JOIN sessions s CROSS JOIN nodes n \
         WHERE s.lane = sharing.lane AND n.number = s.tip AND sharing.last >= 0 ORDER BY s.started_at, s.id"
    );
    let read = |mut row: SqlRow| {
        let last: u32 = row.integer()?;
        let session = read_session(row)?.row;
        Ok((last.min(session.n_messages.saturating_sub(1)), session))
    };
    sql.query(TEXT, &[SqlValue::Int(lane)])?.into_iter().map(read).collect()
}

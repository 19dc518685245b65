//! Implements [`Store`] for every database.

use std::ops::Range;
use std::time::{Duration, Instant};

use crate::database::chain::DamagedText;
use crate::database::sql::Sql;
use crate::database::{chain, commit, garbage, locks, named_values, tables};
use crate::doctor::{self, CheckMode, Finding, RepairStatus};
use crate::model::{Batch, BlobId, CommitSummary, EventRow, Millis, Node, NodeId, SessionId, SessionRow};
use crate::search::{self, Index, IndexBacklog, SearchHits, SearchSpec};
use crate::store::{LockOutcome, SessionFilter, Store, StoreError, StoreSize};

type Result<T> = std::result::Result<T, StoreError>;

/// A store in a database, which runs transactions. A transaction may be run again after a failure.
pub(crate) trait SqlStore: Send + Sync {
    /// The full text index.
    const INDEX: &'static dyn Index;

    /// Returns whether the store is open for writing.
    fn is_writable(&self) -> bool;

    /// Returns the lag of the full text index.
    fn backlog(&self) -> &IndexBacklog;

    /// Runs `work` on a snapshot.
    fn read_sql<T>(&self, work: impl Fn(&mut dyn Sql) -> Result<T>) -> Result<T>;

    /// Runs `work` in a transaction that may write.
    fn write_sql<T>(&self, work: impl Fn(&mut dyn Sql) -> Result<T>) -> Result<T>;

    /// Runs `work` in a transaction that excludes all other writers.
    fn write_alone<T>(&self, work: impl Fn(&mut dyn Sql) -> Result<T>) -> Result<T>;

    /// Returns the bytes on disk, including indexes.
    fn n_disk_bytes(&self, sql: &mut dyn Sql) -> Result<u64>;

    /// Checks the database and its contents.
    fn check_database(&self, mode: CheckMode) -> Result<Vec<Finding>> {
        let check = |sql: &mut dyn Sql| doctor::check(sql, Self::INDEX, mode, RepairStatus::Impossible);
        match mode {
            CheckMode::Report => self.read_sql(check),
            CheckMode::Repair => self.write_alone(check),
        }
    }

    /// Brings the full text index up to date in small transactions, so that other writers are not blocked for long, as
    /// far as that is possible in a limited time.
    fn catch_up_index(&self) -> Result<()> {
        if !self.read_sql(|sql| search::has_pending(sql, Self::INDEX))? {
            return Ok(());
        }
        let start = Instant::now();
        while self.write_sql(|sql| search::index_pending(sql, Self::INDEX))? == search::INDEX_BATCH {
            if start.elapsed() > MAX_INDEXING_TIME {
                return Ok(());
            }
        }
        self.backlog().clear();
        Ok(())
    }
}

/// The time that a search spends on indexing. The next search continues.
const MAX_INDEXING_TIME: Duration = Duration::from_secs(2);

impl<S: SqlStore> Store for S {
    fn commit(&self, batch: &Batch) -> Result<CommitSummary> {
        let committed = self.write_sql(|sql| commit::commit(sql, batch))?;
        if self.backlog().is_due(committed.n_new_messages) {
            // Ignore errors: the next search indexes the messages, too.
            let n_indexed = self.write_sql(|sql| search::index_pending(sql, S::INDEX)).unwrap_or(0);
            self.backlog().record_indexed(n_indexed);
        }
        Ok(committed)
    }

    fn session(&self, id: &SessionId) -> Result<Option<SessionRow>> {
        self.read_sql(|sql| Ok(tables::session(sql, id)?.map(|session| session.row)))
    }

    fn sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>> {
        self.read_sql(|sql| tables::sessions(sql, filter))
    }

    fn chain(&self, tip: NodeId, depths: Range<u32>) -> Result<Vec<Node>> {
        self.read_sql(|sql| chain::chain(sql, tip, depths.clone(), DamagedText::Refused))
    }

    fn readable_chain(&self, tip: NodeId, depths: Range<u32>) -> Result<Vec<Node>> {
        self.read_sql(|sql| chain::chain(sql, tip, depths.clone(), DamagedText::Replaced))
    }

    fn node(&self, id: NodeId) -> Result<Option<Node>> {
        self.read_sql(|sql| chain::node(sql, id))
    }

    fn node_by_number(&self, number: u64) -> Result<Option<Node>> {
        self.read_sql(|sql| chain::node_by_number(sql, number))
    }

    fn owners(&self, node: NodeId) -> Result<Vec<SessionId>> {
        self.read_sql(|sql| chain::owners(sql, node))
    }

    fn search(&self, spec: &SearchSpec) -> Result<SearchHits> {
        // Ignore errors: with an outdated index a search is slower, but finds the same.
        if self.is_writable() {
            let _ = self.catch_up_index();
        }
        self.read_sql(|sql| search::search(sql, S::INDEX, spec))
    }

    fn events(&self, session: &SessionId, from: u32) -> Result<Vec<EventRow>> {
        self.read_sql(|sql| tables::events(sql, session, from))
    }

    fn blob(&self, id: BlobId) -> Result<Option<Vec<u8>>> {
        self.read_sql(|sql| tables::blob(sql, id))
    }

    fn named_value(&self, name: &str) -> Result<Option<i64>> {
        self.read_sql(|sql| named_values::get(sql, name))
    }

    fn lock(&self, session: &SessionId, holder: &str, lease_ms: i64, now: Millis) -> Result<LockOutcome> {
        self.write_sql(|sql| locks::lock(sql, session, holder, lease_ms, now))
    }

    fn unlock(&self, session: &SessionId, holder: &str) -> Result<()> {
        self.write_sql(|sql| locks::unlock(sql, session, holder))
    }

    fn collect_garbage(&self) -> Result<u64> {
        self.write_alone(|sql| garbage::collect(sql, S::INDEX))
    }

    fn check(&self, mode: CheckMode) -> Result<Vec<Finding>> {
        self.check_database(mode)
    }

    fn size(&self) -> Result<StoreSize> {
        self.read_sql(|sql| Ok(StoreSize { n_disk_bytes: self.n_disk_bytes(sql)?, ..tables::size(sql)? }))
    }
}

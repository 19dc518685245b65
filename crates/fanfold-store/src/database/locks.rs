//! Session locks: leases that let one process at a time fold a session.

use crate::database::sql::{Sql, SqlValue, query_row};
use crate::model::{Millis, SessionId};
use crate::store::{LockOutcome, SessionLock, StoreError};

type Result<T> = std::result::Result<T, StoreError>;

/// Takes or renews a lock, unless another holder's lease has not expired.
pub(crate) fn lock(
    sql: &mut dyn Sql,
    session: &SessionId,
    holder: &str,
    lease_ms: i64,
    now: Millis,
) -> Result<LockOutcome> {
    let until = Millis(now.0.saturating_add(lease_ms));
    let take = "INSERT INTO locks (session, holder, until) VALUES ($1, $2, $3) \
         ON CONFLICT (session) DO UPDATE SET holder = excluded.holder, until = excluded.until \
         WHERE locks.holder = excluded.holder OR locks.until <= $4";
    let values =
        [SqlValue::Text(&session.0), SqlValue::Text(holder), SqlValue::Int(until.0), SqlValue::Int(now.0)];
    let n_taken = sql.execute(take, &values)?;
    if n_taken > 0 {
        return Ok(LockOutcome::Acquired(SessionLock {
            session: session.clone(),
            holder: holder.to_owned(),
            until,
        }));
    }
    let found =
        query_row(sql, "SELECT holder, until FROM locks WHERE session = $1", &[SqlValue::Text(&session.0)])?;
    // The lock was released between the two statements, so the caller tries again.
    let mut found = found.ok_or(StoreError::Busy { tries: 1 })?;
    let (holder, until) = (found.text()?, Millis(found.int()?));
    Ok(LockOutcome::HeldByOther(SessionLock { session: session.clone(), holder, until }))
}

/// Releases a lock if `holder` holds it.
pub(crate) fn unlock(sql: &mut dyn Sql, session: &SessionId, holder: &str) -> Result<()> {
    let values = [SqlValue::Text(&session.0), SqlValue::Text(holder)];
    sql.execute("DELETE FROM locks WHERE session = $1 AND holder = $2", &values)?;
    Ok(())
}

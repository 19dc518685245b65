//! Lists sessions of a partly corrupt store.

use crate::model::SessionRow;
use crate::store::{SessionFilter, Store, StoreError};

/// The readable sessions of a store, and an error for each unreadable one.
#[derive(Debug, Default)]
pub struct ReadableSessions {
    /// The sessions that could be read.
    pub rows: Vec<SessionRow>,
    /// Why the other sessions could not be read.
    pub errors: Vec<StoreError>,
}

/// Lists the readable sessions in the order of [`Store::sessions`], so that one corrupt session does not hide the
/// others.
pub fn readable_sessions(store: &dyn Store, filter: &SessionFilter) -> ReadableSessions {
    let error = match store.sessions(filter) {
        Ok(rows) => return ReadableSessions { rows, errors: Vec::new() },
        Err(error) => error,
    };
    let Ok(size) = store.size() else { return ReadableSessions { rows: Vec::new(), errors: vec![error] } };
    let n_all = usize::try_from(size.n_sessions).unwrap_or(usize::MAX);
    let all =
        filter.offset..filter.offset.saturating_add(filter.limit.map_or(n_all, |limit| limit.min(n_all)));
    let mut readable = ReadableSessions::default();
    // One corrupt row fails the whole listing, so bisect the range until each corrupt row is alone.
    let mut parts = vec![all];
    while let Some(part) = parts.pop() {
        let page = SessionFilter { limit: Some(part.len()), offset: part.start, ..filter.clone() };
        match store.sessions(&page) {
            Ok(rows) => readable.rows.extend(rows),
            Err(StoreError::Corrupt(_)) if part.len() > 1 => {
                let middle = part.start + part.len() / 2;
                parts.extend([middle..part.end, part.start..middle]);
            }
            Err(error) => readable.errors.push(error),
        }
    }
    readable
}

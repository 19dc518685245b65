//! Sessions that can be read where others can't.

use crate::model::SessionRow;
use crate::store::{SessionFilter, Store, StoreError};

/// Sessions, and what is wrong with those that are not among them.
#[derive(Debug, Default)]
pub struct ReadableSessions {
    /// Those that can be read.
    pub rows: Vec<SessionRow>,
    /// Why the others can't.
    pub broken: Vec<StoreError>,
}

/// The sessions that can be read, in the order of [`Store::sessions`]: what is wrong with one does not hide the others.
pub fn readable_sessions(store: &dyn Store, filter: &SessionFilter) -> ReadableSessions {
    let error = match store.sessions(filter) {
        Ok(rows) => return ReadableSessions { rows, broken: Vec::new() },
        Err(error) => error,
    };
    let Ok(size) = store.size() else { return ReadableSessions { rows: Vec::new(), broken: vec![error] } };
    let n_all = usize::try_from(size.n_sessions).unwrap_or(usize::MAX);
    let all = filter.offset..filter.offset.saturating_add(filter.limit.map_or(n_all, |most| most.min(n_all)));
    let mut readable = ReadableSessions::default();
    // A list fails as a whole, so it is halved until what is broken stands alone.
    let mut parts = vec![all];
    while let Some(part) = parts.pop() {
        let some = SessionFilter { limit: Some(part.len()), offset: part.start, ..filter.clone() };
        match store.sessions(&some) {
            Ok(rows) => readable.rows.extend(rows),
            Err(StoreError::Broken(_)) if part.len() > 1 => {
                let middle = part.start + part.len() / 2;
                parts.extend([middle..part.end, part.start..middle]);
            }
            Err(error) => readable.broken.push(error),
        }
    }
    readable
}

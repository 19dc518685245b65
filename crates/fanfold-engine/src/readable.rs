//! Sessions that can be read where others can't.

use fanfold_store::{Filter, SessionRow, StoreError};

use crate::engine::Engine;

/// Sessions, and what is wrong with those that are not among them.
#[derive(Debug, Default)]
pub struct Readable {
    /// Those that can be read.
    pub rows: Vec<SessionRow>,
    /// Why the others can't.
    pub broken: Vec<StoreError>,
}

impl Engine {
    /// The sessions that can be read, in the order of [`sessions`](Self::sessions): what is wrong with one of them does
    /// not hide the others.
    pub fn readable(&self, filter: &Filter) -> Readable {
        let error = match self.sessions(filter) {
            Ok(rows) => return Readable { rows, broken: Vec::new() },
            Err(error) => error,
        };
        let Ok(size) = self.store.size() else { return Readable { rows: Vec::new(), broken: vec![error] } };
        let mut readable = Readable::default();
        // A list fails as a whole, so it is halved until what is broken stands alone.
        let all = 0..usize::try_from(size.n_sessions).unwrap_or(usize::MAX);
        let mut parts = vec![all];
        while let Some(part) = parts.pop() {
            let some = Filter { limit: Some(part.len()), offset: part.start, ..filter.clone() };
            match self.store.sessions(&some) {
                Ok(rows) => readable.rows.extend(rows),
                Err(StoreError::Broken(_)) if part.len() > 1 => {
                    let middle = part.start + part.len() / 2;
                    parts.extend([middle..part.end, part.start..middle]);
                }
                Err(error) => readable.broken.push(error),
            }
        }
        in_order(&mut readable.rows, filter.limit);
        readable
    }
}

/// Puts sessions in order, the last written to first; of two written to at once, the one that goes on. A limit counts in
/// this order, which the store does not know.
pub(crate) fn in_order(rows: &mut Vec<SessionRow>, limit: Option<usize>) {
    rows.sort_by_key(|row| (std::cmp::Reverse(row.updated_at), row.ended.is_some()));
    rows.truncate(limit.unwrap_or(usize::MAX));
}

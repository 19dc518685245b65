//! The window that a session was told.

use fanfold_core::Tokens;
use fanfold_store::{BlobId, SessionId, StoreError};

use crate::engine::Engine;
use crate::note::Note;
use crate::past::Past;
use crate::terms::Terms;

impl Engine {
    /// The window that a session was last told under terms like these; none where it is new or was begun by others.
    ///
    /// A host that has learnt a better window meanwhile keeps to this one: it would change the session in its middle.
    pub fn told_window(&self, session: &SessionId, terms: &Terms) -> Result<Option<Tokens>, StoreError> {
        let past = Past::read(&*self.store, session)?;
        let own = BlobId::of(terms.described.as_bytes()).to_string();
        let mut told = None;
        for noted in &past.notes {
            match &noted.note {
                Note::Began(began) => told = (began.terms == own).then_some(began.window),
                Note::Budget { window, .. } => told = told.map(|_| *window),
                _ => {}
            }
        }
        Ok(told.map(Tokens))
    }
}

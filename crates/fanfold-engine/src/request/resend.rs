//! A refused request, built again in a form that its provider accepts.

use fanfold_store::{Batch, Op, SessionId, StoreError};
use fanfold_wire::{Format, check_edits};

use crate::engine::SessionEngine;
use crate::log::body_edits::{BodyEdits, ProviderRules};
use crate::log::events::{SentRequest, SessionEvent};
use crate::log::session_log::SessionLog;

/// The changes that a provider accepts in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyForm {
    /// All changes, if the body follows these rules.
    Edited(ProviderRules),
    /// No change: only the body of the client.
    Verbatim,
}

impl Default for BodyForm {
    fn default() -> BodyForm {
        BodyForm::Edited(ProviderRules::default())
    }
}

/// Recorded with a request that was sent verbatim because its provider refused every other form.
pub(crate) const REJECTED: &str = "the provider refused every other form";

/// The bodies that a refused request is built again from.
#[derive(Debug, Clone, Copy)]
pub struct RefusedBody<'a> {
    /// The body before provider rules were applied.
    pub before_rules: &'a str,
    /// The refused body.
    pub sent: &'a str,
    /// The body of the client.
    pub received: &'a str,
    /// Its format.
    pub format: Format,
}

/// A body in another form.
#[derive(Debug)]
pub struct Resend {
    /// The body to send.
    pub body: String,
    /// Its edits.
    pub edits: BodyEdits,
}

impl SessionEngine {
    /// Builds the newest request of a session again, in another form, and records the result as another request.
    ///
    /// Returns `None`, and records nothing, if the new body equals the refused one.
    pub fn resend(
        &self,
        session: &SessionId,
        refused: RefusedBody<'_>,
        form: BodyForm,
    ) -> Result<Option<Resend>, StoreError> {
        let (body, rules) = match form {
            BodyForm::Verbatim => (refused.received.to_owned(), ProviderRules::default()),
            BodyForm::Edited(rules) => match rules.apply(refused.before_rules, refused.format) {
                Some(applied) if check_edits(refused.before_rules, &applied.0, refused.format).is_ok() => {
                    applied
                }
                _ => return Ok(None),
            },
        };
        if body == refused.sent {
            return Ok(None);
        }
        let log = SessionLog::read(&*self.store, session)?;
        let newest = log.events.into_iter().rev().find_map(|logged| match logged.event {
            SessionEvent::Request(sent) => Some(sent),
            _ => None,
        });
        let is_verbatim = form == BodyForm::Verbatim;
        let memory = newest.as_ref().filter(|_| !is_verbatim).and_then(|sent| sent.edits.memory.clone());
        let edits = BodyEdits { memory, rules };
        if let Some(sent) = newest {
            let hash = blake3::hash(body.as_bytes()).to_string();
            let bypass_reason = if is_verbatim { Some(REJECTED.to_owned()) } else { sent.bypass_reason };
            let n_bytes = body.len() as u64;
            let sent = SentRequest { hash, n_bytes, edits: edits.clone(), bypass_reason, ..sent };
            let ops = vec![Op::AddEvent(session.clone(), SessionEvent::Request(sent).encode())];
            self.store.commit(&Batch { at: self.clock.now(), expected_tips: Vec::new(), ops })?;
        }
        Ok(Some(Resend { body, edits }))
    }
}

//! The recall offer of a session: a tool, a hint, or both.
//!
//! It is decided at the first request and stays the same for the life of the session, so that the provider's cache
//! stays valid. The only change is to withdraw a tool that the provider rejects.

use serde::{Deserialize, Serialize};

use crate::log::events::SessionEvent;
use crate::log::session_log::SessionLog;

/// The means of the model to recall folded originals.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecallOffer {
    /// The JSON of a tool that is added to each request, in the format of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The instruction in stubs on how to recall an original; `None` for the policy's own.
    #[serde(rename = "words", default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl SessionLog {
    /// The current recall offer.
    pub(crate) fn offer(&self) -> Option<&RecallOffer> {
        self.offer_before(self.events.len()).map(|(_, offer)| offer)
    }

    /// The newest recall offer among the first `n_events` events, with the index of its event.
    pub(crate) fn offer_before(&self, n_events: usize) -> Option<(usize, &RecallOffer)> {
        let events = self.events.iter().take(n_events).enumerate().rev();
        events.into_iter().find_map(|(i, logged)| match &logged.event {
            SessionEvent::RecallOffered(offer) => Some((i, offer)),
            _ => None,
        })
    }

    /// Returns true if a request was sent. A session without an offer then stays without one.
    pub(crate) fn has_requests(&self) -> bool {
        self.events.iter().any(|logged| matches!(logged.event, SessionEvent::Request(_)))
    }
}

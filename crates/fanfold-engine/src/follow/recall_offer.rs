//! How the model of a session may open folds. It is decided at the first request and holds for the session's life, so
//! that what a provider has cached stays what is sent. Only a tool that the provider does not take is taken back, for good.

use fanfold_store::{Op, SessionId};
use serde::{Deserialize, Serialize};

use crate::engine::{Engine, OpError};
use crate::follow::terms::Terms;
use crate::log::notes::Note;
use crate::log::session_log::Past;

/// How the model may open folds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Offer {
    /// The JSON of a tool that is added to each request, in the format of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The sentence that tells the model how to open a fold; none leaves that to the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

impl Offer {
    /// Terms by which folds name the way that exists.
    pub(crate) fn within(&self, terms: &Terms) -> Terms {
        let mut terms = terms.clone();
        if let Some(words) = &self.words {
            terms.policy.recall = words.clone().into();
        }
        terms
    }
}

impl Engine {
    /// Takes a tool back that the provider of a session does not take: from the next request on, folds have these words.
    pub fn withdraw(&self, session: &SessionId, words: &str) -> Result<(), OpError> {
        let offer = Offer { tool: None, words: Some(words.to_owned()) };
        self.write(vec![Op::AddEvent(session.clone(), Note::Offered(offer).event())])
    }
}

impl Past {
    /// What was decided for the session.
    pub(crate) fn offer(&self) -> Option<&Offer> {
        self.offer_after(self.notes.len()).map(|(_, offer)| offer)
    }

    /// What held after so many notes, and which of them says so: the last word.
    pub(crate) fn offer_after(&self, until: usize) -> Option<(usize, &Offer)> {
        let notes = self.notes.iter().take(until).enumerate().rev();
        notes.into_iter().find_map(|(i, noted)| match &noted.note {
            Note::Offered(offer) => Some((i, offer)),
            _ => None,
        })
    }

    /// Whether anything was sent yet: then the choice was made, if only by leaving it out.
    pub(crate) fn has_sent(&self) -> bool {
        self.notes.iter().any(|noted| matches!(noted.note, Note::Request(_)))
    }
}

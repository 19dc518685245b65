//! Search requests and errors.

use serde::Deserialize;

use crate::model::{Millis, Role, SessionId};
use crate::search::spec::HitOrder;
use crate::store::{Store, StoreError};

/// A search request. The fields select the kind of reply: a session and a message in it (scroll), a session (read), a
/// query (discover), or none of them (browse).
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct SearchRequest {
    /// The query.
    pub query: Option<String>,
    /// The maximum number of results, from 1 to 10; default 3 (browse: 10).
    pub limit: Option<i64>,
    /// Sort by date instead of by score.
    pub sort: Option<DateOrder>,
    /// A session; `profile/session` if it is in another profile. A query then searches only this session.
    pub session_id: Option<String>,
    /// The number of a message.
    pub around_message_id: Option<i64>,
    /// The number of messages on either side of a hit, from 1 to 20; default 5.
    pub window: Option<i64>,
    /// Comma-separated roles: user, assistant, tool, system, other. Default: all except system.
    pub role_filter: Option<String>,
    /// Another profile.
    pub profile: Option<String>,
    /// Comma-separated sources of sessions. Default: all except `subagent` and `tool`.
    pub source_filter: Option<String>,
    /// Only messages of this time or later, in seconds since 1970.
    pub since: Option<f64>,
    /// Only messages before this time, in seconds since 1970.
    pub before: Option<f64>,
    /// The number of results to skip.
    pub offset: Option<i64>,
    /// Longer texts of messages are truncated to this number of characters; default 4,000 in discover, else
    /// unlimited.
    pub max_chars: Option<i64>,
}

/// The order of results by date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DateOrder {
    /// The newest first.
    Newest,
    /// The oldest first.
    Oldest,
}

impl SearchRequest {
    /// The largest accepted `limit`.
    pub const MAX_RESULTS: i64 = 10;

    pub(crate) fn order(&self) -> HitOrder {
        match self.sort {
            None => HitOrder::Best,
            Some(DateOrder::Newest) => HitOrder::Newest,
            Some(DateOrder::Oldest) => HitOrder::Oldest,
        }
    }

    pub(crate) fn limit(&self, default: usize) -> usize {
        clamp(self.limit, default, 1, Self::MAX_RESULTS)
    }

    pub(crate) fn window(&self) -> u32 {
        clamp(self.window, 5, 1, 20) as u32
    }

    pub(crate) fn offset(&self) -> usize {
        clamp(self.offset, 0, 0, 10_000)
    }

    pub(crate) fn max_chars(&self, default: Option<usize>) -> Option<usize> {
        self.max_chars.map(|given| clamp(Some(given), 0, 100, 10_000_000)).or(default)
    }

    pub(crate) fn since(&self) -> Option<Millis> {
        self.since.map(millis_from_seconds)
    }

    pub(crate) fn before(&self) -> Option<Millis> {
        self.before.map(millis_from_seconds)
    }

    /// Returns the requested roles. An unknown name is an error, because ignoring it would look like an empty result.
    pub(crate) fn roles(&self) -> Result<Vec<Role>, SearchError> {
        let names: Vec<&str> = split_list(self.role_filter.as_deref());
        if names.is_empty() {
            return Ok(vec![Role::User, Role::Assistant, Role::Tool, Role::Other]);
        }
        let role = |name: &&str| {
            let role = Role::NAMES.iter().find(|(known, _)| known == name).map(|(_, role)| *role);
            role.ok_or_else(|| SearchError::NoRole((*name).to_owned()))
        };
        names.iter().map(role).collect()
    }

    pub(crate) fn sources(&self) -> Vec<String> {
        split_list(self.source_filter.as_deref()).into_iter().map(str::to_owned).collect()
    }

    /// Returns the requested profile and session, if any.
    pub(crate) fn profile_and_session(&self) -> (Option<&str>, Option<SessionId>) {
        let profile = self.profile.as_deref().map(str::trim).filter(|profile| !profile.is_empty());
        let session = self.session_id.as_deref().map(str::trim).filter(|session| !session.is_empty());
        match session.and_then(|session| session.split_once('/')) {
            Some((profile, session)) => (Some(profile), Some(SessionId(session.to_owned()))),
            None => (profile, session.map(|session| SessionId(session.to_owned()))),
        }
    }
}

fn split_list(names: Option<&str>) -> Vec<&str> {
    names.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty()).collect()
}

fn clamp(given: Option<i64>, default: usize, min: i64, max: i64) -> usize {
    given.map_or(default, |given| given.clamp(min, max) as usize)
}

fn millis_from_seconds(seconds: f64) -> Millis {
    Millis((seconds * 1_000.0) as i64)
}

/// Why a search request failed. Agents see these messages.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// No session has this id.
    #[error("there is no session {0}\n\nhint: leave out session_id to see the last sessions")]
    NoSession(SessionId),
    /// The session does not contain the message.
    #[error("session {session} has no message {number}\n\nhint: take an id from the messages of a result")]
    NoMessage {
        /// The session.
        session: SessionId,
        /// The number.
        number: i64,
    },
    /// No role has this name.
    #[error("there is no role {0:?}\n\nhint: roles are user, assistant, tool, system and other")]
    NoRole(String),
    /// No profile has this name.
    #[error("there is no profile {name:?}\n\nhint: profiles are {}", known.join(", "))]
    NoProfile {
        /// The requested name.
        name: String,
        /// The names of the existing profiles.
        known: Vec<String>,
    },
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The stores of other profiles.
pub trait Profiles {
    /// Returns the names of all profiles.
    fn names(&self) -> Vec<String>;

    /// Opens the store of a profile read-only.
    fn open(&self, name: &str) -> Result<Box<dyn Store>, StoreError>;
}

/// No other profiles.
#[derive(Debug, Clone, Copy)]
pub struct NoProfiles;

impl Profiles for NoProfiles {
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn open(&self, name: &str) -> Result<Box<dyn Store>, StoreError> {
        Err(StoreError::Corrupt(format!("there is no profile {name}")))
    }
}

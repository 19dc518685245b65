//! What a caller may ask, and why there may be no answer.

use serde::Deserialize;

use crate::model::{Millis, Role, SessionId};
use crate::search::spec::HitOrder;
use crate::store::{Store, StoreError};

/// What a caller asks. Which fields are given decides what for: a session and a message in it (scroll), a session
/// (read), words (discover), or nothing (browse).
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct SearchRequest {
    /// Words to look for.
    pub query: Option<String>,
    /// At most so many results, from 1 to 10; 3 if none is given (browse: 10).
    pub limit: Option<i64>,
    /// The newest or the oldest first; the best, if nothing is said.
    pub sort: Option<DateOrder>,
    /// A session; `profile/session` where it is in another profile. With words: only there.
    pub session_id: Option<String>,
    /// The number of a message.
    pub around_message_id: Option<i64>,
    /// So many messages on either side, from 1 to 20; 5 if none is given.
    pub window: Option<i64>,
    /// Roles, by commas: user, assistant, tool, system, other. All but system if nothing is said.
    pub role_filter: Option<String>,
    /// Another profile.
    pub profile: Option<String>,
    /// Sessions of these sources, by commas. All but `subagent` and `tool` if nothing is said.
    pub source_filter: Option<String>,
    /// Said at this moment or later, in seconds since 1970.
    pub since: Option<f64>,
    /// Said before this moment, in seconds since 1970.
    pub before: Option<f64>,
    /// Results to skip.
    pub offset: Option<i64>,
    /// The longest text of a message that is shown whole, in characters; 4,000 in discover, else all of it.
    pub max_chars: Option<i64>,
}

/// Which come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DateOrder {
    /// The newest ones.
    Newest,
    /// The oldest ones.
    Oldest,
}

impl SearchRequest {
    /// No more results than this are given at once.
    pub const MAX_RESULTS: i64 = 10;

    pub(crate) fn order(&self) -> HitOrder {
        match self.sort {
            None => HitOrder::Best,
            Some(DateOrder::Newest) => HitOrder::Newest,
            Some(DateOrder::Oldest) => HitOrder::Oldest,
        }
    }

    pub(crate) fn limit(&self, usual: usize) -> usize {
        clamp(self.limit, usual, 1, Self::MAX_RESULTS)
    }

    pub(crate) fn window(&self) -> u32 {
        clamp(self.window, 5, 1, 20) as u32
    }

    pub(crate) fn offset(&self) -> usize {
        clamp(self.offset, 0, 0, 10_000)
    }

    pub(crate) fn max_chars(&self, usual: Option<usize>) -> Option<usize> {
        self.max_chars.map(|given| clamp(Some(given), 0, 100, 10_000_000)).or(usual)
    }

    pub(crate) fn since(&self) -> Option<Millis> {
        self.since.map(millis_from_seconds)
    }

    pub(crate) fn before(&self) -> Option<Millis> {
        self.before.map(millis_from_seconds)
    }

    /// The roles that are meant. Names that are no role are an error: silence would look like nothing was found.
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

    /// The profile and the session that are meant, where they are given.
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

fn clamp(given: Option<i64>, usual: usize, least: i64, most: i64) -> usize {
    given.map_or(usual, |given| given.clamp(least, most) as usize)
}

fn millis_from_seconds(seconds: f64) -> Millis {
    Millis((seconds * 1_000.0) as i64)
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// There is no such session.
    #[error("there is no session {0}\n\nhint: leave out session_id to see the last sessions")]
    NoSession(SessionId),
    /// The session has no such message.
    #[error("session {session} has no message {number}\n\nhint: take an id from the messages of a result")]
    NoMessage {
        /// The session.
        session: SessionId,
        /// The number.
        number: i64,
    },
    /// There is no such role.
    #[error("there is no role {0:?}\n\nhint: roles are user, assistant, tool, system and other")]
    NoRole(String),
    /// There is no such profile.
    #[error("there is no profile {name:?}\n\nhint: profiles are {}", known.join(", "))]
    NoProfile {
        /// Its name.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Other people's stores, or other ones of the same person.
pub trait Profiles {
    /// The names of all of them.
    fn names(&self) -> Vec<String>;

    /// Opens one so that nothing in it can be changed.
    fn open(&self, name: &str) -> Result<Box<dyn Store>, StoreError>;
}

/// No other profile.
#[derive(Debug, Clone, Copy)]
pub struct NoProfiles;

impl Profiles for NoProfiles {
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn open(&self, name: &str) -> Result<Box<dyn Store>, StoreError> {
        Err(StoreError::Broken(format!("there is no profile {name}")))
    }
}

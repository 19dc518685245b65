//! Search requests and the four kinds of reply: discover, scroll, read, browse.

pub(crate) mod request; //  search requests and errors
pub(crate) mod display; //  messages in replies
pub(crate) mod discover; // the reply to a query

use serde::Serialize;
use serde_json::Value;

use crate::model::{Node, Role, SessionId, SessionRow};
use crate::readable_sessions::{ReadableSessions, readable_sessions};
use crate::search::replies::discover::DiscoveredSession;
use crate::search::replies::display::{DisplayMessage, unix_seconds};
use crate::search::replies::request::{NoProfiles, Profiles, SearchError, SearchRequest};
use crate::search::spec::LiveMessages;
use crate::store::{SessionFilter, Store};

/// Sessions of up to this many messages are shown whole; of longer ones, the first and the last messages are shown.
const READ_WHOLE: u32 = 30;
const READ_HEAD: u32 = 20;
const READ_TAIL: u32 = 10;
/// The maximum length of a session's preview.
const PREVIEW_CHARS: usize = 60;
/// The sources of sessions that are shown only if requested explicitly.
pub(crate) const QUIET_SOURCES: [&str; 2] = ["subagent", "tool"];

/// Answers search requests on a store and on the stores of other profiles.
pub struct Searcher<'a> {
    /// The store.
    pub store: &'a dyn Store,
    /// The stores of other profiles.
    pub profiles: &'a dyn Profiles,
    /// The calling session with the messages in its view, which are left out of the hits.
    pub caller: Option<LiveMessages>,
}

/// A reply. An agent receives it as JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
pub enum SearchReply {
    /// Sessions that match a query.
    Discover(DiscoverReply),
    /// The messages around a message.
    Scroll(ScrollReply),
    /// The messages of a session.
    Read(ReadReply),
    /// The most recent sessions.
    Browse(BrowseReply),
}

/// Sessions that match a query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiscoverReply {
    /// Always true; an error has its own JSON.
    pub success: bool,
    /// The query.
    pub query: String,
    /// The best hit of each lineage; every hit if the search is limited to one session.
    pub results: Vec<DiscoveredSession>,
    /// The number of results.
    pub count: usize,
    /// The number of lineages with a candidate.
    pub sessions_searched: usize,
    /// True if no message contains these words, and the results contain them only as parts of longer words.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub widened: bool,
    /// True if only the newest of very many candidates were ranked, or a prefix or part of a word was expanded to only
    /// some of the words that contain it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bounded: bool,
    /// A hint for the next request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The profile of the results, if it is not the caller's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// The messages around a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScrollReply {
    /// Always true; an error has its own JSON.
    pub success: bool,
    /// The session.
    pub session_id: String,
    /// The number of the message.
    pub around_message_id: u64,
    /// Data about the session.
    pub session_meta: SessionMeta,
    /// The maximum number of messages on either side.
    pub window: u32,
    /// The messages.
    pub messages: Vec<DisplayMessage>,
    /// The number of messages before them in the session.
    pub messages_before: u32,
    /// The number of messages after them in the session.
    pub messages_after: u32,
    /// A warning that the message is in another session of the lineage than requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// The profile of the session, if it is not the caller's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// The messages of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReadReply {
    /// Always true; an error has its own JSON.
    pub success: bool,
    /// The session.
    pub session_id: String,
    /// Data about the session.
    pub session_meta: SessionMeta,
    /// The number of messages in the session.
    pub message_count: u32,
    /// True if messages were left out.
    pub truncated: bool,
    /// All messages, or the first and the last ones.
    pub messages: Vec<DisplayMessage>,
    /// A hint for the next request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The profile of the session, if it is not the caller's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// The most recent sessions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BrowseReply {
    /// Always true; an error has its own JSON.
    pub success: bool,
    /// The sessions, the last written to first.
    pub results: Vec<BrowsedSession>,
    /// The number of results.
    pub count: usize,
    /// A hint for the next request.
    pub message: String,
    /// The profile of the results, if it is not the caller's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// A session in a [`BrowseReply`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BrowsedSession {
    /// The id.
    pub session_id: String,
    /// The title.
    pub title: Option<String>,
    /// The program that created it.
    pub source: String,
    /// When it was created, in seconds since 1970.
    pub started_at: f64,
    /// When it was last written to, in seconds since 1970.
    pub last_active: f64,
    /// The number of messages.
    pub message_count: u32,
    /// The beginning of the first user message; of the first message if the first ten include no user message.
    pub preview: String,
    /// The parent session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<String>,
}

/// Data about a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionMeta {
    /// When it was created.
    pub when: String,
    /// The program that created it.
    pub source: String,
    /// The model that it was last sent to.
    pub model: Option<String>,
    /// The title.
    pub title: Option<String>,
    /// The goal of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<String>,
}

impl<'a> Searcher<'a> {
    /// Creates a searcher on one store, without other profiles and without a calling session.
    pub fn new(store: &'a dyn Store) -> Searcher<'a> {
        Searcher { store, profiles: &NoProfiles, caller: None }
    }

    /// Answers a request.
    pub fn answer(&self, request: &SearchRequest) -> Result<SearchReply, SearchError> {
        let (profile, session) = self.resolve_profile(request)?;
        let query = request.query.as_deref().map(str::trim).filter(|query| !query.is_empty());
        if let Some(profile) = profile {
            return self.in_profile(profile, request, query, session);
        }
        let here = ProfileSearch { search: self, store: self.store, profile: None };
        match here.answer(request, query, session) {
            // Look for an unknown session in the other profiles, because ids are unique across profiles.
            Err(SearchError::NoSession(session)) => {
                for name in self.profiles.names() {
                    let Ok(store) = self.profiles.open(&name) else { continue };
                    if store.session(&session)?.is_some() {
                        return self.in_profile(&name, request, query, Some(session));
                    }
                }
                Err(SearchError::NoSession(session))
            }
            answer => answer,
        }
    }

    /// Returns the requested profile and session. An existing session of this store may have an id that looks like
    /// `profile/session`.
    fn resolve_profile<'r>(
        &self,
        request: &'r SearchRequest,
    ) -> Result<(Option<&'r str>, Option<SessionId>), SearchError> {
        let (profile, session) = request.profile_and_session();
        let full_id = request.session_id.as_deref().map(|name| SessionId(name.trim().to_owned()));
        let has_profile_field = request.profile.as_deref().is_some_and(|profile| !profile.trim().is_empty());
        match full_id.filter(|id| profile.is_some() && !has_profile_field && id.0.contains('/')) {
            Some(full_id) if self.store.session(&full_id)?.is_some() => Ok((None, Some(full_id))),
            _ => Ok((profile, session)),
        }
    }

    /// Answers a request with the JSON for agents. An error becomes JSON, too.
    pub fn answer_json(&self, request: &SearchRequest) -> Value {
        let error = |error: &dyn std::fmt::Display| serde_json::json!({ "success": false, "error": error.to_string() });
        match self.answer(request) {
            Ok(reply) => serde_json::to_value(&reply).unwrap_or_else(|failed| error(&failed)),
            Err(failed) => error(&failed),
        }
    }

    fn in_profile(
        &self,
        name: &str,
        request: &SearchRequest,
        query: Option<&str>,
        session: Option<SessionId>,
    ) -> Result<SearchReply, SearchError> {
        let known = self.profiles.names();
        if !known.iter().any(|known| known == name) {
            return Err(SearchError::NoProfile { name: name.to_owned(), known });
        }
        let store = self.profiles.open(name)?;
        // The caller's session is in its own store, so it has no live messages here.
        let search = Searcher { store: &*store, profiles: &NoProfiles, caller: None };
        ProfileSearch { search: &search, store: &*store, profile: Some(name) }.answer(request, query, session)
    }
}

/// A search in the store of one profile.
pub(crate) struct ProfileSearch<'a> {
    pub(crate) search: &'a Searcher<'a>,
    pub(crate) store: &'a dyn Store,
    pub(crate) profile: Option<&'a str>,
}

impl ProfileSearch<'_> {
    fn answer(
        &self,
        request: &SearchRequest,
        query: Option<&str>,
        session: Option<SessionId>,
    ) -> Result<SearchReply, SearchError> {
        match (session, request.around_message_id, query) {
            (Some(session), Some(number), _) => {
                self.scroll(request, &session, number).map(SearchReply::Scroll)
            }
            (session, _, Some(query)) => self.discover(request, query, session).map(SearchReply::Discover),
            (Some(session), None, None) => self.read(request, &session).map(SearchReply::Read),
            (None, _, None) => self.browse(request).map(SearchReply::Browse),
        }
    }

    pub(crate) fn profile(&self) -> Option<String> {
        self.profile.map(str::to_owned)
    }

    fn session(&self, id: &SessionId) -> Result<SessionRow, SearchError> {
        self.store.session(id)?.ok_or_else(|| SearchError::NoSession(id.clone()))
    }

    fn scroll(
        &self,
        request: &SearchRequest,
        id: &SessionId,
        number: i64,
    ) -> Result<ScrollReply, SearchError> {
        let no_message = || SearchError::NoMessage { session: id.clone(), number };
        let named = self.session(id)?;
        let node =
            u64::try_from(number).ok().map(|number| self.store.node_by_number(number)).transpose()?.flatten();
        let node = node.ok_or_else(no_message)?;
        let owners = self.store.owners(node.id)?;
        let (row, warning) = if owners.contains(id) {
            (named, None)
        } else {
            // The message may be in another rotation of the same lineage.
            let mut related = Vec::new();
            for owner in &owners {
                related.extend(self.store.session(owner)?.filter(|row| row.root == named.root));
            }
            let row = related.pop().ok_or_else(no_message)?;
            let warning =
                format!("message {number} is not in session {id}; these messages are from {}", row.id);
            (row, Some(warning))
        };
        let window = request.window();
        let (mut messages, range) = self.window(&row, node.depth, window, request.max_chars(None))?;
        messages.iter_mut().for_each(|message| message.anchor = message.id == node.number);
        Ok(ScrollReply {
            success: true,
            session_id: row.id.0.clone(),
            around_message_id: node.number,
            session_meta: SessionMeta::from_row(&row),
            window,
            messages,
            messages_before: range.start,
            messages_after: row.n_messages - range.end,
            warning,
            profile: self.profile(),
        })
    }

    /// Returns the messages of a session around a depth, and their depths.
    pub(crate) fn window(
        &self,
        row: &SessionRow,
        depth: u32,
        window: u32,
        max_chars: Option<usize>,
    ) -> Result<(Vec<DisplayMessage>, std::ops::Range<u32>), SearchError> {
        let range = depth.saturating_sub(window)..(depth + window + 1).min(row.n_messages);
        let nodes = self.chain(row, range.clone())?;
        Ok((nodes.iter().map(|node| DisplayMessage::from_node(node, max_chars)).collect(), range))
    }

    pub(crate) fn chain(
        &self,
        row: &SessionRow,
        depths: std::ops::Range<u32>,
    ) -> Result<Vec<Node>, SearchError> {
        match row.tip {
            Some(tip) if !depths.is_empty() => Ok(self.store.readable_chain(tip, depths)?),
            _ => Ok(Vec::new()),
        }
    }

    fn read(&self, request: &SearchRequest, id: &SessionId) -> Result<ReadReply, SearchError> {
        let row = self.session(id)?;
        let n = row.n_messages;
        let truncated = n > READ_WHOLE;
        let mut nodes = self.chain(&row, 0..if truncated { READ_HEAD } else { n })?;
        let mut message = None;
        if truncated {
            nodes.extend(self.chain(&row, n - READ_TAIL..n)?);
            let last = nodes.get(READ_HEAD as usize - 1).map_or(0, |node| node.number);
            message = Some(format!(
                "the first {READ_HEAD} and the last {READ_TAIL} of {n} messages; scroll with around_message_id \
                 {last} to see those between them"
            ));
        }
        let max_chars = request.max_chars(None);
        Ok(ReadReply {
            success: true,
            session_id: row.id.0.clone(),
            session_meta: SessionMeta::from_row(&row),
            message_count: n,
            truncated,
            messages: nodes.iter().map(|node| DisplayMessage::from_node(node, max_chars)).collect(),
            message,
            profile: self.profile(),
        })
    }

    fn browse(&self, request: &SearchRequest) -> Result<BrowseReply, SearchError> {
        let limit = request.limit(10);
        let sources = request.sources();
        let own_root = match &self.search.caller {
            Some(caller) => self.store.session(&caller.session)?.map(|row| row.root),
            None => None,
        };
        let mut seen: Vec<SessionId> = Vec::new();
        let mut results = Vec::new();
        let mut n_skipped = 0;
        let (mut offset, step) = (0, 100);
        while results.len() < limit {
            let filter = SessionFilter {
                since: request.since(),
                before: request.before(),
                limit: Some(step),
                offset,
                ..SessionFilter::default()
            };
            // An unreadable session does not hide the others.
            let ReadableSessions { rows, errors } = readable_sessions(self.store, &filter);
            if let Some(error) = errors.into_iter().next().filter(|_| rows.is_empty()) {
                return Err(error.into());
            }
            let is_last = rows.is_empty();
            for row in rows {
                let is_quiet = QUIET_SOURCES.contains(&row.source.as_str());
                let is_selected = if sources.is_empty() { !is_quiet } else { sources.contains(&row.source) };
                let is_new = !seen.contains(&row.root);
                if !is_selected || !is_new || own_root.as_ref() == Some(&row.root) || row.tip.is_none() {
                    continue;
                }
                // The first row of a lineage is its last active session, which represents the lineage.
                seen.push(row.root.clone());
                if n_skipped < request.offset() {
                    n_skipped += 1;
                } else if results.len() < limit {
                    results.push(self.describe_session(&row)?);
                }
            }
            if is_last {
                break;
            }
            offset += step;
        }
        Ok(BrowseReply {
            success: true,
            count: results.len(),
            results,
            message: "read one with its session_id, or look for words with a query".to_owned(),
            profile: self.profile(),
        })
    }

    fn describe_session(&self, row: &SessionRow) -> Result<BrowsedSession, SearchError> {
        let first = self.chain(row, 0..row.n_messages.min(10))?;
        let first = first.iter().find(|node| node.role == Role::User).or(first.first());
        let text = first.map(|node| DisplayMessage::from_node(node, Some(1_000)).content).unwrap_or_default();
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let preview = match line.char_indices().nth(PREVIEW_CHARS) {
            Some((at, _)) => format!("{}…", &line[..at]),
            None => line,
        };
        Ok(BrowsedSession {
            session_id: row.id.0.clone(),
            title: row.title.clone(),
            source: row.source.clone(),
            started_at: unix_seconds(row.started_at),
            last_active: unix_seconds(row.updated_at),
            message_count: row.n_messages,
            preview,
            parent_session_id: row.parent.as_ref().map(|(parent, _)| parent.0.clone()),
        })
    }
}

impl SessionMeta {
    pub(crate) fn from_row(row: &SessionRow) -> SessionMeta {
        SessionMeta {
            when: row.started_at.to_string(),
            source: row.source.clone(),
            model: row.model.clone(),
            title: row.title.clone(),
            goal: row.goal.clone(),
            end_reason: row.ended.as_ref().map(|(_, reason)| reason.name().to_owned()),
        }
    }
}

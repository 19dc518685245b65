//! Search requests and the four kinds of reply: discover, scroll, read, browse.

pub(crate) mod request; //  what a caller may ask
pub(crate) mod display; //  a message in a reply
pub(crate) mod discover; // the first kind of reply

use serde::Serialize;
use serde_json::Value;

use crate::model::{Node, Role, SessionId, SessionRow};
use crate::readable_sessions::{ReadableSessions, readable_sessions};
use crate::search::replies::discover::DiscoveredSession;
use crate::search::replies::display::{DisplayMessage, unix_seconds};
use crate::search::replies::request::{NoProfiles, Profiles, SearchError, SearchRequest};
use crate::search::spec::LiveMessages;
use crate::store::{SessionFilter, Store};

/// A session that is longer is read by its head and its tail.
const READ_WHOLE: u32 = 30;
const READ_HEAD: u32 = 20;
const READ_TAIL: u32 = 10;
/// A first line of a session is no longer than this.
const PREVIEW_CHARS: usize = 60;
/// Sessions of these sources work for others and are shown when asked for.
pub(crate) const QUIET_SOURCES: [&str; 2] = ["subagent", "tool"];

/// Where to search, and who asks.
pub struct Searcher<'a> {
    /// The store.
    pub store: &'a dyn Store,
    /// Other stores.
    pub profiles: &'a dyn Profiles,
    /// Who asks, and what they see already.
    pub caller: Option<LiveMessages>,
}

/// An answer. Its JSON has the fields that agents know, and a few more.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
pub enum SearchReply {
    /// Which sessions say this.
    Discover(DiscoverReply),
    /// What was said around a message.
    Scroll(ScrollReply),
    /// What was said in a session.
    Read(ReadReply),
    /// The last sessions.
    Browse(BrowseReply),
}

/// Which sessions say this.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiscoverReply {
    /// Always so: an error is no reply.
    pub success: bool,
    /// What was looked for.
    pub query: String,
    /// The best of each lineage.
    pub results: Vec<DiscoveredSession>,
    /// How many there are.
    pub count: usize,
    /// How many lineages had something to say.
    pub sessions_searched: usize,
    /// No message has these words, but these have them as parts of words.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub widened: bool,
    /// So many messages have these words that only the newest of them were ranked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bounded: bool,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The profile they are in, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// What was said around a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScrollReply {
    /// Always so: an error is no reply.
    pub success: bool,
    /// The session.
    pub session_id: String,
    /// The message.
    pub around_message_id: u64,
    /// About the session.
    pub session_meta: SessionMeta,
    /// So many on either side.
    pub window: u32,
    /// The messages.
    pub messages: Vec<DisplayMessage>,
    /// How many come before them.
    pub messages_before: u32,
    /// How many come after them.
    pub messages_after: u32,
    /// The message is in another session than was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// The profile it is in, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// What was said in a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReadReply {
    /// Always so: an error is no reply.
    pub success: bool,
    /// The session.
    pub session_id: String,
    /// About the session.
    pub session_meta: SessionMeta,
    /// How many messages it has.
    pub message_count: u32,
    /// Whether there are more than these.
    pub truncated: bool,
    /// All of them, or the first and the last ones.
    pub messages: Vec<DisplayMessage>,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The profile it is in, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// The last sessions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BrowseReply {
    /// Always so: an error is no reply.
    pub success: bool,
    /// The newest first.
    pub results: Vec<BrowsedSession>,
    /// How many there are.
    pub count: usize,
    /// What to do next.
    pub message: String,
    /// The profile they are in, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// One of the last sessions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BrowsedSession {
    /// Its id.
    pub session_id: String,
    /// What people call it.
    pub title: Option<String>,
    /// Who made it.
    pub source: String,
    /// When it was made, in seconds since 1970.
    pub started_at: f64,
    /// When something was last said, in seconds since 1970.
    pub last_active: f64,
    /// How many messages it has.
    pub message_count: u32,
    /// How it begins.
    pub preview: String,
    /// The session it was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<String>,
}

/// What is known about a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionMeta {
    /// When it began.
    pub when: String,
    /// Who made it.
    pub source: String,
    /// The model it was sent to.
    pub model: Option<String>,
    /// What people call it.
    pub title: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<String>,
}

impl<'a> Searcher<'a> {
    /// A search in one store, for nobody in particular.
    pub fn new(store: &'a dyn Store) -> Searcher<'a> {
        Searcher { store, profiles: &NoProfiles, caller: None }
    }

    /// Answers whatever is asked.
    pub fn answer(&self, request: &SearchRequest) -> Result<SearchReply, SearchError> {
        let (profile, session) = self.resolve_profile(request)?;
        let query = request.query.as_deref().map(str::trim).filter(|query| !query.is_empty());
        if let Some(profile) = profile {
            return self.in_profile(profile, request, query, session);
        }
        let here = ProfileSearch { search: self, store: self.store, profile: None };
        match here.answer(request, query, session) {
            // A session that is not here may be in another profile: ids are unique, and people forget where they were.
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

    /// The profile and the session that are meant. A session of ours may have a name that looks like both.
    fn resolve_profile<'r>(
        &self,
        request: &'r SearchRequest,
    ) -> Result<(Option<&'r str>, Option<SessionId>), SearchError> {
        let (profile, session) = request.profile_and_session();
        let whole = request.session_id.as_deref().map(|name| SessionId(name.trim().to_owned()));
        let is_given = request.profile.as_deref().is_some_and(|profile| !profile.trim().is_empty());
        match whole.filter(|whole| profile.is_some() && !is_given && whole.0.contains('/')) {
            Some(whole) if self.store.session(&whole)?.is_some() => Ok((None, Some(whole))),
            _ => Ok((profile, session)),
        }
    }

    /// Answers in JSON: what agents are told, also when there is no answer.
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
        // What the caller sees is of its own store.
        let search = Searcher { store: &*store, profiles: &NoProfiles, caller: None };
        ProfileSearch { search: &search, store: &*store, profile: Some(name) }.answer(request, query, session)
    }
}

/// Where an answer is looked for.
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
            // It may be in a session that went on with this one, or that this one went on with.
            let mut related = Vec::new();
            for owner in &owners {
                related.extend(self.store.session(owner)?.filter(|row| row.root == named.root));
            }
            let row = related.pop().ok_or_else(no_message)?;
            let warning =
                format!("message {number} is in session {}, not in {id}; this is from there", row.id);
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

    /// The messages of a session around a depth.
    pub(crate) fn window(
        &self,
        row: &SessionRow,
        depth: u32,
        window: u32,
        longest: Option<usize>,
    ) -> Result<(Vec<DisplayMessage>, std::ops::Range<u32>), SearchError> {
        let range = depth.saturating_sub(window)..(depth + window + 1).min(row.n_messages);
        let nodes = self.chain(row, range.clone())?;
        Ok((nodes.iter().map(|node| DisplayMessage::from_node(node, longest)).collect(), range))
    }

    pub(crate) fn chain(
        &self,
        row: &SessionRow,
        depths: std::ops::Range<u32>,
    ) -> Result<Vec<Node>, SearchError> {
        match row.tip {
            Some(tip) if !depths.is_empty() => Ok(self.store.chain(tip, depths)?),
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
                 {last} for what is between them"
            ));
        }
        let longest = request.max_chars(None);
        Ok(ReadReply {
            success: true,
            session_id: row.id.0.clone(),
            session_meta: SessionMeta::from_row(&row),
            message_count: n,
            truncated,
            messages: nodes.iter().map(|node| DisplayMessage::from_node(node, longest)).collect(),
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
            // One that is broken does not keep the others from being shown.
            let ReadableSessions { rows, broken } = readable_sessions(self.store, &filter);
            if let Some(error) = broken.into_iter().next().filter(|_| rows.is_empty()) {
                return Err(error.into());
            }
            let is_last = rows.is_empty();
            for row in rows {
                let is_quiet = QUIET_SOURCES.contains(&row.source.as_str());
                let is_meant = if sources.is_empty() { !is_quiet } else { sources.contains(&row.source) };
                let is_new = !seen.contains(&row.root);
                if !is_meant || !is_new || own_root.as_ref() == Some(&row.root) || row.tip.is_none() {
                    continue;
                }
                // The last written to of a lineage comes first, and stands for it.
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

//! Answers queries: the best hit of each lineage with its context, and the beginning and end of the session.

use serde::Serialize;

use crate::model::{Node, Role, SessionId, SessionRow};
use crate::search::query::Query;
use crate::search::replies::display::DisplayMessage;
use crate::search::replies::request::{SearchError, SearchRequest};
use crate::search::replies::{DiscoverReply, ProfileSearch, QUIET_SOURCES, SessionMeta};
use crate::search::spec::{SearchHit, SearchHits, SearchSpec};
use crate::search::text::message_text::message_text;
use crate::search::text::snippet::snippet;
use crate::store::{SessionFilter, StoreError};

/// The number of messages shown from the beginning and from the end of a session.
const N_BOOKEND: usize = 3;
/// The number of messages that are read for them, because some may be instructions and tool results.
const BOOKEND_REACH: u32 = 16;
/// The number of extra hits to request, because some may be unreadable.
const N_SPARE: usize = 10;
/// The sources of scheduled jobs, whose hits follow those of conversations.
const LOW_PRIORITY_SOURCES: [&str; 1] = ["cron"];
/// The default for `max_chars`; longer texts are truncated in the middle.
const DEFAULT_MAX_CHARS: usize = 4_000;

/// A session in a [`DiscoverReply`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiscoveredSession {
    /// The session.
    pub session_id: String,
    /// Data about the session.
    #[serde(flatten)]
    pub meta: SessionMeta,
    /// The role of the message; `session_title` if the query is the title of the session.
    pub matched_role: &'static str,
    /// The number of the message; `None` for a match of the title.
    pub match_message_id: Option<u64>,
    /// An excerpt of the message with the hits between `>>>` and `<<<`.
    pub snippet: String,
    /// The first messages of the session.
    pub bookend_start: Vec<DisplayMessage>,
    /// The messages around the hit.
    pub messages: Vec<DisplayMessage>,
    /// The last messages of the session.
    pub bookend_end: Vec<DisplayMessage>,
    /// The number of messages before those around the hit.
    pub messages_before: u32,
    /// The number of messages after those around the hit.
    pub messages_after: u32,
    /// The parent session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<String>,
    /// The relation to the parent: `rotation`, `fork`, `subagent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relation: Option<&'static str>,
    /// Forks that contain the same message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also_in: Vec<String>,
    /// True if the message belongs to the caller's session, but is no longer in its view.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub folded: bool,
}

impl ProfileSearch<'_> {
    pub(crate) fn discover(
        &self,
        request: &SearchRequest,
        text: &str,
        session: Option<SessionId>,
    ) -> Result<DiscoverReply, SearchError> {
        let limit = request.limit(3);
        let mut spec = self.search_spec(request, Query::parse(text), session)?;
        let mut results = Vec::new();
        // A session with this title is the first result of the first page, and excluded from the other results.
        if spec.session.is_none()
            && let Some((root, result)) = self.find_by_title(text, &spec)?
        {
            spec.excluded_root = Some(root);
            if spec.offset == 0 {
                results.push(result);
            } else {
                spec.offset -= 1;
            }
        }
        let (hits, widened) = self.search_or_widen(&mut spec)?;
        let sessions_searched = hits.n_lineages.max(results.len());
        for found in &hits.hits {
            if results.len() >= limit {
                break;
            }
            match self.describe_hit(found, &spec.query, request) {
                // A session with a missing message does not hide the others.
                Err(SearchError::Store(StoreError::Corrupt(_))) => {}
                result => results.push(result?),
            }
        }
        let message = results.is_empty().then(|| {
            "no message has all of these words; try fewer of them, parts of them (*part*), or one OR another"
                .to_owned()
        });
        Ok(DiscoverReply {
            success: true,
            query: text.to_owned(),
            count: results.len(),
            results,
            sessions_searched,
            widened,
            bounded: hits.is_bounded,
            message,
            profile: self.profile(),
        })
    }

    /// Returns the search for a query, in all sessions or in one.
    fn search_spec(
        &self,
        request: &SearchRequest,
        query: Query,
        session: Option<SessionId>,
    ) -> Result<SearchSpec, SearchError> {
        if let Some(session) = &session
            && self.store.session(session)?.is_none()
        {
            return Err(SearchError::NoSession(session.clone()));
        }
        let sources = request.sources();
        let is_unrestricted = sources.is_empty() && session.is_none();
        let if_unrestricted = |sources: &[&str]| -> Vec<String> {
            sources.iter().filter(|_| is_unrestricted).map(|source| (*source).to_owned()).collect()
        };
        Ok(SearchSpec {
            query,
            roles: request.roles()?,
            excluded_sources: if_unrestricted(&QUIET_SOURCES),
            low_priority_sources: if_unrestricted(&LOW_PRIORITY_SOURCES),
            sources,
            // Within one session, every message is a result.
            is_one_per_lineage: session.is_none(),
            session,
            since: request.since(),
            before: request.before(),
            live: self.search.caller.clone(),
            order: request.order(),
            limit: request.limit(3) + N_SPARE,
            offset: request.offset(),
            excluded_root: None,
        })
    }

    /// Runs a search; if it finds nothing, widens its query and runs it again. Returns whether only the wide query
    /// found something.
    fn search_or_widen(&self, spec: &mut SearchSpec) -> Result<(SearchHits, bool), SearchError> {
        let hits = self.store.search(spec)?;
        if hits.hits.is_empty()
            && hits.n_skipped == 0
            && let Some(wide) = spec.query.widened()
        {
            spec.query = wide;
            let hits = self.store.search(spec)?;
            let is_widened = !hits.hits.is_empty();
            return Ok((hits, is_widened));
        }
        Ok((hits, false))
    }

    /// Returns the last active session in the lineage of the session with a title, and the root of the lineage.
    fn find_by_title(
        &self,
        title: &str,
        spec: &SearchSpec,
    ) -> Result<Option<(SessionId, DiscoveredSession)>, SearchError> {
        let filter =
            SessionFilter { title: Some(title.to_owned()), limit: Some(1), ..SessionFilter::default() };
        let Some(named) = self.store.sessions(&filter)?.pop() else { return Ok(None) };
        let lineage =
            SessionFilter { root: Some(named.root.clone()), limit: Some(1), ..SessionFilter::default() };
        let row = self.store.sessions(&lineage)?.pop().unwrap_or(named);
        let is_own = spec.live.as_ref().is_some_and(|live| live.session == row.id);
        let is_selected = (spec.sources.is_empty() || spec.sources.contains(&row.source))
            && !spec.excluded_sources.contains(&row.source)
            && spec.since.is_none_or(|since| row.updated_at >= since)
            && spec.before.is_none_or(|before| row.started_at < before);
        if is_own || !is_selected {
            return Ok(None);
        }
        let (start, end) = self.bookends(&row, 0..0)?;
        let result = DiscoveredSession {
            session_id: row.id.0.clone(),
            meta: SessionMeta::from_row(&row),
            matched_role: "session_title",
            match_message_id: None,
            snippet: format!(">>>{}<<<", row.title.as_deref().unwrap_or(title)),
            bookend_start: start,
            messages: Vec::new(),
            bookend_end: end,
            messages_before: 0,
            messages_after: row.n_messages,
            parent_session_id: row.parent.as_ref().map(|(parent, _)| parent.0.clone()),
            relation: row.parent.as_ref().map(|(_, relation)| relation.name()),
            also_in: Vec::new(),
            folded: false,
        };
        Ok(Some((row.root, result)))
    }

    fn describe_hit(
        &self,
        found: &SearchHit,
        query: &Query,
        request: &SearchRequest,
    ) -> Result<DiscoveredSession, SearchError> {
        let row = &found.session;
        let max_chars = request.max_chars(Some(DEFAULT_MAX_CHARS));
        let (mut messages, range) = self.window(row, found.node.depth, request.window(), max_chars)?;
        messages.iter_mut().for_each(|message| message.anchor = message.id == found.node.number);
        let (start, end) = self.bookends(row, range.clone())?;
        let own = self.search.caller.as_ref().map(|caller| &caller.session);
        Ok(DiscoveredSession {
            session_id: row.id.0.clone(),
            meta: SessionMeta::from_row(row),
            matched_role: found.node.role.name(),
            match_message_id: Some(found.node.number),
            snippet: snippet(&message_text(&found.node.json), query),
            bookend_start: start,
            messages,
            bookend_end: end,
            messages_before: range.start,
            messages_after: row.n_messages - range.end,
            parent_session_id: row.parent.as_ref().map(|(parent, _)| parent.0.clone()),
            relation: row.parent.as_ref().map(|(_, relation)| relation.name()),
            also_in: found.also_in.iter().map(|session| session.0.clone()).collect(),
            folded: own.is_some_and(|own| *own == row.id || found.also_in.contains(own)),
        })
    }

    /// Returns the first and the last texts of the user and the model, without those in `shown`.
    fn bookends(
        &self,
        row: &SessionRow,
        shown: std::ops::Range<u32>,
    ) -> Result<(Vec<DisplayMessage>, Vec<DisplayMessage>), SearchError> {
        let n = row.n_messages;
        let spoken_message = |node: &Node| {
            let is_spoken = matches!(node.role, Role::User | Role::Assistant);
            let message = DisplayMessage::from_node(node, Some(DEFAULT_MAX_CHARS));
            (is_spoken && !message.content.is_empty()).then_some(message)
        };
        let before = if shown.is_empty() { n } else { shown.start };
        let head = self.chain(row, 0..BOOKEND_REACH.min(before))?;
        let start: Vec<DisplayMessage> = head.iter().filter_map(spoken_message).take(N_BOOKEND).collect();
        let after = if shown.is_empty() { head.last().map_or(0, |node| node.depth + 1) } else { shown.end };
        let tail = self.chain(row, n.saturating_sub(BOOKEND_REACH).max(after)..n)?;
        let mut end: Vec<DisplayMessage> =
            tail.iter().rev().filter_map(spoken_message).take(N_BOOKEND).collect();
        end.reverse();
        Ok((start, end))
    }
}

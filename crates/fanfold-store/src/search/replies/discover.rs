//! Which sessions say this: the best message of each lineage, with what is around it and how it began and ended.

use serde::Serialize;

use crate::model::{Node, Role, SessionId, SessionRow};
use crate::search::query::Query;
use crate::search::replies::display::DisplayMessage;
use crate::search::replies::request::{SearchError, SearchRequest};
use crate::search::replies::{DiscoverReply, ProfileSearch, QUIET_SOURCES, SessionMeta};
use crate::search::spec::{SearchHit, SearchSpec};
use crate::search::text::message_text::message_text;
use crate::search::text::snippet::snippet;
use crate::store::{SessionFilter, StoreError};

/// So many messages stand for the beginning and the end of a session.
const N_BOOKEND: usize = 3;
/// So many are looked at for them: the first ones may be instructions and results.
const BOOKEND_REACH: u32 = 16;
/// So many more results are looked at than are shown.
const N_SPARE: usize = 10;
/// What jobs said by themselves comes after what people were told.
const LOW_PRIORITY_SOURCES: [&str; 1] = ["cron"];
/// A longer text is shown by its ends.
const LONGEST_TEXT: usize = 4_000;

/// A session that says it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiscoveredSession {
    /// The session.
    pub session_id: String,
    /// About the session.
    #[serde(flatten)]
    pub meta: SessionMeta,
    /// In whose name the message is; `session_title` where the session is called so.
    pub matched_role: &'static str,
    /// The message.
    pub match_message_id: Option<u64>,
    /// A few words of it, hits between `>>>` and `<<<`.
    pub snippet: String,
    /// How the session began.
    pub bookend_start: Vec<DisplayMessage>,
    /// What is around the message.
    pub messages: Vec<DisplayMessage>,
    /// How the session ended, so far.
    pub bookend_end: Vec<DisplayMessage>,
    /// How many messages come before those around it.
    pub messages_before: u32,
    /// How many come after them.
    pub messages_after: u32,
    /// The session it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<String>,
    /// How it came from there: `rotation`, `fork`, `subagent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relation: Option<&'static str>,
    /// Forks that have the same message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also_in: Vec<String>,
    /// It is of the caller's own session, but no longer in its view.
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
        if let Some(session) = &session
            && self.store.session(session)?.is_none()
        {
            return Err(SearchError::NoSession(session.clone()));
        }
        let query = Query::parse(text);
        let limit = request.limit(3);
        let sources = request.sources();
        let is_anywhere = sources.is_empty() && session.is_none();
        let quiet = if is_anywhere { &QUIET_SOURCES[..] } else { &[] };
        let last = if is_anywhere { &LOW_PRIORITY_SOURCES[..] } else { &[] };
        let mut find = SearchSpec {
            query: query.clone(),
            roles: request.roles()?,
            sources,
            excluded_sources: quiet.iter().map(|source| (*source).to_owned()).collect(),
            // In one session, each message is a result.
            is_one_per_lineage: session.is_none(),
            session,
            since: request.since(),
            before: request.before(),
            live: self.search.caller.clone(),
            order: request.order(),
            limit: limit + N_SPARE,
            offset: request.offset(),
            excluded_root: None,
            low_priority_sources: last.iter().map(|source| (*source).to_owned()).collect(),
        };
        let mut results = Vec::new();
        // The session that is called so is the first result, and on no other page.
        if find.session.is_none()
            && let Some((root, result)) = self.find_by_title(text, &find)?
        {
            find.excluded_root = Some(root);
            if find.offset == 0 {
                results.push(result);
            } else {
                find.offset -= 1;
            }
        }
        let mut hits = self.store.search(&find)?;
        let mut widened = false;
        if hits.hits.is_empty()
            && hits.n_skipped == 0
            && let Some(wide) = query.widened()
        {
            find.query = wide;
            hits = self.store.search(&find)?;
            widened = !hits.hits.is_empty();
        }
        let sessions_searched = hits.n_lineages.max(results.len());
        let bounded = hits.is_bounded;
        for found in &hits.hits {
            if results.len() >= limit {
                break;
            }
            match self.describe_hit(found, &find.query, request) {
                // A session with a message missing does not keep the others from being shown.
                Err(SearchError::Store(StoreError::Broken(_))) => {}
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
            bounded,
            message,
            profile: self.profile(),
        })
    }

    /// The session that is called so, or the newest one that went on with it.
    fn find_by_title(
        &self,
        title: &str,
        find: &SearchSpec,
    ) -> Result<Option<(SessionId, DiscoveredSession)>, SearchError> {
        let filter =
            SessionFilter { title: Some(title.to_owned()), limit: Some(1), ..SessionFilter::default() };
        let Some(named) = self.store.sessions(&filter)?.pop() else { return Ok(None) };
        let lineage =
            SessionFilter { root: Some(named.root.clone()), limit: Some(1), ..SessionFilter::default() };
        let row = self.store.sessions(&lineage)?.pop().unwrap_or(named);
        let is_own = find.live.as_ref().is_some_and(|live| live.session == row.id);
        let is_meant = (find.sources.is_empty() || find.sources.contains(&row.source))
            && !find.excluded_sources.contains(&row.source)
            && find.since.is_none_or(|since| row.updated_at >= since)
            && find.before.is_none_or(|before| row.started_at < before);
        if is_own || !is_meant {
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
        let longest = request.max_chars(Some(LONGEST_TEXT));
        let (mut messages, range) = self.window(row, found.node.depth, request.window(), longest)?;
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

    /// The first and the last things that people and the model said, where they are not shown already.
    fn bookends(
        &self,
        row: &SessionRow,
        shown: std::ops::Range<u32>,
    ) -> Result<(Vec<DisplayMessage>, Vec<DisplayMessage>), SearchError> {
        let n = row.n_messages;
        let says_something = |node: &Node| {
            let is_spoken = matches!(node.role, Role::User | Role::Assistant);
            let message = DisplayMessage::from_node(node, Some(LONGEST_TEXT));
            (is_spoken && !message.content.is_empty()).then_some(message)
        };
        let before = if shown.is_empty() { n } else { shown.start };
        let head = self.chain(row, 0..BOOKEND_REACH.min(before))?;
        let start: Vec<DisplayMessage> = head.iter().filter_map(says_something).take(N_BOOKEND).collect();
        let after = if shown.is_empty() { head.last().map_or(0, |node| node.depth + 1) } else { shown.end };
        let tail = self.chain(row, n.saturating_sub(BOOKEND_REACH).max(after)..n)?;
        let mut end: Vec<DisplayMessage> =
            tail.iter().rev().filter_map(says_something).take(N_BOOKEND).collect();
        end.reverse();
        Ok((start, end))
    }
}

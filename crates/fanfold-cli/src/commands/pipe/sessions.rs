//! The sessions in memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use fanfold_core::{Event, Feedback, ViewError};
use fanfold_engine::{FoldedConversation, Terms};
use fanfold_wire::{Format, detect};
use serde_json::json;
use serde_json::value::RawValue;

use super::answer;
use super::arrival::{Arrival, ArrivalState, ArrivingMessages, SendMode, classify, hash};
use super::evicted::{EvictedSession, EvictedSessions};
use super::operations::{event, extent};
use super::request::Request;
use super::session_terms::SessionTerms;
use super::terms_factory::TermsFactory;
use crate::commands::recall::recall;
use crate::failure::{Failure, Result};

/// Maximum number of sessions in memory. An evicted one is rebuilt from its whole history.
const MAX_SESSIONS: usize = 64;

/// All sessions of a pipe.
pub(super) struct Sessions {
    terms_factory: TermsFactory,
    is_incremental: bool,
    sessions: BTreeMap<String, PipeSession>,
    /// The names of the sessions, the most recently used last.
    order: VecDeque<String>,
    evicted: EvictedSessions,
    /// The tools of the last request of any session.
    last_tools: Arc<str>,
}

/// The folds and repairs of a session that were reported already.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReportedCounts {
    pub(super) n_folds: usize,
    pub(super) n_repairs: usize,
}

/// One session.
pub(super) struct PipeSession {
    pub(super) followed: FoldedConversation,
    terms: SessionTerms,
    mode: SendMode,
    last_call: Option<u64>,
    /// The hash of the last increment.
    last_hash: u64,
    pub(super) reported: ReportedCounts,
    /// Feedback on a requested fold that is not reported yet.
    pub(super) feedback: Option<Feedback>,
    /// Assumptions that are not reported yet.
    pub(super) assumed: Vec<String>,
}

/// A request to fold, with its messages and terms.
struct PipeFold<'a> {
    request: &'a Request<'a>,
    list: &'a str,
    messages: Vec<&'a RawValue>,
    session_terms: SessionTerms,
    terms: Terms,
}

impl Sessions {
    pub(super) fn new(terms_factory: TermsFactory, is_incremental: bool) -> Sessions {
        Sessions {
            terms_factory,
            is_incremental,
            sessions: BTreeMap::new(),
            order: VecDeque::new(),
            evicted: EvictedSessions::default(),
            last_tools: Arc::from(""),
        }
    }

    /// Adds messages to a session and answers with its view.
    pub(super) fn fold(&mut self, request: &Request<'_>) -> Result<String> {
        let name = request.session().into_owned();
        // Check the request before changing the session.
        let (list, messages) = (request.message_list()?, request.messages()?);
        let session_terms = self.session_terms(&name, request);
        let terms = self.terms_factory.terms(&session_terms)?;
        let fold = PipeFold { request, list, messages, session_terms, terms };
        let mut session = match self.sessions.remove(&name) {
            Some(session) => self.continue_session(session, &fold)?,
            None => self.start_session(&name, &fold)?,
        };
        session.last_call = request.call.or(session.last_call);
        session.followed.set_tools(fold.session_terms.tools.as_deref());
        session.terms = fold.session_terms;
        let core = &mut session.followed.session;
        if core.budget() != fold.terms.budget {
            core.apply(Event::Budget(fold.terms.budget));
        }
        let lifetime = core.prices().and_then(|prices| prices.lifetime);
        let is_cold = request.idle.zip(lifetime).is_some_and(|(idle, lifetime)| idle > lifetime as f64);
        if is_cold {
            core.apply(Event::CacheExpired);
        }
        let answer = answer_view(&mut session);
        self.insert(name, session);
        Ok(answer)
    }

    /// The terms that the session has set, including those of this request.
    fn session_terms(&mut self, name: &str, request: &Request<'_>) -> SessionTerms {
        let tools = request.tools().map(|tools| {
            if *self.last_tools != *tools {
                self.last_tools = Arc::from(tools);
            }
            Arc::clone(&self.last_tools)
        });
        let current = self.sessions.get(name).map(|session| &session.terms);
        let before = current.or_else(|| self.evicted.find(name).map(|session| &session.terms));
        before.unwrap_or(&SessionTerms::default()).updated(request, tools)
    }

    fn start_session(&mut self, name: &str, fold: &PipeFold<'_>) -> Result<PipeSession> {
        let request = fold.request;
        let is_incremental = request.incremental.unwrap_or(self.is_incremental);
        let evicted = self.evicted.find(name);
        let first = fold.messages.first().map(|first| first.get());
        let is_continued = evicted.is_some_and(|session| session.is_continued_by(request.call, first));
        let is_later_increment = is_incremental && request.call.is_some_and(|call| call > 1);
        let lacks_beginning = request.incremental != Some(false) && (is_later_increment || is_continued);
        if lacks_beginning {
            return Err(Failure::new(
                format!("the beginning of session `{name}` is no longer in memory"),
                "send the whole history once, with \"incremental\": false",
            ));
        }
        let mode = mode_after_restart(is_incremental, evicted.map(|session| session.mode), request.call);
        self.evicted.remove(name);
        Ok(PipeSession::new(fold, mode))
    }

    fn continue_session(&mut self, mut session: PipeSession, fold: &PipeFold<'_>) -> Result<PipeSession> {
        let (request, messages, list) = (fold.request, &fold.messages, fold.list);
        let is_increment = request.incremental.or(self.is_incremental.then_some(true));
        let conversation = &session.followed.conversation;
        let n_messages = conversation.messages().len();
        let state = ArrivalState {
            mode: session.mode,
            n_messages,
            first_message: conversation.messages().next(),
            n_common: conversation.common_prefix(messages),
            last_call: session.last_call,
            last_hash: session.last_hash,
        };
        let arriving = ArrivingMessages { is_increment, call: request.call, list, messages };
        let arrival = match classify(&state, &arriving) {
            Ok(arrival) => arrival,
            Err(failure) => {
                self.insert(request.session().into_owned(), session);
                return Err(failure);
            }
        };
        let is_other_model = fold.session_terms.model != session.terms.model;
        match arrival {
            Arrival::Restarted => {
                let mode = mode_after_restart(is_increment == Some(true), Some(session.mode), request.call);
                Ok(PipeSession::new(fold, mode))
            }
            Arrival::Grown => {
                let is_other_format = format_of(&fold.terms, list) != session.followed.conversation.format();
                if is_other_format || is_other_model {
                    return Ok(PipeSession::new(fold, SendMode::WholeHistory));
                }
                if n_messages > 0 {
                    session.mode = SendMode::WholeHistory;
                }
                session.followed.append(&messages[n_messages..]);
                Ok(session)
            }
            Arrival::Added => {
                session.add(fold, is_other_model)?;
                session.mode = SendMode::Increments;
                session.last_hash = hash(list);
                Ok(session)
            }
            Arrival::Repeated => Ok(session),
        }
    }

    /// Runs an operation other than folding new messages.
    pub(super) fn operate(&mut self, op: &str, request: &Request<'_>) -> Result<String> {
        let name = request.session();
        let Some(session) = self.sessions.get_mut(&*name) else {
            return Err(Failure::new(
                format!("there is no session `{name}`"),
                "send its messages first; the 64 most recently used sessions stay in memory",
            ));
        };
        let core = &mut session.followed.session;
        match op {
            "recall" if request.handle.is_none() && request.search.is_some() => {
                let content = core.search_folded(request.search.as_deref().unwrap_or_default());
                return Ok(json!({ "content": content }).to_string());
            }
            "expand" | "recall" => {
                let content = recall(&**core, request.handle()?, &extent(request)?)?;
                return Ok(json!({ "content": content }).to_string());
            }
            "report" => {
                return Ok(json!({ "report": answer::full_report(&mut session.followed) }).to_string());
            }
            _ => {}
        }
        if op == "fold" && request.from.is_none() && request.to.is_none() {
            let ask = fanfold_core::FoldRequest { force: true, focus: request.topic.clone(), tokens: None };
            // If nothing fits, the view reports it.
            session.feedback = core.fold(&ask).ok();
            return Ok(answer_view(session));
        }
        let event = event(op, request, core.transcript().len())?;
        if let Event::Focused(topic) = &event {
            session.terms.focus = Some(topic.clone());
        }
        core.apply(event);
        Ok(answer_view(session))
    }

    /// Inserts a session as the most recently used one, and evicts the least recently used if there are too many.
    fn insert(&mut self, name: String, session: PipeSession) {
        self.order.retain(|other| *other != name);
        self.order.push_back(name.clone());
        self.sessions.insert(name, session);
        if self.order.len() <= MAX_SESSIONS {
            return;
        }
        let Some(oldest) = self.order.pop_front() else { return };
        if let Some(session) = self.sessions.remove(&oldest) {
            self.evicted.add(oldest, session.into_evicted());
        }
    }
}

impl PipeSession {
    /// A session that begins with these messages.
    fn new(fold: &PipeFold<'_>, mode: SendMode) -> PipeSession {
        PipeSession {
            followed: follow(fold.list, &fold.messages, fold),
            terms: fold.session_terms.clone(),
            mode,
            last_call: fold.request.call,
            last_hash: hash(fold.list),
            reported: ReportedCounts::default(),
            feedback: None,
            assumed: fold.terms.assumed.clone(),
        }
    }

    /// Adds an increment. The first messages that can only be of one format decide the format of the conversation.
    fn add(&mut self, fold: &PipeFold<'_>, is_other_model: bool) -> Result<()> {
        let conversation = &self.followed.conversation;
        let format = format_of(&fold.terms, fold.list);
        let may_decide = conversation.format() == Format::of_plain_messages() || fold.terms.format.is_some();
        let is_other_format = may_decide && format != conversation.format();
        if !is_other_format && !is_other_model {
            self.followed.append(&fold.messages);
            return Ok(());
        }
        let raws = conversation.messages().chain(fold.messages.iter().map(|message| message.get()));
        let all = format!("[{}]", raws.collect::<Vec<_>>().join(","));
        let raws: Vec<&RawValue> = serde_json::from_str(&all).map_err(|error| {
            Failure::new(format!("`messages` is not a list: {error}"), "send a list of JSON objects")
        })?;
        self.followed = follow(&all, &raws, fold);
        // The conversation was folded again from its first message on, so report everything again.
        self.reported = ReportedCounts::default();
        self.assumed.clone_from(&fold.terms.assumed);
        Ok(())
    }

    fn into_evicted(self) -> EvictedSession {
        let first = self.followed.conversation.messages().next().map(hash);
        EvictedSession { terms: self.terms, mode: self.mode, last_call: self.last_call, first }
    }
}

/// The mode of a session that starts again. Whole histories stay the rule until calls are counted from 1 again.
fn mode_after_restart(is_incremental: bool, before: Option<SendMode>, call: Option<u64>) -> SendMode {
    if is_incremental {
        return SendMode::Increments;
    }
    let keeps_mode = before == Some(SendMode::WholeHistory) && call.is_none_or(|call| call > 1);
    if keeps_mode { SendMode::WholeHistory } else { SendMode::Unknown }
}

fn follow(list: &str, messages: &[&RawValue], fold: &PipeFold<'_>) -> FoldedConversation {
    let mut followed = FoldedConversation::empty(format_of(&fold.terms, list), &fold.terms);
    followed.set_tools(fold.session_terms.tools.as_deref());
    followed.append(messages);
    followed
}

/// The format of a list of messages: the one in the terms, or else the detected one.
fn format_of(terms: &Terms, list: &str) -> Format {
    terms.format.or_else(|| detect(list)).unwrap_or_else(Format::of_plain_messages)
}

fn answer_view(session: &mut PipeSession) -> String {
    match session.followed.view() {
        Ok(view) => answer::view(session, &view),
        Err(ViewError::Overflow(overflow)) => answer::overflow(&overflow),
        Err(ViewError::Fault(fault)) => answer::fault(session, &fault),
    }
}

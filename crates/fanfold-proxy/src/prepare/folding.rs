//! Folds a conversation on a blocking thread, within a deadline. If anything fails, the received body is sent.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanfold_core::Tokens;
use fanfold_engine::{
    FoldOutcome, MemoryRecall, Mode, RequestError, RequestInput, RequestOutcome, SessionEngine, SessionMatch,
    Terms, store_message,
};
use fanfold_store::{SessionId, StoreError};
use fanfold_wire::Incoming;
use fanfold_wire::reply::is_summary_request;

use crate::admission::fold_slots::FoldSlots;
use crate::config::Config;
use crate::meter::Meter;
use crate::outcome::{BypassReason, ProxyOutcome};
use crate::prepare::prepared_body::{LocalCount, PreparedBody};
use crate::prepare::provider_quirks::{Form, ProviderQuirks};
use crate::prepare::recall_offer::Recall;
use crate::prepare::subagents::Subagents;
use crate::prepare::summary_jobs::SummaryJobs;
use crate::prepare::{Attempt, ClientConversation};
use crate::receive::turn_memory::TurnMemory;
use crate::reconnecting_engine::ReconnectingEngine;

/// Source of sessions, as recorded in the store.
const SOURCE: &str = "proxy";
const SUBAGENT_SOURCE: &str = "subagent";
/// Smaller limits are not context windows.
const MIN_WINDOW: Tokens = Tokens(1024);
/// The deadline is multiplied by this after a refusal, when the received body is known to be too long.
const DEADLINE_FACTOR_AFTER_REFUSAL: u32 = 5;

/// Folds conversations.
pub(crate) struct Folder {
    deadline: Duration,
    context: Arc<FoldContext>,
}

/// State shared with the folding threads.
struct FoldContext {
    engine: Arc<ReconnectingEngine>,
    summary_jobs: SummaryJobs,
    meter: Arc<Meter>,
    subagents: Subagents,
    quirks: Arc<ProviderQuirks>,
    mode: Mode,
    recall: Recall,
}

impl Folder {
    pub(crate) fn new(
        config: &Config,
        engine: &Arc<ReconnectingEngine>,
        quirks: &Arc<ProviderQuirks>,
    ) -> Folder {
        let context = FoldContext {
            summary_jobs: SummaryJobs::new(Arc::clone(engine), Arc::clone(&config.meter)),
            engine: Arc::clone(engine),
            meter: Arc::clone(&config.meter),
            subagents: Subagents::default(),
            quirks: Arc::clone(quirks),
            mode: config.mode,
            recall: config.recall,
        };
        Folder { deadline: config.limits.deadline, context: Arc::new(context) }
    }

    pub(crate) fn mode(&self) -> Mode {
        self.context.mode
    }

    /// Folds a conversation, or says why its body is sent unchanged.
    pub(crate) async fn fold(
        &self,
        slots: &FoldSlots,
        conversation: &Arc<ClientConversation>,
        attempt: Attempt,
    ) -> PreparedBody {
        let timeout = match attempt.refused {
            Some(_) => self.deadline * DEADLINE_FACTOR_AFTER_REFUSAL,
            None => self.deadline.saturating_sub(conversation.elapsed),
        };
        let until = Instant::now() + timeout;
        let (context, for_thread) = (Arc::clone(&self.context), Arc::clone(conversation));
        let work = slots.run(conversation.size(), move || {
            FoldRun { context: &context, conversation: &for_thread, until }.run(attempt)
        });
        let folded = tokio::time::timeout(timeout, work).await.unwrap_or(Err(BypassReason::Deadline));
        let mut prepared = folded.unwrap_or_else(PreparedBody::unchanged);
        // Without its pending recalls the provider would refuse the body, so it gets them even if folding failed.
        if prepared.body.is_none() && conversation.has_pending_recalls {
            prepared.body = Some(conversation.text.clone());
            prepared.unruled.clone_from(&prepared.body);
        }
        prepared
    }
}

/// One conversation being folded.
struct FoldRun<'a> {
    context: &'a FoldContext,
    conversation: &'a ClientConversation,
    until: Instant,
}

/// The session of a conversation.
struct FoundSession {
    id: SessionId,
    is_new: bool,
    /// The body with the hidden recalls of the session, if it has any.
    with_recalls: Option<String>,
}

/// The body of a conversation, for the engine.
struct FoldInput<'a> {
    parsed: Incoming,
    /// The body with hidden recalls.
    text: &'a str,
    received: &'a str,
}

impl FoldRun<'_> {
    fn run(&self, attempt: Attempt) -> PreparedBody {
        match self.try_run(attempt) {
            Ok(prepared) => prepared,
            Err(Bypass::Reason(reason)) => PreparedBody::unchanged(reason),
            Err(Bypass::Trouble(trouble)) => PreparedBody::unchanged(self.report(&trouble, None)),
        }
    }

    fn try_run(&self, mut attempt: Attempt) -> Result<PreparedBody, Bypass> {
        let ClientConversation { upstream, model, format, .. } = self.conversation;
        let engine = self.context.engine.get();
        let parsed = match attempt.parsed.take() {
            Some(parsed) => parsed,
            None => self.parse_again()?,
        };
        // A summary needs the whole conversation. It is folded only if that is too long.
        if attempt.refused.is_none() && is_summary_request(&parsed) {
            return Err(Bypass::Reason(BypassReason::Summary));
        }
        let terms = self.context.engine.host().terms(model.as_deref(), *format).map_err(|why| {
            tracing::warn!(why, "body sent unchanged: no fold settings for the model");
            BypassReason::Terms
        })?;
        let limit = attempt.reported_limit.filter(|limit| *limit >= MIN_WINDOW);
        if let Some(limit) = limit
            && let Err(error) =
                engine.record_model_limit(upstream, model.as_deref().unwrap_or_default(), limit)
        {
            tracing::debug!(%error, "a context window could not be stored");
        }
        let terms = narrowed(terms, limit.or_else(|| self.learnt_window(&engine)));
        self.fold(&engine, parsed, &attempt, &terms)
    }

    fn parse_again(&self) -> Result<Incoming, Bypass> {
        let ClientConversation { text, format, .. } = self.conversation;
        let text = std::str::from_utf8(text).map_err(|_| BypassReason::NotDecoded)?;
        Ok(Incoming::open(text, Some(*format)).map_err(RequestError::from)?)
    }

    fn fold(
        &self,
        engine: &Arc<SessionEngine>,
        parsed: Incoming,
        attempt: &Attempt,
        terms: &Terms,
    ) -> Result<PreparedBody, Bypass> {
        let started = Instant::now();
        let has_tools = parsed.has_tools();
        let conversation = self.conversation;
        let received = std::str::from_utf8(&conversation.received).map_err(|_| BypassReason::NotDecoded)?;
        let text = std::str::from_utf8(&conversation.text).map_err(|_| BypassReason::NotDecoded)?;
        let name = conversation.session_name.as_ref().or(attempt.session.as_ref());
        let (session, parsed) = find_session(engine, parsed, name)?;
        let terms = self.settle_window(engine, &session, terms)?;
        let found = Instant::now();
        if let Some(refused) = &attempt.refused
            && let Err(error) = engine.record_refusal(&session.id, refused)
        {
            tracing::warn!(session = %session.id, %error, "a refusal could not be recorded");
        }
        let body = session.with_recalls.as_deref().unwrap_or(text);
        let form = self.context.quirks.form(&conversation.provider, Some(&session.id));
        let answer =
            self.request(engine, &session, FoldInput { parsed, text: body, received }, form, &terms)?;
        if let FoldOutcome::Failed(trouble) = &answer.fold {
            return Ok(self.unchanged(trouble, session.id, &answer, &terms));
        }
        self.context.engine.report(None);
        self.context.engine.log_outage(engine);
        // Requests without tools, for a title for example, start no subagents.
        if has_tools {
            self.context.subagents.insert(&conversation.caller, &session.id);
        }
        let timings = vec![("recognise", started, found - started), ("fold", found, found.elapsed())];
        let (is_folded, new_handles) =
            (matches!(answer.fold, FoldOutcome::Folded(_)), answer.new_handles.clone());
        let prepared = self.prepared(engine, session.id.clone(), answer, form, &terms);
        if let Some(memory) = &conversation.memory {
            memory.offer(engine, &session.id, &new_handles);
        }
        if is_folded {
            self.context.summary_jobs.start(engine, &session.id, &terms.focus);
        }
        Ok(PreparedBody { timings, ..prepared })
    }

    /// Lets the engine fold the body, edit it for its provider, and record it.
    fn request(
        &self,
        engine: &SessionEngine,
        session: &FoundSession,
        body: FoldInput<'_>,
        form: Form,
        terms: &Terms,
    ) -> Result<RequestOutcome, StoreError> {
        let conversation = self.conversation;
        let parent = self.parent(engine, session.is_new)?;
        // A conversation without tools has little to fold, and its client may not expect a call.
        let allows_tool = conversation.accepts_tool && body.parsed.has_tools();
        let recall = self.context.recall;
        let offer = session.is_new.then(|| recall.offer(body.text, conversation.format, allows_tool));
        let recall_memory = || conversation.memory.as_ref().and_then(TurnMemory::text);
        let source = if conversation.caller.is_subagent { SUBAGENT_SOURCE } else { SOURCE };
        let ask = RequestInput {
            parent: parent.as_ref(),
            mode: self.context.mode,
            deadline: Some(self.until),
            offer: offer.as_ref(),
            memory: conversation
                .memory
                .as_ref()
                .map(|memory| MemoryRecall { max_tokens: memory.max_tokens(), recall: &recall_memory }),
            received: Some(body.received),
            form: form.body_form(),
            ..RequestInput::new(&session.id, body.text, terms, source)
        };
        Ok(engine.request_parsed(&ask, body.parsed))
    }

    /// Converts the answer of the engine, and takes a snapshot of the session for the meter.
    fn prepared(
        &self,
        engine: &SessionEngine,
        session: SessionId,
        answer: RequestOutcome,
        form: Form,
        terms: &Terms,
    ) -> PreparedBody {
        let outcome = match &answer.fold {
            _ if answer.is_rejected => ProxyOutcome::Unchanged(BypassReason::Rejected),
            FoldOutcome::Folded(_) => ProxyOutcome::Folded,
            _ if self.context.mode == Mode::Observe
                && answer.sizes.is_some_and(|sizes| sizes.n_folds > 0) =>
            {
                ProxyOutcome::Observed
            }
            _ => ProxyOutcome::Whole,
        };
        let counted = answer.sizes.filter(|_| !answer.is_rejected).map(|sizes| {
            let tokens = if outcome == ProxyOutcome::Folded { sizes.view } else { sizes.transcript };
            let tokens = tokens + answer.memory.unwrap_or_default();
            LocalCount { tokens, window: terms.budget.window() }
        });
        let meter = &self.context.meter;
        let snapshot =
            engine.with_cached(&session, |followed| meter.snapshot(&session, followed, answer.n_new));
        if let Some(snapshot) = &snapshot {
            meter.report_pressure(&session, &answer.notices, Tokens(snapshot.sent), Tokens(snapshot.room));
        }
        let is_received = |body: &Bytes| *body == self.conversation.received;
        let body = Bytes::from(answer.body);
        let unruled = answer.before_rules.map_or_else(|| body.clone(), Bytes::from);
        PreparedBody {
            body: Some(body).filter(|body| !is_received(body)),
            unruled: Some(unruled).filter(|unruled| !is_received(unruled)),
            form,
            session: Some(session),
            outcome,
            has_tool: answer.has_tool,
            lost_tool: answer.edits.rules.without_recall_tool,
            counted,
            snapshot,
            timings: Vec::new(),
        }
    }

    /// The received body, where the engine could not fold it.
    fn unchanged(
        &self,
        trouble: &RequestError,
        session: SessionId,
        answer: &RequestOutcome,
        terms: &Terms,
    ) -> PreparedBody {
        let reason = self.report(trouble, Some(&session));
        let meter = &self.context.meter;
        let snapshot = answer.sizes.map(|sizes| meter.overflow_snapshot(&session, sizes, terms.budget));
        PreparedBody { snapshot, session: Some(session), ..PreparedBody::unchanged(reason) }
    }

    /// The settings with the window of the session, where it was unknown when the session began.
    fn settle_window(
        &self,
        engine: &SessionEngine,
        session: &FoundSession,
        terms: &Terms,
    ) -> Result<Terms, StoreError> {
        let Some(unknown) = &self.conversation.unknown_window else { return Ok(terms.clone()) };
        let settled = unknown.settle(engine, &session.id, session.is_new, terms)?;
        Ok(narrowed(settled, self.learnt_window(engine)))
    }

    /// The window that the provider reported in an earlier refusal.
    fn learnt_window(&self, engine: &SessionEngine) -> Option<Tokens> {
        let ClientConversation { upstream, model, .. } = self.conversation;
        engine.model_limit(upstream, model.as_deref().unwrap_or_default()).ok().flatten()
    }

    /// The session of the agent that started this one. A deleted parent is ignored.
    fn parent(&self, engine: &SessionEngine, is_new: bool) -> Result<Option<SessionId>, StoreError> {
        let parent = self.context.subagents.parent(&self.conversation.caller).filter(|_| is_new);
        let Some(parent) = parent else { return Ok(None) };
        Ok(if engine.is_new(&parent)? { None } else { Some(parent) })
    }

    /// Logs why a body is sent unchanged. Errors may quote the body, so only sizes and errors of the store are logged.
    fn report(&self, trouble: &RequestError, session: Option<&SessionId>) -> BypassReason {
        let session = session.map_or("", |session| &session.0);
        let why = BypassReason::from(trouble);
        match trouble {
            RequestError::Store(error) => {
                self.context.engine.report(Some(error));
                let store = store_message(error);
                tracing::warn!(session, %why, store, "body sent unchanged");
            }
            RequestError::Overflow(overflow) => {
                let (needs, has) = (overflow.smallest.0, overflow.room.0);
                tracing::warn!(session, %why, needs, has, "body sent unchanged: it needs a larger --window");
            }
            _ => tracing::warn!(session, %why, "body sent unchanged"),
        }
        why
    }
}

/// Why a body is not folded.
enum Bypass {
    Reason(BypassReason),
    /// The engine failed; this is logged.
    Trouble(RequestError),
}

impl From<BypassReason> for Bypass {
    fn from(reason: BypassReason) -> Bypass {
        Bypass::Reason(reason)
    }
}

impl From<RequestError> for Bypass {
    fn from(trouble: RequestError) -> Bypass {
        Bypass::Trouble(trouble)
    }
}

impl From<StoreError> for Bypass {
    fn from(error: StoreError) -> Bypass {
        Bypass::Trouble(error.into())
    }
}

/// Finds the session that the client names, or recognises it by its messages.
fn find_session(
    engine: &SessionEngine,
    parsed: Incoming,
    name: Option<&String>,
) -> Result<(FoundSession, Incoming), RequestError> {
    let Some(name) = name else {
        let found = engine.recognise_with_recalls(parsed)?;
        let (id, is_new) =
            (engine.session_for(&found.session_match)?, found.session_match == SessionMatch::New);
        return Ok((FoundSession { id, is_new, with_recalls: found.with_recalls }, found.incoming));
    };
    let id = SessionId(name.clone());
    let is_new = engine.is_new(&id)?;
    let with_recalls = match is_new {
        true => None,
        false => engine.insert_hidden_recalls(&id, parsed.text(), parsed.format())?,
    };
    let parsed = match &with_recalls {
        Some(whole) => engine.open(whole, parsed.format())?,
        None => parsed,
    };
    Ok((FoundSession { id, is_new, with_recalls }, parsed))
}

/// Fold settings with a window that is not larger than the provider accepts.
fn narrowed(terms: Terms, limit: Option<Tokens>) -> Terms {
    let Some(window) = limit.filter(|limit| *limit < terms.budget.window()) else { return terms };
    Terms { budget: terms.budget.narrowed(window), ..terms }
}

#[cfg(test)]
mod tests {
    use fanfold_core::{Budget, Policy, Words};

    use super::*;

    #[test]
    fn a_narrowed_window_gets_the_reserve_of_its_size() {
        let terms = |budget| Terms {
            engine: fanfold_core::EngineFactory::FANFOLD,
            policy: Policy::named("fanfold").unwrap(),
            budget,
            prices: None,
            counter: &Words,
            format: None,
            focus: String::new(),
            assumed: Vec::new(),
            described: String::new(),
        };
        for limit in [4_000, 8_000, 10_000, 32_000].map(Tokens) {
            let narrowed = narrowed(terms(Budget::of_window(Tokens(400_000))), Some(limit)).budget;
            assert_eq!(narrowed, Budget::of_window(limit));
            assert!(narrowed.room() > Tokens(limit.0 / 2), "there is room in {limit}");
        }
        let wide = Budget::of_window(Tokens(400_000));
        assert_eq!(narrowed(terms(wide), None).budget, wide);
        assert_eq!(narrowed(terms(wide), Some(Tokens(500_000))).budget, wide);
    }
}

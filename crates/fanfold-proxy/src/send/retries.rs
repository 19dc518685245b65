//! Retries of refused bodies: in another form for the rules of the provider, or folded harder for its limit.

use std::sync::Arc;

use axum::body::Body;
use fanfold_core::Tokens;
use fanfold_engine::{LengthRefusal, Mode, OpError, SessionEngine};
use fanfold_store::SessionId;
use fanfold_wire::Format;
use fanfold_wire::reply::{PromptFill, Refusal};

use crate::meter::RequestMeter;
use crate::outcome::{BypassReason, ProxyOutcome};
use crate::prepare::prepared_body::PreparedBody;
use crate::prepare::provider_quirks::{Form, reshape};
use crate::prepare::recall_offer::NO_RECALL;
use crate::prepare::{Attempt, ClientConversation, fold};
use crate::receive::read_body::BufferedBody;
use crate::send::call::{CallError, ProviderCall};
use crate::send::request_headers;
use crate::send::response_start::{self, MAX_ERROR_BYTES, ResponseStart};

/// Assumed limit of a provider that refuses a body without reporting one, in per mille of the body.
const ASSUMED_LIMIT: u32 = 700;
/// The same if the body was far from the window, so that nothing is known about the limit. There is one retry.
const ASSUMED_LIMIT_FAR_FROM_WINDOW: u32 = 500;
/// A body above this share of the window, in per mille, is close to it.
const CLOSE_TO_WINDOW: u32 = 750;

/// The round of a request. Only in the first one, a body that is too long may be folded harder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    First,
    Last,
}

/// A body that the provider answered.
pub(super) struct Response {
    pub(super) start: ResponseStart,
    pub(super) prepared: PreparedBody,
}

/// Sends one conversation.
pub(super) struct Sender<'a> {
    pub(super) call: &'a ProviderCall,
    pub(super) received: &'a BufferedBody,
    pub(super) conversation: &'a Arc<ClientConversation>,
}

impl Sender<'_> {
    /// Sends a body, and once more, folded harder, if it is refused for its length.
    pub(super) async fn send(
        &self,
        prepared: PreparedBody,
        meter: &mut RequestMeter,
    ) -> Result<Response, CallError> {
        let first = self.send_in_accepted_form(prepared, Round::First, meter).await?;
        let Some(refusal) = first.start.refusal else { return Ok(first) };
        meter.count_refusal();
        if first.prepared.outcome == ProxyOutcome::Unchanged(BypassReason::Rejected) {
            return Ok(first);
        }
        let session = first.prepared.session.clone();
        let Some(harder) = self.fold_harder(&first.prepared, refusal).await else {
            self.withdraw_assumed_limit(session, refusal).await;
            return Ok(first);
        };
        // The rest of the refusal is not read, which frees the connection for the retry.
        drop(first);
        meter.count_harder_fold();
        let session = harder.session.clone();
        let last = self.send_in_accepted_form(harder, Round::Last, meter).await?;
        if last.start.refusal.is_some() {
            meter.count_refusal();
        }
        let is_accepted = last.start.response.status().is_success() && last.prepared.body.is_some();
        if !is_accepted {
            self.withdraw_assumed_limit(session, refusal).await;
        }
        Ok(last)
    }

    /// Sends a body, and in other forms as long as it is refused for something other than its length.
    ///
    /// A refusal without a message may be about length. In the last round it is treated as one about form.
    async fn send_in_accepted_form(
        &self,
        prepared: PreparedBody,
        round: Round,
        meter: &mut RequestMeter,
    ) -> Result<Response, CallError> {
        let shared = &self.call.shared;
        let mut later_forms = prepared.form.later();
        let mut sent = prepared;
        let mut start = send_once(self.call, self.received, &sent, self.conversation.format, meter).await?;
        let mut is_reshaped = false;
        while sent.body.is_some() && is_refused_for_form(&mut start, round).await {
            let Some(form) = later_forms.next() else { break };
            let Some(reshaped) = reshape(shared, self.conversation, &sent, form).await else { continue };
            // Without messages to merge, two forms are identical.
            if reshaped.body == sent.body {
                continue;
            }
            (sent, is_reshaped) = (reshaped, true);
            // The rest of the refusal is not read, which frees the connection for the retry.
            drop(start);
            meter.count_retry();
            start = send_once(self.call, self.received, &sent, self.conversation.format, meter).await?;
        }
        if start.response.status().is_success() {
            if is_reshaped {
                shared.quirks.learn(&self.conversation.provider, sent.session.as_ref(), sent.form);
            }
            if let Some(session) =
                sent.session.clone().filter(|_| sent.lost_tool && sent.form != Form::Verbatim)
            {
                self.withdraw_tool(session).await;
            }
        }
        Ok(Response { start, prepared: sent })
    }

    /// Folds a refused body harder. Returns `None` if that leads to no other body.
    async fn fold_harder(&self, refused: &PreparedBody, refusal: Refusal) -> Option<PreparedBody> {
        let shared = &self.call.shared;
        if shared.folder.mode() == Mode::Observe {
            return None;
        }
        // A limit that includes the output leaves the difference for the prompt.
        let reported_limit = refusal.room().map(Tokens);
        let counted = refused.counted.map(|counted| counted.tokens);
        let is_far =
            refused.counted.is_some_and(|counted| counted.tokens < counted.window.permille(CLOSE_TO_WINDOW));
        let assumed =
            if refusal.is_guess() && is_far { ASSUMED_LIMIT_FAR_FROM_WINDOW } else { ASSUMED_LIMIT };
        let limit = reported_limit.or_else(|| counted.map(|counted| counted.permille(assumed)));
        let size = refusal.prompt_size().map(Tokens);
        let attempt = Attempt {
            parsed: None,
            refused: Some(LengthRefusal { counted, limit, size }),
            reported_limit,
            session: refused.session.as_ref().map(|session| session.0.clone()),
        };
        let sent = refused.body.as_ref().unwrap_or(&self.conversation.received);
        let harder = fold(shared, self.conversation, attempt).await;
        harder.body.as_ref().is_some_and(|body| body != sent).then_some(harder)
    }

    /// Withdraws a limit that was only assumed: folding harder did not help, so the refusal was about something else.
    async fn withdraw_assumed_limit(&self, session: Option<SessionId>, refusal: Refusal) {
        let Some(session) = session.filter(|_| refusal.is_guess()) else { return };
        self.update_session(session, |engine, session| engine.retract_refusal(session)).await;
    }

    /// Withdraws the recall tool from a session, so that later stubs do not mention it.
    async fn withdraw_tool(&self, session: SessionId) {
        self.update_session(session, |engine, session| engine.withdraw_recall_tool(session, NO_RECALL)).await;
    }

    /// Updates a session on a blocking thread. The update continues if it misses the deadline.
    async fn update_session(
        &self,
        session: SessionId,
        update: impl FnOnce(&SessionEngine, &SessionId) -> Result<(), OpError> + Send + 'static,
    ) {
        let shared = &self.call.shared;
        let engine = Arc::clone(&shared.engine);
        let work = shared.tasks.spawn_blocking(move || {
            if let Err(error) = update(&engine.get(), &session) {
                tracing::debug!(%session, %error, "a session could not be updated");
            }
        });
        let _ = tokio::time::timeout(shared.limits.deadline, work).await;
    }
}

/// Sends a body once, and reads the beginning of the response.
pub(super) async fn send_once(
    call: &ProviderCall,
    received: &BufferedBody,
    prepared: &PreparedBody,
    format: Format,
    meter: &mut RequestMeter,
) -> Result<ResponseStart, CallError> {
    if let Some(session) = &prepared.session {
        meter.set_session(session, prepared.snapshot.clone());
    }
    for (step, started, duration) in &prepared.timings {
        meter.add_timing(step, *started, *duration);
    }
    meter.set_outcome(prepared.outcome);
    let body = prepared.body.as_ref().unwrap_or(&received.bytes).clone();
    meter.start_call(body.len());
    let response = call.send(request_headers(call, prepared, meter), Some(body.into())).await?;
    let filled = prepared.counted.map_or(PromptFill::FULL, |c| PromptFill::new(c.tokens.0, c.window.0));
    Ok(response_start::read_start(response, format, filled, call.shared.limits.body).await)
}

/// Returns whether a body was refused, and not for its length.
async fn is_refused_for_form(start: &mut ResponseStart, round: Round) -> bool {
    let is_about_length = match &start.refusal {
        Some(refusal) => !(round == Round::Last && refusal.is_guess()),
        None => false,
    };
    match start.response.status().as_u16() {
        400 | 422 => !is_about_length,
        // Servers such as llama.cpp report an error of their prompt template as 500. Other failures are not about
        // the form.
        500 => !is_about_length && is_template_error(start).await,
        _ => false,
    }
}

/// Returns whether an error was raised by the template that builds the prompt.
async fn is_template_error(start: &mut ResponseStart) -> bool {
    // Only a body that was read to its end is inspected, so that no byte of a stream is lost.
    let is_read = hyper::body::Body::size_hint(start.response.body()).exact().is_some();
    if !is_read {
        return false;
    }
    let body = std::mem::take(start.response.body_mut());
    let body = axum::body::to_bytes(body, MAX_ERROR_BYTES).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&body).to_lowercase();
    *start.response.body_mut() = Body::from(body);
    text.contains("roles must alternate") || text.contains("jinja exception")
}

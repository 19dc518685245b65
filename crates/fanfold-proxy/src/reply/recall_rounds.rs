//! Serves recalls inside an answer.
//!
//! Where the model recalls originals, the proxy answers the calls and sends the conversation back to the provider,
//! and the client sees one answer. Where it does so in the same answer as it calls tools of the client, the recalls
//! are recorded and added to the next request.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::response::Response;
use bytes::Bytes;
use fanfold_engine::{HiddenRecall, HiddenRecallRecord, SessionEngine};
use fanfold_store::SessionId;
use fanfold_wire::Format;
use fanfold_wire::reply::{
    self, PromptFill, RecallRequest, ReplyFailure, ReplyJoiner, RoundEffect, ToolCall,
};
use futures_util::{Stream, StreamExt as _, stream};
use http::header::{CONTENT_LENGTH, HeaderMap, RETRY_AFTER};

use crate::meter::Exit;
use crate::reply::originals::originals;
use crate::reply::usage_report::UsageReport;
use crate::reply::{broken_off, is_blank};
use crate::send::call::{CallError, ProviderCall, to_client};
use crate::send::response_start::{self, MAX_ERROR_BYTES};

/// After this many rounds the model gets no more originals.
const MAX_RECALLS: usize = 6;
/// After this many rounds its answer is ended.
const MAX_ROUNDS: usize = 8;
/// Pause before a follow-up is sent again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Limit for the pause that a provider asks for.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(2);
/// Sent to the model instead of originals that do not fit.
const NO_ROOM: &str = "There is no room for it now: go on without, or recall a few lines of it.";

/// An answer in one or several rounds.
pub(crate) struct RecallRounds {
    call: ProviderCall,
    /// The headers of each follow-up.
    headers: HeaderMap,
    format: Format,
    session: SessionId,
    /// Joins the rounds to one answer.
    joiner: ReplyJoiner,
    /// Limit for the originals of one answer.
    max_original_bytes: usize,
    report: UsageReport,
    chunks: BodyDataStream,
    /// Chunks for the client.
    ready: VecDeque<Bytes>,
    is_over: bool,
    /// True if only white space has arrived of an unstreamed answer; providers send it to keep the connection alive.
    is_blank: bool,
    /// True if the client has received part of an unstreamed answer.
    has_begun: bool,
    /// The response to a follow-up that failed.
    failed: Option<Response>,
}

/// The step after a recall.
enum NextRound {
    Answer(BodyDataStream),
    End(Exit),
}

/// Why a follow-up was not answered.
enum FollowUpError {
    TooLong(Box<http::Response<Body>>),
    /// The provider responded with another error.
    Refused(Box<http::Response<Body>>),
    NoResponse(CallError),
}

impl RecallRounds {
    pub(super) fn new(
        call: ProviderCall,
        headers: HeaderMap,
        format: Format,
        session: SessionId,
        joiner: ReplyJoiner,
        max_original_bytes: usize,
        report: UsageReport,
    ) -> RecallRounds {
        RecallRounds {
            call,
            headers,
            format,
            session,
            joiner,
            max_original_bytes,
            report,
            chunks: Body::empty().into_data_stream(),
            ready: VecDeque::new(),
            is_over: false,
            is_blank: false,
            has_begun: false,
            failed: None,
        }
    }

    /// A streamed answer. Dropping it cancels the call to the provider.
    pub(super) fn stream(
        mut self,
        body: Body,
    ) -> impl Stream<Item = Result<Bytes, axum::Error>> + Send + use<> {
        self.chunks = body.into_data_stream();
        self.into_stream()
    }

    fn into_stream(self) -> impl Stream<Item = Result<Bytes, axum::Error>> + Send + use<> {
        stream::unfold(self, |mut rounds| async move { rounds.next().await.map(|next| (next, rounds)) })
    }

    /// An unstreamed answer: all its rounds, or the error of the last one. If it starts with white space it is
    /// streamed.
    pub(super) async fn whole(mut self, mut response: Response) -> Response {
        self.chunks = std::mem::take(response.body_mut()).into_data_stream();
        self.is_blank = true;
        let mut whole = Vec::new();
        while let Some(next) = self.next().await {
            match next {
                Ok(bytes) if self.is_blank => {
                    response.headers_mut().remove(CONTENT_LENGTH);
                    self.has_begun = true;
                    let stream = stream::iter([Ok(bytes)]).chain(self.into_stream());
                    return response.map(|_| Body::from_stream(stream));
                }
                Ok(bytes) => whole.extend_from_slice(&bytes),
                Err(error) => return broken_off(&response, &error),
            }
        }
        if let Some(failed) = self.failed.take() {
            return failed;
        }
        response.headers_mut().remove(CONTENT_LENGTH);
        response.map(|_| Body::from(whole))
    }

    async fn next(&mut self) -> Option<Result<Bytes, axum::Error>> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some(Ok(bytes));
            }
            if self.is_over {
                return None;
            }
            let (effects, is_end) = match self.chunks.next().await {
                Some(Ok(chunk)) if self.is_blank && is_blank(&chunk) => return Some(Ok(chunk)),
                Some(Ok(chunk)) => {
                    self.is_blank = false;
                    (self.joiner.feed(&chunk), false)
                }
                Some(Err(error)) => {
                    self.end(Exit::BrokenOff);
                    return Some(Err(error));
                }
                None => (self.joiner.end(), true),
            };
            match self.run_effects(effects).await {
                Some(NextRound::Answer(chunks)) => self.chunks = chunks,
                Some(NextRound::End(exit)) => self.end(exit),
                None if is_end => self.end(Exit::Done),
                None => {}
            }
        }
    }

    fn end(&mut self, exit: Exit) {
        self.is_over = true;
        self.report.end(self.joiner.rounds().last().and_then(|round| round.usage), exit);
    }

    async fn run_effects(&mut self, effects: Vec<RoundEffect>) -> Option<NextRound> {
        for out in effects {
            match out {
                RoundEffect::ToClient(bytes) => self.ready.push_back(bytes.into()),
                RoundEffect::Recall(wanted) => return Some(self.recall(wanted).await),
                RoundEffect::Hidden { recalls, client_calls } => {
                    self.record_recalls(recalls, client_calls).await;
                }
            }
        }
        None
    }

    /// Answers recalls of the model, and sends the conversation back to the provider.
    async fn recall(&mut self, wanted: Vec<RecallRequest>) -> NextRound {
        self.report.count_recall(self.joiner.rounds().last().and_then(|round| round.usage));
        let n_wanted = wanted.len();
        let answers = if self.joiner.n_recalls() > MAX_RECALLS {
            vec!["Nothing more is recalled now: go on with what you have.".to_owned(); n_wanted]
        } else {
            self.originals(wanted).await
        };
        let may_continue = self.joiner.n_recalls() <= MAX_ROUNDS;
        let Some(request) = may_continue.then(|| self.joiner.follow_up(&answers)).flatten() else {
            let effects = self.joiner.close();
            self.queue_for_client(effects);
            return NextRound::End(Exit::Done);
        };
        let error = match self.follow_up(request.clone()).await {
            Ok(chunks) => return NextRound::Answer(chunks),
            Err(error) => error,
        };
        // Try once more: without the originals if they were too long, else the same after a pause.
        let retry = match &error {
            FollowUpError::TooLong(_) => {
                self.joiner.follow_up_again(&vec![NO_ROOM.to_owned(); n_wanted]).unwrap_or(request)
            }
            FollowUpError::Refused(response) => {
                tokio::time::sleep(retry_pause(response.headers())).await;
                request
            }
            FollowUpError::NoResponse(_) => {
                tokio::time::sleep(RETRY_PAUSE).await;
                request
            }
        };
        drop(error);
        match self.follow_up(retry).await {
            Ok(chunks) => NextRound::Answer(chunks),
            Err(error) => self.fail(error).await,
        }
    }

    /// Sends a follow-up, and reads the beginning of its answer.
    async fn follow_up(&mut self, request: String) -> Result<BodyDataStream, FollowUpError> {
        let response = self.call.send(self.headers.clone(), Some(request.into())).await;
        let response = response.map_err(FollowUpError::NoResponse)?;
        // The provider accepted the request before, so an error without a message is about the added originals.
        let limit = self.call.shared.limits.body;
        let start = response_start::read_start(response, self.format, PromptFill::FULL, limit).await;
        if start.refusal.is_some() {
            return Err(FollowUpError::TooLong(Box::new(start.response)));
        }
        if !start.response.status().is_success() {
            return Err(FollowUpError::Refused(Box::new(start.response)));
        }
        Ok(start.response.into_body().into_data_stream())
    }

    /// Passes the error of a follow-up to the client, which may retry as it would without the proxy.
    async fn fail(&mut self, error: FollowUpError) -> NextRound {
        let (response, exit) = match error {
            FollowUpError::TooLong(response) | FollowUpError::Refused(response) => {
                (to_client(*response), Exit::BrokenOff)
            }
            FollowUpError::NoResponse(error) => (error.error.into_response(), error.exit),
        };
        let (parts, body) = response.into_parts();
        let body = axum::body::to_bytes(body, MAX_ERROR_BYTES).await.unwrap_or_default();
        let text = String::from_utf8_lossy(&body);
        let failure = ReplyFailure::read(&text).filter(|failure| !failure.message.is_empty());
        let failure = failure.unwrap_or_else(|| ReplyFailure {
            kind: String::new(),
            message: format!("the provider answered {}", parts.status),
            raw: String::new(),
        });
        let effects = self.joiner.fail(&failure);
        self.queue_for_client(effects);
        self.failed = Some(Response::from_parts(parts, Body::from(body.clone())));
        // If the headers were sent already, only the body of the error can follow.
        if self.has_begun {
            self.ready.push_back(body);
        }
        NextRound::End(exit)
    }

    fn queue_for_client(&mut self, effects: Vec<RoundEffect>) {
        for out in effects {
            if let RoundEffect::ToClient(bytes) = out {
                self.ready.push_back(bytes.into());
            }
        }
    }

    /// Runs work with the engine on a blocking thread, within the deadline.
    async fn with_engine<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Arc<SessionEngine>) -> T + Send + 'static,
    ) -> Option<T> {
        let engine = Arc::clone(&self.call.shared.engine);
        let work = tokio::task::spawn_blocking(move || work(&engine.get()));
        let result = tokio::time::timeout(self.call.shared.limits.deadline, work).await;
        result.ok().and_then(Result::ok)
    }

    async fn originals(&mut self, wanted: Vec<RecallRequest>) -> Vec<String> {
        let (session, limit, n_wanted) = (self.session.clone(), self.max_original_bytes, wanted.len());
        let found = self.with_engine(move |engine| originals(engine, &session, &wanted, limit)).await;
        found.unwrap_or_else(|| vec!["It can't be recalled now: go on without it.".to_owned(); n_wanted])
    }

    /// Records recalls made with calls of the client, before the client can send the results of its calls.
    async fn record_recalls(&mut self, recalls: Vec<ToolCall>, client_calls: Vec<String>) {
        self.report.count_recall(None);
        let results = self.originals(recalls.iter().map(RecallRequest::read).collect()).await;
        let answered = recalls.iter().cloned().zip(results.iter().cloned()).collect();
        self.call
            .shared
            .pending_recalls
            .add(reply::HiddenRecalls { client_calls: client_calls.clone(), recalls: answered });
        let hidden_recall = |(call, result): (ToolCall, String)| HiddenRecall {
            call: call.id,
            arguments: call.arguments,
            result,
        };
        let record = HiddenRecallRecord {
            client_calls,
            recalls: recalls.into_iter().zip(results).map(hidden_recall).collect(),
        };
        let session = self.session.clone();
        let recorded = self.with_engine(move |engine| engine.record_hidden_recalls(&session, record)).await;
        match recorded {
            Some(Ok(())) => {}
            // The next request lacks the call, so the model may repeat it.
            Some(Err(error)) => {
                tracing::warn!(session = %self.session, %error, "a recall could not be recorded");
            }
            None => tracing::warn!(session = %self.session, "a recall could not be recorded in time"),
        }
    }
}

/// The pause before a follow-up is sent again.
fn retry_pause(headers: &HeaderMap) -> Duration {
    let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    seconds.map_or(RETRY_PAUSE, |seconds| Duration::from_secs(seconds).min(MAX_RETRY_PAUSE))
}

//! An answer in rounds: where the model opens folds, they are recalled here and the provider is asked on, and the client
//! sees one answer. Where it opens them beside calls of the client's, they are noted for the next request.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::response::Response;
use bytes::Bytes;
use fanfold_engine::{Beside, Engine, Opened};
use fanfold_store::SessionId;
use fanfold_wire::Format;
use fanfold_wire::reply::{self, ToolCall, Failure, PromptFill, ReplyJoiner, RoundEffect, RecallRequest};
use futures_util::{Stream, StreamExt as _, stream};
use http::header::{CONTENT_LENGTH, HeaderMap, RETRY_AFTER};

use crate::meter::Exit;
use crate::prepare::recall_offer::originals;
use crate::send::call::{Call, NotSent, to_client};
use crate::send::conversation::Ledger;
use crate::send::response_start;

/// After so many rounds the model is told to go on without.
const MOST_RECALLS: usize = 6;
/// And after so many its answer is ended.
const MOST_ROUNDS: usize = 8;
/// A provider that did not take a follow-up is asked again after so long.
const PAUSE: Duration = Duration::from_millis(500);
/// Or after as long as it says, up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// What a model is told whose recall does not fit.
const NO_ROOM: &str = "There is no room for it now: go on without, or recall a few lines of it.";

/// An answer on its way, in one or several rounds.
pub(crate) struct Rounds {
    pub(crate) call: Call,
    /// The headers of each request.
    pub(crate) headers: HeaderMap,
    pub(crate) held: ReplyJoiner,
    pub(crate) format: Format,
    pub(crate) session: SessionId,
    /// How many bytes originals may take.
    pub(crate) n_room: usize,
    pub(crate) ledger: Ledger,
    chunks: BodyDataStream,
    /// What the client gets next.
    ready: VecDeque<Bytes>,
    is_over: bool,
    /// Whether all that came of a whole answer is white space, by which a provider keeps the connection alive.
    is_blank: bool,
    /// Whether a whole answer has begun for the client.
    has_begun: bool,
    /// What the provider said to a follow-up that it did not answer.
    failed: Option<Response>,
}

/// What comes after a call of the model's.
enum Next {
    /// Another answer of the provider's.
    Round(BodyDataStream),
    /// The end.
    End(Exit),
}

/// Why a follow-up has no answer.
enum NotAnswered {
    /// It was too long.
    TooLong(Box<http::Response<Body>>),
    /// The provider said something else.
    Refused(Box<http::Response<Body>>),
    /// There was nobody.
    NotSent(NotSent),
}

impl Rounds {
    pub(crate) fn new(
        call: Call,
        headers: HeaderMap,
        (held, format): (ReplyJoiner, Format),
        session: SessionId,
        n_room: usize,
        ledger: Ledger,
    ) -> Rounds {
        let (chunks, ready) = (Body::empty().into_data_stream(), VecDeque::new());
        Rounds {
            call,
            headers,
            held,
            format,
            session,
            n_room,
            ledger,
            chunks,
            ready,
            is_over: false,
            is_blank: false,
            has_begun: false,
            failed: None,
        }
    }

    /// A stream that goes on as it comes. Where it is dropped, the call upstream is.
    pub(crate) fn stream(mut self, body: Body) -> impl Stream<Item = Result<Bytes, axum::Error>> + Send {
        self.chunks = body.into_data_stream();
        self.go_on()
    }

    fn go_on(self) -> impl Stream<Item = Result<Bytes, axum::Error>> + Send {
        stream::unfold(self, |mut rounds| async move { rounds.next().await.map(|next| (next, rounds)) })
    }

    /// An answer that is not streamed: all rounds of it, or what the provider said instead of the last one. One that
    /// begins with signs of life goes on as they come.
    pub(crate) async fn whole(mut self, mut response: Response) -> Response {
        self.chunks = std::mem::take(response.body_mut()).into_data_stream();
        self.is_blank = true;
        let mut whole = Vec::new();
        while let Some(next) = self.next().await {
            match next {
                Ok(bytes) if self.is_blank => {
                    response.headers_mut().remove(CONTENT_LENGTH);
                    self.has_begun = true;
                    let begun = stream::iter([Ok(bytes)]).chain(self.go_on());
                    return response.map(|_| Body::from_stream(begun));
                }
                Ok(bytes) => whole.extend_from_slice(&bytes),
                // What breaks off breaks off for the client, too.
                Err(error) => {
                    let begun = stream::iter([Ok(Bytes::from(whole)), Err(error)]);
                    return response.map(|_| Body::from_stream(begun));
                }
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
            let (outs, is_end) = match self.chunks.next().await {
                Some(Ok(chunk)) if self.is_blank && is_blank(&chunk) => return Some(Ok(chunk)),
                Some(Ok(chunk)) => {
                    self.is_blank = false;
                    (self.held.feed(&chunk), false)
                }
                Some(Err(error)) => {
                    self.end(Exit::BrokenOff);
                    return Some(Err(error));
                }
                None => (self.held.end(), true),
            };
            match self.take(outs).await {
                Some(Next::Round(chunks)) => self.chunks = chunks,
                Some(Next::End(exit)) => self.end(exit),
                None if is_end => self.end(Exit::Done),
                None => {}
            }
        }
    }

    fn end(&mut self, exit: Exit) {
        self.is_over = true;
        self.ledger.end(self.held.rounds().last().and_then(|said| said.usage), exit);
    }

    async fn take(&mut self, outs: Vec<RoundEffect>) -> Option<Next> {
        for out in outs {
            match out {
                RoundEffect::ToClient(bytes) => self.ready.push_back(bytes.into()),
                RoundEffect::Recall(wanted) => return Some(self.recall(wanted).await),
                RoundEffect::Hidden { recalls, client_calls } => self.note(recalls, client_calls).await,
            }
        }
        None
    }

    /// Recalls what the model wants and asks the provider on.
    async fn recall(&mut self, wanted: Vec<RecallRequest>) -> Next {
        self.ledger.recalled(self.held.rounds().last().and_then(|said| said.usage));
        let n_wanted = wanted.len();
        let answers = if self.held.n_recalls() > MOST_RECALLS {
            vec!["Nothing more is recalled now: go on with what you have.".to_owned(); n_wanted]
        } else {
            self.originals(wanted).await
        };
        let may_go_on = self.held.n_recalls() <= MOST_ROUNDS;
        let Some(request) = may_go_on.then(|| self.held.follow_up(&answers)).flatten() else {
            let outs = self.held.close();
            self.show(outs);
            return Next::End(Exit::Done);
        };
        let not_answered = match self.ask_on(request.clone()).await {
            Ok(chunks) => return Next::Round(chunks),
            Err(not_answered) => not_answered,
        };
        // Once more: with words instead of the originals if they were too long, else the same after a while.
        let again = match &not_answered {
            NotAnswered::TooLong(_) => {
                self.held.follow_up_again(&vec![NO_ROOM.to_owned(); n_wanted]).unwrap_or(request)
            }
            NotAnswered::Refused(response) => {
                tokio::time::sleep(pause(response.headers())).await;
                request
            }
            NotAnswered::NotSent(_) => {
                tokio::time::sleep(PAUSE).await;
                request
            }
        };
        drop(not_answered);
        match self.ask_on(again).await {
            Ok(chunks) => Next::Round(chunks),
            Err(not_answered) => self.give_up(not_answered).await,
        }
    }

    /// Sends a follow-up, and looks at the beginning of its answer.
    async fn ask_on(&mut self, request: String) -> Result<BodyDataStream, NotAnswered> {
        let response = self.call.send(self.headers.clone(), Some(request.into())).await;
        let response = response.map_err(NotAnswered::NotSent)?;
        // What was sent before it was taken, so an error without a word is about what was added.
        let opened =
            response_start::open(response, self.format, PromptFill::FULL, self.call.shared.limits.body).await;
        if opened.refusal.is_some() {
            return Err(NotAnswered::TooLong(Box::new(opened.response)));
        }
        if !opened.response.status().is_success() {
            return Err(NotAnswered::Refused(Box::new(opened.response)));
        }
        Ok(opened.response.into_body().into_data_stream())
    }

    /// The provider does not go on: its own words go to the client, which asks again as it would without us.
    async fn give_up(&mut self, not_answered: NotAnswered) -> Next {
        let (response, exit) = match not_answered {
            NotAnswered::TooLong(response) | NotAnswered::Refused(response) => {
                (to_client(*response), Exit::BrokenOff)
            }
            NotAnswered::NotSent(not_sent) => (not_sent.response, not_sent.exit),
        };
        let (parts, body) = response.into_parts();
        let body = axum::body::to_bytes(body, response_start::LONGEST_ERROR).await.unwrap_or_default();
        let text = String::from_utf8_lossy(&body);
        let failure = Failure::read(&text).filter(|failure| !failure.message.is_empty());
        let failure = failure.unwrap_or_else(|| Failure {
            kind: String::new(),
            message: format!("the provider answered {}", parts.status),
            raw: String::new(),
        });
        let outs = self.held.fail(&failure);
        self.show(outs);
        self.failed = Some(Response::from_parts(parts, Body::from(body.clone())));
        // Its headers may have gone with a sign of life; then the words are all that is left to give.
        if self.has_begun {
            self.ready.push_back(body);
        }
        Next::End(exit)
    }

    fn show(&mut self, outs: Vec<RoundEffect>) {
        for out in outs {
            if let RoundEffect::ToClient(bytes) = out {
                self.ready.push_back(bytes.into());
            }
        }
    }

    /// Does something with the engine, on a thread that may block, for as long as our own work may take.
    async fn with_engine<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Arc<Engine>) -> T + Send + 'static,
    ) -> Option<T> {
        let desk = Arc::clone(&self.call.shared.folder.desk);
        let work = tokio::task::spawn_blocking(move || Some(work(&desk.engine().ok()?)));
        let done = tokio::time::timeout(self.call.shared.limits.deadline, work).await;
        done.ok().and_then(Result::ok).flatten()
    }

    async fn originals(&mut self, wanted: Vec<RecallRequest>) -> Vec<String> {
        let (session, n_room, n_wanted) = (self.session.clone(), self.n_room, wanted.len());
        let found = self.with_engine(move |engine| originals(engine, &session, &wanted, n_room)).await;
        found.unwrap_or_else(|| vec!["It can't be recalled now: go on without it.".to_owned(); n_wanted])
    }

    /// Notes what the model wants beside the client's calls, before the client can send their results.
    async fn note(&mut self, ours: Vec<ToolCall>, theirs: Vec<String>) {
        self.ledger.recalled(None);
        let results = self.originals(ours.iter().map(RecallRequest::read).collect()).await;
        let opened =
            |(call, result): (ToolCall, String)| Opened { call: call.id, arguments: call.arguments, result };
        let made = ours.iter().cloned().zip(results.iter().cloned()).collect();
        self.call.shared.folder.waiting.add(reply::HiddenRecalls { client_calls: theirs.clone(), recalls: made });
        let beside = Beside { theirs, ours: ours.into_iter().zip(results).map(opened).collect() };
        let session = self.session.clone();
        let noted = self.with_engine(move |engine| engine.recalled_beside(&session, beside)).await;
        match noted {
            Some(Ok(())) => {}
            // The model does not see that it asked, and may ask again.
            Some(Err(error)) => {
                tracing::warn!(session = %self.session, %error, "a recall could not be noted");
            }
            None => tracing::warn!(session = %self.session, "a recall could not be noted in time"),
        }
    }
}

/// Whether a piece of an answer says nothing.
pub(crate) fn is_blank(chunk: &[u8]) -> bool {
    chunk.trim_ascii().is_empty()
}

/// How long to wait before a provider is asked again.
fn pause(headers: &HeaderMap) -> Duration {
    let told = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    told.map_or(PAUSE, |seconds| Duration::from_secs(seconds).min(LONGEST_PAUSE))
}

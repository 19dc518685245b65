//! An answer in rounds: where the model opens folds, they are recalled here and the provider is asked on, and the client
//! sees one answer.

use std::collections::VecDeque;

use axum::body::{Body, BodyDataStream};
use axum::response::Response;
use bytes::Bytes;
use fanfold_store::SessionId;
use fanfold_wire::reply::{Held, Out, Wanted};
use futures_util::{Stream, StreamExt as _, stream};
use http::header::{CONTENT_LENGTH, HeaderMap};

use crate::call::{Call, to_client};
use crate::converse::Ledger;
use crate::meter::Exit;
use crate::recall::originals;

/// After so many rounds the model is told to go on without.
const MOST_RECALLS: usize = 6;
/// And after so many its answer is ended.
const MOST_ROUNDS: usize = 8;

/// An answer on its way, in one or several rounds.
pub(crate) struct Rounds {
    pub(crate) call: Call,
    /// The headers of each request.
    pub(crate) headers: HeaderMap,
    pub(crate) held: Held,
    pub(crate) session: SessionId,
    /// How many bytes originals may take.
    pub(crate) n_room: usize,
    pub(crate) ledger: Ledger,
    chunks: BodyDataStream,
    /// What the client gets next.
    ready: VecDeque<Bytes>,
    is_over: bool,
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

impl Rounds {
    pub(crate) fn new(
        call: Call,
        headers: HeaderMap,
        held: Held,
        session: SessionId,
        n_room: usize,
        ledger: Ledger,
    ) -> Rounds {
        let (chunks, ready) = (Body::empty().into_data_stream(), VecDeque::new());
        Rounds { call, headers, held, session, n_room, ledger, chunks, ready, is_over: false, failed: None }
    }

    /// A stream that goes on as it comes. Where it is dropped, the call upstream is.
    pub(crate) fn stream(mut self, body: Body) -> impl Stream<Item = Result<Bytes, axum::Error>> + Send {
        self.chunks = body.into_data_stream();
        stream::unfold(self, |mut rounds| async move { rounds.next().await.map(|next| (next, rounds)) })
    }

    /// An answer that is not streamed: all rounds of it, or what the provider said instead of the last one.
    pub(crate) async fn whole(mut self, mut response: Response) -> Response {
        self.chunks = std::mem::take(response.body_mut()).into_data_stream();
        let mut whole = Vec::new();
        while let Some(next) = self.next().await {
            match next {
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
                Some(Ok(chunk)) => (self.held.feed(&chunk), false),
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

    async fn take(&mut self, outs: Vec<Out>) -> Option<Next> {
        for out in outs {
            match out {
                Out::ToClient(bytes) => self.ready.push_back(bytes.into()),
                Out::Recall(wanted) => return Some(self.recall(wanted).await),
                Out::Note(wanted) => {
                    tracing::debug!(n = wanted.len(), "recalls beside the client's own calls");
                }
            }
        }
        None
    }

    /// Recalls what the model wants and asks the provider on.
    async fn recall(&mut self, wanted: Vec<Wanted>) -> Next {
        self.ledger.recalled(self.held.rounds().last().and_then(|said| said.usage));
        let answers = if self.held.n_recalls() > MOST_RECALLS {
            vec!["Nothing more is recalled now: go on with what you have.".to_owned(); wanted.len()]
        } else {
            self.originals(wanted).await
        };
        let may_go_on = self.held.n_recalls() <= MOST_ROUNDS;
        let Some(request) = may_go_on.then(|| self.held.follow_up(&answers)).flatten() else {
            let outs = self.held.close();
            self.show(outs);
            return Next::End(Exit::Done);
        };
        match self.call.send(self.headers.clone(), Some(request.into())).await {
            Ok(response) if response.status().is_success() => {
                Next::Round(Body::new(response.into_body()).into_data_stream())
            }
            Ok(response) => {
                let outs =
                    self.held.fail(&format!("the provider answered {} after a recall", response.status()));
                self.show(outs);
                self.failed = Some(to_client(response.map(Body::new)));
                Next::End(Exit::BrokenOff)
            }
            Err(not_sent) => {
                let outs = self.held.fail("the provider did not answer after a recall");
                self.show(outs);
                self.failed = Some(not_sent.response);
                Next::End(not_sent.exit)
            }
        }
    }

    fn show(&mut self, outs: Vec<Out>) {
        for out in outs {
            if let Out::ToClient(bytes) = out {
                self.ready.push_back(bytes.into());
            }
        }
    }

    async fn originals(&mut self, wanted: Vec<Wanted>) -> Vec<String> {
        let desk = std::sync::Arc::clone(&self.call.shared.folder.desk);
        let (session, n_room, n_wanted) = (self.session.clone(), self.n_room, wanted.len());
        let work = tokio::task::spawn_blocking(move || {
            let engine = desk.engine().ok()?;
            Some(originals(&engine, &session, &wanted, n_room))
        });
        let found = tokio::time::timeout(self.call.shared.limits.deadline, work).await;
        let nothing = || vec!["It can't be recalled now: go on without it.".to_owned(); n_wanted];
        found.ok().and_then(Result::ok).flatten().unwrap_or_else(nothing)
    }
}

//! A conversation folded and sent, and sent once more, folded harder, if it was too long.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use fanfold_core::ProviderUsage;
use fanfold_core::Tokens;
use fanfold_engine::{Mode, Refused};
use fanfold_store::SessionId;
use fanfold_wire::Format;
use fanfold_wire::reply::{self, Transport, PromptFill, ReplyJoiner, Refusal, ReplyReader};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};

use crate::admission::body_quota::Space;
use crate::meter::{Arrival, Exit, Passage, Used};
use crate::pipeline::{SESSION, Shared};
use crate::prepare::folding::Wanted;
use crate::prepare::prepared_body::{Made, Reason, Sent};
use crate::prepare::subagents::Asker;
use crate::receive::unpack::Unread;
use crate::reply::recall_rounds::Rounds;
use crate::send::call::{Call, NotSent, to_client};
use crate::send::provider_quirks::Try;
use crate::send::response_start::{self, Opened};
use crate::watched_body::{End, Passing, Watch};

/// The header that tells how a body left.
const LEFT: &str = "x-fanfold";

/// What a provider that refuses without a number is taken to take of what was sent, in per mille.
const GUESS: u32 = 700;
/// And one that refuses without a word what should be far from its window: nothing is known of it, and there is one try.
const GUESS_OF_UNKNOWN: u32 = 500;

/// From here on a window is nearly full, in per mille.
const NEARLY_FULL: u32 = 750;

/// A conversation that came.
pub(crate) struct Came {
    /// The body as it came, packed or not.
    pub(crate) body: Bytes,
    pub(crate) format: Format,
    /// The session that the client named.
    pub(crate) named: Option<String>,
    /// Where it is held.
    pub(crate) _space: Space,
}

impl Call {
    /// Folds a conversation, sends it, and gives the answer as it comes.
    pub(crate) async fn converse(self, came: Came) -> Response {
        let shared = Arc::clone(&self.shared);
        let traceparent = self.headers.get("traceparent").and_then(|value| value.to_str().ok());
        let mut passage = shared.meter.came(&Arrival { format: came.format, model: None, traceparent });
        let (body, headers, named) = (came.body.clone(), self.headers.clone(), came.named.clone());
        let unread = Unread { headers, body, format: came.format, named: named.clone() };
        let (mut wanted, mut minded) = (None, None);
        let made = match shared.read(unread).await {
            Ok(read) => {
                if let Some(model) = &read.model {
                    passage.asks(model);
                }
                minded.clone_from(&read.minded);
                let asked = Wanted {
                    unknown: self.unknown(read.model.as_deref()),
                    takes_tool: shared.taken.takes_tool(&self.who(read.model.as_deref(), came.format)),
                    body: read.body,
                    format: came.format,
                    model: read.model,
                    named,
                    asker: Asker::of(&self.headers),
                    upstream: self.upstream.address().to_owned(),
                    told: None,
                    refused: None,
                    memory: read.minded,
                    _space: read.space,
                    spent: read.took,
                };
                wanted = Some(asked.clone());
                shared.folder.fold(asked).await
            }
            Err(reason) => Made::as_it_came(reason),
        };
        match self.send_and_again(&came, wanted, made, &mut passage).await {
            Ok((opened, made)) => {
                let response = self.answer(&came, opened.response, made, passage).await;
                match minded {
                    Some(minded) => minded.scrub(response, came.format).await,
                    None => response,
                }
            }
            Err(not_sent) => {
                passage.ended(not_sent.exit);
                not_sent.response
            }
        }
    }

    /// Sends a body, and if it is refused for its length, once more, folded harder.
    async fn send_and_again(
        &self,
        came: &Came,
        wanted: Option<Wanted>,
        made: Made,
        passage: &mut Passage,
    ) -> Result<(Opened, Made), NotSent> {
        let model = wanted.as_ref().and_then(|wanted| wanted.model.clone());
        let model = model.as_deref();
        let (opened, made) = self.send_taken(came, model, made, Try::First, passage).await?;
        let (Some(refusal), Some(wanted)) = (opened.refusal, wanted) else { return Ok((opened, made)) };
        passage.refused();
        if made.left == Sent::AsItCame(Reason::NotTaken) {
            return Ok((opened, made));
        }
        let session = made.session.clone();
        let Some(harder) = self.fold_harder(wanted, &made, refusal).await else {
            self.take_back(session, refusal).await;
            return Ok((opened, made));
        };
        // The refusal is not read any further: the connection is free for the next.
        drop(opened);
        passage.retried();
        let session = harder.session.clone();
        let (opened, harder) = self.send_taken(came, model, harder, Try::Last, passage).await?;
        if opened.refusal.is_some() {
            passage.refused();
        }
        let is_taken = opened.response.status().is_success() && harder.body.is_some();
        if !is_taken {
            self.take_back(session, refusal).await;
        }
        Ok((opened, harder))
    }

    /// Takes a limit back that was only guessed: folding harder did not help, so it was about something else.
    async fn take_back(&self, session: Option<SessionId>, refusal: Refusal) {
        let Some(session) = session.filter(|_| refusal.is_guess()) else { return };
        let desk = Arc::clone(&self.shared.folder.desk);
        let work = self.shared.tasks.spawn_blocking(move || {
            let Ok(engine) = desk.engine() else { return };
            if let Err(error) = engine.not_refused(&session) {
                tracing::debug!(%session, %error, "a limit could not be taken back");
            }
        });
        let _ = tokio::time::timeout(self.shared.limits.deadline, work).await;
    }

    /// Sends a body once, and looks at the beginning of the answer.
    pub(crate) async fn send_one(
        &self,
        came: &Came,
        made: &Made,
        passage: &mut Passage,
    ) -> Result<Opened, NotSent> {
        if let Some(session) = &made.session {
            passage.looked(session, made.glance.clone());
        }
        for (step, began, took) in &made.steps {
            passage.did(step, *began, *took);
        }
        passage.left(made.left.outcome());
        let body = made.body.as_ref().unwrap_or(&came.body).clone();
        passage.sending(body.len());
        let response = self.send(self.headers_for(made, passage), Some(body.into())).await?;
        let filled = made.counted.map_or(PromptFill::FULL, |c| PromptFill::new(c.tokens.0, c.window.0));
        Ok(response_start::open(response, came.format, filled, self.shared.limits.body).await)
    }

    fn headers_for(&self, made: &Made, passage: &Passage) -> HeaderMap {
        let mut headers = self.headers.clone();
        // What is read in passing must not be packed.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(place) = passage.traceparent().and_then(|place| HeaderValue::try_from(place).ok()) {
            headers.insert("traceparent", place);
        }
        if made.body.is_some() {
            headers.remove(CONTENT_ENCODING);
        }
        headers
    }

    /// Folds a body harder that was refused for its length; none if there is nothing else to send.
    async fn fold_harder(&self, mut wanted: Wanted, made: &Made, refusal: Refusal) -> Option<Made> {
        let shared = &self.shared;
        if shared.folder.mode() == Mode::Observe {
            return None;
        }
        // Where the output was counted in, the limit less that is what a prompt may have.
        let said = refusal.room().map(Tokens);
        wanted.told = said;
        let counted = made.counted.map(|counted| counted.tokens);
        // Without a number all that is known is that this was too much, and there is one more try.
        let is_far = made.counted.is_some_and(|made| made.tokens < made.window.permille(NEARLY_FULL));
        let guess = if refusal.is_guess() && is_far { GUESS_OF_UNKNOWN } else { GUESS };
        let limit = said.or_else(|| counted.map(|counted| counted.permille(guess)));
        wanted.refused = Some(Refused { counted, limit, size: refusal.prompt_size().map(Tokens) });
        // The same session is meant, whatever was written to it meanwhile.
        wanted.named = wanted.named.or_else(|| made.session.as_ref().map(|session| session.0.clone()));
        let sent = made.body.clone().unwrap_or_else(|| wanted.body.clone());
        let harder = shared.folder.fold(wanted).await;
        harder.body.as_ref().is_some_and(|body| *body != sent).then_some(harder)
    }

    /// An answer as the client gets it, seen in passing.
    async fn answer(
        self,
        came: &Came,
        response: http::Response<Body>,
        made: Made,
        mut passage: Passage,
    ) -> Response {
        passage.first_byte(response.status().as_u16());
        let headers = self.headers_for(&made, &passage);
        let mut response = to_client(response);
        tell(&mut response, &made);
        let is_read = response.status().is_success() && is_readable(response.headers());
        let carried = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let carried = Transport::from_content_type(carried);
        let ledger = Ledger {
            shared: Arc::clone(&self.shared),
            passage: Some(passage),
            counted: made.session.clone().zip(made.counted.map(|counted| counted.tokens)),
        };
        let request = made.body.as_ref().filter(|_| made.has_tool && is_read);
        let request = request.and_then(|body| std::str::from_utf8(body).ok());
        let held = request.and_then(|request| ReplyJoiner::new(came.format, carried, request));
        if let (Some(held), Some(session)) = (held, made.session.clone()) {
            let rounds = Rounds::new(self, headers, (held, came.format), session, n_room(&made), ledger);
            return match carried {
                Transport::Stream => {
                    response.headers_mut().remove(CONTENT_LENGTH);
                    response.map(|body| Body::from_stream(rounds.stream(body)))
                }
                Transport::Whole => rounds.whole(response).await,
            };
        }
        let seen = Seen { reply: is_read.then(|| ReplyReader::new(came.format, carried)), ledger };
        response.map(|body| Body::new(Passing::new(body, seen)))
    }
}

/// How many bytes originals may take beside what was sent: a token is some two of them at least.
fn n_room(made: &Made) -> usize {
    let left = made.counted.map_or(0, |counted| counted.window.0.saturating_sub(counted.tokens.0));
    usize::try_from(left).unwrap_or(usize::MAX)
}

/// Tells how a body left.
pub(crate) fn tell(response: &mut Response, made: &Made) {
    let session = made.session.as_ref().map(|session| session.0.clone());
    for (name, value) in [(LEFT, Some(made.left.to_string())), (SESSION, session)] {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            response.headers_mut().insert(name, value);
        }
    }
}

fn is_readable(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_ENCODING).is_none_or(|encoding| encoding == "identity")
}

/// Sees an answer pass.
struct Seen {
    reply: Option<ReplyReader>,
    ledger: Ledger,
}

impl Watch for Seen {
    fn saw(&mut self, bytes: &[u8]) {
        if let Some(reply) = &mut self.reply {
            reply.feed(bytes);
        }
    }

    fn ended(&mut self, end: End) {
        let said = self.reply.take().map(ReplyReader::end);
        let usage = said.as_ref().and_then(|said| said.usage);
        // A client that has what it wanted may close before the last byte is asked for.
        let is_complete = said.is_some_and(|said| said.is_ended);
        let exit = match end {
            End::Complete => Exit::Done,
            End::ClientGone if is_complete => Exit::Done,
            End::ClientGone => Exit::ClientGone,
            End::BrokenOff => Exit::BrokenOff,
        };
        self.ledger.end(usage, exit);
    }
}

/// Tells the engine and the meter what an answer cost. If it goes without an end, its client has gone.
pub(crate) struct Ledger {
    shared: Arc<Shared>,
    /// None once it has ended.
    passage: Option<Passage>,
    /// The session, and what was counted here for what was sent; none once the engine was told.
    counted: Option<(SessionId, Tokens)>,
}

impl Ledger {
    /// A fold was opened for the model; what the call cost that asked for it.
    pub(crate) fn recalled(&mut self, usage: Option<reply::Usage>) {
        if let Some(passage) = &mut self.passage {
            passage.recalled(usage.map(used));
        }
        if let Some(usage) = usage {
            self.correct(usage);
        }
    }

    /// The answer has ended.
    pub(crate) fn end(&mut self, usage: Option<reply::Usage>, exit: Exit) {
        let Some(mut passage) = self.passage.take() else { return };
        if let Some(usage) = usage {
            passage.used(used(usage));
            self.correct(usage);
        }
        passage.ended(exit);
    }

    /// Tells the engine what the provider counted for what was sent first, beside what else is done.
    fn correct(&mut self, usage: reply::Usage) {
        let Some((session, counted)) = self.counted.take() else { return };
        let usage = ProviderUsage {
            input: Tokens(usage.input),
            cached: Tokens(usage.cached),
            written: Tokens(usage.written),
            output: Tokens(usage.output),
        };
        let desk = Arc::clone(&self.shared.folder.desk);
        self.shared.tasks.spawn_blocking(move || {
            let Ok(engine) = desk.engine() else { return };
            if let Err(error) = engine.used(&session, counted, &usage) {
                tracing::debug!(%session, %error, "a usage could not be noted");
            }
        });
    }
}

fn used(usage: reply::Usage) -> Used {
    let written = (usage.written > 0).then_some(usage.written);
    Used { input: usage.input, read: usage.cached, written, output: usage.output }
}

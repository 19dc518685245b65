//! Joins replies with calls of the recall tool to the reply that the client sees.
//!
//! ```text
//! provider   text, recall, end           text, end
//!                    |                      |
//! client     text    .  (original, sent)    text, end
//! ```
//!
//! Other content passes unchanged. Only recalls are hidden, and the end of a reply that calls no other tool: the
//! originals are appended to the request, and the next reply continues the first. If the reply also calls tools of the
//! client, it ends for the client. The recalls are then reported before its end, so that
//! [the next request](super::insert_hidden_recalls) gets them.
//!
//! The joiner does no I/O: bytes in, effects out.

use std::collections::BTreeMap;

use crate::dialects::Format;
use crate::json::{self, Object, Splices};
use crate::reply::reader::{ParsedReply, ReplyFailure, ReplyReader, ToolCall, Transport};
use crate::reply::sse::{Splitter, SseEvent};
use crate::request::recall_tool::{RecallRequest, is_recall};

/// An effect of some bytes of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoundEffect {
    /// Send these bytes to the client.
    ToClient(Vec<u8>),
    /// The model called only the recall tool. Send the request made by [`ReplyJoiner::follow_up`] and feed its reply.
    Recall(Vec<RecallRequest>),
    /// The model also called tools of the client. Insert these recalls into the client's next request. Comes before the
    /// end of the reply.
    Hidden {
        /// The calls of the recall tool.
        recalls: Vec<ToolCall>,
        /// The ids of the client's calls.
        client_calls: Vec<String>,
    },
}

/// The bytes of a reply that are kept for a follow-up. A longer reply has none.
const MAX_KEPT: usize = 32 << 20;

/// The stop reasons of replies whose calls are complete.
const COMPLETE_STOPS: [&str; 6] =
    ["tool_use", "tool_calls", "function_call", "stop", "end_turn", "completed"];

/// Joins the replies of one or several rounds to one reply.
pub struct ReplyJoiner {
    transport: Transport,
    format: Format,
    splitter: Splitter,
    join: Box<dyn JoinRounds + Send>,
    state: JoinState,
    /// The request of the current round.
    request: String,
    reader: ReplyReader,
    kept: Vec<SseEvent>,
    n_kept: usize,
    body: Vec<u8>,
    /// True if a whole reply exceeds the limit, so that it passes unchanged.
    is_too_long: bool,
    wanted: Vec<RecallRequest>,
    is_waiting: bool,
    /// True if hidden recalls were reported.
    has_reported: bool,
    /// The parts of the last follow-up.
    follow_up: Option<FollowUp>,
    n_recalls: usize,
    rounds: Vec<ParsedReply>,
}

/// A follow-up without the recalled originals.
struct FollowUp {
    request: String,
    /// The reply of the model.
    reply: Vec<String>,
    wanted: Vec<RecallRequest>,
}

/// The state that every dialect needs.
#[derive(Default)]
pub(crate) struct JoinState {
    /// The number of rounds before the current one.
    pub(crate) n_rounds: usize,
    /// The output tokens of earlier rounds.
    pub(crate) n_output: u64,
    /// The id of the first reply.
    pub(crate) id: Option<String>,
    /// The end of a streamed reply, held back until the recalls are done.
    pub(crate) held: Vec<SseEvent>,
    /// A held whole reply.
    held_body: Option<String>,
    /// The items of earlier rounds that the client sees.
    pub(crate) shown: Vec<String>,
}

/// How a dialect joins rounds.
pub(crate) trait JoinRounds {
    /// Reads an event of the stream and writes what the client sees of it.
    fn event(
        &mut self,
        state: &mut JoinState,
        event: &SseEvent,
        reply: &ParsedReply,
        out: &mut Vec<u8>,
    ) -> RoundStep;

    /// The stop reasons of a reply that may be continued after a recall.
    fn recall_stops(&self) -> &'static [&'static str];

    /// A whole reply as the client sees it. `is_final` if a held reply has to end although it calls the recall tool.
    fn join_whole(&self, state: &JoinState, body: &str, is_final: bool) -> Option<String>;

    /// The model's messages in a whole reply, for the next request.
    fn messages_of_whole(&mut self, state: &mut JoinState, body: &str, request: &str) -> Option<Vec<String>>;

    /// The model's messages in a streamed reply, for the next request.
    fn messages_of_stream(
        &mut self,
        state: &mut JoinState,
        events: &[SseEvent],
        request: &str,
    ) -> Option<Vec<String>>;

    /// The held end of a stream, as if the model had stopped without a call.
    fn close_stream(&mut self, state: &mut JoinState, held: &[SseEvent]) -> Vec<u8>;

    /// The event of an error.
    fn error_event(&self, state: &JoinState, failure: &ReplyFailure) -> String;

    /// Resets the state of the round.
    fn next_round(&mut self);
}

/// The next step after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoundStep {
    Continue,
    /// Wait until the originals are recalled.
    Recall,
}

impl ReplyJoiner {
    /// A joiner for the replies to a sent request. `None` for file formats.
    pub fn new(format: Format, transport: Transport, request: &str) -> Option<ReplyJoiner> {
        Some(ReplyJoiner {
            transport,
            format,
            splitter: Splitter::default(),
            join: format.api()?.join_rounds(request),
            state: JoinState::default(),
            request: request.to_owned(),
            reader: ReplyReader::new(format, transport),
            kept: Vec::new(),
            n_kept: 0,
            body: Vec::new(),
            is_too_long: false,
            wanted: Vec::new(),
            is_waiting: false,
            has_reported: false,
            follow_up: None,
            n_recalls: 0,
            rounds: Vec::new(),
        })
    }

    /// Reads the next bytes of the reply.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<RoundEffect> {
        if self.is_waiting {
            return Vec::new();
        }
        match self.transport {
            Transport::Stream => {
                let events = self.splitter.feed(bytes);
                self.take(events)
            }
            Transport::Whole if self.is_too_long => vec![RoundEffect::ToClient(bytes.to_vec())],
            Transport::Whole => {
                self.body.extend_from_slice(bytes);
                self.is_too_long = self.body.len() > MAX_KEPT;
                let passed = self.is_too_long.then(|| std::mem::take(&mut self.body));
                passed.map(RoundEffect::ToClient).into_iter().collect()
            }
        }
    }

    /// Ends the reply of the current round.
    pub fn end(&mut self) -> Vec<RoundEffect> {
        if self.is_waiting {
            return Vec::new();
        }
        match self.transport {
            Transport::Stream => {
                let last = self.splitter.end();
                let mut effects = self.take(last.into_iter().collect());
                if !self.is_waiting && !self.state.held.is_empty() {
                    let reply = self.finish_reader();
                    effects.push(self.wait(reply));
                }
                if !self.is_waiting {
                    let reply = self.finish_reader();
                    self.rounds.push(reply);
                }
                effects
            }
            Transport::Whole => self.end_whole(),
        }
    }

    /// The request for the next round, with the originals in the order of the recalls.
    ///
    /// `None` if it cannot be made; then [`close`](Self::close) ends the reply.
    pub fn follow_up(&mut self, originals: &[String]) -> Option<String> {
        let kept = std::mem::take(&mut self.kept);
        let is_complete = self.n_kept <= MAX_KEPT;
        self.n_kept = 0;
        if !is_complete {
            return None;
        }
        let (join, state) = (&mut self.join, &mut self.state);
        let reply = match state.held_body.take() {
            Some(body) => join.messages_of_whole(state, &body, &self.request)?,
            None => join.messages_of_stream(state, &kept, &self.request)?,
        };
        // Invalid JSON of the provider is not sent back.
        if !reply.iter().all(|message| json::is_valid(message)) {
            return None;
        }
        let (request, wanted) = (std::mem::take(&mut self.request), std::mem::take(&mut self.wanted));
        self.follow_up = Some(FollowUp { request, reply, wanted });
        let request = self.follow_up_again(originals)?;
        let n_output = self.rounds.last().and_then(|reply| reply.usage).map_or(0, |usage| usage.output);
        self.state.n_rounds += 1;
        self.state.n_output += n_output;
        self.state.held.clear();
        self.join.next_round();
        self.reader = ReplyReader::new(self.format, self.transport);
        self.splitter = Splitter::default();
        self.is_waiting = false;
        Some(request)
    }

    /// The last follow-up with other results, after the provider refused it.
    pub fn follow_up_again(&mut self, originals: &[String]) -> Option<String> {
        let FollowUp { request, reply, wanted } = self.follow_up.as_ref()?;
        let api = self.format.api()?;
        let results = wanted.iter().enumerate().map(|(i, wanted)| {
            let original = originals.get(i).map_or("", String::as_str);
            api.print_result(&json::quote(&wanted.call), &json::quote(original))
        });
        let mut messages = reply.clone();
        messages.extend(api.wrap_results(results.collect()));
        let request = append_messages(request, self.format, &messages)?;
        self.request.clone_from(&request);
        Some(request)
    }

    /// Ends the reply without the originals.
    pub fn close(&mut self) -> Vec<RoundEffect> {
        let bytes = match self.state.held_body.take() {
            Some(body) => self.join.join_whole(&self.state, &body, true).unwrap_or(body).into_bytes(),
            None => {
                let held = std::mem::take(&mut self.state.held);
                self.join.close_stream(&mut self.state, &held)
            }
        };
        if bytes.is_empty() { Vec::new() } else { vec![RoundEffect::ToClient(bytes)] }
    }

    /// Ends a stream with an error of the provider, so that the client retries.
    pub fn fail(&mut self, failure: &ReplyFailure) -> Vec<RoundEffect> {
        match self.transport {
            Transport::Stream => {
                let event = self.join.error_event(&self.state, failure);
                vec![RoundEffect::ToClient(event.into_bytes())]
            }
            Transport::Whole => Vec::new(),
        }
    }

    /// The number of rounds that ended with a recall.
    pub fn n_recalls(&self) -> usize {
        self.n_recalls
    }

    /// The reply of each round, with the usage of its own request.
    pub fn rounds(&self) -> &[ParsedReply] {
        &self.rounds
    }

    fn take(&mut self, events: Vec<SseEvent>) -> Vec<RoundEffect> {
        let mut effects = Vec::new();
        let mut shown = Vec::new();
        for event in events {
            if self.is_waiting {
                break;
            }
            self.reader.event(&event);
            if let Some(hidden) = self.hidden_recalls(self.reader.reply()) {
                show(&mut effects, &mut shown);
                effects.push(hidden);
                self.has_reported = true;
            }
            let next = self.join.event(&mut self.state, &event, self.reader.reply(), &mut shown);
            self.keep_event(event);
            if next == RoundStep::Recall {
                show(&mut effects, &mut shown);
                let reply = self.finish_reader();
                effects.push(self.wait(reply));
            }
        }
        show(&mut effects, &mut shown);
        effects
    }

    fn keep_event(&mut self, event: SseEvent) {
        self.n_kept += event.raw().len();
        if self.n_kept <= MAX_KEPT {
            self.kept.push(event);
        } else {
            self.kept.clear();
        }
    }

    fn wait(&mut self, reply: ParsedReply) -> RoundEffect {
        self.wanted = reply.calls.iter().filter(|call| is_recall(call)).map(RecallRequest::read).collect();
        self.rounds.push(reply);
        self.is_waiting = true;
        self.n_recalls += 1;
        RoundEffect::Recall(self.wanted.clone())
    }

    /// The recalls among calls of the client; reported once, when all calls are complete.
    fn hidden_recalls(&self, reply: &ParsedReply) -> Option<RoundEffect> {
        let is_complete = reply.stop.as_deref().is_some_and(|stop| COMPLETE_STOPS.contains(&stop));
        if !is_complete || self.has_reported {
            return None;
        }
        let (recalls, others): (Vec<_>, Vec<_>) = reply.calls.iter().partition(|call| is_recall(call));
        let is_mixed = !recalls.is_empty() && !others.is_empty();
        is_mixed.then(|| RoundEffect::Hidden {
            recalls: recalls.into_iter().cloned().collect(),
            client_calls: others.into_iter().map(|call| call.id.clone()).collect(),
        })
    }

    fn finish_reader(&mut self) -> ParsedReply {
        std::mem::replace(&mut self.reader, ReplyReader::new(self.format, self.transport)).end()
    }

    fn end_whole(&mut self) -> Vec<RoundEffect> {
        if self.is_too_long {
            return Vec::new();
        }
        let body = std::mem::take(&mut self.body);
        self.reader.feed(&body);
        let reply = self.finish_reader();
        let text =
            std::str::from_utf8(&body).ok().filter(|text| reply.is_ended && Object::parse(text).is_some());
        let Some(text) = text else {
            self.rounds.push(reply);
            return vec![RoundEffect::ToClient(body)];
        };
        if calls_only_recalls(&reply, self.join.recall_stops()) {
            self.state.held_body = Some(text.to_owned());
            return vec![self.wait(reply)];
        }
        let is_unchanged = self.state.n_rounds == 0 && !reply.calls.iter().any(is_recall);
        let shown = if is_unchanged { None } else { self.join.join_whole(&self.state, text, false) };
        let mut effects: Vec<RoundEffect> = self.hidden_recalls(&reply).into_iter().collect();
        self.rounds.push(reply);
        effects.push(RoundEffect::ToClient(shown.map_or(body, String::into_bytes)));
        effects
    }
}

fn show(effects: &mut Vec<RoundEffect>, shown: &mut Vec<u8>) {
    if !shown.is_empty() {
        effects.push(RoundEffect::ToClient(std::mem::take(shown)));
    }
}

/// Returns whether a reply calls the recall tool and no other.
pub(crate) fn is_all_recalls(reply: &ParsedReply) -> bool {
    !reply.calls.is_empty() && reply.calls.iter().all(is_recall)
}

/// Returns whether a reply that stopped for one of these reasons calls the recall tool and no other.
pub(crate) fn calls_only_recalls(reply: &ParsedReply, stops: &[&str]) -> bool {
    is_all_recalls(reply) && reply.stop.as_deref().is_some_and(|stop| stops.contains(&stop))
}

/// The client's numbers for the items of a streamed round.
#[derive(Default)]
pub(crate) struct ItemNumbers {
    /// By the number of the provider; `None` for a recall.
    shown: BTreeMap<u64, Option<u64>>,
    n_shown: u64,
}

impl ItemNumbers {
    /// Returns whether no item of this round is hidden.
    pub(crate) fn shows_all(&self) -> bool {
        self.shown.values().all(Option::is_some)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    pub(crate) fn hide(&mut self, number: u64) {
        self.shown.insert(number, None);
    }

    /// Adds a visible item. It keeps its number in the first round while no item is hidden, even after an item that
    /// could not be read.
    pub(crate) fn show(&mut self, number: u64, is_first_round: bool) {
        let shown = if is_first_round && self.shows_all() { number } else { self.n_shown };
        self.shown.insert(number, Some(shown));
        self.n_shown = self.n_shown.max(shown.saturating_add(1));
    }

    /// Adds an item with the next number, unless it is known.
    pub(crate) fn add(&mut self, number: u64, is_hidden: bool) -> Option<u64> {
        let n_shown = &mut self.n_shown;
        *self.shown.entry(number).or_insert_with(|| {
            *n_shown += u64::from(!is_hidden);
            (!is_hidden).then(|| *n_shown - 1)
        })
    }

    /// The client's number; `None` if the item is unknown, `Some(None)` if it is hidden.
    pub(crate) fn get(&self, number: u64) -> Option<Option<u64>> {
        self.shown.get(&number).copied()
    }

    pub(crate) fn next_round(&mut self) {
        self.shown.clear();
    }
}

/// A request with messages appended to its list.
fn append_messages(request: &str, format: Format, messages: &[String]) -> Option<String> {
    let object = Object::parse(request)?;
    let list = object.some(format.facts().list_key)?;
    let span = json::span(request, list);
    let mut splices = Splices::default();
    let added = messages.join(",");
    match json::array(list) {
        Some(items) => {
            let end = span.end.checked_sub(1)?;
            let comma = if items.is_empty() { "" } else { "," };
            splices.replace(end..end, format!("{comma}{added}"));
        }
        // A text in place of the list.
        None if list.starts_with('"') => {
            splices.replace(span, format!(r#"[{{"role":"user","content":{list}}},{added}]"#));
        }
        None => return None,
    }
    Some(splices.apply(request))
}

/// A usage to which the output of earlier rounds is added. A total grows as well.
pub(crate) fn with_output(usage: &str, n_before: u64) -> String {
    let Some(parsed) = Object::parse(usage).filter(|_| n_before > 0) else { return usage.to_owned() };
    let mut splices = Splices::default();
    for key in ["completion_tokens", "output_tokens", "total_tokens"] {
        let count = parsed.get(key).and_then(|value| Some((value, value.parse::<u64>().ok()?)));
        if let Some((value, count)) = count {
            splices.replace(parsed.span(value), (count + n_before).to_string());
        }
    }
    splices.apply(usage)
}

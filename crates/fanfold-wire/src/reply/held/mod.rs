//! Answers in which the model calls the recall tool: the client sees one answer, without the calls.
//!
//! ```text
//! provider   text, call of ours, end     text, end
//!                    |                      |
//! client     text    .  (recalled, sent)    text, end
//! ```
//!
//! What is not ours flows on as it comes. Only our calls are hidden, and the end of an answer that makes no other call:
//! the originals are recalled, the next request is made of what was said, and the answer to it goes on where the first
//! one stopped. Where the client's tools are called as well, it is the client's turn: what the model wanted is told
//! before the client has its answer, so that [the next request](super::with_recalls) has it.
//!
//! Nothing waits here: bytes in, effects out.

mod anthropic; // of Anthropic Messages
mod chat; //      of Chat Completions
mod responses; // of Responses

use super::beside::result_of;
use super::said::{Called, Carried, Failure, Reply, Said};
use super::sse::{Event, Splitter};
use super::tool::{Wanted, is_ours};
use crate::format::Format;
use crate::json::{self, Object};
use crate::splice::Splices;

/// What is to be done about some bytes of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Out {
    /// These bytes are for the client.
    ToClient(Vec<u8>),
    /// The model wants originals and nothing else. [`Held::follow_up`] makes the request to send with them; what comes
    /// back is fed on.
    Recall(Vec<Wanted>),
    /// The model wants originals beside calls that the client answers: they belong into the next request. It comes
    /// before the end of the answer does.
    Beside {
        /// Our calls.
        ours: Vec<Called>,
        /// The ids of the client's.
        theirs: Vec<String>,
    },
}

/// How much of an answer is kept in order to go on with it. Of a longer one the calls of ours stay unanswered.
const LONGEST_KEPT: usize = 32 << 20;

/// Why a model stops whose calls are all there.
const GOOD_ENDS: [&str; 6] = ["tool_use", "tool_calls", "function_call", "stop", "end_turn", "completed"];

/// An answer on its way to a client, in one or several rounds.
pub struct Held {
    carried: Carried,
    format: Format,
    splitter: Splitter,
    join: Box<dyn Join + Send>,
    /// The request that the round under way answers.
    request: String,
    reply: Reply,
    kept: Vec<Event>,
    n_kept: usize,
    body: Vec<u8>,
    /// Whether a whole answer is too long to be looked at: then it passes.
    is_too_long: bool,
    wanted: Vec<Wanted>,
    is_waiting: bool,
    /// Whether recalls beside calls of the client's were told.
    is_told: bool,
    /// The follow-up that was made last.
    turn: Option<Turn>,
    n_recalls: usize,
    rounds: Vec<Said>,
}

/// What a follow-up is made of, but for the answers.
struct Turn {
    request: String,
    spoken: Vec<String>,
    wanted: Vec<Wanted>,
}

/// How a format joins the rounds of an answer.
trait Join {
    /// Takes an event of the stream, and writes what the client sees of it.
    fn event(&mut self, event: &Event, said: &Said, out: &mut Vec<u8>) -> Then;

    /// Whether the end of the answer is being held back.
    fn is_holding(&self) -> bool;

    /// Takes a whole answer.
    fn whole(&mut self, body: &str, said: &Said) -> (Option<String>, Then);

    /// What the model said in the round that ended, as messages for the next request.
    fn spoken(&mut self, kept: &[Event], request: &str) -> Option<Vec<String>>;

    /// The results, as messages for the next request.
    fn results(&self, wanted: &[Wanted], answers: &[String]) -> Vec<String>;

    /// The end that was held back, as if the model had stopped without a call.
    fn close(&mut self) -> Vec<u8>;

    /// An error in the middle of a stream.
    fn fail(&mut self, failure: &Failure) -> Vec<u8>;

    /// A new round begins; the one before it cost so much output.
    fn next_round(&mut self, n_output: u64);
}

/// What follows an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// The next one.
    GoOn,
    /// Nothing until the originals are there.
    Recall,
}

impl Held {
    /// An answer to this request, as it was sent to the provider. None where the format is none of a provider.
    pub fn new(format: Format, carried: Carried, request: &str) -> Option<Held> {
        let join: Box<dyn Join + Send> = match format {
            Format::Anthropic => Box::new(anthropic::Joined::default()),
            Format::Chat => Box::new(chat::Joined::default()),
            Format::Responses => Box::new(responses::Joined::of(request)),
            Format::ShareGpt | Format::Hermes => return None,
        };
        Some(Held {
            carried,
            format,
            splitter: Splitter::default(),
            join,
            request: request.to_owned(),
            reply: Reply::new(format, carried),
            kept: Vec::new(),
            n_kept: 0,
            body: Vec::new(),
            is_too_long: false,
            wanted: Vec::new(),
            is_waiting: false,
            is_told: false,
            turn: None,
            n_recalls: 0,
            rounds: Vec::new(),
        })
    }

    /// Takes some bytes of the answer.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Out> {
        if self.is_waiting {
            return Vec::new();
        }
        match self.carried {
            Carried::Stream => {
                let events = self.splitter.feed(bytes);
                self.take(events)
            }
            Carried::Whole if self.is_too_long => vec![Out::ToClient(bytes.to_vec())],
            Carried::Whole => {
                self.body.extend_from_slice(bytes);
                self.is_too_long = self.body.len() > LONGEST_KEPT;
                let passed = self.is_too_long.then(|| std::mem::take(&mut self.body));
                passed.map(Out::ToClient).into_iter().collect()
            }
        }
    }

    /// Takes the end of the answer of this round.
    pub fn end(&mut self) -> Vec<Out> {
        if self.is_waiting {
            return Vec::new();
        }
        match self.carried {
            Carried::Stream => {
                let last = self.splitter.end();
                let mut outs = self.take(last.into_iter().collect());
                if !self.is_waiting && self.join.is_holding() {
                    self.wait(&mut outs);
                }
                if !self.is_waiting {
                    let said = self.next_said();
                    self.rounds.push(said);
                }
                outs
            }
            Carried::Whole => self.end_whole(),
        }
    }

    /// The request that goes on with the answer: the originals, in the order in which they were wanted.
    ///
    /// None where it can't be made; then [`close`](Self::close) ends the answer.
    pub fn follow_up(&mut self, answers: &[String]) -> Option<String> {
        let kept = std::mem::take(&mut self.kept);
        let is_complete = self.n_kept <= LONGEST_KEPT;
        self.n_kept = 0;
        let spoken = if is_complete { self.join.spoken(&kept, &self.request)? } else { return None };
        // What a provider wrote wrong is not sent back to it.
        if !spoken.iter().all(|message| json::is_valid(message)) {
            return None;
        }
        let (request, wanted) = (std::mem::take(&mut self.request), std::mem::take(&mut self.wanted));
        self.turn = Some(Turn { request, spoken, wanted });
        let request = self.follow_up_again(answers)?;
        let n_output = self.rounds.last().and_then(|said| said.usage).map_or(0, |usage| usage.output);
        self.join.next_round(n_output);
        self.reply = Reply::new(self.format, self.carried);
        self.splitter = Splitter::default();
        self.is_waiting = false;
        Some(request)
    }

    /// The last follow-up with other answers, because the provider did not take it.
    pub fn follow_up_again(&mut self, answers: &[String]) -> Option<String> {
        let turn = self.turn.as_ref()?;
        let mut messages = turn.spoken.clone();
        messages.extend(self.join.results(&turn.wanted, answers));
        let request = appended(&turn.request, self.format, &messages)?;
        self.request.clone_from(&request);
        Some(request)
    }

    /// Ends the answer without what the model wanted.
    pub fn close(&mut self) -> Vec<Out> {
        let bytes = self.join.close();
        if bytes.is_empty() { Vec::new() } else { vec![Out::ToClient(bytes)] }
    }

    /// Ends a stream with an error of the provider's, so that the client tries again.
    pub fn fail(&mut self, failure: &Failure) -> Vec<Out> {
        match self.carried {
            Carried::Stream => vec![Out::ToClient(self.join.fail(failure))],
            Carried::Whole => Vec::new(),
        }
    }

    /// How many times originals were recalled.
    pub fn n_recalls(&self) -> usize {
        self.n_recalls
    }

    /// What was said in each round, each with the usage of its own request.
    pub fn rounds(&self) -> &[Said] {
        &self.rounds
    }

    fn take(&mut self, events: Vec<Event>) -> Vec<Out> {
        let mut outs = Vec::new();
        let mut seen = Vec::new();
        for event in events {
            if self.is_waiting {
                break;
            }
            self.reply.event(&event);
            if let Some(beside) = self.beside(self.reply.said()) {
                show(&mut outs, &mut seen);
                outs.push(beside);
                self.is_told = true;
            }
            let then = self.join.event(&event, self.reply.said(), &mut seen);
            self.keep(event);
            if then == Then::Recall {
                show(&mut outs, &mut seen);
                self.wait(&mut outs);
            }
        }
        show(&mut outs, &mut seen);
        outs
    }

    fn keep(&mut self, event: Event) {
        self.n_kept += event.raw().len();
        if self.n_kept <= LONGEST_KEPT {
            self.kept.push(event);
        } else {
            self.kept.clear();
        }
    }

    fn wait(&mut self, outs: &mut Vec<Out>) {
        let said = self.next_said();
        self.wanted = said.calls.iter().filter(|call| is_ours(call)).map(Wanted::read).collect();
        self.rounds.push(said);
        self.is_waiting = true;
        self.n_recalls += 1;
        outs.push(Out::Recall(self.wanted.clone()));
    }

    /// What was wanted beside the client's calls, once all calls are there, and once.
    fn beside(&self, said: &Said) -> Option<Out> {
        let is_done = said.stop.as_deref().is_some_and(|stop| GOOD_ENDS.contains(&stop));
        if !is_done || self.is_told {
            return None;
        }
        let (ours, theirs): (Vec<&Called>, Vec<&Called>) = said.calls.iter().partition(|call| is_ours(call));
        let is_mixed = !ours.is_empty() && !theirs.is_empty();
        is_mixed.then(|| Out::Beside {
            ours: ours.into_iter().cloned().collect(),
            theirs: theirs.into_iter().map(|call| call.id.clone()).collect(),
        })
    }

    fn next_said(&mut self) -> Said {
        std::mem::replace(&mut self.reply, Reply::new(self.format, self.carried)).end()
    }

    fn end_whole(&mut self) -> Vec<Out> {
        if self.is_too_long {
            return Vec::new();
        }
        let body = std::mem::take(&mut self.body);
        self.reply.feed(&body);
        let said = self.next_said();
        let text =
            std::str::from_utf8(&body).ok().filter(|text| said.is_ended && Object::parse(text).is_some());
        let Some(text) = text else {
            self.rounds.push(said);
            return vec![Out::ToClient(body)];
        };
        let (shown, then) = self.join.whole(text, &said);
        let mut outs: Vec<Out> = self.beside(&said).into_iter().collect();
        let wanted: Vec<_> = said.calls.iter().filter(|call| is_ours(call)).map(Wanted::read).collect();
        self.rounds.push(said);
        if then == Then::Recall {
            self.wanted.clone_from(&wanted);
            self.is_waiting = true;
            self.n_recalls += 1;
            return vec![Out::Recall(wanted)];
        }
        outs.push(Out::ToClient(shown.map_or(body, String::into_bytes)));
        outs
    }
}

fn show(outs: &mut Vec<Out>, seen: &mut Vec<u8>) {
    if !seen.is_empty() {
        outs.push(Out::ToClient(std::mem::take(seen)));
    }
}

/// Whether an answer calls the recall tool and nothing else.
fn is_all_ours(said: &Said) -> bool {
    !said.calls.is_empty() && said.calls.iter().all(is_ours)
}

/// The results of calls, each as a format writes it.
fn results(format: Format, wanted: &[Wanted], answers: &[String]) -> Vec<String> {
    let answer = |i: usize| answers.get(i).map_or("", String::as_str);
    wanted.iter().enumerate().map(|(i, wanted)| result_of(format, &wanted.call, answer(i))).collect()
}

/// A request with more messages at the end of its list.
fn appended(request: &str, format: Format, messages: &[String]) -> Option<String> {
    let object = Object::parse(request)?;
    let list = object.some(format.list_key())?;
    let span = json::span(request, list);
    let mut splices = Splices::default();
    let added = messages.join(",");
    match json::array(list) {
        Some(there) => {
            let end = span.end.checked_sub(1)?;
            let comma = if there.is_empty() { "" } else { "," };
            splices.replace(end..end, format!("{comma}{added}"));
        }
        // A text where a list could be.
        None if list.starts_with('"') => {
            splices.replace(span, format!(r#"[{{"role":"user","content":{list}}},{added}]"#));
        }
        None => return None,
    }
    Some(splices.apply(request))
}

/// An object with one value replaced, or added behind the others.
fn with_field(object: &str, key: &str, value: &str) -> String {
    let Some(parsed) = Object::parse(object) else { return object.to_owned() };
    let mut splices = Splices::default();
    match parsed.get(key) {
        Some(there) => splices.replace(parsed.span(there), value),
        None => {
            let Some(end) = object.rfind('}') else { return object.to_owned() };
            let comma = if parsed.fields.is_empty() { "" } else { "," };
            splices.replace(end..end, format!("{comma}{}:{value}", json::quote(key)));
        }
    }
    splices.apply(object)
}

/// An object without some of its fields.
fn without_fields(object: &str, is_cut: impl Fn(&str) -> bool) -> String {
    let Some(parsed) = Object::parse(object) else { return object.to_owned() };
    let members: Vec<_> = parsed.fields.iter().map(|field| field.span.clone()).collect();
    let mut splices = Splices::default();
    splices.cut(&members, |i| is_cut(&parsed.fields[i].key));
    splices.apply(object)
}

/// A usage whose output has grown by what earlier rounds wrote; a total, where there is one, grows with it.
fn with_output(usage: &str, n_before: u64) -> String {
    let Some(parsed) = Object::parse(usage).filter(|_| n_before > 0) else { return usage.to_owned() };
    let mut splices = Splices::default();
    for key in ["completion_tokens", "output_tokens", "total_tokens"] {
        let there = parsed.get(key).and_then(|value| Some((value, value.parse::<u64>().ok()?)));
        if let Some((value, count)) = there {
            splices.replace(parsed.span(value), (count + n_before).to_string());
        }
    }
    splices.apply(usage)
}

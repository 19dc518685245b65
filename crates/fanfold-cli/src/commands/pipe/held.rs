//! The sessions that are kept, and what is done with them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use fanfold_core::{Event, Extent, Feedback, FoldRequest, Refusal};
use fanfold_engine::{Followed, Terms};
use fanfold_wire::{Format, detect};
use serde_json::json;
use serde_json::value::RawValue;

use super::answer;
use super::arrival::{Arrival, Habit, Known, Said, arrival, print_of};
use super::forgotten::{Forgotten, Trace};
use super::offer::Offer;
use super::ops::{event, extent};
use super::request::Request;
use super::wanted::Wanted;
use crate::commands::recall;
use crate::failure::Failure;

/// So many sessions are kept; one that was forgotten is replayed from its whole history.
const MOST_KEPT: usize = 64;

/// All sessions of a pipe.
pub(crate) struct Sessions {
    offer: Offer,
    is_incremental: bool,
    kept: BTreeMap<String, Held>,
    /// The sessions' names, the one used last at the end.
    order: VecDeque<String>,
    forgotten: Forgotten,
    /// The tools that came last, in whichever session.
    last_tools: Arc<str>,
}

/// What a caller has heard of.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Told {
    pub(crate) n_folds: usize,
    pub(crate) n_repairs: usize,
}

/// One session.
pub(crate) struct Held {
    pub(crate) followed: Followed,
    wanted: Wanted,
    habit: Habit,
    last_call: Option<u64>,
    /// The print of the last increment.
    last_print: u64,
    /// How many folds and oddities the caller has heard of.
    pub(crate) told: Told,
    /// What came of a fold by hand that the caller has not heard of.
    pub(crate) feedback: Option<Feedback>,
    /// What is assumed that the caller has not heard of.
    pub(crate) assumed: Vec<String>,
}

/// What a request brings.
struct Sent<'a> {
    request: &'a Request<'a>,
    list: &'a str,
    messages: Vec<&'a RawValue>,
    wanted: Wanted,
    terms: Terms,
}

impl Sessions {
    pub(crate) fn new(offer: Offer, is_incremental: bool) -> Sessions {
        Sessions {
            offer,
            is_incremental,
            kept: BTreeMap::new(),
            order: VecDeque::new(),
            forgotten: Forgotten::default(),
            last_tools: Arc::from(""),
        }
    }

    /// Takes messages and answers with the view.
    pub(crate) fn fold(&mut self, request: &Request<'_>) -> Result<String, Failure> {
        let name = request.session().into_owned();
        // What is wrong with the request is found before the session is touched.
        let (list, messages) = (request.message_list()?, request.messages()?);
        let wanted = self.wanted(&name, request);
        let terms = self.offer.terms(&wanted)?;
        let sent = Sent { request, list, messages, wanted, terms };
        let mut held = match self.kept.remove(&name) {
            Some(held) => self.go_on(held, &sent)?,
            None => self.first(&name, &sent)?,
        };
        held.last_call = request.call.or(held.last_call);
        held.followed.set_tools(sent.wanted.tools.as_deref());
        held.wanted = sent.wanted;
        let session = &mut held.followed.session;
        if session.budget() != sent.terms.budget {
            session.apply(Event::Budget(sent.terms.budget));
        }
        let lifetime = session.prices().and_then(|prices| prices.lifetime);
        let is_cold = request.idle.zip(lifetime).is_some_and(|(idle, lifetime)| idle > lifetime as f64);
        if is_cold {
            session.apply(Event::Cooled);
        }
        let answer = answer_of(&mut held);
        self.keep(name, held);
        Ok(answer)
    }

    /// What a session has said until now, this request included.
    fn wanted(&mut self, name: &str, request: &Request<'_>) -> Wanted {
        let tools = request.tools().map(|tools| {
            if *self.last_tools != *tools {
                self.last_tools = Arc::from(tools);
            }
            Arc::clone(&self.last_tools)
        });
        let held = self.kept.get(name).map(|held| &held.wanted);
        let before = held.or_else(|| self.forgotten.find(name).map(|trace| &trace.wanted));
        before.unwrap_or(&Wanted::default()).after(request, tools)
    }

    fn first(&mut self, name: &str, sent: &Sent<'_>) -> Result<Held, Failure> {
        let request = sent.request;
        let says_new = request.incremental.unwrap_or(self.is_incremental);
        let trace = self.forgotten.find(name);
        let first = sent.messages.first().map(|first| first.get());
        let is_continued = trace.is_some_and(|trace| trace.is_continued_by(request.call, first));
        let says_more = says_new && request.call.is_some_and(|call| call > 1);
        let is_torn = request.incremental != Some(false) && (says_more || is_continued);
        if is_torn {
            return Err(Failure::new(
                format!("the beginning of session `{name}` is not held"),
                "send the whole history once, with \"incremental\": false",
            ));
        }
        let habit = habit_anew(says_new, trace.map(|trace| trace.habit), request.call);
        self.forgotten.remove(name);
        Ok(anew(sent, habit))
    }

    fn go_on(&mut self, mut held: Held, sent: &Sent<'_>) -> Result<Held, Failure> {
        let (request, messages, list) = (sent.request, &sent.messages, sent.list);
        let conversation = &held.followed.conversation;
        let known = Known {
            habit: held.habit,
            n_held: conversation.messages().len(),
            first_held: conversation.messages().next(),
            n_common: conversation.common_prefix(messages),
            last_call: held.last_call,
            last_print: held.last_print,
        };
        let is_new = request.incremental.or(self.is_incremental.then_some(true));
        let said = Said { is_new, call: request.call, list, messages };
        let decided = arrival(&known, &said);
        let n_held = known.n_held;
        let decided = match decided {
            Ok(decided) => decided,
            Err(failure) => {
                self.keep(request.session().into_owned(), held);
                return Err(failure);
            }
        };
        let is_other_model = sent.wanted.model != held.wanted.model;
        match decided {
            Arrival::Anew => Ok(anew(sent, habit_anew(is_new == Some(true), Some(held.habit), request.call))),
            Arrival::Grown => {
                let has_format_changed = format_of(&sent.terms, list) != held.followed.conversation.format();
                if has_format_changed || is_other_model {
                    return Ok(anew(sent, Habit::Whole));
                }
                held.habit = if n_held > 0 { Habit::Whole } else { held.habit };
                held.followed.append(&messages[n_held..]);
                Ok(held)
            }
            Arrival::Added => {
                held.add(sent, is_other_model)?;
                held.habit = Habit::New;
                held.last_print = print_of(list);
                Ok(held)
            }
            Arrival::Again => Ok(held),
        }
    }

    /// Everything else that can be asked of a session.
    pub(crate) fn operate(&mut self, op: &str, request: &Request<'_>) -> Result<String, Failure> {
        let name = request.session();
        let Some(held) = self.kept.get_mut(&*name) else {
            return Err(Failure::new(
                format!("there is no session `{name}`"),
                "send its messages first; the 64 sessions used last are kept",
            ));
        };
        let session = &mut held.followed.session;
        match op {
            "expand" => {
                let content = recall::content(&**session, request.handle()?, &Extent::Whole)?;
                return Ok(json!({ "content": content }).to_string());
            }
            "recall" => {
                let content = recall::content(&**session, request.handle()?, &extent(request)?)?;
                return Ok(json!({ "content": content }).to_string());
            }
            "report" => return Ok(json!({ "report": answer::whole_report(&mut held.followed) }).to_string()),
            _ => {}
        }
        if op == "fold" && request.from.is_none() && request.to.is_none() {
            let ask = FoldRequest { force: true, focus: request.topic.clone(), tokens: None };
            // Where nothing fits, the view tells it.
            held.feedback = session.fold(&ask).ok();
            return Ok(answer_of(held));
        }
        let event = event(op, request, session.transcript().len())?;
        if let Event::Focused(topic) = &event {
            held.wanted.focus = Some(topic.clone());
        }
        session.apply(event);
        Ok(answer_of(held))
    }

    /// Keeps a session as the one used last, and forgets the one not used for longest if there are too many.
    fn keep(&mut self, name: String, held: Held) {
        self.order.retain(|other| *other != name);
        self.order.push_back(name.clone());
        self.kept.insert(name, held);
        if self.order.len() <= MOST_KEPT {
            return;
        }
        let Some(oldest) = self.order.pop_front() else { return };
        if let Some(gone) = self.kept.remove(&oldest) {
            self.forgotten.add(oldest, gone.trace());
        }
    }
}

impl Held {
    /// Adds new messages. The first that can only be of one format decides for all.
    fn add(&mut self, sent: &Sent<'_>, is_other_model: bool) -> Result<(), Failure> {
        let conversation = &self.followed.conversation;
        let format = format_of(&sent.terms, sent.list);
        let may_decide = conversation.format() == Format::Chat || sent.terms.format.is_some();
        let has_format_changed = may_decide && format != conversation.format();
        if !has_format_changed && !is_other_model {
            self.followed.append(&sent.messages);
            return Ok(());
        }
        let raws = conversation.messages().chain(sent.messages.iter().map(|message| message.get()));
        let all = format!("[{}]", raws.collect::<Vec<_>>().join(","));
        let raws: Vec<&RawValue> = serde_json::from_str(&all).map_err(|error| {
            Failure::new(format!("`messages` is not a list: {error}"), "send a list of JSON objects")
        })?;
        self.followed = follow(&all, &raws, sent);
        // All of it was folded again, so nothing of that has been told.
        self.told = Told::default();
        self.assumed.clone_from(&sent.terms.assumed);
        Ok(())
    }

    fn trace(self) -> Trace {
        let first = self.followed.conversation.messages().next().map(print_of);
        Trace { wanted: self.wanted, habit: self.habit, last_call: self.last_call, first }
    }
}

/// A session that begins with what was sent.
fn anew(sent: &Sent<'_>, habit: Habit) -> Held {
    Held {
        followed: follow(sent.list, &sent.messages, sent),
        wanted: sent.wanted.clone(),
        habit,
        last_call: sent.request.call,
        last_print: print_of(sent.list),
        told: Told::default(),
        feedback: None,
        assumed: sent.terms.assumed.clone(),
    }
}

/// The habit of a session that begins again: what it was seen to send holds until it counts from the first again.
fn habit_anew(says_new: bool, before: Option<Habit>, call: Option<u64>) -> Habit {
    if says_new {
        return Habit::New;
    }
    let goes_on = before == Some(Habit::Whole) && call.is_none_or(|call| call > 1);
    if goes_on { Habit::Whole } else { Habit::Unknown }
}

fn follow(list: &str, messages: &[&RawValue], sent: &Sent<'_>) -> Followed {
    let mut followed = Followed::empty(format_of(&sent.terms, list), &sent.terms);
    followed.set_tools(sent.wanted.tools.as_deref());
    followed.append(messages);
    followed
}

/// The format of a list of messages: the one that is given, or the one it has.
fn format_of(terms: &Terms, list: &str) -> Format {
    terms.format.or_else(|| detect(list)).unwrap_or(Format::Chat)
}

fn answer_of(held: &mut Held) -> String {
    match held.followed.view() {
        Ok(view) => answer::view(held, &view),
        Err(Refusal::Overflow(overflow)) => answer::overflow(&overflow),
        Err(Refusal::Fault(fault)) => answer::fault(held, &fault),
    }
}

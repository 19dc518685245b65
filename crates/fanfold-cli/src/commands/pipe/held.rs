//! The sessions that are kept, and what is done with them.

use std::collections::{BTreeMap, VecDeque};

use fanfold_core::{Ask, Engine as _, EntryId, Event, Extent, Feedback, Refusal};
use fanfold_engine::Followed;
use fanfold_engine::Terms;
use fanfold_wire::{Format, detect};
use serde_json::json;

use super::answer;
use super::arrival::{Arrival, Habit, Known, Said, arrival, print_of};
use super::offer::Offer;
use super::request::Request;
use crate::commands::recall;
use crate::failure::Failure;

/// So many sessions are kept; one that was forgotten is replayed from its whole history.
const MOST_KEPT: usize = 64;
/// So many forgotten sessions that sent increments are remembered by name, to tell them what is missing.
const MOST_FORGOTTEN: usize = 4096;

/// All sessions of a pipe.
pub(crate) struct Sessions {
    offer: Offer,
    is_incremental: bool,
    kept: BTreeMap<String, Held>,
    /// The sessions' names, the one used last at the end.
    order: VecDeque<String>,
    forgotten: VecDeque<String>,
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
    model: Option<String>,
    habit: Habit,
    last_call: Option<u64>,
    /// The print of the last increment.
    last_print: u64,
    /// How many folds and oddities the caller has heard of.
    pub(crate) told: Told,
    /// What came of a fold by hand that the caller has not heard of.
    pub(crate) feedback: Option<Feedback>,
}

impl Sessions {
    pub(crate) fn new(offer: Offer, is_incremental: bool) -> Sessions {
        Sessions {
            offer,
            is_incremental,
            kept: BTreeMap::new(),
            order: VecDeque::new(),
            forgotten: VecDeque::new(),
        }
    }

    /// Takes messages and answers with the view.
    pub(crate) fn fold(&mut self, request: &Request<'_>) -> Result<String, Failure> {
        let name = request.session().into_owned();
        // What is wrong with the request is found before the session is touched.
        let terms = self.offer.terms(request)?;
        request.messages()?;
        let mut held = match self.kept.remove(&name) {
            Some(held) => self.go_on(held, request, &terms)?,
            None => self.first(&name, request, &terms)?,
        };
        held.last_call = request.call.or(held.last_call);
        // What a request leaves out is as it was.
        if request.tools().is_some() {
            held.followed.set_tools(request.tools());
        }
        let says_budget = request.window.is_some() || request.reserve.is_some() || request.model.is_some();
        if says_budget && held.followed.session.budget() != terms.budget {
            held.followed.session.on(Event::Budget(terms.budget));
        }
        let session = &mut held.followed.session;
        let lifetime = session.prices().and_then(|prices| prices.lifetime);
        let is_cold = request.idle.zip(lifetime).is_some_and(|(idle, lifetime)| idle > lifetime as f64);
        if is_cold {
            session.on(Event::Cooled);
        }
        let answer = answer_of(&mut held);
        self.keep(name, held);
        Ok(answer)
    }

    fn first(&mut self, name: &str, request: &Request<'_>, terms: &Terms) -> Result<Held, Failure> {
        let says_new = request.incremental.unwrap_or(self.is_incremental);
        let may_be_new = request.incremental != Some(false) && request.call.is_some_and(|call| call > 1);
        let is_torn = may_be_new && (says_new || self.forgotten.iter().any(|forgotten| forgotten == name));
        if is_torn {
            return Err(Failure::new(
                format!("the beginning of session `{name}` is not held"),
                "send the whole history once, with \"incremental\": false",
            ));
        }
        self.forgotten.retain(|forgotten| forgotten != name);
        let habit = if says_new { Habit::New } else { Habit::Unknown };
        anew(request, terms, habit)
    }

    fn go_on(&mut self, mut held: Held, request: &Request<'_>, terms: &Terms) -> Result<Held, Failure> {
        let messages = request.messages()?;
        let list = request.message_list()?;
        let conversation = &held.followed.conversation;
        let known = Known {
            habit: held.habit,
            n_held: conversation.messages().len(),
            first_held: conversation.messages().next(),
            n_common: conversation.common_prefix(&messages),
            last_call: held.last_call,
            last_print: held.last_print,
        };
        let is_new = request.incremental.or(self.is_incremental.then_some(true));
        let said = Said { is_new, call: request.call, list, messages: &messages };
        let decided = arrival(&known, &said);
        let n_held = known.n_held;
        let decided = match decided {
            Ok(decided) => decided,
            Err(failure) => {
                self.keep(request.session().into_owned(), held);
                return Err(failure);
            }
        };
        let is_other_model = request.model.is_some() && request.model != held.model;
        match decided {
            Arrival::Anew => {
                anew(request, terms, if is_new == Some(true) { Habit::New } else { Habit::Unknown })
            }
            Arrival::Grown => {
                let has_format_changed = format_of(terms, list) != held.followed.conversation.format();
                if has_format_changed || is_other_model {
                    return anew(request, terms, Habit::Whole);
                }
                held.habit = if n_held > 0 { Habit::Whole } else { held.habit };
                held.followed.append(&messages[n_held..]);
                Ok(held)
            }
            Arrival::Added => {
                held.habit = Habit::New;
                held.last_print = print_of(list);
                held.add(request, list, terms, is_other_model)?;
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
                let content = recall::content(session, request.handle()?, &Extent::Whole)?;
                return Ok(json!({ "content": content }).to_string());
            }
            "recall" => {
                let content = recall::content(session, request.handle()?, &extent(request)?)?;
                return Ok(json!({ "content": content }).to_string());
            }
            "report" => return Ok(json!({ "report": answer::whole_report(&mut held.followed) }).to_string()),
            _ => {}
        }
        if op == "fold" && request.from.is_none() && request.to.is_none() {
            let ask = Ask { force: true, focus: request.topic.clone(), tokens: None };
            // Where nothing fits, the view tells it.
            held.feedback = session.fold(&ask).ok();
            return Ok(answer_of(held));
        }
        let event = event(op, request, session.transcript().len())?;
        session.on(event);
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
        let gone = self.kept.remove(&oldest);
        if gone.is_some_and(|held| held.habit == Habit::New) {
            self.forgotten.push_back(oldest);
        }
        if self.forgotten.len() > MOST_FORGOTTEN {
            self.forgotten.pop_front();
        }
    }
}

impl Held {
    /// Adds new messages. The first that can only be of one format decides for all.
    fn add(
        &mut self,
        request: &Request<'_>,
        list: &str,
        terms: &Terms,
        is_other_model: bool,
    ) -> Result<(), Failure> {
        let messages = request.messages()?;
        let conversation = &self.followed.conversation;
        let may_decide = conversation.format() == Format::Chat && format_of(terms, list) != Format::Chat;
        if !may_decide && !is_other_model {
            self.followed.append(&messages);
            return Ok(());
        }
        let raws = conversation.messages().chain(messages.iter().map(|message| message.get()));
        let all = format!("[{}]", raws.collect::<Vec<_>>().join(","));
        let raws: Vec<&serde_json::value::RawValue> = serde_json::from_str(&all).map_err(|error| {
            Failure::new(format!("`messages` is not a list: {error}"), "send a list of JSON objects")
        })?;
        self.followed = Followed::empty(format_of(terms, &all), terms);
        self.followed.set_tools(request.tools());
        self.followed.append(&raws);
        self.model.clone_from(&request.model);
        Ok(())
    }
}

fn anew(request: &Request<'_>, terms: &Terms, habit: Habit) -> Result<Held, Failure> {
    let list = request.message_list()?;
    let messages = request.messages()?;
    let mut followed = Followed::empty(format_of(terms, list), terms);
    followed.set_tools(request.tools());
    followed.append(&messages);
    let (model, last_print) = (request.model.clone(), print_of(list));
    Ok(Held {
        followed,
        model,
        habit,
        last_call: request.call,
        last_print,
        told: Told::default(),
        feedback: None,
    })
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

fn extent(request: &Request<'_>) -> Result<Extent, Failure> {
    match (&request.search, request.lines) {
        (Some(text), _) => {
            Ok(Extent::Search { text: text.clone(), around: request.around.unwrap_or_default() })
        }
        (None, Some((from, to))) if from >= 1 && from <= to => Ok(Extent::Lines(from, to)),
        (None, Some(_)) => Err(Failure::new("`lines` are no lines", "send [first, last], counted from 1")),
        (None, None) => Ok(Extent::Whole),
    }
}

fn event(op: &str, request: &Request<'_>, n_entries: usize) -> Result<Event, Failure> {
    let there = |entry: Option<u32>, field: &str| match entry {
        Some(entry) if (entry as usize) < n_entries => Ok(EntryId(entry)),
        Some(entry) => Err(Failure::new(
            format!("there is no entry {entry}"),
            format!("this session has {n_entries} entries, counted from 0"),
        )),
        None => Err(Failure::new(format!("there is no `{field}`"), "give the number of an entry, from 0")),
    };
    Ok(match op {
        "pin" => Event::Pinned(there(request.entry, "entry")?),
        "unpin" => Event::Unpinned(there(request.entry, "entry")?),
        "focus" => Event::Focused(request.topic.clone().unwrap_or_default()),
        "fold" => Event::FoldAsked { range: Some((there(request.from, "from")?, there(request.to, "to")?)) },
        "unfold" => Event::Unfolded(request.handle()?),
        other => {
            return Err(Failure::new(
                format!("there is no op `{other}`"),
                "the ops are expand, recall, pin, unpin, focus, fold, unfold and report",
            ));
        }
    })
}

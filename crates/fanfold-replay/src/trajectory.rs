//! Everything about one recorded conversation that does not depend on how it is folded.

use std::cell::RefCell;
use std::rc::Rc;

use fanfold_core::Count;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use crate::atoms::{Class, Known, atoms_of};
use crate::copied::{Copied, copied_spans};
use crate::looks::{LookId, Looks};
use crate::message::{Message, Role, spaced};
use crate::readable::Stand;
use crate::record::Record;
use crate::text::{Needle, each_word, n_chars, plain};

/// The number of an atom in its trajectory.
pub(crate) type AtomId = u32;
/// How atoms stand in messages.
type Stands = FxHashMap<(AtomId, u32), Rc<Vec<Stand>>>;

/// One atom that a reply used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    pub(crate) atom: AtomId,
    pub(crate) class: Class,
    /// How many tokens back it last stood.
    pub(crate) distance: f64,
    /// Whether only results of tools held it.
    pub(crate) is_tool_only: bool,
}

/// Where an atom stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Occurrence {
    pub(crate) message: u32,
    /// The share of the message after it.
    rest: f64,
}

/// A recorded conversation, taken apart.
pub(crate) struct Trajectory<'r> {
    pub(crate) record: &'r Record,
    /// What the tool schemas cost.
    pub(crate) base: u64,
    pub(crate) looks: Looks<'r>,
    /// Which look each message has.
    pub(crate) look_of: Vec<LookId>,
    /// What the messages before each one cost.
    pub(crate) before: Vec<u64>,
    /// The replies that are replayed, by message.
    pub(crate) replies: Vec<usize>,
    pub(crate) used: FxHashMap<usize, Vec<Used>>,
    pub(crate) needles: Vec<Needle>,
    pub(crate) occurrences: Vec<Vec<Occurrence>>,
    /// The messages that people wrote.
    pub(crate) users: Vec<usize>,
    /// The results of earlier calls that a reply makes again, word for word; by the reply's position among them.
    pub(crate) repeats: Vec<Vec<u32>>,
    /// What each reply copied.
    pub(crate) copied: Vec<Vec<Copied>>,
    /// How atoms stand in messages, once it was needed.
    pub(crate) stands: RefCell<Stands>,
}

impl<'r> Trajectory<'r> {
    pub(crate) fn new(record: &'r Record, known: &Known, counter: &'r dyn Count) -> Trajectory<'r> {
        let tools = record.tools.as_ref().and_then(|tools| serde_json::from_str::<Value>(tools.get()).ok());
        let schemas = tools.as_ref().map(spaced);
        let mut trajectory = Trajectory {
            record,
            base: schemas.as_ref().map_or(0, |schemas| counter.count(schemas).0),
            looks: Looks::new(counter),
            look_of: Vec::new(),
            before: vec![0],
            replies: Vec::new(),
            used: FxHashMap::default(),
            needles: Vec::new(),
            occurrences: Vec::new(),
            users: Vec::new(),
            repeats: Vec::new(),
            copied: Vec::new(),
            stands: RefCell::default(),
        };
        let mut atoms = Vec::new();
        let mut fixed = Vec::new();
        let mut made = Made::default();
        for (i, raw) in record.messages.iter().enumerate() {
            let (look, message) = trajectory.looks.recorded(i as u32, raw.get());
            trajectory.look_of.push(look);
            let tokens = trajectory.looks[look].tokens;
            trajectory.before.push(trajectory.before[i] + tokens);
            let repeats = made.take(i as u32, &message);
            match message.role {
                Role::Assistant if i > 0 => {
                    trajectory.replies.push(i);
                    trajectory.repeats.push(repeats);
                    atoms.push(atoms_of(&message, known));
                }
                Role::User if !message.is_harness => trajectory.users.push(i),
                Role::System => fixed.push(trajectory.looks[look].text.clone()),
                _ => {}
            }
        }
        fixed.push(schemas.unwrap_or_else(|| "[]".to_owned()));
        let fixed = plain(&fixed.join("\n"));
        trajectory.find_atoms(atoms, &fixed);
        trajectory.copied = copied_spans(&trajectory, &fixed);
        trajectory
    }

    /// What the first `n` messages cost, with the tool schemas.
    pub(crate) fn raw(&self, n: usize) -> u64 {
        self.base + self.before[n]
    }

    /// The whole conversation's cost.
    pub(crate) fn total(&self) -> u64 {
        self.raw(self.record.messages.len())
    }

    /// Finds out which atoms of each reply stood before it, and where.
    fn find_atoms(&mut self, atoms: Vec<Vec<(String, Class)>>, fixed: &str) {
        let mut ids: FxHashMap<String, AtomId> = FxHashMap::default();
        let mut by_reply: Vec<Vec<(AtomId, Class)>> = Vec::new();
        for reply in atoms {
            let mut list = Vec::with_capacity(reply.len());
            for (text, class) in reply {
                let id = *ids.entry(text).or_insert_with_key(|text| {
                    self.needles.push(Needle::new(text));
                    self.needles.len() as AtomId - 1
                });
                list.push((id, class));
            }
            by_reply.push(list);
        }
        let mut by_word: FxHashMap<&str, Vec<AtomId>> = FxHashMap::default();
        for (id, needle) in self.needles.iter().enumerate() {
            if let Some(word) = needle.key_word() {
                by_word.entry(word).or_default().push(id as AtomId);
            }
        }
        // What the system prompt and the tools say is there in every view.
        let is_fixed: FxHashSet<AtomId> = last_places(&self.needles, &by_word, fixed).into_keys().collect();
        self.occurrences = vec![Vec::new(); self.needles.len()];
        for (i, look) in self.look_of.iter().enumerate() {
            let look = &self.looks[*look];
            if look.role == Role::System {
                continue;
            }
            let length = n_chars(&look.text).max(1) as f64;
            for (id, place) in last_places(&self.needles, &by_word, &look.text) {
                if !is_fixed.contains(&id) {
                    let rest = 1.0 - n_chars(&look.text[..place]) as f64 / length;
                    self.occurrences[id as usize].push(Occurrence { message: i as u32, rest });
                }
            }
        }
        for (reply, atoms) in self.replies.clone().into_iter().zip(by_reply) {
            let used = atoms.into_iter().filter_map(|(atom, class)| self.used(reply, atom, class)).collect();
            self.used.insert(reply, used);
        }
    }

    fn used(&self, reply: usize, atom: AtomId, class: Class) -> Option<Used> {
        let seen = self.occurrences_before(atom, reply);
        let (first, last) = (seen.first()?, seen.last()?);
        let role = |occurrence: &Occurrence| self.role(occurrence.message as usize);
        // What the model itself coined it can coin again, file names aside.
        if role(first) == Role::Assistant && !class.is_clear() {
            return None;
        }
        Some(Used {
            atom,
            class,
            distance: self.behind(reply, last.message, last.rest),
            is_tool_only: seen.iter().all(|occurrence| role(occurrence) == Role::Tool),
        })
    }

    /// How many tokens before a reply something stands, with so much of its message after it.
    fn behind(&self, reply: usize, message: u32, rest: f64) -> f64 {
        let at = message as usize;
        let tokens = self.looks[self.look_of[at]].tokens as f64;
        (self.before[reply] - self.before[at + 1]) as f64 + rest * tokens
    }

    /// How many tokens before a reply a byte of a message stands.
    pub(crate) fn distance(&self, reply: usize, message: u32, byte: usize) -> f64 {
        let length = self.text_of(message).len().max(1) as f64;
        self.behind(reply, message, 1.0 - byte as f64 / length)
    }

    /// Where an atom stands before a message.
    pub(crate) fn occurrences_before(&self, atom: AtomId, message: usize) -> &[Occurrence] {
        let all = &self.occurrences[atom as usize];
        &all[..all.partition_point(|occurrence| (occurrence.message as usize) < message)]
    }

    pub(crate) fn role(&self, message: usize) -> Role {
        self.looks[self.look_of[message]].role
    }

    pub(crate) fn text_of(&self, message: u32) -> &str {
        &self.looks[self.look_of[message as usize]].text
    }
}

/// The calls made so far, and their results.
#[derive(Default)]
struct Made {
    /// The id of the newest call with each tool and arguments.
    newest: FxHashMap<(String, String), String>,
    results: FxHashMap<String, u32>,
}

impl Made {
    /// Takes note of a message. Gives back the results of earlier calls that it makes again.
    fn take(&mut self, at: u32, message: &Message) -> Vec<u32> {
        if let (Role::Tool, Some(id)) = (message.role, &message.answers) {
            self.results.insert(id.clone(), at);
        }
        let mut repeats = Vec::new();
        for call in &message.calls {
            let before = self.newest.insert((call.name.clone(), call.arguments.clone()), call.id.clone());
            repeats.extend(before.and_then(|id| self.results.get(&id).copied()));
        }
        repeats
    }
}

/// The last place of each atom that stands in a text.
fn last_places(
    needles: &[Needle],
    by_word: &FxHashMap<&str, Vec<AtomId>>,
    text: &str,
) -> FxHashMap<AtomId, usize> {
    let mut places = FxHashMap::default();
    each_word(text, |start, word| {
        let Some(atoms) = by_word.get(word) else { return };
        for id in atoms {
            let needle = &needles[*id as usize];
            let offset = needle.key.map_or(0, |(start, _)| start);
            if let Some(place) = start.checked_sub(offset).filter(|place| needle.is_at(text, *place)) {
                places.insert(*id, place);
            }
        }
    });
    places
}

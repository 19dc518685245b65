//! Which entry each portion of each message went into.
//!
//! A portion is the smallest piece of a message that has an owner: the whole message mostly, or a result or a run of
//! text inside one. Every portion belongs to one entry, so nothing that arrives is lost.

use std::collections::{BTreeMap, BTreeSet};

use fanfold_core::{Body, CallId, Entry, EntryId, Media, Origin, Outcome, Prompt, Speaker, Step};

use crate::change::{Change, Oddity, Repair};
use crate::content::Content;
use crate::pairing::{Ids, Pairing};

/// What a portion is to its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum What {
    /// The prompt, or a piece of the reply.
    Own,
    /// The result of a call.
    Result(u16),
    /// Something unknown that travels with it.
    Loose,
}

/// One portion of a message.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct Portion {
    pub(crate) origin: Origin,
    pub(crate) what: What,
}

/// Where an entry stands in the messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct Anchor {
    /// In the order of arrival. Empty for what stands outside the list.
    pub(crate) portions: Vec<Portion>,
    pub(crate) is_orphan_result: bool,
    /// Whether it is sent even if the view leaves it out.
    pub(crate) is_kept: bool,
    /// Whether its calls are written in its text, so that they need no result.
    pub(crate) has_text_calls: bool,
    /// Whether its call is of the old kind, which has no id.
    pub(crate) is_legacy: bool,
    /// Where a reply of several items has its first words.
    pub(crate) said: Option<Origin>,
    /// Whether a reply has items that cannot leave without its thoughts.
    pub(crate) has_loose: bool,
}

/// In whose name a message is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Role {
    System,
    #[default]
    User,
    Assistant,
    Tool,
}

/// What is known of a message beside its bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Note {
    pub(crate) role: Role,
    /// The number of its portions.
    pub(crate) n_parts: u32,
    /// Whether it has something that a provider refuses, or that has to be looked at before it leaves.
    pub(crate) is_odd: bool,
    /// Whether it is nothing but thoughts, which may not stand alone.
    pub(crate) is_reasoning: bool,
}

/// The entries of a conversation and where they came from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Book {
    pub(crate) anchors: Vec<Anchor>,
    pub(crate) notes: Vec<Note>,
    pub(crate) repairs: Vec<Repair>,
    pub(crate) changes: Vec<Change>,
    pub(crate) pairing: Pairing,
    pub(crate) ids: Ids,
    /// The calls without a result of which nothing was told yet, each with where it stood and its id.
    waiting: BTreeMap<CallId, (Origin, String)>,
    /// The calls whose id is not the one they came with, so that their results have to be renamed too.
    renamed: BTreeSet<CallId>,
}

impl Book {
    /// The position of the message that is being read.
    pub(crate) fn message(&self) -> u32 {
        self.notes.len().saturating_sub(1) as u32
    }

    /// The id that the next entry will have.
    pub(crate) fn next_entry(&self) -> EntryId {
        EntryId::from(self.anchors.len())
    }

    /// Starts a message.
    pub(crate) fn begin_message(&mut self) {
        self.notes.push(Note { n_parts: 1, ..Note::default() });
    }

    /// Says in whose name the message is.
    pub(crate) fn set_role(&mut self, role: Role) {
        if let Some(note) = self.notes.last_mut() {
            note.role = role;
        }
    }

    /// Says into how many portions the message falls.
    pub(crate) fn set_parts(&mut self, n_parts: usize) {
        if let Some(note) = self.notes.last_mut() {
            note.n_parts = n_parts.max(1) as u32;
        }
    }

    /// Says that the message has to be looked at before it leaves in a view that was touched.
    pub(crate) fn mark_odd(&mut self) {
        if let Some(note) = self.notes.last_mut() {
            note.is_odd = true;
        }
    }

    /// The place of a part of the message that is being read.
    pub(crate) fn origin(&self, part: usize) -> Origin {
        Origin { message: self.message(), part: part as u32 }
    }

    /// Remembers that something was odd.
    pub(crate) fn repair(&mut self, part: usize, oddity: Oddity) {
        let origin = self.origin(part);
        self.repairs.push(Repair { origin, oddity });
    }

    /// The system text that stands beside the list.
    pub(crate) fn outside(&mut self, content: &Content<'_>) {
        let media = content.media(Origin::OUTSIDE.message);
        let prompt =
            Prompt { speaker: Speaker::System, body: content.body(), media, origin: Origin::OUTSIDE };
        self.anchors.push(Anchor::default());
        self.changes.push(Change::Append(Entry::Prompt(prompt)));
    }

    /// A prompt that is one portion of the message.
    pub(crate) fn prompt(
        &mut self,
        part: usize,
        speaker: Speaker,
        body: Body,
        media: Vec<Media>,
    ) -> &mut Anchor {
        let origin = self.origin(part);
        self.changes.push(Change::Append(Entry::Prompt(Prompt { speaker, body, media, origin })));
        self.anchor(vec![Portion { origin, what: What::Own }])
    }

    /// What could not be understood: kept whole.
    pub(crate) fn strange(&mut self, raw: &str, oddity: Oddity) {
        self.repair(0, oddity);
        self.prompt(0, Speaker::Harness, Body::text(raw), Vec::new());
    }

    /// A step, whose pieces are these portions, and the ids its calls came with.
    pub(crate) fn step(&mut self, step: Step, portions: Vec<Portion>, ids: &[Option<String>]) -> &mut Anchor {
        let id = self.next_entry();
        if !step.calls.is_empty() {
            self.pairing.begin();
        }
        for (i, call) in step.calls.iter().enumerate() {
            let raw = ids.get(i).and_then(|id| id.as_deref());
            let place = CallId { step: id, call: i as u16 };
            if raw != Some(&call.id) {
                self.renamed.insert(place);
            }
            self.pairing.wait(place, raw);
            self.waiting.insert(place, (call.origin, call.id.clone()));
        }
        self.changes.push(Change::Append(Entry::Step(step)));
        self.anchor(portions)
    }

    /// A result: given to its call, or kept as a text of the harness where no call waits for it.
    pub(crate) fn result(&mut self, part: usize, id: Option<&str>, content: &Content<'_>, is_error: bool) {
        let origin = self.origin(part);
        let media = content.media(origin.message);
        let Some(call) = self.pairing.take(id) else {
            self.orphan(part, id, content);
            return;
        };
        self.answer(call, Outcome { body: content.body(), is_error, media, origin });
    }

    /// A result that no call waits for.
    pub(crate) fn orphan(&mut self, part: usize, id: Option<&str>, content: &Content<'_>) {
        self.repair(part, Oddity::OrphanResult(id.unwrap_or("no id").to_owned()));
        self.mark_odd();
        // Its images go where it goes: it is rewritten as text, so none of them has a place of its own.
        self.prompt(part, Speaker::Harness, content.body(), Vec::new()).is_orphan_result = true;
    }

    /// Gives a call its result.
    pub(crate) fn answer(&mut self, call: CallId, outcome: Outcome) {
        let origin = outcome.origin;
        self.waiting.remove(&call);
        let is_late = call.step.index() + 1 != self.anchors.len();
        if is_late {
            let oddity = Oddity::LateResult(format!("call {} of entry {}", call.call, call.step.0));
            self.repairs.push(Repair { origin, oddity });
        }
        if self.renamed.contains(&call) {
            self.mark_odd();
        }
        if let Some(anchor) = self.anchors.get_mut(call.step.index()) {
            anchor.portions.push(Portion { origin, what: What::Result(call.call) });
        }
        self.changes.push(Change::Answer(call, outcome));
    }

    /// Tells of calls that something else follows, and no result: a client that asks now has none for them.
    pub(crate) fn tell_unanswered(&mut self) {
        let newest = EntryId::from(self.anchors.len().saturating_sub(1));
        let later = self.waiting.split_off(&CallId { step: newest, call: 0 });
        for (call, (origin, id)) in std::mem::replace(&mut self.waiting, later) {
            // What is written in a text needs no result.
            let needs_one = self.anchors.get(call.step.index()).is_some_and(|anchor| !anchor.has_text_calls);
            if needs_one {
                self.repairs.push(Repair { origin, oddity: Oddity::NeverAnswered(id) });
            }
        }
    }

    /// Lets something unknown travel with the newest entry.
    pub(crate) fn attach(&mut self) -> bool {
        let origin = self.origin(0);
        let Some(anchor) = self.anchors.last_mut().filter(|anchor| !anchor.portions.is_empty()) else {
            return false;
        };
        anchor.portions.push(Portion { origin, what: What::Loose });
        true
    }

    fn anchor(&mut self, portions: Vec<Portion>) -> &mut Anchor {
        self.anchors.push(Anchor { portions, ..Anchor::default() });
        self.anchors.last_mut().expect("an anchor was pushed")
    }
}

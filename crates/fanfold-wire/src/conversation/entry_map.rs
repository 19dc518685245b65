//! Maps the portions of messages to the entries of a transcript.
//!
//! A portion is the smallest part of a message that belongs to one entry: usually the whole message, otherwise a result
//! or a run of text inside it. Every portion belongs to an entry, so no content is lost.

use std::collections::{BTreeMap, BTreeSet};

use fanfold_core::{Body, CallId, Entry, EntryId, Media, Origin, Outcome, Prompt, Speaker, Step};

use crate::content::Content;
use crate::conversation::change::{Change, Oddity, Repair};
use crate::conversation::pairing::{Ids, Pairing};

/// The part of an entry that a portion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PortionRole {
    /// The prompt, or a part of the reply.
    Own,
    /// The result of a call.
    Result(u16),
    /// Unknown content that is sent together with the entry.
    Attached,
}

/// A portion of a message.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct Portion {
    pub(crate) origin: Origin,
    pub(crate) role: PortionRole,
}

/// The portions of an entry, and facts about them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Anchor {
    /// In the order of arrival. Empty for the system text outside the list.
    pub(crate) portions: Vec<Portion>,
    pub(crate) is_orphan_result: bool,
    /// True if it is always sent, even if the view leaves it out.
    pub(crate) is_always_sent: bool,
    /// True if its calls are part of its text, so that they need no result.
    pub(crate) has_text_calls: bool,
    /// True if its call is a `function_call`, which has no id.
    pub(crate) is_legacy: bool,
    /// The first text of a reply of several items.
    pub(crate) first_text: Option<Origin>,
    /// True if a reply has items that must not be sent without its thoughts.
    pub(crate) has_attached: bool,
}

/// The role of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum EntryRole {
    System,
    #[default]
    User,
    Assistant,
    Tool,
}

/// Facts about a message.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MessageFacts {
    pub(crate) role: EntryRole,
    pub(crate) n_portions: u32,
    /// True if providers may reject it unchanged, so that it has to be encoded again.
    pub(crate) needs_encoding: bool,
    /// True if it has only thoughts, which providers reject without a following item.
    pub(crate) is_reasoning: bool,
}

/// The entries of a conversation, and the portions that they were read from.
#[derive(Debug, Clone, Default)]
pub(crate) struct EntryMap {
    pub(crate) anchors: Vec<Anchor>,
    pub(crate) messages: Vec<MessageFacts>,
    pub(crate) repairs: Vec<Repair>,
    pub(crate) changes: Vec<Change>,
    pub(crate) pairing: Pairing,
    pub(crate) ids: Ids,
    /// Calls without a result that have not been reported, with their origins and ids.
    waiting: BTreeMap<CallId, (Origin, String)>,
    /// Calls that got a new id, so that their results need it too.
    renamed: BTreeSet<CallId>,
}

impl EntryMap {
    /// The position of the current message.
    pub(crate) fn message(&self) -> u32 {
        self.messages.len().saturating_sub(1) as u32
    }

    /// The id of the next entry.
    pub(crate) fn next_entry(&self) -> EntryId {
        EntryId::from(self.anchors.len())
    }

    /// Starts the next message.
    pub(crate) fn begin_message(&mut self) {
        self.messages.push(MessageFacts { n_portions: 1, ..MessageFacts::default() });
    }

    /// Sets the role of the current message.
    pub(crate) fn set_role(&mut self, role: EntryRole) {
        if let Some(facts) = self.messages.last_mut() {
            facts.role = role;
        }
    }

    /// Sets the number of portions of the current message.
    pub(crate) fn set_portions(&mut self, n_portions: usize) {
        if let Some(facts) = self.messages.last_mut() {
            facts.n_portions = n_portions.max(1) as u32;
        }
    }

    /// Has the current message encoded again in views with folds.
    pub(crate) fn require_encoding(&mut self) {
        if let Some(facts) = self.messages.last_mut() {
            facts.needs_encoding = true;
        }
    }

    /// The origin of a part of the current message.
    pub(crate) fn origin(&self, part: usize) -> Origin {
        Origin { message: self.message(), part: part as u32 }
    }

    /// Records an oddity of the current message.
    pub(crate) fn repair(&mut self, part: usize, oddity: Oddity) {
        let origin = self.origin(part);
        self.repairs.push(Repair { origin, oddity });
    }

    /// Reports a text with half a surrogate pair.
    pub(crate) fn report_broken(&mut self, part: usize, content: &Content<'_>) {
        if content.is_broken {
            self.repair(part, Oddity::LoneSurrogate);
        }
    }

    /// Adds the system text outside the list.
    pub(crate) fn add_outside_system(&mut self, content: &Content<'_>) {
        let media = content.media(Origin::OUTSIDE.message);
        let prompt =
            Prompt { speaker: Speaker::System, body: content.body(), media, origin: Origin::OUTSIDE };
        self.anchors.push(Anchor::default());
        self.changes.push(Change::Append(Entry::Prompt(prompt)));
    }

    /// Adds a prompt that is one portion of the current message.
    pub(crate) fn add_prompt(
        &mut self,
        part: usize,
        speaker: Speaker,
        body: Body,
        media: Vec<Media>,
    ) -> &mut Anchor {
        let origin = self.origin(part);
        self.changes.push(Change::Append(Entry::Prompt(Prompt { speaker, body, media, origin })));
        self.add_anchor(vec![Portion { origin, role: PortionRole::Own }])
    }

    /// Adds a message of unknown form, unchanged.
    pub(crate) fn add_unknown(&mut self, raw: &str, oddity: Oddity) {
        self.repair(0, oddity);
        self.add_prompt(0, Speaker::Harness, Body::text(raw), Vec::new());
    }

    /// Adds a step of these portions. `ids` are the original ids of its calls.
    pub(crate) fn add_step(
        &mut self,
        step: Step,
        portions: Vec<Portion>,
        ids: &[Option<String>],
    ) -> &mut Anchor {
        let id = self.next_entry();
        if !step.calls.is_empty() {
            self.pairing.begin();
        }
        for (i, call) in step.calls.iter().enumerate() {
            let raw = ids.get(i).and_then(|id| id.as_deref());
            let call_id = CallId { step: id, call: i as u16 };
            if raw != Some(&call.id) {
                self.renamed.insert(call_id);
            }
            self.pairing.wait(call_id, raw);
            self.waiting.insert(call_id, (call.origin, call.id.clone()));
        }
        self.changes.push(Change::Append(Entry::Step(step)));
        self.add_anchor(portions)
    }

    /// Adds a result to its call, or as a text of the harness if no call waits for it.
    pub(crate) fn add_result(
        &mut self,
        part: usize,
        id: Option<&str>,
        content: &Content<'_>,
        is_error: bool,
    ) {
        let origin = self.origin(part);
        let media = content.media(origin.message);
        let Some(call) = self.pairing.take(id) else {
            self.add_orphan(part, id, content);
            return;
        };
        self.add_outcome(call, Outcome { body: content.body(), is_error, media, origin });
    }

    /// Adds a result without a call.
    pub(crate) fn add_orphan(&mut self, part: usize, id: Option<&str>, content: &Content<'_>) {
        self.repair(part, Oddity::OrphanResult(id.unwrap_or("no id").to_owned()));
        self.require_encoding();
        // It is sent as text together with its images, so they are not media of their own.
        self.add_prompt(part, Speaker::Harness, content.body(), Vec::new()).is_orphan_result = true;
    }

    /// Gives a call its result.
    pub(crate) fn add_outcome(&mut self, call: CallId, outcome: Outcome) {
        let origin = outcome.origin;
        self.waiting.remove(&call);
        let is_late = call.step.index() + 1 != self.anchors.len();
        if is_late {
            let oddity = Oddity::LateResult(format!("call {} of entry {}", call.call, call.step.0));
            self.repairs.push(Repair { origin, oddity });
        }
        if self.renamed.contains(&call) {
            self.require_encoding();
        }
        if let Some(anchor) = self.anchors.get_mut(call.step.index()) {
            anchor.portions.push(Portion { origin, role: PortionRole::Result(call.call) });
        }
        self.changes.push(Change::Answer(call, outcome));
    }

    /// Reports calls that another entry follows instead of a result.
    pub(crate) fn report_unanswered(&mut self) {
        let newest = EntryId::from(self.anchors.len().saturating_sub(1));
        let later = self.waiting.split_off(&CallId { step: newest, call: 0 });
        for (call, (origin, id)) in std::mem::replace(&mut self.waiting, later) {
            // Calls in a text need no result.
            let needs_one = self.anchors.get(call.step.index()).is_some_and(|anchor| !anchor.has_text_calls);
            if needs_one {
                self.repairs.push(Repair { origin, oddity: Oddity::NeverAnswered(id) });
            }
        }
    }

    /// Attaches unknown content to the newest entry, if there is one.
    pub(crate) fn attach(&mut self) -> bool {
        let origin = self.origin(0);
        let Some(anchor) = self.anchors.last_mut().filter(|anchor| !anchor.portions.is_empty()) else {
            return false;
        };
        anchor.portions.push(Portion { origin, role: PortionRole::Attached });
        true
    }

    fn add_anchor(&mut self, portions: Vec<Portion>) -> &mut Anchor {
        self.anchors.push(Anchor { portions, ..Anchor::default() });
        self.anchors.last_mut().expect("an anchor was pushed")
    }
}

//! Splits a view into portions of messages to send. Every result follows its call.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use fanfold_core::{Call, CallId, Edit, EntryId, Item, Place, Prompt, Step, Transcript, View, Voice};
pub(crate) use fanfold_core::{NO_RESULT, OPENING};

use crate::conversation::entry_map::{EntryMap, EntryRole, Portion, PortionRole};

/// An encoded message.
#[derive(Debug)]
pub(crate) struct OutMessage<'a> {
    pub(crate) role: EntryRole,
    pub(crate) json: Cow<'a, str>,
}

/// The original messages, and the transcript made of them.
#[derive(Clone, Copy)]
pub(crate) struct EncodeSource<'a, 't> {
    pub(crate) text: &'a str,
    pub(crate) spans: &'a [Range<usize>],
    pub(crate) map: &'a EntryMap,
    pub(crate) transcript: &'t Transcript,
    pub(crate) is_continued: bool,
}

impl<'a, 't> EncodeSource<'a, 't> {
    /// A message, unchanged.
    pub(crate) fn raw(&self, message: usize) -> &'a str {
        self.spans.get(message).and_then(|span| self.text.get(span.clone())).unwrap_or("null")
    }

    /// The role of a message.
    pub(crate) fn role(&self, message: usize) -> EntryRole {
        self.map.messages.get(message).map_or(EntryRole::User, |facts| facts.role)
    }

    pub(crate) fn step(&self, entry: EntryId) -> Option<&'t Step> {
        self.transcript.entries().get(entry.index())?.step()
    }

    pub(crate) fn prompt(&self, entry: EntryId) -> Option<&'t Prompt> {
        self.transcript.entries().get(entry.index())?.prompt()
    }

    pub(crate) fn call(&self, call: CallId) -> Option<&'t Call> {
        self.step(call.step)?.calls.get(usize::from(call.call))
    }
}

/// A portion to send, with the edits of its entry.
#[derive(Debug, Clone)]
pub(crate) struct OutPortion<'v> {
    pub(crate) entry: EntryId,
    pub(crate) source: Portion,
    pub(crate) edits: Rc<Edits<'v>>,
}

/// The edits of one entry.
#[derive(Debug, Default)]
pub(crate) struct Edits<'v> {
    pub(crate) stubs: BTreeMap<Place, &'v str>,
    /// True if one of them changes the prompt or the reply itself.
    has_own: bool,
}

impl<'v> Edits<'v> {
    fn new(edits: &'v [Edit]) -> Rc<Edits<'v>> {
        let stubs: BTreeMap<_, _> = edits.iter().map(|edit| (edit.place, &*edit.stub)).collect();
        let has_own = stubs.keys().any(|place| !matches!(place, Place::Result(_) | Place::ResultMedia(..)));
        Rc::new(Edits { stubs, has_own })
    }
}

impl<'v> OutPortion<'v> {
    /// The stub of a location in the entry.
    pub(crate) fn stub(&self, place: Place) -> Option<&'v str> {
        self.edits.stubs.get(&place).copied()
    }

    /// The call, if the portion is a result.
    pub(crate) fn result(&self) -> Option<CallId> {
        match self.source.role {
            PortionRole::Result(call) => Some(CallId { step: self.entry, call }),
            PortionRole::Own | PortionRole::Attached => None,
        }
    }

    /// The stubs of the images and files of the prompt, by part.
    pub(crate) fn prompt_media(&self, prompt: &Prompt) -> Vec<(usize, &'v str)> {
        let stubs = prompt.media.iter().enumerate().filter_map(|(i, media)| {
            let stub = self.stub(Place::PromptMedia(self.entry, i as u16))?;
            Some((media.origin.part as usize, stub))
        });
        stubs.collect()
    }

    /// The stubs of the images and files of the result, by part.
    pub(crate) fn result_media(&self, id: CallId, call: &Call) -> Vec<(usize, &'v str)> {
        let media = call.result.as_ref().map_or(&[][..], |outcome| &outcome.media);
        let stubs = media.iter().enumerate().filter_map(|(i, media)| {
            let stub = self.stub(Place::ResultMedia(id, i as u16))?;
            Some((media.origin.part as usize, stub))
        });
        stubs.collect()
    }

    fn is_edited(&self) -> bool {
        match self.result() {
            None => self.edits.has_own && self.source.role == PortionRole::Own,
            Some(id) => {
                let media = Place::ResultMedia(id, 0)..=Place::ResultMedia(id, u16::MAX);
                self.stub(Place::Result(id)).is_some() || self.edits.stubs.range(media).next().is_some()
            }
        }
    }
}

/// An item to send.
#[derive(Debug)]
pub(crate) enum SendItem<'v> {
    /// Portions of one message.
    Group {
        message: usize,
        portions: Vec<OutPortion<'v>>,
        /// True if the portions are in order and need no encoding.
        is_clean: bool,
        /// True if the original message can be sent.
        is_raw: bool,
    },
    /// A text of fanfold.
    Note { text: &'v str, voice: Voice },
    /// A call without a result.
    Missing(CallId),
    /// Entries that are left out before the next one.
    Gap(Range<usize>),
}

/// The items to send, in order.
pub(crate) fn items_to_send<'v>(source: &EncodeSource<'_, '_>, view: &'v View) -> Vec<SendItem<'v>> {
    let n_entries = source.map.anchors.len().min(source.transcript.len());
    let last_sent = view.items.iter().rposition(|item| match item {
        Item::Note { .. } => true,
        Item::Whole(entry) | Item::Edited(entry, _) => {
            source.map.anchors.get(entry.index()).is_some_and(|anchor| !anchor.portions.is_empty())
        }
    });
    let mut list = SendList { source, items: Vec::new(), is_sent: vec![false; n_entries], next: 0 };
    for (i, item) in view.items.iter().enumerate() {
        let is_last = Some(i) == last_sent;
        match item {
            Item::Note { text, voice } => list.items.push(SendItem::Note { text, voice: *voice }),
            Item::Whole(entry) => list.entry(*entry, &[], is_last),
            Item::Edited(entry, edits) => list.entry(*entry, edits, is_last),
        }
    }
    list.skip_to(n_entries);
    list.items
}

struct SendList<'s, 'v> {
    source: &'s EncodeSource<'s, 's>,
    items: Vec<SendItem<'v>>,
    is_sent: Vec<bool>,
    /// The first entry that is neither sent nor left out yet.
    next: usize,
}

impl<'v> SendList<'_, 'v> {
    fn entry(&mut self, entry: EntryId, edits: &'v [Edit], is_last: bool) {
        let is_known = self.is_sent.get(entry.index()) == Some(&false);
        if !is_known {
            return;
        }
        self.skip_to(entry.index());
        self.send(entry, edits, is_last);
        self.next = self.next.max(entry.index() + 1);
    }

    /// Leaves out entries up to `end`, except those that are always sent.
    fn skip_to(&mut self, end: usize) {
        if self.next >= end {
            return;
        }
        let gap = self.next..end;
        for entry in gap.clone() {
            if self.source.map.anchors[entry].is_always_sent && !self.is_sent[entry] {
                self.send(EntryId::from(entry), &[], false);
            }
        }
        self.next = end;
        self.items.push(SendItem::Gap(gap));
    }

    fn send(&mut self, entry: EntryId, edits: &'v [Edit], is_last: bool) {
        self.is_sent[entry.index()] = true;
        let anchor = &self.source.map.anchors[entry.index()];
        let edits = Edits::new(edits);
        for portion in &anchor.portions {
            self.push(OutPortion { entry, source: *portion, edits: Rc::clone(&edits) });
        }
        let Some(step) = self.source.step(entry).filter(|_| !anchor.has_text_calls) else { return };
        let may_still_run = is_last && self.source.transcript.is_running(entry);
        if may_still_run {
            return;
        }
        for (i, call) in step.calls.iter().enumerate() {
            if call.result.is_none() {
                self.items.push(SendItem::Missing(CallId { step: entry, call: i as u16 }));
            }
        }
    }

    fn push(&mut self, portion: OutPortion<'v>) {
        let at = portion.source.origin.message as usize;
        let facts = self.source.map.messages.get(at).copied().unwrap_or_default();
        let is_untouched = !facts.needs_encoding && !portion.is_edited();
        if let Some(SendItem::Group { message, portions, is_clean, is_raw }) = self.items.last_mut()
            && *message == at
        {
            let is_in_order =
                portions.last().is_none_or(|last| last.source.origin.part < portion.source.origin.part);
            portions.push(portion);
            *is_clean &= is_untouched && is_in_order;
            *is_raw = *is_clean && portions.len() == facts.n_portions as usize;
            return;
        }
        let is_raw = is_untouched && facts.n_portions == 1;
        self.items.push(SendItem::Group {
            message: at,
            portions: vec![portion],
            is_clean: is_untouched,
            is_raw,
        });
    }
}

/// Returns whether a text is a note of fanfold, by its fence.
pub(crate) fn is_note(text: &str) -> bool {
    text.starts_with("<fanfold>\n") && text.trim_end().ends_with("</fanfold>")
}

/// Inserts a user message before the first message that is not the system's, unless that is a user's.
pub(crate) fn open_with_user<'a>(outs: &mut Vec<OutMessage<'a>>, opening: impl FnOnce(&str) -> String) {
    if let Some(first) = opening_position(outs.iter().map(|out| out.role)) {
        outs.insert(first, OutMessage { role: EntryRole::User, json: Cow::Owned(opening(OPENING)) });
    }
}

/// The position where a user message must be inserted.
pub(crate) fn opening_position(mut roles: impl Iterator<Item = EntryRole>) -> Option<usize> {
    let mut first = None;
    let at = roles.position(|role| {
        first = Some(role);
        role != EntryRole::System
    })?;
    (first != Some(EntryRole::User)).then_some(at)
}

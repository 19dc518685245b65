//! A view as portions of messages to send, every result behind its call.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use fanfold_core::{Call, CallId, Edit, EntryId, Item, Place, Prompt, Step, Transcript, View, Voice};
pub(crate) use fanfold_core::{NO_RESULT, OPENING};

use crate::book::{Book, Portion, Role, What};
use crate::format::Format;

/// A message that is ready to leave.
#[derive(Debug)]
pub(crate) struct Out<'a> {
    pub(crate) role: Role,
    pub(crate) json: Cow<'a, str>,
}

/// Where messages are taken from.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a, 't> {
    pub(crate) format: Format,
    pub(crate) text: &'a str,
    pub(crate) spans: &'a [Range<usize>],
    pub(crate) book: &'a Book,
    pub(crate) transcript: &'t Transcript,
    pub(crate) is_continued: bool,
}

impl<'a, 't> Source<'a, 't> {
    /// A message as it came.
    pub(crate) fn raw(&self, message: usize) -> &'a str {
        self.spans.get(message).and_then(|span| self.text.get(span.clone())).unwrap_or("null")
    }

    /// In whose name a message came.
    pub(crate) fn role(&self, message: usize) -> Role {
        self.book.notes.get(message).map_or(Role::User, |note| note.role)
    }

    /// The step of a piece.
    pub(crate) fn step(&self, entry: EntryId) -> Option<&'t Step> {
        self.transcript.entries().get(entry.index())?.step()
    }

    /// The prompt of a piece.
    pub(crate) fn prompt(&self, entry: EntryId) -> Option<&'t Prompt> {
        self.transcript.entries().get(entry.index())?.prompt()
    }

    /// A call.
    pub(crate) fn call(&self, call: CallId) -> Option<&'t Call> {
        self.step(call.step)?.calls.get(usize::from(call.call))
    }
}

/// One portion on its way out, with the edits of its entry.
#[derive(Debug, Clone)]
pub(crate) struct Piece<'v> {
    pub(crate) entry: EntryId,
    pub(crate) portion: Portion,
    pub(crate) edits: Rc<Edits<'v>>,
}

/// The edits of one entry.
#[derive(Debug, Default)]
pub(crate) struct Edits<'v> {
    pub(crate) stubs: BTreeMap<Place, &'v str>,
    /// Whether one of them is of the entry's own words rather than of a result.
    is_of_own: bool,
}

impl<'v> Edits<'v> {
    fn of(edits: &'v [Edit]) -> Rc<Edits<'v>> {
        let stubs: BTreeMap<_, _> = edits.iter().map(|edit| (edit.place, &*edit.stub)).collect();
        let is_of_own = stubs.keys().any(|place| !matches!(place, Place::Result(_) | Place::ResultMedia(..)));
        Rc::new(Edits { stubs, is_of_own })
    }
}

impl<'v> Piece<'v> {
    /// What stands for a place of the entry.
    pub(crate) fn stub(&self, place: Place) -> Option<&'v str> {
        self.edits.stubs.get(&place).copied()
    }

    /// The call whose result this is.
    pub(crate) fn result(&self) -> Option<CallId> {
        match self.portion.what {
            What::Result(call) => Some(CallId { step: self.entry, call }),
            What::Own | What::Loose => None,
        }
    }

    /// What stands for the images and files of the prompt, by part.
    pub(crate) fn prompt_media(&self, prompt: &Prompt) -> Vec<(usize, &'v str)> {
        let stubs = prompt.media.iter().enumerate().filter_map(|(i, media)| {
            let stub = self.stub(Place::PromptMedia(self.entry, i as u16))?;
            Some((media.origin.part as usize, stub))
        });
        stubs.collect()
    }

    /// What stands for the images and files of the result, by part.
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
            None => self.edits.is_of_own && self.portion.what == What::Own,
            Some(id) => {
                let media = Place::ResultMedia(id, 0)..=Place::ResultMedia(id, u16::MAX);
                self.stub(Place::Result(id)).is_some() || self.edits.stubs.range(media).next().is_some()
            }
        }
    }
}

/// One thing to send.
#[derive(Debug)]
pub(crate) enum Send<'v> {
    /// Portions of one message.
    Group {
        message: usize,
        pieces: Vec<Piece<'v>>,
        /// Whether the pieces are in order and none is edited or odd.
        is_clean: bool,
        /// Whether the message can leave as it came.
        is_raw: bool,
    },
    /// Words of fanfold's.
    Note { text: &'v str, voice: Voice },
    /// A result that never came.
    Missing(CallId),
    /// Entries that are not sent, before the next one that is.
    Gap(Range<usize>),
}

/// The things to send, in order.
pub(crate) fn sends<'v>(source: &Source<'_, '_>, view: &'v View) -> Vec<Send<'v>> {
    let n_entries = source.book.anchors.len().min(source.transcript.len());
    let last_sent = view.items.iter().rposition(|item| match item {
        Item::Note { .. } => true,
        Item::Whole(entry) | Item::Edited(entry, _) => {
            source.book.anchors.get(entry.index()).is_some_and(|anchor| !anchor.portions.is_empty())
        }
    });
    let mut line = Line { source, sends: Vec::new(), is_sent: vec![false; n_entries], next: 0 };
    for (i, item) in view.items.iter().enumerate() {
        let is_last = Some(i) == last_sent;
        match item {
            Item::Note { text, voice } => line.sends.push(Send::Note { text, voice: *voice }),
            Item::Whole(entry) => line.entry(*entry, &[], is_last),
            Item::Edited(entry, edits) => line.entry(*entry, edits, is_last),
        }
    }
    line.skip_to(n_entries);
    line.sends
}

struct Line<'s, 'v> {
    source: &'s Source<'s, 's>,
    sends: Vec<Send<'v>>,
    is_sent: Vec<bool>,
    /// The first entry that has neither been sent nor left out.
    next: usize,
}

impl<'v> Line<'_, 'v> {
    fn entry(&mut self, entry: EntryId, edits: &'v [Edit], is_last: bool) {
        let is_known = self.is_sent.get(entry.index()) == Some(&false);
        if !is_known {
            return;
        }
        self.skip_to(entry.index());
        self.send(entry, edits, is_last);
        self.next = self.next.max(entry.index() + 1);
    }

    /// Goes over entries that the view leaves out; what must never be lost is sent all the same.
    fn skip_to(&mut self, end: usize) {
        if self.next >= end {
            return;
        }
        let gap = self.next..end;
        for entry in gap.clone() {
            if self.source.book.anchors[entry].is_kept && !self.is_sent[entry] {
                self.send(EntryId::from(entry), &[], false);
            }
        }
        self.next = end;
        self.sends.push(Send::Gap(gap));
    }

    fn send(&mut self, entry: EntryId, edits: &'v [Edit], is_last: bool) {
        self.is_sent[entry.index()] = true;
        let anchor = &self.source.book.anchors[entry.index()];
        let edits = Edits::of(edits);
        for portion in &anchor.portions {
            self.push(Piece { entry, portion: *portion, edits: Rc::clone(&edits) });
        }
        let Some(step) = self.source.step(entry).filter(|_| !anchor.has_text_calls) else { return };
        let may_still_run = is_last && self.source.transcript.is_running(entry);
        if may_still_run {
            return;
        }
        for (i, call) in step.calls.iter().enumerate() {
            if call.result.is_none() {
                self.sends.push(Send::Missing(CallId { step: entry, call: i as u16 }));
            }
        }
    }

    fn push(&mut self, piece: Piece<'v>) {
        let at = piece.portion.origin.message as usize;
        let note = self.source.book.notes.get(at).copied().unwrap_or_default();
        let is_untouched = !note.is_odd && !piece.is_edited();
        if let Some(Send::Group { message, pieces, is_clean, is_raw }) = self.sends.last_mut()
            && *message == at
        {
            let is_in_order =
                pieces.last().is_none_or(|last| last.portion.origin.part < piece.portion.origin.part);
            pieces.push(piece);
            *is_clean &= is_untouched && is_in_order;
            *is_raw = *is_clean && pieces.len() == note.n_parts as usize;
            return;
        }
        let is_raw = is_untouched && note.n_parts == 1;
        self.sends.push(Send::Group { message: at, pieces: vec![piece], is_clean: is_untouched, is_raw });
    }
}

/// Whether a text is a note of fanfold's, by the fence around it.
pub(crate) fn is_note(text: &str) -> bool {
    text.starts_with("<fanfold>\n") && text.trim_end().ends_with("</fanfold>")
}

/// Puts a user message in front where the first message that is not the system's is not a user's.
pub(crate) fn open_with_user<'a>(outs: &mut Vec<Out<'a>>, opening: impl FnOnce(&str) -> String) {
    if let Some(first) = opened_at(outs.iter().map(|out| out.role)) {
        outs.insert(first, Out { role: Role::User, json: Cow::Owned(opening(OPENING)) });
    }
}

/// Where a user message has to be put in front: before the first that is not the system's, if it is not a user's.
pub(crate) fn opened_at(mut roles: impl Iterator<Item = Role>) -> Option<usize> {
    let mut first = None;
    let at = roles.position(|role| {
        first = Some(role);
        role != Role::System
    })?;
    (first != Some(Role::User)).then_some(at)
}

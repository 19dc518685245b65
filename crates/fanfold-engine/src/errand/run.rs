//! A summary of a session that is kept: written beside the turns, noted when it is there.

use fanfold_core::summary::{Errand, Summary, Wish};
use fanfold_core::{Event, Session, Tokens};
use fanfold_store::{Batch, Millis, NodeId, Op, SessionId, StoreError};

use super::chain::{Chain, Rest, Rules, Stop};
use super::drive::{Progress, Tried, drive, rests_after};
use super::lock::ErrandLock;
use super::told::{Ended, Missed, Written};
use super::ways::Ways;
use crate::engine::{Engine, OpError};
use crate::follow::messages_of;
use crate::keep::MOST_TRIES;
use crate::note::{Note, Summarised};
use crate::past::{Past, leads_to};
use crate::state::{State, summary_of};

/// What is to be summarised.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The session. It was folded by this engine.
    pub session: &'a SessionId,
    /// A topic that gets most of the space; none if it is empty.
    pub focus: &'a str,
    /// Whether a person asked for it, and waits: then nobody rests, and what is old is folded with it.
    pub is_by_hand: bool,
}

/// A session as its last request left it.
struct Held {
    session: Session<'static>,
    tip: Option<NodeId>,
    /// The newest summary of it, which may have come since.
    previous: Option<Summary>,
}

impl Past {
    /// The newest summary of what was said up to where a session stands.
    fn newest_summary(&self, state: &State) -> Option<Summary> {
        self.notes.iter().rev().find_map(|noted| match &noted.note {
            Note::Summarised(summary) if state.places.contains_key(&noted.tip?) => {
                summary_of(&state.followed, summary)
            }
            _ => None,
        })
    }
}

impl Engine {
    /// Whether the last request of a session folded something, so that a summary of it would be of use.
    pub fn has_just_folded(&self, session: &SessionId) -> bool {
        self.cache.peek(session, |state| state.has_new_fold).unwrap_or(false)
    }

    /// Has a summary written of what is folded, and keeps it. It takes as long as the models take.
    ///
    /// Views stay what they are until the next fold. Whatever fails, nothing that is there is changed: neither a view
    /// nor the summary before.
    pub fn summarise(
        &self,
        wanted: &Wanted<'_>,
        ways: &Ways,
        tell: &mut dyn FnMut(&Progress),
    ) -> Result<Ended, OpError> {
        if ways.ways.is_empty() {
            return Ok(Ended::NotSet);
        }
        let past = Past::read(&*self.store, wanted.session)?;
        let rests: Vec<Option<Rest>> = ways.ways.iter().map(|way| past.rest(&way.name())).collect();
        let rules = Rules { is_by_hand: wanted.is_by_hand, aborts: ways.aborts };
        let chain = match Chain::begin(&rests, rules, self.clock.now()) {
            Ok(chain) => chain,
            Err(Rest { until, why, .. }) => {
                return Ok(Ended::Resting { until: Millis(until), why });
            }
        };
        let held = self.cache.peek(wanted.session, |state| Held {
            session: state.followed.session.fork(),
            tip: state.ids.last().copied(),
            previous: past.newest_summary(state),
        });
        let Some(Held { mut session, tip, previous }) = held else {
            // The next request has it already; its fold brings the next errand.
            if !wanted.is_by_hand {
                return Ok(Ended::Overtaken);
            }
            return Err(OpError::wrong(
                format!("session {} was not folded here", wanted.session),
                format!("fold it first: fanfold fold --session {}", wanted.session),
            ));
        };
        if wanted.is_by_hand {
            session.on(Event::FoldAsked { range: None });
        }
        let lock = match ErrandLock::take(&*self.store, &*self.clock, wanted.session)? {
            Ok(lock) => lock,
            Err(holder) => return Ok(Ended::Busy(holder)),
        };
        let today = self.clock.now().to_string();
        let job = |window| errand_of(&session, wanted.focus, &today, window, previous.as_ref());
        let mut tell = |progress: &Progress| {
            lock.prolong(&*self.clock);
            tell(progress);
        };
        let Some(tried) = drive(&job, ways, chain, &mut tell) else { return Ok(Ended::Nothing) };
        let ended = self.keep_tried(wanted, ways, &tried, &rests, (&session, tip));
        drop(lock);
        ended
    }

    /// Notes what came of it: the summary behind the newest message, and who rests.
    fn keep_tried(
        &self,
        wanted: &Wanted<'_>,
        ways: &Ways,
        tried: &Tried,
        rests: &[Option<Rest>],
        (session, tip): (&Session<'_>, Option<NodeId>),
    ) -> Result<Ended, OpError> {
        let mut notes: Vec<Note> = Vec::new();
        if let Ok(summary) = &tried.outcome {
            let upto = messages_of(session.transcript().entry(summary.upto)).last().copied();
            notes.push(Note::Summarised(Summarised {
                text: summary.text.to_string(),
                upto: upto.unwrap_or_default(),
                day: summary.day.clone(),
                model: ways.ways[tried.at].name(),
                at_once: wanted.is_by_hand,
            }));
        }
        for (at, rest) in rests_after(&tried.missed, rests, wanted.is_by_hand, self.clock.now()) {
            notes.push(Note::Rested { who: ways.ways[at].name(), rest });
        }
        let mut ended = ended(tried, ways, session).1;
        let has_changed = matches!(ended, Ended::Written(_) | Ended::Digest(_));
        if wanted.is_by_hand && has_changed {
            notes.push(Note::FoldAsked { from: None, to: None });
        }
        for _ in 0..MOST_TRIES {
            let row = self.row(wanted.session)?;
            let is_there = tip == row.tip || leads_to(&*self.store, tip, row.tip)?;
            if !is_there {
                // Its client went back behind what was summarised, and on from there.
                notes.retain(|note| matches!(note, Note::Rested { .. }));
                ended = if has_changed { Ended::Overtaken } else { ended };
            }
            let ops = notes.iter().map(|note| Op::Note(wanted.session.clone(), note.event())).collect();
            let expect = vec![(wanted.session.clone(), row.tip)];
            match self.store.commit(&Batch { at: self.clock.now(), expect, ops }) {
                Err(StoreError::Moved(_)) => {}
                written => return Ok(written.map(|_| ended)?),
            }
        }
        Err(StoreError::Moved(wanted.session.clone()).into())
    }
}

/// A conversation that is not kept: its summary, if one was written, and how it ended. A person waits for it.
pub fn summarise_alone(
    session: &Session<'_>,
    focus: &str,
    ways: &Ways,
    now: Millis,
    tell: &mut dyn FnMut(&Progress),
) -> (Option<Summary>, Ended) {
    if ways.ways.is_empty() {
        return (None, Ended::NotSet);
    }
    let rules = Rules { is_by_hand: true, aborts: ways.aborts };
    let nobody_rests = vec![None; ways.ways.len()];
    let Ok(chain) = Chain::begin(&nobody_rests, rules, now) else { return (None, Ended::NotSet) };
    let mut session = session.fork();
    session.on(Event::FoldAsked { range: None });
    let today = now.to_string();
    let job = |window| errand_of(&session, focus, &today, window, None);
    match drive(&job, ways, chain, tell) {
        Some(tried) => ended(&tried, ways, &session),
        None => (None, Ended::Nothing),
    }
}

/// What is to be asked for a session, by a model that reads so much at once.
fn errand_of<'c>(
    session: &Session<'c>,
    focus: &str,
    today: &str,
    window: Tokens,
    previous: Option<&Summary>,
) -> Option<Errand<'c>> {
    let focus = Some(focus.trim()).filter(|focus| !focus.is_empty()).map(str::to_owned);
    let today = today.split(' ').next().unwrap_or_default().to_owned();
    Errand::of(session, &Wish { focus, today, previous: previous.cloned(), ..Wish::of(window) })
}

fn ended(tried: &Tried, ways: &Ways, session: &Session<'_>) -> (Option<Summary>, Ended) {
    let missed: Vec<Missed> = tried.missed.iter().map(|(_, missed)| missed.clone()).collect();
    match &tried.outcome {
        Err(Stop::Abort) => (None, Ended::Aborted(missed)),
        Err(Stop::Digest) => (None, Ended::Digest(missed)),
        Ok(summary) => {
            let (model, tokens) = (ways.ways[tried.at].model.clone(), session.counter().count(&summary.text));
            let written = Written { model, at: tried.at, tokens, n_answers: tried.n_answers, missed };
            (Some(summary.clone()), Ended::Written(written))
        }
    }
}

//! A summary of a session that is kept: written beside the turns, noted when it is there.

use fanfold_core::summary::{Summary, SummaryOptions};
use fanfold_core::{Event, Tokens};
use fanfold_redact::redact;
use fanfold_store::{Batch, Millis, NodeId, Op, SessionId, StoreError};

use super::attempts::{Progress, Tried, drive, rests_after};
use super::fallback::{Chain, Rest, Rules, Stop};
use super::lock::ErrandLock;
use super::models::Ways;
use super::report::{Ended, Missed, Written};
use crate::engine::{Engine, OpError};
use crate::follow::pipeline::{Followed, messages_of};
use crate::log::notes::{Note, Summarised};
use crate::log::session_log::{Past, Positions, leads_to};
use crate::request::append::MAX_ATTEMPTS;
use crate::request::receive::ids_of;
use crate::sessions::state::{CachedSession, positions_of, summary_of};

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

/// A conversation that is to be summarised.
struct Held {
    session: Box<dyn fanfold_core::Engine>,
    /// The newest summary of it, which may have come since.
    previous: Option<Summary>,
}

/// What came of asking, before it is kept.
pub struct Pending {
    tried: Tried,
    /// Who rested before.
    rests: Vec<Option<Rest>>,
    session: Box<dyn fanfold_core::Engine>,
}

impl Past {
    /// The newest summary of what a conversation says, up to where it stands.
    fn newest_summary(&self, positions: &Positions, followed: &Followed) -> Option<Summary> {
        self.notes.iter().rev().find_map(|noted| match &noted.note {
            Note::Summarised(summary) if positions.contains_key(&noted.tip?) => summary_of(followed, summary),
            _ => None,
        })
    }
}

impl Engine {
    /// Whether the last request of a session folded something, so that a summary of it would be of use.
    pub fn has_just_folded(&self, session: &SessionId) -> bool {
        self.cache.peek(session, |cached| cached.state.has_new_fold).unwrap_or(false)
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
        let held = self.cache.peek(wanted.session, |CachedSession { state, .. }| {
            let held = Held {
                session: state.followed.session.fork(),
                previous: past.newest_summary(&state.positions, &state.followed),
            };
            (held, state.ids.last().copied())
        });
        let Some((held, tip)) = held else {
            // The next request has it already; its fold brings the next errand.
            if !wanted.is_by_hand {
                return Ok(Ended::Overtaken);
            }
            return Err(OpError::wrong(
                format!("session {} was not folded here", wanted.session),
                format!("fold it first: fanfold fold --session {}", wanted.session),
            ));
        };
        match self.asked(wanted, ways, &past, held, tell)? {
            Ok((pending, _lock)) => self.keep_tried(wanted, ways, &pending, tip),
            Err(ended) => Ok(ended),
        }
    }

    /// Has a summary written of a conversation of which nothing is kept yet, or not all. What it ended with, and what is to be
    /// kept once the conversation is.
    ///
    /// Until then nothing is changed, whatever fails, but who rests.
    pub fn summarise_first(
        &self,
        wanted: &Wanted<'_>,
        followed: &Followed,
        ways: &Ways,
        tell: &mut dyn FnMut(&Progress),
    ) -> Result<(Ended, Option<Pending>), OpError> {
        if ways.ways.is_empty() {
            return Ok((Ended::NotSet, None));
        }
        let row = self.store.session(wanted.session)?;
        let past = match row {
            Some(_) => Past::read(&*self.store, wanted.session)?,
            None => Past::default(),
        };
        let positions = positions_of(&ids_of(None, followed.conversation.plain_messages(0)));
        let held =
            Held { session: followed.session.fork(), previous: past.newest_summary(&positions, followed) };
        let (pending, _lock) = match self.asked(wanted, ways, &past, held, tell)? {
            Ok(asked) => asked,
            Err(ended) => return Ok((ended, None)),
        };
        match (ended(&pending.tried, ways, &*pending.session).1, row) {
            (ended @ Ended::Aborted(_), None) => Ok((ended, None)),
            (Ended::Aborted(_), Some(row)) => Ok((self.keep_tried(wanted, ways, &pending, row.tip)?, None)),
            (ended, _) => Ok((ended, Some(pending))),
        }
    }

    /// Keeps what was written before its conversation was kept.
    pub fn keep_summary(
        &self,
        wanted: &Wanted<'_>,
        ways: &Ways,
        pending: &Pending,
    ) -> Result<Ended, OpError> {
        let tip = self.cache.peek(wanted.session, |cached| cached.state.ids.last().copied()).flatten();
        self.keep_tried(wanted, ways, pending, tip)
    }

    /// Asks the models, one after another, with the right to; or how it ended before anybody was asked.
    fn asked(
        &self,
        wanted: &Wanted<'_>,
        ways: &Ways,
        past: &Past,
        held: Held,
        tell: &mut dyn FnMut(&Progress),
    ) -> Result<Result<(Pending, ErrandLock<'_>), Ended>, OpError> {
        let rests: Vec<Option<Rest>> = ways.ways.iter().map(|way| past.rest(&way.name())).collect();
        let rules = Rules { is_by_hand: wanted.is_by_hand, aborts: ways.aborts };
        let chain = match Chain::begin(&rests, rules, self.clock.now()) {
            Ok(chain) => chain,
            Err(Rest { until, why, .. }) => {
                return Ok(Err(Ended::Resting { until: Millis(until), why }));
            }
        };
        let Held { mut session, previous } = held;
        if wanted.is_by_hand {
            session.apply(Event::FoldAsked { range: None });
        }
        let lock = match ErrandLock::take(&*self.store, &*self.clock, wanted.session)? {
            Ok(lock) => lock,
            Err(holder) => return Ok(Err(Ended::Busy(holder))),
        };
        let today = self.clock.now().to_string();
        let from_scratch = wanted.is_by_hand && !wanted.focus.trim().is_empty();
        let job = |window| {
            let wish = wish_of(wanted.focus, &today, window);
            session.summary_job(&SummaryOptions { previous: previous.clone(), from_scratch, ..wish })
        };
        let mut tell = |progress: &Progress| {
            lock.prolong(&*self.clock);
            tell(progress);
        };
        let Some(tried) = drive(&job, ways, chain, &mut tell) else { return Ok(Err(Ended::Nothing)) };
        Ok(Ok((Pending { tried, rests, session }, lock)))
    }

    /// Notes what came of it: the summary behind the newest message, and who rests.
    fn keep_tried(
        &self,
        wanted: &Wanted<'_>,
        ways: &Ways,
        pending: &Pending,
        tip: Option<NodeId>,
    ) -> Result<Ended, OpError> {
        let Pending { tried, rests, session } = pending;
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
        if !tried.missed.is_empty() || !tried.flaws.is_empty() {
            notes.push(Note::Tried {
                by: tried.outcome.is_ok().then(|| ways.ways[tried.at].name()),
                missed: tried.missed.iter().map(|(_, missed)| missed.name().to_owned()).collect(),
                flaws: tried.flaws.iter().map(|flaw| flaw.name().to_owned()).collect(),
            });
        }
        let mut ended = ended(tried, ways, &**session).1;
        let has_changed = matches!(ended, Ended::Written(_) | Ended::Digest(_));
        if wanted.is_by_hand && has_changed {
            notes.push(Note::FoldAsked { from: None, to: None });
        }
        for _ in 0..MAX_ATTEMPTS {
            let row = self.row(wanted.session)?;
            let is_there = tip == row.tip || leads_to(&*self.store, tip, row.tip)?;
            if !is_there {
                // Its client went back behind what was summarised, and on from there.
                notes.retain(|note| matches!(note, Note::Rested { .. } | Note::Tried { .. }));
                ended = if has_changed { Ended::Overtaken } else { ended };
            }
            let ops = notes.iter().map(|note| Op::AddEvent(wanted.session.clone(), note.event())).collect();
            let expect = vec![(wanted.session.clone(), row.tip)];
            match self.store.commit(&Batch { at: self.clock.now(), expected_tips: expect, ops }) {
                Err(StoreError::Conflict(_)) => {}
                written => return Ok(written.map(|_| ended)?),
            }
        }
        Err(StoreError::Conflict(wanted.session.clone()).into())
    }
}

/// A conversation that is not kept: its summary, if one was written, and how it ended. A person waits for it.
pub fn summarise_alone(
    session: &dyn fanfold_core::Engine,
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
    session.apply(Event::FoldAsked { range: None });
    let today = now.to_string();
    let job = |window| session.summary_job(&wish_of(focus, &today, window));
    match drive(&job, ways, chain, tell) {
        Some(tried) => ended(&tried, ways, &*session),
        None => (None, Ended::Nothing),
    }
}

/// What a summary should be like that a model writes who reads so much at once. Secrets stay here.
fn wish_of(focus: &str, today: &str, window: Tokens) -> SummaryOptions {
    let focus = Some(focus.trim()).filter(|focus| !focus.is_empty()).map(str::to_owned);
    let today = today.split(' ').next().unwrap_or_default().to_owned();
    SummaryOptions { focus, today, redact, ..SummaryOptions::new(window) }
}

fn ended(tried: &Tried, ways: &Ways, session: &dyn fanfold_core::Engine) -> (Option<Summary>, Ended) {
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

//! What the provider says of a request: that it is too long, or what it counted. Both are noted, so that a replay
//! arrives at the same view.

use fanfold_core::{ProviderUsage, Tokens};
use fanfold_store::{Op, SessionId};

use crate::engine::{Engine, OpError};
use crate::follow::room::{corrected, least};
use crate::log::notes::{Note, Noted};
use crate::log::session_log::Past;
use crate::sessions::state::{CachedSession, State};

/// What the provider says of a request that it refused for its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Refused {
    /// What was counted here for what was sent, if anything was.
    pub counted: Option<Tokens>,
    /// What it takes at most, if it said so.
    pub limit: Option<Tokens>,
    /// What it counted, if it said so.
    pub size: Option<Tokens>,
}

/// From this share of the room on a count tells something: in short requests what providers add weighs too much.
const TELLING: u64 = 8;

impl Engine {
    /// Takes note that the provider refused a request for its length. The next request of the session folds harder.
    pub fn refused(&self, session: &SessionId, refused: &Refused) -> Result<(), OpError> {
        let known = self.known(session)?;
        let mut notes = Vec::new();
        // It counted more than its limit, even where it does not say how much. Far more than was counted here it was
        // not the messages alone: some add the answer that is asked for.
        let is_near = |limit: &Tokens| refused.counted.is_some_and(|counted| limit.0 * 4 <= counted.0 * 5);
        let over = refused.limit.filter(is_near).map(|limit| limit + Tokens(1));
        let size = refused.size.or(over);
        if let Some((counted, size)) = refused.counted.zip(size).filter(|(counted, size)| size > counted)
            && let Some(permille) =
                corrected(known.permille, known.least, counted, size).filter(|new| *new > known.permille)
        {
            notes.push(Note::Corrected { permille, at_once: true });
        }
        notes.push(Note::Refused { limit: refused.limit.map(|limit| limit.0) });
        self.write(notes.iter().map(|note| Op::AddEvent(session.clone(), note.event())).collect())
    }

    /// Takes note that what was thought to be refused for its length was refused for something else: the room is again what
    /// it was told to be. What was folded stays folded.
    pub fn not_refused(&self, session: &SessionId) -> Result<(), OpError> {
        let past = Past::read(&*self.store, session)?;
        let n_notes = past.notes.len();
        let told = past.era(n_notes).and_then(|era| {
            let since: Vec<(u32, usize)> = (era..n_notes).map(|note| (0, note)).collect();
            State::recorded_budget(&past, &since, era)
        });
        let Some(told) = told else { return Ok(()) };
        let note = Note::Budget { window: told.window().0, reserve: told.reserve().0 };
        self.write(vec![Op::AddEvent(session.clone(), note.event())])
    }

    /// Takes note of what the provider counted for a request of which `counted` was counted here. Nothing is written
    /// unless that changes something.
    pub fn used(&self, session: &SessionId, counted: Tokens, usage: &ProviderUsage) -> Result<(), OpError> {
        let known = self.known(session)?;
        let mut notes = Vec::new();
        let is_telling = usage.input > Tokens::ZERO && counted.0.saturating_mul(TELLING) >= known.room.0;
        if is_telling && let Some(permille) = corrected(known.permille, known.least, counted, usage.input) {
            notes.push(Note::Corrected { permille, at_once: false });
        }
        let is_cold = usage.input > Tokens::ZERO && usage.cached + usage.written == Tokens::ZERO;
        if is_cold && known.should_be_warm {
            notes.push(Note::Cooled { later: true });
        }
        if notes.is_empty() {
            return Ok(());
        }
        self.write(notes.iter().map(|note| Op::AddEvent(session.clone(), note.event())).collect())
    }

    fn known(&self, session: &SessionId) -> Result<Known, OpError> {
        if let Some(known) = self.cache.peek(session, Known::of) {
            return Ok(known);
        }
        let past = Past::read(&*self.store, session)?;
        Ok(Known { permille: past.permille(), least: least(true), room: Tokens::ZERO, should_be_warm: false })
    }
}

/// What is known of a session when its provider speaks.
struct Known {
    permille: u32,
    /// The least that is believed.
    least: u32,
    room: Tokens,
    /// Whether the provider should have the beginning of the last request in its cache.
    should_be_warm: bool,
}

impl Known {
    fn of(cached: &CachedSession) -> Known {
        let CachedSession { state, log } = cached;
        let session = &state.followed.session;
        let is_long = |prices: &fanfold_core::Prices| session.transcript().total() >= prices.minimum;
        let has_grown = !state.has_new_fold && log.ends_with_request();
        let should_be_warm = session.prices().is_some_and(is_long) && has_grown;
        Known {
            permille: state.followed.room.permille(),
            least: least(session.counter().is_exact()),
            room: session.budget().room(),
            should_be_warm: should_be_warm && state.pending.is_some(),
        }
    }
}

impl Past {
    /// How many tokens the provider counts for a thousand of ours.
    fn permille(&self) -> u32 {
        let era = self.era(self.notes.len()).unwrap_or(0);
        let found = self.in_force().filter_map(|(i, noted)| match noted.note {
            Note::Corrected { permille, .. } if i >= era => Some(permille),
            _ => None,
        });
        found.last().unwrap_or(1000)
    }

    /// Whether the newest that happened is an earlier request: then the one that left since begins with what it sent.
    fn ends_with_request(&self) -> bool {
        let mut last = self.notes.iter().rev();
        let is_news = |noted: &&Noted| {
            let note = &noted.note;
            !matches!(
                note,
                Note::Corrected { .. }
                    | Note::Beside(_)
                    | Note::Summarised(_)
                    | Note::Rested { .. }
                    | Note::Tried { .. }
            )
        };
        last.find(is_news).is_some_and(|noted| matches!(noted.note, Note::Request(_)))
    }
}

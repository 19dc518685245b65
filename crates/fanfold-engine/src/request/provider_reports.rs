//! Reports of the provider: a refusal of a request for its length, and token counts. Both are recorded, so that a
//! replay builds the same view.

use fanfold_core::{Prices, ProviderUsage, Tokens};
use fanfold_store::{Op, SessionId};

use crate::engine::{OpError, SessionEngine};
use crate::follow::session_budget::{EQUAL_PERMILLE, min_permille, new_permille};
use crate::follow::session_state::{CachedSession, SessionState};
use crate::log::events::{LoggedEvent, SessionEvent};
use crate::log::recall_offer::RecallOffer;
use crate::log::session_log::SessionLog;

/// A provider's refusal of a request for its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LengthRefusal {
    /// The local count of the request, if it was counted.
    pub counted: Option<Tokens>,
    /// The provider's limit, if it reported one.
    pub limit: Option<Tokens>,
    /// The provider's count, if it reported one.
    pub size: Option<Tokens>,
}

/// A request is long enough to compare token counts if it has at least 1 / this of the room. In shorter requests, the
/// tokens that providers add have too much weight.
const MIN_ROOM_DIVISOR: u64 = 8;

impl SessionEngine {
    /// Records that the provider refused a request for its length. The next request of the session is folded harder.
    pub fn record_refusal(&self, session: &SessionId, refusal: &LengthRefusal) -> Result<(), OpError> {
        let calibration = self.calibration(session)?;
        let mut events = Vec::new();
        // A provider that reports only its limit counted more than the limit. If the limit is far above the local
        // count, the provider also counted something else, such as the requested output.
        let is_near = |limit: &Tokens| refusal.counted.is_some_and(|counted| limit.0 * 4 <= counted.0 * 5);
        let above_limit = refusal.limit.filter(is_near).map(|limit| limit + Tokens(1));
        let size = refusal.size.or(above_limit);
        let current = calibration.permille;
        if let Some((counted, size)) = refusal.counted.zip(size).filter(|(counted, size)| size > counted)
            && let Some(permille) =
                new_permille(current, calibration.min_permille, counted, size).filter(|new| *new > current)
        {
            events.push(SessionEvent::TokenRatio { permille, at_once: true });
        }
        events.push(SessionEvent::Refused { limit: refusal.limit.map(|limit| limit.0) });
        self.record_report(session, &events)
    }

    /// Restores the configured budget, after a refusal turned out not to be about the length. Folds are kept.
    pub fn retract_refusal(&self, session: &SessionId) -> Result<(), OpError> {
        let log = SessionLog::read(&*self.store, session)?;
        let n_events = log.events.len();
        let configured = log.terms_event(n_events).and_then(|terms| {
            let since: Vec<(u32, usize)> = (terms..n_events).map(|event| (0, event)).collect();
            SessionState::recorded_budget(&log, &since, terms)
        });
        let Some(budget) = configured else { return Ok(()) };
        let event = SessionEvent::Budget { window: budget.window().0, reserve: budget.reserve().0 };
        self.write(vec![Op::AddEvent(session.clone(), event.encode())])
    }

    /// Compares the provider's token counts of a request with the local count, `counted`. An event is recorded only
    /// if the token ratio or the state of the provider's cache changes.
    pub fn record_usage(
        &self,
        session: &SessionId,
        counted: Tokens,
        usage: &ProviderUsage,
    ) -> Result<(), OpError> {
        let calibration = self.calibration(session)?;
        let mut events = Vec::new();
        let is_long = counted.0.saturating_mul(MIN_ROOM_DIVISOR) >= calibration.room.0;
        if usage.input > Tokens::ZERO
            && is_long
            && let Some(permille) =
                new_permille(calibration.permille, calibration.min_permille, counted, usage.input)
        {
            events.push(SessionEvent::TokenRatio { permille, at_once: false });
        }
        let is_cold = usage.input > Tokens::ZERO && usage.cached + usage.written == Tokens::ZERO;
        if is_cold && calibration.should_be_warm {
            events.push(SessionEvent::CacheExpired { later: true });
        }
        if events.is_empty() {
            return Ok(());
        }
        self.record_report(session, &events)
    }

    /// Withdraws a recall tool that the provider rejects. From the next request on, stubs have this hint instead.
    pub fn withdraw_recall_tool(&self, session: &SessionId, hint: &str) -> Result<(), OpError> {
        let offer = RecallOffer { tool: None, hint: Some(hint.to_owned()) };
        self.write(vec![Op::AddEvent(session.clone(), SessionEvent::RecallOffered(offer).encode())])
    }

    /// Records events with the session, in memory if the store fails.
    fn record_report(&self, session: &SessionId, events: &[SessionEvent]) -> Result<(), OpError> {
        let ops = || events.iter().map(|event| Op::AddEvent(session.clone(), event.encode())).collect();
        match self.write(ops()) {
            Err(OpError::Store(error)) if self.hold_cached(session, &error) => self.write(ops()),
            written => written,
        }
    }

    fn calibration(&self, session: &SessionId) -> Result<Calibration, OpError> {
        if let Some(calibration) = self.cache.peek(session, Calibration::new) {
            return Ok(calibration);
        }
        let log = SessionLog::read(&*self.store, session)?;
        Ok(Calibration {
            permille: log.permille(),
            min_permille: min_permille(true),
            room: Tokens::ZERO,
            should_be_warm: false,
        })
    }
}

/// The local figures that a provider's report is compared with.
struct Calibration {
    permille: u32,
    min_permille: u32,
    room: Tokens,
    /// True if the provider should have the beginning of the last request in its cache.
    should_be_warm: bool,
}

impl Calibration {
    fn new(cached: &CachedSession) -> Calibration {
        let CachedSession { state, log } = cached;
        let session = &state.followed.session;
        let is_long = |prices: &Prices| session.transcript().total() >= prices.minimum;
        let has_grown = !state.has_new_fold && log.ends_with_request();
        let should_be_warm = session.prices().is_some_and(is_long) && has_grown;
        Calibration {
            permille: state.followed.session_budget.permille(),
            min_permille: min_permille(session.counter().is_exact()),
            room: session.budget().room(),
            should_be_warm: should_be_warm && state.pending.is_some(),
        }
    }
}

impl SessionLog {
    /// The provider's tokens per 1000 local tokens.
    fn permille(&self) -> u32 {
        let terms = self.terms_event(self.events.len()).unwrap_or(0);
        let ratios = self.events_in_force().filter_map(|(i, logged)| match logged.event {
            SessionEvent::TokenRatio { permille, .. } if i >= terms => Some(permille),
            _ => None,
        });
        ratios.last().unwrap_or(EQUAL_PERMILLE)
    }

    /// Returns true if the newest event that affects the view is a request. The request after it then begins with the
    /// same bytes.
    fn ends_with_request(&self) -> bool {
        let affects_view = |logged: &&LoggedEvent| {
            !matches!(
                logged.event,
                SessionEvent::TokenRatio { .. }
                    | SessionEvent::HiddenRecalls(_)
                    | SessionEvent::Summarised(_)
                    | SessionEvent::ModelPaused { .. }
                    | SessionEvent::SummaryAttempted { .. }
            )
        };
        let newest = self.events.iter().rev().find(affects_view);
        newest.is_some_and(|logged| matches!(logged.event, SessionEvent::Request(_)))
    }
}

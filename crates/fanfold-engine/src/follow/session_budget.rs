//! The budget of a session: the configured one, lowered after refusals and converted to local tokens.

use fanfold_core::{Budget, Tokens};

use crate::log::events::SessionEvent;

/// A token ratio of 1: provider and local counter report the same number of tokens.
pub(crate) const EQUAL_PERMILLE: u32 = 1000;

/// The budget of a session in the provider's tokens, with the ratio that converts it to local tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionBudget {
    configured: Budget,
    /// The provider's own limit, if a refusal stated or implied one.
    limit: Option<Tokens>,
    /// The provider's tokens per 1000 local tokens.
    permille: u32,
}

impl SessionBudget {
    pub(crate) fn new(configured: Budget) -> SessionBudget {
        SessionBudget { configured, limit: None, permille: EQUAL_PERMILLE }
    }

    /// Applies an event of the session; events that do not concern the budget have no effect.
    pub(crate) fn apply(&mut self, event: &SessionEvent) {
        match event {
            SessionEvent::Budget { window, reserve } => {
                self.configure(Budget::with_reserve(Tokens(*window), Tokens(*reserve)));
            }
            SessionEvent::TokenRatio { permille, .. } => self.set_ratio(*permille),
            SessionEvent::Refused { limit } => self.lower_limit(limit.map(Tokens)),
            _ => {}
        }
    }

    /// Replaces the configured budget and drops the limit, which was found under the previous one.
    fn configure(&mut self, configured: Budget) {
        (self.configured, self.limit) = (configured, None);
    }

    /// Lowers the limit after a refusal. A refusal that states no limit lowers it by 10 %.
    fn lower_limit(&mut self, limit: Option<Tokens>) {
        let window = self.window();
        self.limit = Some(limit.unwrap_or(window.permille(900)).min(window));
    }

    fn set_ratio(&mut self, permille: u32) {
        self.permille = permille.max(1);
    }

    /// The provider's tokens per 1000 local tokens.
    pub(crate) fn permille(&self) -> u32 {
        self.permille
    }

    fn window(&self) -> Tokens {
        let window = self.configured.window();
        self.limit.map_or(window, |limit| limit.min(window))
    }

    /// The budget in local tokens, rounded down so that it never exceeds the provider's.
    pub(crate) fn budget(&self) -> Budget {
        let window = self.window();
        let max_reserve = if self.limit.is_some() { window.permille(250) } else { window };
        let reserve = self.configured.reserve().min(max_reserve);
        let to_local = |tokens: Tokens| {
            Tokens(tokens.0.saturating_mul(u64::from(EQUAL_PERMILLE)) / u64::from(self.permille))
        };
        let (window, room) = (to_local(window), to_local(window - reserve));
        Budget::with_reserve(window, window - room)
    }
}

/// Ratios are multiples of this, so that a small difference does not change the view.
const STEP: u32 = 20;
/// A ratio that is too high by less than this is kept.
const SLACK: u32 = 60;
/// Maximum ratio: a higher count includes more than the request.
const MAX_PERMILLE: u32 = 3000;
/// Minimum ratio for a local estimate. A local count that is exact has the minimum of 1: a provider that reports less
/// leaves something out, and would be sent more than it accepts.
const MIN_PERMILLE_OF_ESTIMATE: u32 = 850;

/// The minimum ratio for a local counter.
pub(crate) fn min_permille(is_exact: bool) -> u32 {
    if is_exact { EQUAL_PERMILLE } else { MIN_PERMILLE_OF_ESTIMATE }
}

/// The new ratio after a provider counted `theirs` tokens where the local counter has `ours`, or `None` if the
/// current ratio is still right.
pub(crate) fn new_permille(current: u32, min: u32, ours: Tokens, theirs: Tokens) -> Option<u32> {
    let exact = theirs.0.saturating_mul(u64::from(EQUAL_PERMILLE)).div_ceil(ours.0.max(1));
    let exact = u32::try_from(exact).unwrap_or(u32::MAX).clamp(min, MAX_PERMILLE);
    // Rounded up: a ratio that is too low leads to refusals, one that is too high only leaves some tokens unused.
    let stepped = exact.div_ceil(STEP) * STEP;
    let is_still_right = exact <= current && current < exact + SLACK;
    (!is_still_right && stepped != current).then_some(stepped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session_budget(window: u64, reserve: u64) -> SessionBudget {
        SessionBudget::new(Budget::with_reserve(Tokens(window), Tokens(reserve)))
    }

    #[test]
    fn budget_combines_configuration_limit_and_ratio() {
        let mut budget = session_budget(1000, 100);
        assert_eq!(budget.budget(), Budget::with_reserve(Tokens(1000), Tokens(100)));
        budget.set_ratio(1250);
        assert_eq!(budget.budget(), Budget::with_reserve(Tokens(800), Tokens(80)));
        budget.lower_limit(Some(Tokens(500)));
        assert_eq!(budget.budget(), Budget::with_reserve(Tokens(400), Tokens(80)));
        budget.lower_limit(None);
        assert_eq!(budget.budget().window(), Tokens(360));
        budget.configure(Budget::with_reserve(Tokens(2000), Tokens(0)));
        assert_eq!(budget.budget(), Budget::with_reserve(Tokens(1600), Tokens(0)));
    }

    #[test]
    fn a_limit_above_the_window_has_no_effect() {
        let mut budget = session_budget(1000, 0);
        budget.lower_limit(Some(Tokens(5000)));
        assert_eq!(budget.budget().room(), Tokens(1000));
    }

    #[test]
    fn a_new_ratio_is_never_too_low_and_stays_for_small_differences() {
        for (min, theirs) in (500..2_000).flat_map(|theirs| [(850, theirs), (1000, theirs)]) {
            let new = |current, theirs| new_permille(current, min, Tokens(1000), Tokens(theirs));
            let current = new(1000, theirs).unwrap_or(1000);
            let expected = theirs.max(u64::from(min));
            assert!(
                u64::from(current) >= expected && u64::from(current) < expected + 60,
                "{theirs} {current}"
            );
            assert_eq!(new(current, theirs), None);
            // A new ratio is kept if the next count is 3 % lower.
            let stepped = new(1, theirs).unwrap();
            assert_eq!(new(stepped, theirs - 30), None, "{theirs} {stepped}");
        }
        assert_eq!(new_permille(1000, 1000, Tokens(0), Tokens(9)), Some(3000));
    }
}

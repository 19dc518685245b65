//! How much room a session has: what it was told, what its provider refused, and how the provider counts.

use fanfold_core::{Budget, Tokens};

use crate::log::notes::Note;

/// The provider counts as fanfold does.
const EVEN: u32 = 1000;

/// How much room a session has, in the provider's tokens, and what that is in ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    told: Budget,
    /// What the provider takes at most, if it said so or was found out.
    limit: Option<Tokens>,
    /// So many tokens the provider counts for a thousand of ours.
    permille: u32,
}

impl Room {
    pub(crate) fn of(told: Budget) -> Room {
        Room { told, limit: None, permille: EVEN }
    }

    /// Takes what happened to a session, as far as it has to do with its room.
    pub(crate) fn take(&mut self, note: &Note) {
        match note {
            Note::Budget { window, reserve } => {
                self.tell(Budget::with_reserve(Tokens(*window), Tokens(*reserve)));
            }
            Note::Corrected { permille, .. } => self.correct(*permille),
            Note::Refused { limit } => self.refuse(limit.map(Tokens)),
            _ => {}
        }
    }

    /// Another window or reserve. What was refused before, another model refused.
    pub(crate) fn tell(&mut self, told: Budget) {
        (self.told, self.limit) = (told, None);
    }

    /// The provider refused. Without a number that is taken as a tenth less than what was thought.
    pub(crate) fn refuse(&mut self, limit: Option<Tokens>) {
        let window = self.window();
        self.limit = Some(limit.unwrap_or(window.permille(900)).min(window));
    }

    /// The provider counts so many tokens for a thousand of ours.
    pub(crate) fn correct(&mut self, permille: u32) {
        self.permille = permille.max(1);
    }

    /// How many tokens the provider counts for a thousand of ours.
    pub(crate) fn permille(&self) -> u32 {
        self.permille
    }

    fn window(&self) -> Tokens {
        self.limit.map_or(self.told.window(), |limit| limit.min(self.told.window()))
    }

    /// The room in our tokens: rounded down, so that it is never more than the provider's.
    pub(crate) fn budget(&self) -> Budget {
        let window = self.window();
        let most = if self.limit.is_some() { window.permille(250) } else { window };
        let reserve = self.told.reserve().min(most);
        let ours =
            |theirs: Tokens| Tokens(theirs.0.saturating_mul(u64::from(EVEN)) / u64::from(self.permille));
        let (window, room) = (ours(window), ours(window - reserve));
        Budget::with_reserve(window, window - room)
    }
}

/// Corrections are of this size, so that a view does not change for every small difference.
const STEP: u32 = 20;
/// One that is too careful by less than this stays.
const SLACK: u32 = 60;
/// Beyond it something else was counted than what was sent.
const MOST: u32 = 3000;
/// So much fewer tokens than an estimate a provider may count. Fewer than an exact count it can't: one that says so
/// leaves something out, and would be sent more than it takes.
const LEAST_OF_ESTIMATE: u32 = 850;

/// The least that a provider is believed to count for a thousand of ours.
pub(crate) fn least(is_exact: bool) -> u32 {
    if is_exact { EVEN } else { LEAST_OF_ESTIMATE }
}

/// The correction after the provider counted so many tokens for what we counted, and at least so many for a thousand;
/// none if the one there is still holds.
pub(crate) fn corrected(now: u32, least: u32, ours: Tokens, theirs: Tokens) -> Option<u32> {
    let exact = theirs.0.saturating_mul(u64::from(EVEN)).div_ceil(ours.0.max(1));
    let exact = u32::try_from(exact).unwrap_or(u32::MAX).clamp(least, MOST);
    // Rounded up: what the provider counts more would be refused, and what it counts less is only unused.
    let stepped = exact.div_ceil(STEP) * STEP;
    let still_holds = exact <= now && now < exact + SLACK;
    (!still_holds && stepped != now).then_some(stepped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(window: u64, reserve: u64) -> Room {
        Room::of(Budget::with_reserve(Tokens(window), Tokens(reserve)))
    }

    #[test]
    fn what_was_told_refused_and_corrected_goes_together() {
        let mut room = room(1000, 100);
        assert_eq!(room.budget(), Budget::with_reserve(Tokens(1000), Tokens(100)));
        room.correct(1250);
        assert_eq!(room.budget(), Budget::with_reserve(Tokens(800), Tokens(80)));
        room.refuse(Some(Tokens(500)));
        assert_eq!(room.budget(), Budget::with_reserve(Tokens(400), Tokens(80)));
        room.refuse(None);
        assert_eq!(room.budget().window(), Tokens(360));
        room.tell(Budget::with_reserve(Tokens(2000), Tokens(0)));
        assert_eq!(room.budget(), Budget::with_reserve(Tokens(1600), Tokens(0)));
    }

    #[test]
    fn a_limit_above_the_window_changes_nothing() {
        let mut room = room(1000, 0);
        room.refuse(Some(Tokens(5000)));
        assert_eq!(room.budget().room(), Tokens(1000));
    }

    #[test]
    fn a_correction_is_never_too_small_and_does_not_flutter() {
        for (least, theirs) in (500..2_000).flat_map(|theirs| [(850, theirs), (1000, theirs)]) {
            let corrected = |now, theirs| corrected(now, least, Tokens(1000), Tokens(theirs));
            let now = corrected(1000, theirs).unwrap_or(1000);
            let believed = theirs.max(u64::from(least));
            assert!(u64::from(now) >= believed && u64::from(now) < believed + 60, "{theirs} {now}");
            assert_eq!(corrected(now, theirs), None);
            // One that was made stays for three hundredths less.
            let stepped = corrected(1, theirs).unwrap();
            assert_eq!(corrected(stepped, theirs - 30), None, "{theirs} {stepped}");
        }
        assert_eq!(corrected(1000, 1000, Tokens(0), Tokens(9)), Some(3000));
    }
}

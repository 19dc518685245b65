//! Which pressure level a host reports after a request.

use crate::fold::receipt::Notice;
use crate::model::budget::{Budget, Pressure};
use crate::model::tokens::Tokens;

/// The level to report, if it is new. A request with a long history passes all levels, and folds undo some of them.
pub fn new_pressure_level(notices: &[Notice], view: Tokens, room: Tokens) -> Option<Pressure> {
    let last = notices.iter().rev().find_map(|notice| match notice {
        Notice::Pressure(level) => Some(*level),
        Notice::Resting { .. } | Notice::NothingToFold(_) => None,
    });
    let now = Pressure::new(view, Budget::with_reserve(room, Tokens::ZERO));
    last.filter(|last| *last == now && now > Pressure::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_only_the_current_level() {
        let level = |levels: &[Pressure], view: u64| {
            let notices: Vec<Notice> = levels.iter().copied().map(Notice::Pressure).collect();
            new_pressure_level(&notices, Tokens(view), Tokens(100))
        };
        use Pressure::{Info, Notice as Some75, Warning};
        assert_eq!(level(&[Info, Some75, Warning], 90), Some(Warning));
        assert_eq!(level(&[Info, Some75, Warning], 40), None, "a fold came after it");
        assert_eq!(level(&[Info, Some75, Warning, Info], 61), Some(Info), "and then it filled again");
        assert_eq!(level(&[], 90), None, "it was reported before");
    }
}

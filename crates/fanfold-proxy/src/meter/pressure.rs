//! Warnings about the fill level of a session, in the log and as counts.
//!
//! The engine reports each level once until a fold. The model does not see them.

use fanfold_core::{Budget, Notice, Pressure, Tokens, thousands};
use fanfold_store::SessionId;

use super::Meter;

impl Meter {
    /// Logs and counts the notices of a session whose view takes `view` of `room` tokens.
    pub fn report_pressure(&self, session: &SessionId, notices: &[Notice], view: Tokens, room: Tokens) {
        if let Some(level) = new_pressure_level(notices, view, room) {
            self.count_pressure(session, level, view, room);
        }
        for notice in notices {
            match notice {
                Notice::Resting { in_the_way } => {
                    let largest = in_the_way.first();
                    let tokens = largest.map_or(0, |largest| largest.tokens.0);
                    let what = largest.map_or("", |largest| largest.what.as_str());
                    tracing::warn!(
                        target: "fanfold::pressure",
                        session = session.0.as_str(),
                        "folding is paused: the last two folds saved less than a tenth; most tokens are in {what} ({} tokens)",
                        thousands(tokens),
                    );
                }
                // The proxy requests no folds.
                Notice::Pressure(_) | Notice::NothingToFold(_) => {}
            }
        }
    }

    fn count_pressure(&self, session: &SessionId, level: Pressure, view: Tokens, room: Tokens) {
        self.counters.pressure(level.name());
        let percent = view.0 * 100 / room.0.max(1);
        let (session, pressure) = (session.0.as_str(), level.name());
        let words = format!("{percent} % of the room is full: {view} of {room} tokens");
        // The log level of an event has to be constant.
        match level {
            Pressure::None => {}
            Pressure::Info | Pressure::Notice => {
                tracing::info!(target: "fanfold::pressure", session, pressure, "{words}");
            }
            Pressure::Warning | Pressure::Critical => {
                tracing::warn!(target: "fanfold::pressure", session, pressure, "{words}");
            }
        }
    }
}

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

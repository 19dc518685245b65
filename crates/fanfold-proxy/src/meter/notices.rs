//! What a person should hear of a session, in the log and as counts: how full its room is, and that folding rests.
//!
//! The engine tells each level once until a fold. None of it goes to the model.

use fanfold_core::{Budget, Notice, Pressure, Tokens, thousands};
use fanfold_store::SessionId;

use super::Meter;

impl Meter {
    /// Takes what the engine wants people to hear of a session whose view costs so much of so much room.
    pub fn noticed(&self, session: &SessionId, notices: &[Notice], view: Tokens, room: Tokens) {
        if let Some(level) = level_to_tell(notices, view, room) {
            self.pressed(session, level, view, room);
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
                        "folding rests, for the last two folds won less than a tenth; the most is in {what} ({} tokens)",
                        thousands(tokens),
                    );
                }
                // Nobody asks for a fold here.
                Notice::Pressure(_) | Notice::NothingToFold(_) => {}
            }
        }
    }

    fn pressed(&self, session: &SessionId, level: Pressure, view: Tokens, room: Tokens) {
        self.counters.pressed(level.name());
        let percent = view.0 * 100 / room.0.max(1);
        let (session, pressure) = (session.0.as_str(), level.name());
        let words = format!("{percent} % of the room is full: {view} of {room} tokens");
        // The levels of a log are fixed where it is written.
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

/// The level that people should hear of, if one is news: a request that brings a long history passes all of them on its
/// way, and folds overtake them.
pub fn level_to_tell(notices: &[Notice], view: Tokens, room: Tokens) -> Option<Pressure> {
    let last = notices.iter().rev().find_map(|notice| match notice {
        Notice::Pressure(level) => Some(*level),
        Notice::Resting { .. } | Notice::NothingToFold(_) => None,
    });
    let now = Pressure::of(view, Budget::with_reserve(room, Tokens::ZERO));
    last.filter(|last| *last == now && now > Pressure::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_level_that_stands_is_told() {
        let told = |levels: &[Pressure], view: u64| {
            let notices: Vec<Notice> = levels.iter().map(|level| Notice::Pressure(*level)).collect();
            level_to_tell(&notices, Tokens(view), Tokens(100))
        };
        use Pressure::{Info, Notice as Some75, Warning};
        assert_eq!(told(&[Info, Some75, Warning], 90), Some(Warning));
        assert_eq!(told(&[Info, Some75, Warning], 40), None, "a fold came after it");
        assert_eq!(told(&[Info, Some75, Warning, Info], 61), Some(Info), "and then it filled again");
        assert_eq!(told(&[], 90), None, "it was told before");
    }
}

//! What a person should hear of a session, in the log and as counts: how full its room is, and that folding rests.
//!
//! The engine tells each level once until a fold. None of it goes to the model.

use fanfold_core::{Notice, Pressure, Tokens, thousands};
use fanfold_store::SessionId;

use super::Meter;

impl Meter {
    /// Takes what the engine wants people to hear of a session whose view costs so much of so much room.
    pub fn noticed(&self, session: &SessionId, notices: &[Notice], view: Tokens, room: Tokens) {
        for notice in notices {
            match notice {
                Notice::Pressure(level) => self.pressed(session, *level, view, room),
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
                Notice::NothingToFold(_) => {}
            }
        }
    }

    fn pressed(&self, session: &SessionId, level: Pressure, view: Tokens, room: Tokens) {
        self.counters.pressed(level_name(level));
        let percent = view.0 * 100 / room.0.max(1);
        let (session, level_name) = (session.0.as_str(), level_name(level));
        let words = format!("{percent} % of the room is full: {view} of {room} tokens");
        // The levels of a log are fixed where it is written.
        match level {
            Pressure::None => {}
            Pressure::Info | Pressure::Notice => {
                tracing::info!(target: "fanfold::pressure", session, level = level_name, "{words}");
            }
            Pressure::Warning | Pressure::Critical => {
                tracing::warn!(target: "fanfold::pressure", session, level = level_name, "{words}");
            }
        }
    }
}

/// The word for a level, as labels have it.
pub(super) fn level_name(level: Pressure) -> &'static str {
    match level {
        Pressure::None => "none",
        Pressure::Info => "info",
        Pressure::Notice => "notice",
        Pressure::Warning => "warning",
        Pressure::Critical => "critical",
    }
}

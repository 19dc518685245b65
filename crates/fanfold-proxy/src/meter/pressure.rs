//! Warnings about the fill level of a session, in the log and as counts.
//!
//! The engine reports each level once until a fold. The model does not see them.

use fanfold_core::{Notice, Pressure, Tokens, new_pressure_level, thousands};
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
                    let what = largest.map_or("", |largest| largest.description.as_str());
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

//! How much room there is, and how full it is.

use std::fmt;
use std::str::FromStr;

use crate::model::tokens::Tokens;

/// The model's window and what of it is kept for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    window: Tokens,
    reserve: Tokens,
}

impl Budget {
    const MOST_RESERVED: Tokens = Tokens(8_192);

    /// A budget that keeps the usual part of the window for the answer: a quarter, at most 8,192 tokens.
    pub fn of_window(window: Tokens) -> Budget {
        Budget { window, reserve: window.permille(250).min(Self::MOST_RESERVED) }
    }

    /// A budget with a reserve of the caller's choice, which may not fill the window.
    pub fn with_reserve(window: Tokens, reserve: Tokens) -> Budget {
        Budget { window, reserve: reserve.min(window) }
    }

    /// The budget in a smaller window. What is kept for the answer shrinks with it: no more than a quarter.
    pub fn narrowed(self, window: Tokens) -> Budget {
        let window = window.min(self.window);
        Budget::with_reserve(window, self.reserve.min(window.permille(250)))
    }

    /// The model's window.
    pub fn window(self) -> Tokens {
        self.window
    }

    /// What is kept for the answer.
    pub fn reserve(self) -> Tokens {
        self.reserve
    }

    /// What a request may cost at most.
    pub fn room(self) -> Tokens {
        self.window - self.reserve
    }

    /// The smallest window with so much room: the usual reserve grows with it, one of the caller's choice stays.
    pub fn window_for(self, room: Tokens) -> Tokens {
        // What is kept of a budget is its two numbers, so the usual reserve is known by its size.
        let is_usual = self == Budget::of_window(self.window);
        if !is_usual {
            return room + self.reserve;
        }
        // Three quarters of it, rounded up, are room while the reserve is a quarter.
        let of_quarter = if room == Tokens::ZERO { 0 } else { (room.0 - 1) * 4 / 3 + 1 };
        Tokens(of_quarter).min(room + Self::MOST_RESERVED)
    }
}

/// From which part of the room on a conversation is folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// From 60 % on.
    Aggressive,
    /// From 80 % on.
    Moderate,
    /// From 95 % on.
    Light,
    /// Never: a request that does not fit is refused.
    Off,
    /// From a share in per mille on; zero folds at every step.
    From(u32),
}

impl Strategy {
    /// The names a person may give.
    pub const NAMES: [&'static str; 4] = ["aggressive", "moderate", "light", "off"];

    /// The tokens from which on a view is folded, or none if it never is.
    pub fn trigger(self, budget: Budget) -> Option<Tokens> {
        self.share().map(|share| budget.room().permille(share))
    }

    /// The part of the room, in per mille, from which on a view is folded, or none if it never is.
    pub(crate) fn share(self) -> Option<u32> {
        match self {
            Strategy::Aggressive => Some(600),
            Strategy::Moderate => Some(800),
            Strategy::Light => Some(950),
            Strategy::From(share) => Some(share.min(1000)),
            Strategy::Off => None,
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Strategy::Aggressive => f.write_str("aggressive"),
            Strategy::Moderate => f.write_str("moderate"),
            Strategy::Light => f.write_str("light"),
            Strategy::Off => f.write_str("off"),
            Strategy::From(share) => write!(f, "from {} %", f64::from(*share) / 10.0),
        }
    }
}

/// Why a text names no strategy.
#[derive(Debug, thiserror::Error)]
#[error("there is no strategy `{0}`; there are aggressive, moderate, light and off")]
pub struct StrategyError(String);

impl FromStr for Strategy {
    type Err = StrategyError;

    fn from_str(name: &str) -> Result<Strategy, StrategyError> {
        match name {
            "aggressive" => Ok(Strategy::Aggressive),
            "moderate" => Ok(Strategy::Moderate),
            "light" => Ok(Strategy::Light),
            "off" => Ok(Strategy::Off),
            other => Err(StrategyError(other.to_owned())),
        }
    }
}

/// What a fold is made for, beside the strategy's threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cadence {
    /// When it pays, by the provider's prices.
    Cost,
    /// Only when the view no longer fits.
    Window,
}

impl Cadence {
    /// The names a person may give.
    pub const NAMES: [&'static str; 2] = ["cost", "window"];
}

impl fmt::Display for Cadence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cadence::Cost => "cost",
            Cadence::Window => "window",
        })
    }
}

/// Why a text names no cadence.
#[derive(Debug, thiserror::Error)]
#[error("there is no cadence `{0}`; there are cost and window")]
pub struct CadenceError(String);

impl FromStr for Cadence {
    type Err = CadenceError;

    fn from_str(name: &str) -> Result<Cadence, CadenceError> {
        match name {
            "cost" => Ok(Cadence::Cost),
            "window" => Ok(Cadence::Window),
            other => Err(CadenceError(other.to_owned())),
        }
    }
}

/// How full the room is. Told to people, once for each level until a fold, and never to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Pressure {
    /// Under 60 %.
    #[default]
    None,
    /// From 60 %.
    Info,
    /// From 75 %.
    Notice,
    /// From 85 %.
    Warning,
    /// From 95 %.
    Critical,
}

impl Pressure {
    /// The level of a view of this size.
    pub fn of(tokens: Tokens, budget: Budget) -> Pressure {
        let room = budget.room();
        match () {
            () if tokens >= room.permille(950) => Pressure::Critical,
            () if tokens >= room.permille(850) => Pressure::Warning,
            () if tokens >= room.permille(750) => Pressure::Notice,
            () if tokens >= room.permille(600) => Pressure::Info,
            () => Pressure::None,
        }
    }

    /// The word for it, as labels have it.
    pub fn name(self) -> &'static str {
        match self {
            Pressure::None => "none",
            Pressure::Info => "info",
            Pressure::Notice => "notice",
            Pressure::Warning => "warning",
            Pressure::Critical => "critical",
        }
    }
}

impl fmt::Display for Pressure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_a_quarter_and_at_most_8192() {
        assert_eq!(Budget::of_window(Tokens(16_000)).room(), Tokens(12_000));
        assert_eq!(Budget::of_window(Tokens(200_000)).room(), Tokens(191_808));
        assert_eq!(Budget::with_reserve(Tokens(10), Tokens(20)).room(), Tokens::ZERO);
    }

    #[test]
    fn a_smaller_window_has_the_reserve_of_its_size() {
        let wide = Budget::of_window(Tokens(400_000));
        for window in [1_000, 4_000, 8_000, 10_000, 32_000, 100_000] {
            assert_eq!(wide.narrowed(Tokens(window)), Budget::of_window(Tokens(window)));
        }
        assert_eq!(wide.narrowed(Tokens(500_000)), wide);
        let own = Budget::with_reserve(Tokens(100_000), Tokens(1_000));
        assert_eq!(own.narrowed(Tokens(8_000)).reserve(), Tokens(1_000));
        assert_eq!(own.narrowed(Tokens(2_000)).reserve(), Tokens(500));
    }

    #[test]
    fn the_smallest_window_for_a_room_has_it_and_one_token_less_has_not() {
        let usual = |window| Budget::of_window(Tokens(window));
        let chosen = |window| Budget::with_reserve(Tokens(window), Tokens(100));
        for room in (1..60_000).step_by(7).map(Tokens) {
            for (budget, of) in [(usual(4_000), &usual as &dyn Fn(u64) -> Budget), (chosen(4_000), &chosen)] {
                let window = budget.window_for(room);
                assert!(of(window.0).room() >= room, "{window} for {room}");
                assert!(of(window.0 - 1).room() < room, "{window} for {room}");
            }
        }
        assert_eq!(usual(4_000).window_for(Tokens::ZERO), Tokens::ZERO);
    }

    #[test]
    fn thresholds_rise_with_the_window() {
        for strategy in [Strategy::Aggressive, Strategy::Moderate, Strategy::Light, Strategy::From(500)] {
            let mut last = Tokens::ZERO;
            for window in (0..2_000_000).step_by(997) {
                let trigger = strategy.trigger(Budget::of_window(Tokens(window))).expect("folds");
                assert!(trigger >= last, "{strategy} at {window}");
                last = trigger;
            }
        }
    }

    #[test]
    fn pressure_has_four_levels() {
        let budget = Budget::with_reserve(Tokens(100), Tokens::ZERO);
        let levels: Vec<_> = [59, 60, 75, 85, 95].map(|n| Pressure::of(Tokens(n), budget).to_string()).into();
        assert_eq!(levels, ["none", "info", "notice", "warning", "critical"]);
    }
}

//! The token budget of a request, when to fold, and how full the budget is.

use std::fmt;
use std::str::FromStr;

use crate::model::tokens::Tokens;

/// The model's context window and the part of it reserved for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    window: Tokens,
    reserve: Tokens,
}

impl Budget {
    const MOST_RESERVED: Tokens = Tokens(8_192);

    /// A budget with the default reserve: a quarter of the window, at most 8,192 tokens.
    pub fn of_window(window: Tokens) -> Budget {
        Budget { window, reserve: window.permille(250).min(Self::MOST_RESERVED) }
    }

    /// A budget with a given reserve, limited to the window.
    pub fn with_reserve(window: Tokens, reserve: Tokens) -> Budget {
        Budget { window, reserve: reserve.min(window) }
    }

    /// The budget in a smaller window, with the reserve limited to a quarter of that window.
    pub fn narrowed(self, window: Tokens) -> Budget {
        let window = window.min(self.window);
        Budget::with_reserve(window, self.reserve.min(window.permille(250)))
    }

    /// The model's context window.
    pub fn window(self) -> Tokens {
        self.window
    }

    /// The tokens reserved for the answer.
    pub fn reserve(self) -> Tokens {
        self.reserve
    }

    /// The maximum cost of a request.
    pub fn room(self) -> Tokens {
        self.window - self.reserve
    }

    /// The smallest window with this room. A default reserve grows with the window; a given reserve stays the same.
    pub(crate) fn window_for(self, room: Tokens) -> Tokens {
        // A budget does not store how its reserve was chosen, so the default is recognised by its size.
        let has_default_reserve = self == Budget::of_window(self.window);
        if !has_default_reserve {
            return room + self.reserve;
        }
        // While the reserve is a quarter of the window, the room is the other three quarters, rounded up.
        let with_quarter = if room == Tokens::ZERO { 0 } else { (room.0 - 1) * 4 / 3 + 1 };
        Tokens(with_quarter).min(room + Self::MOST_RESERVED)
    }
}

/// The share of the room above which a conversation is folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// 60 %.
    Aggressive,
    /// 80 %.
    Moderate,
    /// 95 %.
    Light,
    /// Never: a request that does not fit is refused.
    Off,
    /// A share in per mille; zero folds at every step.
    Threshold(u32),
}

impl Strategy {
    /// The names accepted by `from_str`.
    pub const NAMES: [&'static str; 4] = ["aggressive", "moderate", "light", "off"];

    /// The view size above which a view is folded; `None` if it never is.
    pub fn trigger(self, budget: Budget) -> Option<Tokens> {
        self.share().map(|share| budget.room().permille(share))
    }

    /// The share of the room, in per mille, above which a view is folded; `None` if it never is.
    pub(crate) fn share(self) -> Option<u32> {
        match self {
            Strategy::Aggressive => Some(600),
            Strategy::Moderate => Some(800),
            Strategy::Light => Some(950),
            Strategy::Threshold(share) => Some(share.min(1000)),
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
            Strategy::Threshold(share) => write!(f, "from {} %", f64::from(*share) / 10.0),
        }
    }
}

/// The text is not the name of a strategy.
#[derive(Debug, thiserror::Error)]
#[error("unknown strategy `{0}`: expected aggressive, moderate, light or off")]
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

/// The condition for a fold, in addition to the strategy's threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cadence {
    /// Fold when that lowers the cost at the provider's prices.
    Cost,
    /// Fold only when the view no longer fits.
    Window,
}

impl Cadence {
    /// The names accepted by `from_str`.
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

/// The text is not the name of a cadence.
#[derive(Debug, thiserror::Error)]
#[error("unknown cadence `{0}`: expected cost or window")]
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

/// The weight of content that a fold for economy takes out of view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quality {
    /// No weight: the lowest bill without recalls.
    Economy,
    /// The price of the recalls that are expected.
    Balanced,
    /// Entries are folded only when the window is full.
    Faithful,
}

impl Quality {
    /// The names accepted by `from_str`.
    pub const NAMES: [&'static str; 3] = ["economy", "balanced", "faithful"];
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Quality::Economy => "economy",
            Quality::Balanced => "balanced",
            Quality::Faithful => "faithful",
        })
    }
}

/// The text is not the name of a quality.
#[derive(Debug, thiserror::Error)]
#[error("unknown quality `{0}`: expected economy, balanced or faithful")]
pub struct QualityError(String);

impl FromStr for Quality {
    type Err = QualityError;

    fn from_str(name: &str) -> Result<Quality, QualityError> {
        match name {
            "economy" => Ok(Quality::Economy),
            "balanced" => Ok(Quality::Balanced),
            "faithful" => Ok(Quality::Faithful),
            other => Err(QualityError(other.to_owned())),
        }
    }
}

/// How full the room is. Each level is reported to the user once until the next fold, and never to the model.
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
    pub fn new(tokens: Tokens, budget: Budget) -> Pressure {
        let room = budget.room();
        match () {
            () if tokens >= room.permille(950) => Pressure::Critical,
            () if tokens >= room.permille(850) => Pressure::Warning,
            () if tokens >= room.permille(750) => Pressure::Notice,
            () if tokens >= room.permille(600) => Pressure::Info,
            () => Pressure::None,
        }
    }

    /// The name of the level, as used in metrics labels.
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
    fn default_reserve_is_a_quarter_and_at_most_8192() {
        assert_eq!(Budget::of_window(Tokens(16_000)).room(), Tokens(12_000));
        assert_eq!(Budget::of_window(Tokens(200_000)).room(), Tokens(191_808));
        assert_eq!(Budget::with_reserve(Tokens(10), Tokens(20)).room(), Tokens::ZERO);
    }

    #[test]
    fn reserve_is_a_quarter_of_a_narrowed_window() {
        let wide = Budget::of_window(Tokens(400_000));
        for window in [1_000, 4_000, 8_000, 10_000, 32_000, 100_000] {
            assert_eq!(wide.narrowed(Tokens(window)), Budget::of_window(Tokens(window)));
        }
        assert_eq!(wide.narrowed(Tokens(500_000)), wide);
        let given = Budget::with_reserve(Tokens(100_000), Tokens(1_000));
        assert_eq!(given.narrowed(Tokens(8_000)).reserve(), Tokens(1_000));
        assert_eq!(given.narrowed(Tokens(2_000)).reserve(), Tokens(500));
    }

    #[test]
    fn window_for_returns_the_smallest_sufficient_window() {
        let with_default = |window| Budget::of_window(Tokens(window));
        let with_given = |window| Budget::with_reserve(Tokens(window), Tokens(100));
        for room in (1..60_000).step_by(7).map(Tokens) {
            let cases: [(Budget, &dyn Fn(u64) -> Budget); 2] =
                [(with_default(4_000), &with_default), (with_given(4_000), &with_given)];
            for (budget, budget_of) in cases {
                let window = budget.window_for(room);
                assert!(budget_of(window.0).room() >= room, "{window} for {room}");
                assert!(budget_of(window.0 - 1).room() < room, "{window} for {room}");
            }
        }
        assert_eq!(with_default(4_000).window_for(Tokens::ZERO), Tokens::ZERO);
    }

    #[test]
    fn thresholds_rise_with_the_window() {
        for strategy in [Strategy::Aggressive, Strategy::Moderate, Strategy::Light, Strategy::Threshold(500)]
        {
            let mut last = Tokens::ZERO;
            for window in (0..2_000_000).step_by(997) {
                let trigger =
                    strategy.trigger(Budget::of_window(Tokens(window))).expect("this strategy folds");
                assert!(trigger >= last, "{strategy} at {window}");
                last = trigger;
            }
        }
    }

    #[test]
    fn pressure_has_four_levels() {
        let budget = Budget::with_reserve(Tokens(100), Tokens::ZERO);
        let levels: Vec<_> =
            [59, 60, 75, 85, 95].map(|n| Pressure::new(Tokens(n), budget).to_string()).into();
        assert_eq!(levels, ["none", "info", "notice", "warning", "critical"]);
    }
}

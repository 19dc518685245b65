//! The inputs of the model.

use crate::actions::Verb;

/// An input of the model, by its position among the weights. Quantities are logarithms to base 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feature {
    /// The intercept.
    Base,
    Path,
    Number,
    Quoted,
    /// The agent wrote it before it appeared anywhere else.
    Coined,
    CoinedPath,
    /// The agent used it, and how often.
    Used,
    Uses,
    /// The kind of call whose result contained it last.
    Read,
    List,
    Search,
    Run,
    Other,
    /// The tokens since its last appearance, in thousands.
    Age,
    /// The smallest number of atoms in a part with this atom.
    FewestInPart,
    /// The number of lines of its last part with this atom.
    Lines,
    /// The tokens since the agent used any atom of its last part.
    PartUsed,
    /// Its last part belongs to a call with a target; the agent's uses of the target and the tokens since the last one.
    Subject,
    SubjectUses,
    SubjectUsed,
    /// The share of its words that users wrote.
    UserWords,
}

/// The names of the features in the order of the weights.
pub(super) const FEATURES: [&str; Feature::COUNT] = [
    "base",
    "a path",
    "a number",
    "quoted",
    "coined by the agent",
    "a path coined by the agent",
    "used by the agent",
    "its uses",
    "from reading",
    "from listing",
    "from searching",
    "from running",
    "from another result",
    "since it appeared",
    "fewest atoms in a part with it",
    "lines of its part with it",
    "since its part was used",
    "its part belongs to a call",
    "uses of the call's target",
    "since the target was used",
    "words that users wrote",
];

impl Feature {
    /// The number of features.
    pub(super) const COUNT: usize = Feature::UserWords as usize + 1;

    /// The feature for results of calls with this verb; edits have none.
    pub(super) fn of_result(verb: Verb) -> Option<Feature> {
        match verb {
            Verb::Read => Some(Feature::Read),
            Verb::List => Some(Feature::List),
            Verb::Search => Some(Feature::Search),
            Verb::Run => Some(Feature::Run),
            Verb::Edit | Verb::Write => None,
            Verb::Fetch | Verb::Ask | Verb::Plan | Verb::Other => Some(Feature::Other),
        }
    }
}

//! What the scorer looks at in an atom.

use crate::deed::Verb;

/// One thing that speaks for or against an atom, by its position among the weights. What is counted in tokens or pieces
/// enters by its logarithm to base 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feature {
    /// What holds for all.
    Base,
    Path,
    Number,
    Quoted,
    /// The agent wrote it first.
    Coined,
    CoinedPath,
    /// The agent used it at all, and how often.
    Used,
    Uses,
    /// It stood last in the result of a call that did so.
    Read,
    List,
    Search,
    Run,
    Other,
    /// How long ago it stood somewhere, in thousands of tokens.
    Age,
    /// How many atoms stood beside it, where they were fewest.
    FewestBeside,
    /// In how many lines of its last piece it stands.
    Lines,
    /// How long ago the agent used something of that piece.
    PieceUsed,
    /// That piece belongs to a call that asked for something; how often and how long ago the agent wrote that.
    Subject,
    SubjectUses,
    SubjectUsed,
    /// Which share of its words people used, too.
    Asked,
}

/// Their names in the order of the weights.
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
    "since it stood somewhere",
    "atoms beside it, at fewest",
    "lines of its piece it stands in",
    "since its piece was used",
    "its piece belongs to a call",
    "uses of what the call asked for",
    "since that was used",
    "its words that people used",
];

impl Feature {
    /// How many there are.
    pub(super) const COUNT: usize = Feature::Asked as usize + 1;

    /// What the result of a call is. That of an edit says nothing by itself.
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

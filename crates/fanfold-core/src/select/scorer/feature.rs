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
    /// Its last part belongs to a call with a target.
    Subject,
    /// The number of times that the agent used that target.
    SubjectUses,
    /// The tokens since the agent used that target.
    SubjectUsed,
    /// The share of its words that users wrote.
    UserWords,
}

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

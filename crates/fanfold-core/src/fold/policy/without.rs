//! A policy without one of its mechanisms: to see what each of them adds.

use crate::fold::policy::{Digest, Head, Policy, Scorer};
use crate::model::tokens::Tokens;

/// Takes a mechanism out of a policy.
type LeaveOut = fn(&mut Policy);

/// What can be left out of a policy, beside its passes, and in a few words what there is instead.
const MECHANISMS: [(&str, LeaveOut); 13] = [
    ("weights: uses alone", |policy| policy.choice.scorer = Scorer::ByUses),
    ("weights: age alone", |policy| policy.choice.scorer = Scorer::ByAge),
    ("weights: all alike", |policy| policy.choice.scorer = Scorer::Even),
    ("each atom once", |policy| policy.choice.is_once = false),
    ("deeds and failures", |policy| policy.choice.has_tellings = false),
    ("lines of files", |policy| policy.choice.has_copies = false),
    ("first step", |policy| policy.head = Head::FirstTurn { steps: 0, share: 0 }),
    ("newest words", |policy| policy.anchors = false),
    ("segments that stay", |policy| {
        if let Digest::Segments { behind, .. } = &mut policy.digest {
            *behind = 0;
        }
    }),
    ("large arrivals", |policy| policy.arrival = 1000),
    ("low mark", |policy| policy.low_mark = 1000),
    ("rest", |policy| policy.rests = false),
    (Policy::OF_COST, |policy| {
        if let Some(economy) = &mut policy.economy {
            economy.again = Tokens(u64::MAX);
        }
    }),
];

impl Policy {
    /// The mechanism that works only where prices are known.
    #[doc(hidden)]
    pub const OF_COST: &'static str = "lines above";

    /// What can be left out of it: its passes first, in the order in which they run.
    #[doc(hidden)]
    pub fn mechanisms(&self) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = Vec::new();
        for pass in self.stages.iter().flat_map(|stage| &stage.passes) {
            if !names.contains(&pass.name) {
                names.push(pass.name);
            }
        }
        names.extend(MECHANISMS.iter().map(|(name, _)| name));
        names
    }

    /// The policy without one of its mechanisms; nothing where it has none of that name.
    #[doc(hidden)]
    pub fn without(mut self, mechanism: &str) -> Option<Policy> {
        if let Some((_, leave_out)) = MECHANISMS.iter().find(|(name, _)| *name == mechanism) {
            leave_out(&mut self);
            return Some(self);
        }
        if !self.mechanisms().contains(&mechanism) {
            return None;
        }
        for stage in &mut self.stages {
            stage.passes.retain(|pass| pass.name != mechanism);
        }
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::policy::Choice;

    #[test]
    fn each_mechanism_can_be_left_out() {
        let policy = Policy::fanfold();
        for name in policy.mechanisms() {
            let without = policy.clone().without(name).expect("it has it");
            assert_ne!(format!("{policy:?}"), format!("{without:?}"), "{name}");
        }
        assert!(policy.without("magic").is_none());
        assert!(Policy::named("rules").is_some_and(|rules| rules.choice == Choice::default()));
    }
}

//! The policy `window`: a sliding window that drops the oldest entries first.

use crate::fold::passes::DROP;
use crate::fold::policy::{Policy, Stage, Tail};
use crate::model::budget::Strategy;
use crate::presets::{everything_old, last_resort};

impl Policy {
    /// A sliding window.
    pub fn window() -> Policy {
        let drop = Stage { tail: 0, reach: everything_old(), ..Stage::new("oldest out", vec![DROP]) };
        Policy {
            strategy: Strategy::Threshold(1000),
            low_mark: 1000,
            tail: Tail { share: 0, steps: 1, results: 0, ceiling: 1000 },
            stages: vec![drop, last_resort()],
            ..Policy::base("window")
        }
    }
}

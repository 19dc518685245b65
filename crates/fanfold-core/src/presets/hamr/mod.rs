//! The policy `hamr`: the last three tool calls verbatim, older results to stubs, then summaries in stages.

pub(crate) mod stubs;

use crate::fold::policy::{Digest, Policy, Stage, SummaryCounts, Tail};
use crate::model::budget::Strategy;
use crate::presets::hermes::summary;
use crate::presets::{everything_old, last_resort};

impl Policy {
    /// The policy of Hamr.
    pub(crate) fn hamr() -> Policy {
        let summary = |name, tail| Stage {
            tail,
            reach: everything_old(),
            above: 1000,
            goal: Some(1000),
            ..Stage::new(name, vec![stubs::PASS, summary::PASS])
        };
        Policy {
            strategy: Strategy::Threshold(600),
            tail: Tail { share: 400, steps: 3, results: 0, ceiling: 1000 },
            digest: Digest::Summary {
                share: 150,
                counts: SummaryCounts { asks: 4, actions: 10, files: 20, errors: 4, texts: 5 },
            },
            stages: vec![
                Stage { tail: 0, ..Stage::new("stubs", vec![stubs::PASS]) },
                summary("summary", 1000),
                summary("summary, smaller tail", 600),
                summary("summary, smallest tail", 400),
                summary("minimal summary", 250),
                last_resort(),
            ],
            long_result_chars: 2_048,
            ..Policy::base("hamr")
        }
    }
}

//! The policy `hermes`: the built-in compressor of Hermes without its model. At half of the window, everything between
//! a head of three messages and a tail becomes one static summary.

pub(crate) mod summary;

use crate::fold::passes::{MEDIA, REASONING};
use crate::fold::policy::{Digest, Head, Policy, Stage, SummaryCounts, Tail};
use crate::model::budget::Strategy;
use crate::presets::{everything_old, last_resort};

impl Policy {
    /// The built-in compressor of Hermes.
    pub(crate) fn hermes() -> Policy {
        let normal = Stage::new("normal", vec![MEDIA, REASONING, summary::PASS]);
        Policy {
            strategy: Strategy::Threshold(500),
            tail: Tail { share: 200, steps: 1, results: 0, ceiling: 1000 },
            head: Head::Messages(3),
            digest: Digest::Summary {
                share: 150,
                counts: SummaryCounts { asks: 12, actions: 30, files: 40, errors: 8, texts: 8 },
            },
            stages: vec![Stage { reach: everything_old(), ..normal }, last_resort()],
            long_result_chars: 200,
            ..Policy::base("hermes")
        }
    }
}

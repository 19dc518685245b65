//! How much each feature counts, in logarithms of odds. Written by `cargo xtask weights --write`.
//!
//! A logistic regression over the recorded conversations that are not kept aside; the use of an atom that the agent
//! coined counts 0.05, since what it coined it can coin again.
//!
//! | | cases | log-loss | area under the curve |
//! | --- | --- | --- | --- |
//! | fitted to | 2597476 | 0.0790 | 0.8542 |
//! | kept aside | 485153 | 0.0828 | 0.8607 |

use crate::select::scorer::Feature;

/// By feature.
pub(super) const WEIGHTS: [f32; Feature::COUNT] = [
    -2.1,  // base
    -0.12, // a path
    -0.65, // a number
    -0.12, // quoted
    -3.01, // coined by the agent
    0.51,  // a path coined by the agent
    0.93,  // used by the agent
    0.55,  // its uses
    0.28,  // from reading
    -1.26, // from listing
    -0.89, // from searching
    -0.91, // from running
    0.86,  // from another result
    -0.21, // since it appeared
    -0.19, // fewest atoms in a part with it
    0.38,  // lines of its part with it
    -0.14, // since its part was used
    0.84,  // its part belongs to a call
    -0.35, // uses of the call's target
    -0.13, // since the target was used
    0.52,  // words that users wrote
];

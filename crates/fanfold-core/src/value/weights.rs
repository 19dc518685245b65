//! How much each feature counts, in logarithms of odds. Written by `cargo xtask weights --write`.
//!
//! A logistic regression over the recorded conversations that are not kept aside; the use of an atom that the agent
//! coined counts 0.05, since what it coined it can coin again.
//!
//! | | cases | log-loss | area under the curve |
//! | --- | --- | --- | --- |
//! | fitted to | 2551365 | 0.0769 | 0.8510 |
//! | kept aside | 476526 | 0.0812 | 0.8571 |

use super::Feature;

/// By feature.
pub(super) const WEIGHTS: [f32; Feature::COUNT] = [
    -1.94, // base
    -0.09, // a path
    -0.77, // a number
    -0.11, // quoted
    -3.0,  // coined by the agent
    0.5,   // a path coined by the agent
    0.77,  // used by the agent
    0.56,  // its uses
    0.32,  // from reading
    -1.22, // from listing
    -0.82, // from searching
    -0.86, // from running
    0.88,  // from another result
    -0.22, // since it stood somewhere
    -0.2,  // atoms beside it, at fewest
    0.39,  // lines of its piece it stands in
    -0.14, // since its piece was used
    0.89,  // its piece belongs to a call
    -0.37, // uses of what the call asked for
    -0.13, // since that was used
];

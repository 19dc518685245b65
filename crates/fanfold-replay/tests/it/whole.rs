//! While everything fits, a view is the whole conversation.

use fanfold_core::Policy;
use fanfold_replay::{CommonKnowledge, ReplayOptions, read, replay};
use fanfold_testkit::generators::bodies::{BodyFormat, rich};
use fanfold_tokens::o200k;

use crate::options;

#[test]
fn a_conversation_that_fits_is_sent_unchanged() {
    let options =
        ReplayOptions { policies: vec![Policy::fanfold(), Policy::window()], ..options(&[1_000_000]) };
    let mut n_replayed = 0;
    for kind in BodyFormat::ALL {
        for record in (0..40).flat_map(|seed| read(&rich(kind, seed), "x")) {
            for outcome in replay(&record, &options, &CommonKnowledge::new(), o200k()) {
                let sums = outcome.sums;
                n_replayed += 1;
                assert_eq!((sums.rewrites, sums.folds, sums.pressed.calls), (0, 0, 0), "{kind:?}");
                assert_eq!(sums.early.read, sums.early.atoms, "{kind:?}");
                assert_eq!(sums.repeats_folded, 0, "{kind:?}");
                assert!((sums.bill.dollars - sums.bill_raw.dollars).abs() < 1e-9, "{kind:?}");
            }
        }
    }
    assert!(n_replayed > 200, "{n_replayed}");
}

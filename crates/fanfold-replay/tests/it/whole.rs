//! Where everything fits, a view is the conversation: nothing is lost, and nothing is saved.

use fanfold_core::Policy;
use fanfold_replay::{Known, Terms, read, replay};
use fanfold_testkit::bodies::{Kind, rich};
use fanfold_tokens::o200k;

use crate::terms;

#[test]
fn what_fits_is_sent_as_it_came() {
    let terms = Terms { policies: vec![Policy::fanfold(), Policy::window()], ..terms(&[1_000_000]) };
    let mut n_replayed = 0;
    for kind in Kind::ALL {
        for record in (0..40).flat_map(|seed| read(&rich(kind, seed), "x")) {
            for outcome in replay(&record, &terms, &Known::new(), o200k()) {
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

//! No recorded conversation costs more with economic folds than without, at any price, at its end or at any request. A
//! small excess is allowed for the rounding of providers.

use std::collections::BTreeSet;

use fanfold_core::Policy;
use fanfold_replay::{CommonKnowledge, Price, PriceTable, Record, ReplayOptions, read, replay};
use fanfold_testkit::trajectories::{Trajectory, trajectories};
use fanfold_tokens::o200k;
use serde_json::json;

use crate::options;

/// The built-in prices that differ in more than their base.
fn all_prices() -> Vec<Price> {
    let mut seen = BTreeSet::new();
    let is_new = |price: &&Price| {
        let ratios = format!(
            "{} {} {:?} {} {} {:?}",
            price.write,
            price.read,
            price.matching,
            price.minimum,
            price.step,
            price.cliffs.iter().map(|cliff| cliff.above).collect::<Vec<_>>()
        );
        seen.insert(ratios)
    };
    PriceTable::built_in().all().filter(is_new).cloned().collect()
}

fn record_of(trajectory: &Trajectory) -> Record {
    let messages: Vec<serde_json::Value> = trajectory
        .messages
        .iter()
        .map(|message| serde_json::from_str(message.get()).expect("a message is JSON"))
        .collect();
    let line = json!({ "id": trajectory.id, "source": trajectory.source, "messages": messages }).to_string();
    read(&line, "x").remove(0)
}

#[test]
fn recorded_conversations_never_cost_more() {
    let Some(trajectories) = trajectories() else { return };
    // A debug build is slow, so it replays a sample.
    let step = if cfg!(debug_assertions) { 12 } else { 1 };
    let records: Vec<Record> = trajectories.iter().step_by(step).map(record_of).collect();
    let mut n_folds = 0;
    for price in all_prices() {
        let name = price.name.clone();
        let options = ReplayOptions {
            policies: vec![Policy::fanfold()],
            price: Some(price),
            has_receipts: false,
            ..options(&[1_000_000])
        };
        for outcome in
            records.iter().flat_map(|record| replay(record, &options, &CommonKnowledge::new(), o200k()))
        {
            let sums = &outcome.sums;
            assert!(sums.worst <= 1.01, "{} at {name}: {:.4} times as much", outcome.id, sums.worst);
            let ratio = sums.bill.dollars / sums.bill_raw.dollars;
            // The effects of rounding average out in long conversations.
            let max = if outcome.raw >= 48_000 { 1.0 } else { 1.002 };
            assert!(ratio <= max, "{} at {name}: {ratio:.5} in the end", outcome.id);
            n_folds += sums.folds;
        }
    }
    assert!(n_folds > 50, "there were only {n_folds} folds");
}

//! The results of a replay as JSON.

use fanfold_replay::{ReplayOptions, ReplayOutcome, ReplayedFold, rows};
use serde_json::{Value, json};

use crate::report::receipt_json;

/// The sums of each policy and window, and of each conversation.
pub(super) fn all(terms: &ReplayOptions, outcomes: &[ReplayOutcome]) -> Value {
    let name = |policy: usize| terms.policies[policy].name;
    let summary: Value = rows(outcomes, |_| true)
        .iter()
        .map(|row| {
            let mut value = json!(row);
            value["policy"] = json!(name(row.policy));
            value
        })
        .collect();
    let results: Value = outcomes
        .iter()
        .map(|outcome| {
            let fold = |fold: &ReplayedFold| {
                let receipt = receipt_json::receipt(&fold.receipt);
                json!({ "reply": fold.reply, "dollars": fold.dollars, "receipt": receipt })
            };
            let folds: Option<Value> = terms.has_receipts.then(|| outcome.folds.iter().map(fold).collect());
            json!({
                "id": outcome.id,
                "source": outcome.source,
                "policy": name(outcome.policy),
                "window": outcome.window,
                "raw": outcome.raw,
                "sums": outcome.sums,
                "folds": folds,
            })
        })
        .collect();
    json!({ "summary": summary, "results": results })
}

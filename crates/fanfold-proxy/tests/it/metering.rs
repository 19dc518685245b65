//! Sessions in the status: pressure, overflows and averages of folds. The model sees none of it.

use std::collections::BTreeSet;

use fanfold_proxy::meter::SessionStatus;
use serde_json::json;

use crate::setting::{Stage, StageOptions, chat, long_chat, outcome};

fn only_session(stage: &Stage) -> SessionStatus {
    let mut sessions = stage.meter.status().sessions;
    assert_eq!(sessions.len(), 1);
    sessions.remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn pressure_is_logged_and_not_sent_to_the_model() {
    let stage = Stage::new(StageOptions { window: 2_000, ..StageOptions::default() }).await;
    let messages = long_chat(60);
    let mut seen = Vec::new();
    for n in (2..messages.len()).step_by(2) {
        assert_eq!(stage.chat(&chat(&messages[..n])).await.status(), 200);
        let session = only_session(&stage);
        let levels = [(950, "critical"), (850, "warning"), (750, "notice"), (600, "info")];
        let is_reached = |permille: u64| session.sent >= session.room * permille / 1000;
        let reached = levels.into_iter().find(|(permille, _)| is_reached(*permille));
        let expected = reached.map_or("none", |(_, level)| level);
        assert_eq!(session.pressure, expected, "{} of {}", session.sent, session.room);
        seen.push((expected, session.folds));
    }
    // Each level is reported once per fold, for any number of requests.
    let reported: BTreeSet<(&str, u64)> =
        seen.iter().filter(|(level, _)| *level != "none").copied().collect();
    let text = stage.meter.prometheus();
    let counted: u64 = text
        .lines()
        .filter(|line| line.starts_with("fanfold_pressure_total{"))
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .sum();
    assert!(reported.len() > 3 && seen.len() > reported.len() + 10, "{seen:?}");
    assert!(counted >= 3 && counted <= reported.len() as u64, "{counted} {reported:?}\n{text}");
    for request in stage.upstream.seen() {
        let body = String::from_utf8_lossy(&request.body);
        assert!(!body.contains("of the room") && !body.contains("pressure"), "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overflow_shows_the_required_size() {
    let stage = Stage::new(StageOptions { window: 1_500, ..StageOptions::default() }).await;
    let messages = [
        json!({ "role": "system", "content": "word ".repeat(1_900) }),
        json!({ "role": "user", "content": "What is left?" }),
    ];
    assert_eq!(outcome(&stage.chat(&chat(&messages)).await), "as it came: overflow");
    let session = only_session(&stage);
    assert_eq!((session.window, session.room), (1_500, 1_500));
    assert!(session.needs.is_some_and(|needs| needs > 1_900) && session.came > 1_900, "{session:?}");
    assert_eq!(session.pressure, "critical");
    assert_eq!(stage.meter.status().totals.dollars.saved, 0.0);
    // After it fits again, no required size is shown.
    let fits = [json!({ "role": "user", "content": "What is left?" })];
    assert_eq!(outcome(&stage.chat(&chat(&fits)).await), "whole");
    assert!(stage.meter.status().sessions.iter().any(|session| session.needs.is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn status_has_averages_of_folds() {
    let stage = Stage::new(StageOptions { window: 1_500, ..StageOptions::default() }).await;
    let mut messages = long_chat(30);
    messages.push(json!({ "role": "assistant", "content": "It is stage 7." }));
    messages.push(json!({ "role": "user", "content": "Then mend it." }));
    for n in [10, 30, 50, messages.len()] {
        assert_eq!(stage.chat(&chat(&messages[..n])).await.status(), 200);
    }
    let totals = stage.meter.status().totals;
    let folding = totals.folding;
    assert_eq!((folding.turns, only_session(&stage).turns), (2, 2));
    assert!(totals.folds > 0 && folding.folds_per_100_turns == totals.folds as f64 * 50.0, "{folding:?}");
    let saved = totals.tokens.folded_away as f64 / totals.folds as f64;
    assert!((folding.saved_per_fold - saved).abs() < 1.0, "{folding:?} {saved}");
    assert!(folding.ratio > 0.0 && folding.ratio < 0.9, "{folding:?}");
    let text = stage.meter.prometheus();
    assert!(
        text.contains("fanfold_turns_total 2") && text.contains("fanfold_fold_saved_tokens_count"),
        "{text}"
    );
}

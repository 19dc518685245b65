//! Prompts contain no secrets, and secrets in answers are redacted before they are stored.

use std::sync::{Arc, Mutex};

use fanfold_engine::JobOutcome;
use fanfold_testkit::fakes::summaries::good_summary;
use serde_json::json;

use super::fixture::{Fixture, WINDOW};
use super::stored::models;
use crate::setup::{chat, id, long_chat, request, terms};

#[test]
fn secrets_are_neither_sent_nor_stored_in_summaries() {
    // Assembled at run time, so that secret scanners do not report them.
    let first = format!("sk-{}", "not4real9but7long2enough".repeat(2));
    let second = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0".repeat(2));
    let fixture = Fixture::new();
    let mut messages = long_chat(200);
    messages.truncate(130);
    for (i, secret) in [(4, &first), (20, &second)] {
        let text = messages[i - 1]["content"].as_str().unwrap_or_default().to_owned();
        messages[i - 1]["content"] = json!(format!("{text}\nexport OPENAI_API_KEY={secret}\n"));
    }
    request(&fixture.engine, "t", &chat(&messages), &terms("fanfold", WINDOW));
    let prompts = Arc::new(Mutex::new(String::new()));
    let (seen, leaked) = (Arc::clone(&prompts), first.clone());
    let models = models(move |prompt| {
        let mut seen = seen.lock().unwrap();
        seen.push_str(&prompt.system);
        seen.push_str(&prompt.user);
        // A model that knows the secret from elsewhere writes it into the summary.
        Ok(good_summary(&prompt.user)
            .replace("## Active State\n", &format!("## Active State\nthe key is {leaked}\n")))
    });
    let task = fanfold_engine::SummaryTask { session: &id("t"), focus: "", is_by_hand: true };
    let outcome = fixture.engine.summarise(&task, &models, &mut |_| {}).unwrap();
    assert!(matches!(&outcome, JobOutcome::Written(_)), "{outcome}");
    let prompts = prompts.lock().unwrap();
    assert!(prompts.contains("[redacted") && !prompts.contains(&first) && !prompts.contains(&second));
    let events = fixture.engine.store().events(&id("t"), 0).unwrap();
    let summary = events.iter().find(|event| event.kind == "summarised").unwrap();
    assert!(summary.body.contains("the key is [redacted"), "{}", summary.body);
    assert!(!summary.body.contains(&first));
}

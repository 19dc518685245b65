//! What leaves has no secrets in it, and what comes back has none either.

use std::sync::{Arc, Mutex};

use fanfold_engine::Ended;
use fanfold_testkit::fakes::summaries::good_summary;
use serde_json::json;

use super::kept::ways;
use super::stage::{Stage, WINDOW};
use crate::setting::{chat, id, long_chat, request, terms};

#[test]
fn secrets_stay_here() {
    // Made up here, so that no scanner takes them for real ones.
    let first = format!("sk-{}", "not4real9but7long2enough".repeat(2));
    let second = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0".repeat(2));
    let stage = Stage::new();
    let mut messages = long_chat(200);
    messages.truncate(130);
    for (i, secret) in [(4, &first), (20, &second)] {
        let text = messages[i - 1]["content"].as_str().unwrap_or_default().to_owned();
        messages[i - 1]["content"] = json!(format!("{text}\nexport OPENAI_API_KEY={secret}\n"));
    }
    request(&stage.engine, "t", &chat(&messages), &terms("fanfold", WINDOW));
    let left = Arc::new(Mutex::new(String::new()));
    let (seen, told) = (Arc::clone(&left), first.clone());
    let ways = ways(move |prompt| {
        let mut seen = seen.lock().unwrap();
        seen.push_str(&prompt.system);
        seen.push_str(&prompt.user);
        // The model has it from elsewhere and writes it down all the same.
        Ok(good_summary(&prompt.user)
            .replace("## Active State\n", &format!("## Active State\nthe key is {told}\n")))
    });
    let wanted = fanfold_engine::Wanted { session: &id("t"), focus: "", is_by_hand: true };
    let ended = stage.engine.summarise(&wanted, &ways, &mut |_| {}).unwrap();
    assert!(matches!(&ended, Ended::Written(_)), "{ended}");
    let left = left.lock().unwrap();
    assert!(left.contains("[redacted") && !left.contains(&first) && !left.contains(&second));
    let kept = stage.engine.store().events(&id("t"), 0).unwrap();
    let summary = kept.iter().find(|event| event.kind == "summarised").unwrap();
    assert!(summary.body.contains("the key is [redacted"), "{}", summary.body);
    assert!(!summary.body.contains(&first));
}

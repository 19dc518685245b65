//! The recall tool offered to the model; requests that are only observed or miss their deadline.

use std::time::{Duration, Instant};

use fanfold_core::Tokens;
use fanfold_engine::{
    FoldOutcome, Mode, RecallOffer, RequestError, RequestInput, RequestOutcome, SessionEngine, Terms,
};
use fanfold_wire::Format;
use serde_json::{Value, json};

use crate::cache_marks::{agent_body, agent_messages, marked};
use crate::setup::{engine, id, terms, terms_of};

const TOOL: &str = r#"{"name":"recall","description":"Opens a fold.","input_schema":{"type":"object"}}"#;

fn offer() -> RecallOffer {
    let words = "The tool `recall` gives the original of a [handle].";
    RecallOffer { tool: Some(TOOL.to_owned()), hint: Some(words.to_owned()) }
}

fn send(engine: &SessionEngine, session: &str, body: &str, offer: Option<&RecallOffer>) -> RequestOutcome {
    let terms = Terms { format: Some(Format::Anthropic), ..terms("fanfold", 400) };
    engine.request(&RequestInput { offer, ..RequestInput::new(&id(session), body, &terms, "test") })
}

fn tools(body: &str) -> Vec<String> {
    let body: Value = serde_json::from_str(body).unwrap();
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_session_has_the_recall_tool_always_or_never() {
    let (with, without) = (engine(), engine());
    let messages = agent_messages(40);
    let mut sent = Vec::new();
    for (i, n) in (1..messages.len()).step_by(6).enumerate() {
        let body = agent_body(&marked(&messages[..n]));
        // Only the offer of the first request counts.
        let offered = Some(offer()).filter(|_| i == 0 || i == 4);
        let answer = send(&with, "s", &body, offered.as_ref());
        without.clear_cache();
        assert_eq!(answer.body, send(&without, "s", &body, offered.as_ref()).body, "after {n}");
        assert_eq!(tools(&answer.body), ["recall", "Read"], "after {n}");
        assert!(answer.has_tool);
        if matches!(answer.fold, FoldOutcome::Whole) {
            assert_eq!(answer.body.replace(&format!("{TOOL},"), ""), body, "no other byte changes");
        } else {
            assert!(answer.body.contains("The tool `recall` gives the original"), "{}", answer.body);
            assert!(!answer.body.contains("Recall #N for"));
        }
        sent.push(answer.body);
    }
    assert!(sent.last().unwrap().contains("<fanfold>"));
    let again = |described: &str, budget| {
        terms_of(described, budget).map(|terms| Terms { format: Some(Format::Anthropic), ..terms })
    };
    for (i, body) in sent.iter().enumerate() {
        assert_eq!(with.rebuild(&id("s"), i + 1, &again).unwrap().body, *body, "request {}", i + 1);
    }
    // A fork keeps the tool of its parent, and a session that started without the tool never gets it.
    let fork = with.fork(&id("s"), None, None).unwrap();
    assert!(send(&with, &fork.0, &agent_body(&messages), None).has_tool);
    assert!(!send(&with, "t", &agent_body(&messages[..3]), None).has_tool);
    let later = send(&with, "t", &agent_body(&messages), Some(&offer()));
    assert!(!later.has_tool && later.body.contains("Recall #N for"), "{}", later.body);
    // This also holds after a restart.
    with.clear_cache();
    let again = send(&with, "t", &agent_body(&messages), Some(&offer()));
    assert_eq!((again.has_tool, again.body), (false, later.body));
}

#[test]
fn a_withdrawn_tool_is_never_offered_again() {
    const WORDS: &str = "Get again what a [handle] stands for.";
    let (followed, replayed) = (engine(), engine());
    let messages = agent_messages(40);
    let mut sent = Vec::new();
    for (i, n) in (1..messages.len()).step_by(6).enumerate() {
        let body = agent_body(&marked(&messages[..n]));
        let is_withdrawn = i >= 4;
        let answer = send(&followed, "s", &body, Some(&offer()));
        replayed.clear_cache();
        assert_eq!(answer.body, send(&replayed, "s", &body, Some(&offer())).body, "after {n}");
        assert_eq!(answer.has_tool, !is_withdrawn, "after {n}");
        if is_withdrawn && matches!(answer.fold, FoldOutcome::Folded(_)) {
            let has_words = |words: &str| answer.body.contains(words);
            assert!(has_words(WORDS) && !has_words("The tool `recall`"), "{}", answer.body);
        }
        sent.push(answer.body);
        if i == 3 {
            [&followed, &replayed]
                .iter()
                .for_each(|engine| engine.withdraw_recall_tool(&id("s"), WORDS).unwrap());
        }
    }
    assert!(sent.last().unwrap().contains(WORDS));
    let again = |described: &str, budget| {
        terms_of(described, budget).map(|terms| Terms { format: Some(Format::Anthropic), ..terms })
    };
    for (i, body) in sent.iter().enumerate() {
        assert_eq!(followed.rebuild(&id("s"), i + 1, &again).unwrap().body, *body, "request {}", i + 1);
    }
    let fork = followed.fork(&id("s"), None, None).unwrap();
    assert!(!send(&followed, &fork.0, &agent_body(&messages), Some(&offer())).has_tool);
}

#[test]
fn the_tool_is_inserted_where_the_body_allows_it() {
    let check = |body: &str, expected: &str| {
        let answer = send(&engine(), "s", body, Some(&offer()));
        assert_eq!(answer.body, expected.replace("TOOL", TOOL));
        assert_eq!(answer.has_tool, expected.contains("TOOL"), "{body}");
    };
    check(r#"{"messages":[],"tools":[]}"#, r#"{"messages":[],"tools":[TOOL]}"#);
    check(r#"{"messages":[],"tools":[{"name":"a"} ]}"#, r#"{"messages":[],"tools":[TOOL,{"name":"a"} ]}"#);
    check(r#" {"messages":[]}"#, r#" {"tools":[TOOL],"messages":[]}"#);
    check(r#"{"tools":null,"messages":[]}"#, r#"{"tools":null,"messages":[]}"#);
    check(r#"[{"role":"user","content":"hi"}]"#, r#"[{"role":"user","content":"hi"}]"#);
}

#[test]
fn the_offered_tool_is_counted() {
    let body = agent_body(&agent_messages(2));
    let size = |offer: Option<&RecallOffer>| send(&engine(), "s", &body, offer).sizes.unwrap().view;
    assert_eq!(size(Some(&offer())), size(None) + Tokens(TOOL.split_whitespace().count() as u64));
}

#[test]
fn an_observed_request_is_unchanged_and_reports_the_savings() {
    let (observing, folding) = (engine(), engine());
    let terms = terms("fanfold", 400);
    let messages = agent_messages(40);
    let mut n_saved = 0;
    for n in (1..messages.len()).step_by(8) {
        let body = agent_body(&marked(&messages[..n]));
        let session = id("s");
        let ask = RequestInput {
            mode: Mode::Observe,
            offer: Some(&offer()),
            ..RequestInput::new(&session, &body, &terms, "test")
        };
        let answer = observing.request(&ask);
        assert!(
            matches!(answer.fold, FoldOutcome::Whole) && answer.body == body && !answer.has_tool,
            "after {n}"
        );
        let folded = folding.request(&RequestInput { mode: Mode::Fold, ..ask });
        assert_eq!(answer.sizes, folded.sizes);
        let sizes = answer.sizes.unwrap();
        n_saved += sizes.transcript.0 - sizes.view.0;
        let rebuilt = observing.rebuild(&session, n / 8 + 1, &terms_of).unwrap();
        assert!(rebuilt.is_same && rebuilt.body == body);
    }
    assert!(n_saved > 1_000, "{n_saved}");
    // The first request after observation is sent as the view that would have been sent without it.
    let body = agent_body(&messages);
    let answers = [observing, folding]
        .map(|engine| engine.request(&RequestInput::new(&id("s"), &body, &terms, "test")));
    assert_eq!(answers[0].body, answers[1].body);
    assert_ne!(answers[0].body, body);
}

#[test]
fn a_late_request_is_stored_and_forwarded_unchanged() {
    let engine = engine();
    let (session, terms) = (id("s"), terms("fanfold", 400));
    let messages = agent_messages(20);
    let first = agent_body(&messages[..9]);
    let now = Instant::now();
    let in_time = RequestInput {
        deadline: Some(now + Duration::from_secs(600)),
        ..RequestInput::new(&session, &first, &terms, "test")
    };
    assert!(matches!(engine.request(&in_time).fold, FoldOutcome::Whole | FoldOutcome::Folded(_)));
    let body = agent_body(&messages);
    let late = engine
        .request(&RequestInput { deadline: Some(now), ..RequestInput::new(&session, &body, &terms, "test") });
    assert!(matches!(late.fold, FoldOutcome::Failed(RequestError::Late)), "{:?}", late.fold);
    assert!(late.body == body && late.is_stored && late.sizes.is_none());
    assert_eq!(late.n_new, messages.len() - 9);
    let n_requests = engine.requests(&session).unwrap().len();
    assert_eq!(n_requests, 1, "the late request is not recorded as sent");
    assert_eq!(json!(engine.body(&session).unwrap()), json!(body));
}

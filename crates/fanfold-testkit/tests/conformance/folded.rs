//! Folding breaks no rule: a valid request of a client is still valid when it is folded.
//!
//! Generated conversations pass through the engine request by request, in small windows and with every policy. A
//! folded request breaks no rule that the received one keeps, fits the window, contains the user messages byte for
//! byte, and keeps the reasoning items of Responses. A third of the conversations with tools also offer the recall
//! tool. The same holds for requests to providers that need alternating roles.

use std::collections::BTreeSet;
use std::sync::Arc;

use fanfold_core::{Budget, Count as _, Policy, Tokens, Transcript, Words};
use fanfold_engine::{FoldOutcome, MachineClock, RecallOffer, RequestInput, SessionEngine, Terms};
use fanfold_store::{SessionId, SqliteStore};
use fanfold_testkit::Rng;
use fanfold_testkit::contracts::api_rules::{find_regression, missing_user_text, user_texts, violations};
use fanfold_testkit::generators::bodies::BodyFormat;
use fanfold_testkit::generators::request_sequences::RequestSequence;
use fanfold_wire::reply::{accepts_recall_tool, recall_tool};
use fanfold_wire::{Conversation, Format, alternate_roles};
use rayon::prelude::*;
use serde_json::Value;

/// Counts over some conversations.
#[derive(Debug, Default, Clone, Copy)]
struct RequestCounts {
    n_requests: usize,
    n_folded: usize,
    n_refused: usize,
    n_with_tool: usize,
    n_alternating: usize,
}

fn n_cases() -> u64 {
    let is_set = |name| std::env::var_os(name).is_some();
    if is_set("FANFOLD_MANY") {
        10_000
    } else if is_set("FANFOLD_FAST") {
        40
    } else {
        120
    }
}

#[test]
fn chat_stays_valid() {
    check_conversations(BodyFormat::Chat);
}

#[test]
fn responses_stay_valid() {
    check_conversations(BodyFormat::Responses);
}

#[test]
fn anthropic_stays_valid() {
    check_conversations(BodyFormat::Anthropic);
}

fn check_conversations(kind: BodyFormat) {
    let all: Vec<Result<RequestCounts, String>> =
        (0..n_cases()).into_par_iter().map(|seed| check_conversation(kind, seed)).collect();
    let mut sums = RequestCounts::default();
    let mut failures = Vec::new();
    for one in &all {
        match one {
            Ok(one) => {
                sums.n_requests += one.n_requests;
                sums.n_folded += one.n_folded;
                sums.n_refused += one.n_refused;
                sums.n_with_tool += one.n_with_tool;
                sums.n_alternating += one.n_alternating;
            }
            Err(why) => failures.push(why.as_str()),
        }
    }
    println!("{kind:?}: {} conversations, {sums:?}, {} failures", all.len(), failures.len());
    let shown = &failures[..failures.len().min(3)];
    assert!(
        failures.is_empty(),
        "{} of {} conversations:\n{}",
        failures.len(),
        all.len(),
        shown.join("\n\n")
    );
    assert!(sums.n_folded * 5 > sums.n_requests, "too few requests were folded: {sums:?}");
    assert!(sums.n_with_tool * 10 > sums.n_requests, "too few requests had the recall tool: {sums:?}");
    let has_rule = kind != BodyFormat::Responses;
    assert_eq!(sums.n_alternating > 0, has_rule, "{sums:?}");
}

fn check_conversation(kind: BodyFormat, seed: u64) -> Result<RequestCounts, String> {
    let sequence = RequestSequence::new(kind, seed);
    let mut bodies = sequence.bodies();
    for (i, body) in bodies.iter().enumerate() {
        let found = violations(kind, body.as_bytes());
        if !found.is_empty() {
            return Err(format!("seed {seed}, request {i} is generated with violations: {found:?}\n{body}"));
        }
    }
    if seed % 10 == 9 {
        bodies.push(sequence.into_running_body());
    }
    let last = bodies.last().map_or("", String::as_str);
    let policy = Policy::NAMES[seed as usize % Policy::NAMES.len()];
    let mut rng = Rng::new(seed ^ 0xf01d);
    // The unfoldable part must fit, because an overflow shows nothing.
    let window = unfoldable_tokens(kind, last) + [80, 200, 500, 1_500][rng.below(4)];
    let engine = SessionEngine::new(Arc::new(SqliteStore::in_memory()), Arc::new(MachineClock));
    let terms = terms(policy, window);
    let mut sums = RequestCounts::default();
    let mut sessions = BTreeSet::new();
    for (i, body) in bodies.iter().enumerate() {
        let recognised = engine.recognise(body, format_of(kind)).unwrap();
        let session = engine.session_for(&recognised).unwrap();
        let mut ask = RequestInput::new(&session, body, &terms, "test");
        let offer = offer(kind, body).filter(|_| seed.is_multiple_of(3));
        ask.offer = offer.as_ref();
        let answer = engine.request(&ask);
        sums.n_with_tool += usize::from(answer.has_tool);
        let failure = |why: String| {
            format!(
                "{why}\nseed {seed}, request {i}, {policy}, window {window}\nreceived: {body}\nsent: {}",
                answer.body
            )
        };
        sums.n_requests += 1;
        match &answer.fold {
            FoldOutcome::Whole if !answer.has_tool && answer.body != *body => {
                return Err(failure("an unfolded body changed".to_owned()));
            }
            FoldOutcome::Whole => {}
            FoldOutcome::Folded(_) => {
                let size = count_tokens(kind, &answer.body);
                if size > window {
                    return Err(failure(format!("{size} tokens are sent for a window of {window}")));
                }
                sums.n_folded += 1;
            }
            FoldOutcome::Failed(fanfold_engine::RequestError::Overflow(_)) => sums.n_refused += 1,
            FoldOutcome::Failed(trouble) => return Err(failure(format!("trouble: {trouble}"))),
        }
        if let Some(why) = find_regression(kind, body, &answer.body) {
            return Err(failure(why));
        }
        if let Some(other) = alternate_roles(&answer.body, format_of(kind)).filter(|_| answer.body != *body) {
            sums.n_alternating += 1;
            if let Some(why) = find_regression(kind, body, &other) {
                return Err(failure(format!("{why}, with alternating roles: {other}")));
            }
            let (texts, sent) = (user_texts(kind, &answer.body), user_texts(kind, &other));
            let is_user_text = |text: &&String| !text.starts_with("<fanfold>\n");
            if let Some(lost) =
                texts.iter().filter(is_user_text).find(|text| !sent.iter().any(|s| s.contains(*text)))
            {
                return Err(failure(format!("with alternating roles, {lost:?} is missing: {other}")));
            }
            if let Some(pair) = non_alternating_pair(kind, &other) {
                return Err(failure(format!(
                    "with alternating roles, the roles of {pair} do not alternate: {other}"
                )));
            }
        }
        let missing = missing_user_text(kind, body, &answer.body);
        if let Some(missing) = missing.filter(|_| !may_cut(&engine, &session, policy)) {
            return Err(failure(format!("user text is missing or reordered: {missing:?}")));
        }
        sessions.insert(session);
        if sessions.len() > 1 {
            return Err(failure(format!("one conversation has several sessions: {sessions:?}")));
        }
    }
    Ok(sums)
}

/// The recall tool, if a proxy would offer it.
fn offer(kind: BodyFormat, body: &str) -> Option<RecallOffer> {
    let parsed: Value = serde_json::from_str(body).unwrap();
    let has_tools = parsed["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let format = format_of(kind);
    let tool = recall_tool(format).filter(|_| has_tools && accepts_recall_tool(body, format))?;
    Some(RecallOffer { tool: Some(tool.to_owned()), hint: None })
}

/// Two adjacent messages whose roles do not alternate.
fn non_alternating_pair(kind: BodyFormat, body: &str) -> Option<String> {
    let body: Value = serde_json::from_str(body).unwrap();
    let messages = body["messages"].as_array()?;
    let is_note = |message: &Value| message["content"].as_str().is_some_and(|c| c.starts_with("<fanfold>\n"));
    let pair =
        messages.windows(2).find(|pair| match (pair[0]["role"].as_str(), pair[1]["role"].as_str()) {
            (Some("user"), Some("user")) => true,
            (Some("tool"), Some("user")) => kind == BodyFormat::Chat && is_note(&pair[1]),
            _ => false,
        })?;
    Some(format!("{} and {}", pair[0], pair[1]))
}

/// True if user text may be missing: by design of the policy, or as a last resort that a receipt lists.
fn may_cut(engine: &SessionEngine, session: &SessionId, policy: &str) -> bool {
    let is_listed = engine.with_cached(session, |followed| {
        followed.session.ledger().receipts().iter().any(|receipt| !receipt.user_text.is_empty())
    });
    matches!(policy, "hermes" | "hamr") || is_listed.unwrap_or(false)
}

/// The tokens of the messages of a body.
fn count_tokens(kind: BodyFormat, body: &str) -> u64 {
    let (_, changes) = Conversation::decode(body, Some(format_of(kind))).unwrap();
    let mut transcript = Transcript::new();
    changes.into_iter().for_each(|change| change.apply(&mut transcript, &Words));
    transcript.total().0
}

fn unfoldable_tokens(kind: BodyFormat, body: &str) -> u64 {
    let mut texts = user_texts(kind, body);
    let body: Value = serde_json::from_str(body).unwrap();
    texts.extend(["system", "instructions", "tools"].map(|key| body[key].to_string()));
    let list = body[if kind == BodyFormat::Responses { "input" } else { "messages" }].as_array();
    let late = list
        .into_iter()
        .flatten()
        .filter(|message| matches!(message["role"].as_str(), Some("system" | "developer")));
    texts.extend(late.map(Value::to_string));
    texts.iter().map(|text| Words.count(text).0 + 4).sum()
}

fn format_of(kind: BodyFormat) -> Format {
    match kind {
        BodyFormat::Anthropic => Format::Anthropic,
        BodyFormat::Responses => Format::Responses,
        _ => Format::Chat,
    }
}

fn terms(policy: &str, window: u64) -> Terms {
    Terms {
        engine: fanfold_core::EngineFactory::FANFOLD,
        policy: Policy::named(policy).unwrap(),
        budget: Budget::with_reserve(Tokens(window), Tokens::ZERO),
        prices: None,
        counter: &Words,
        format: None,
        focus: String::new(),
        assumed: Vec::new(),
        described: policy.to_owned(),
    }
}

//! Folding breaks no rule: what a client sends and a provider takes is still taken when it is folded.
//!
//! Conversations go through the engine request by request, in small windows, by every policy. What leaves breaks no rule
//! that what came did not break, fits the window, holds what people wrote byte for byte, and leaves items of Responses with the thoughts
//! that the provider knows them with. In every third conversation with tools the model is offered the one that opens folds.
//! What leaves for a provider that wants roles to alternate holds to the same.

use std::collections::BTreeSet;
use std::sync::Arc;

use fanfold_core::{Budget, Count as _, Policy, Tokens, Transcript, Words};
use fanfold_engine::{Engine, FoldOutcome, MachineClock, RecallOffer, RequestInput, Terms};
use fanfold_store::{MemoryStore, SessionId};
use fanfold_testkit::Rng;
use fanfold_testkit::bodies::Kind;
use fanfold_testkit::rules::{broken, missing_words, user_texts, worse};
use fanfold_testkit::talks::Talk;
use fanfold_wire::reply::{accepts_recall_tool, recall_tool};
use fanfold_wire::{Conversation, Format, alternate_roles};
use rayon::prelude::*;
use serde_json::Value;

/// What came of some conversations.
#[derive(Debug, Default, Clone, Copy)]
struct Sums {
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
    hold(Kind::Chat);
}

#[test]
fn responses_stay_valid() {
    hold(Kind::Responses);
}

#[test]
fn anthropic_stays_valid() {
    hold(Kind::Anthropic);
}

fn hold(kind: Kind) {
    let all: Vec<Result<Sums, String>> =
        (0..n_cases()).into_par_iter().map(|seed| talk_through(kind, seed)).collect();
    let mut sums = Sums::default();
    let mut wrong = Vec::new();
    for one in &all {
        match one {
            Ok(one) => {
                sums.n_requests += one.n_requests;
                sums.n_folded += one.n_folded;
                sums.n_refused += one.n_refused;
                sums.n_with_tool += one.n_with_tool;
                sums.n_alternating += one.n_alternating;
            }
            Err(why) => wrong.push(why.as_str()),
        }
    }
    println!("{kind:?}: {} conversations, {sums:?}, {} wrong", all.len(), wrong.len());
    let shown = &wrong[..wrong.len().min(3)];
    assert!(wrong.is_empty(), "{} of {} conversations:\n{}", wrong.len(), all.len(), shown.join("\n\n"));
    assert!(sums.n_folded * 5 > sums.n_requests, "too little was folded to mean anything: {sums:?}");
    assert!(sums.n_with_tool * 10 > sums.n_requests, "too few had the tool to mean anything: {sums:?}");
    let has_rule = kind != Kind::Responses;
    assert_eq!(sums.n_alternating > 0, has_rule, "{sums:?}");
}

fn talk_through(kind: Kind, seed: u64) -> Result<Sums, String> {
    let talk = Talk::new(kind, seed);
    let mut bodies = talk.bodies();
    for (i, body) in bodies.iter().enumerate() {
        let found = broken(kind, body.as_bytes());
        if !found.is_empty() {
            return Err(format!("seed {seed}, request {i} was made wrong: {found:?}\n{body}"));
        }
    }
    if seed % 10 == 9 {
        bodies.push(talk.with_pending());
    }
    let last = bodies.last().map_or("", String::as_str);
    let policy = Policy::NAMES[seed as usize % Policy::NAMES.len()];
    let mut rng = Rng::new(seed ^ 0xf01d);
    // What can't be folded must fit, or there is nothing to be seen.
    let window = unfoldable(kind, last) + [80, 200, 500, 1_500][rng.below(4)];
    let engine = Engine::new(Arc::new(MemoryStore::default()), Arc::new(MachineClock));
    let terms = terms(policy, window);
    let mut sums = Sums::default();
    let mut sessions = BTreeSet::new();
    for (i, body) in bodies.iter().enumerate() {
        let recognised = engine.recognise(body, format_of(kind)).unwrap();
        let session = engine.session_for(&recognised).unwrap();
        let mut ask = RequestInput::new(&session, body, &terms, "test");
        let offer = offer(kind, body).filter(|_| seed.is_multiple_of(3));
        ask.offer = offer.as_ref();
        let answer = engine.request(&ask);
        sums.n_with_tool += usize::from(answer.has_tool);
        let wrong = |why: String| {
            format!(
                "{why}\nseed {seed}, request {i}, {policy}, window {window}\ncame: {body}\nleft: {}",
                answer.body
            )
        };
        sums.n_requests += 1;
        match &answer.fold {
            FoldOutcome::Whole if !answer.has_tool && answer.body != *body => {
                return Err(wrong("whole, and yet other bytes".to_owned()));
            }
            FoldOutcome::Whole => {}
            FoldOutcome::Folded(_) => {
                let size = size_of(kind, &answer.body);
                if size > window {
                    return Err(wrong(format!("{size} tokens left for a window of {window}")));
                }
                sums.n_folded += 1;
            }
            FoldOutcome::Failed(fanfold_engine::RequestError::Overflow(_)) => sums.n_refused += 1,
            FoldOutcome::Failed(trouble) => return Err(wrong(format!("trouble: {trouble}"))),
        }
        if let Some(why) = worse(kind, body, &answer.body) {
            return Err(wrong(why));
        }
        if let Some(other) = alternate_roles(&answer.body, format_of(kind)).filter(|_| answer.body != *body) {
            sums.n_alternating += 1;
            if let Some(why) = worse(kind, body, &other) {
                return Err(wrong(format!("{why}, with roles that alternate: {other}")));
            }
            let (words, sent) = (user_texts(kind, &answer.body), user_texts(kind, &other));
            let is_said = |text: &&String| !text.starts_with("<fanfold>\n");
            if let Some(lost) =
                words.iter().filter(is_said).find(|text| !sent.iter().any(|s| s.contains(*text)))
            {
                return Err(wrong(format!("{lost:?} is not in it any more: {other}")));
            }
            if let Some(pair) = neighbours(kind, &other) {
                return Err(wrong(format!("{pair} follow one another: {other}")));
            }
        }
        let missing = missing_words(kind, body, &answer.body);
        if let Some(missing) = missing.filter(|_| !may_cut(&engine, &session, policy)) {
            return Err(wrong(format!("what a person wrote is not sent, or not in order: {missing:?}")));
        }
        sessions.insert(session);
        if sessions.len() > 1 {
            return Err(wrong(format!("one conversation, and its sessions are {sessions:?}")));
        }
    }
    Ok(sums)
}

/// The tool that opens folds, where a proxy would offer it.
fn offer(kind: Kind, body: &str) -> Option<RecallOffer> {
    let parsed: Value = serde_json::from_str(body).unwrap();
    let has_tools = parsed["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let format = format_of(kind);
    let tool = recall_tool(format).filter(|_| has_tools && accepts_recall_tool(body, format))?;
    Some(RecallOffer { tool: Some(tool.to_owned()), hint: None })
}

/// Two messages of the user's, or a note of ours behind a result, where no role may speak twice in a row.
fn neighbours(kind: Kind, body: &str) -> Option<String> {
    let body: Value = serde_json::from_str(body).unwrap();
    let messages = body["messages"].as_array()?;
    let is_note = |message: &Value| message["content"].as_str().is_some_and(|c| c.starts_with("<fanfold>\n"));
    let wrong =
        messages.windows(2).find(|pair| match (pair[0]["role"].as_str(), pair[1]["role"].as_str()) {
            (Some("user"), Some("user")) => true,
            (Some("tool"), Some("user")) => kind == Kind::Chat && is_note(&pair[1]),
            _ => false,
        })?;
    Some(format!("{} and {}", wrong[0], wrong[1]))
}

/// Whether people's words may be missing: by design of the policy, or as a last resort that a receipt tells.
fn may_cut(engine: &Engine, session: &SessionId, policy: &str) -> bool {
    let is_told = engine.with_cached(session, |followed| {
        followed.session.ledger().receipts().iter().any(|receipt| !receipt.user_text.is_empty())
    });
    matches!(policy, "hermes" | "hamr") || is_told.unwrap_or(false)
}

/// What the messages of a body cost.
fn size_of(kind: Kind, body: &str) -> u64 {
    let (_, changes) = Conversation::decode(body, Some(format_of(kind))).unwrap();
    let mut transcript = Transcript::new();
    changes.into_iter().for_each(|change| change.apply(&mut transcript, &Words));
    transcript.total().0
}

fn unfoldable(kind: Kind, body: &str) -> u64 {
    let mut texts = user_texts(kind, body);
    let body: Value = serde_json::from_str(body).unwrap();
    texts.extend(["system", "instructions", "tools"].map(|key| body[key].to_string()));
    let list = body[if kind == Kind::Responses { "input" } else { "messages" }].as_array();
    let late = list
        .into_iter()
        .flatten()
        .filter(|message| matches!(message["role"].as_str(), Some("system" | "developer")));
    texts.extend(late.map(Value::to_string));
    texts.iter().map(|text| Words.count(text).0 + 4).sum()
}

fn format_of(kind: Kind) -> Format {
    match kind {
        Kind::Anthropic => Format::Anthropic,
        Kind::Responses => Format::Responses,
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

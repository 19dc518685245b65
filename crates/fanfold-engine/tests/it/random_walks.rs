//! Random operations on a session: an engine with a cache and one that replays every time send the same bytes.

use fanfold_engine::{FoldOutcome, RequestError, RewindTarget, SessionEngine, SessionEvent};
use fanfold_testkit::Rng;
use serde_json::{Value, json};

use crate::setup::{engine, id, long_chat, request, terms, terms_of};

/// A session in two engines. The cache of the second one is cleared after each request.
struct RandomWalk {
    rng: Rng,
    engines: [SessionEngine; 2],
    messages: Vec<Value>,
    n: usize,
    n_tools: usize,
    system: usize,
    window: u64,
    policy: &'static str,
    sent: Vec<String>,
}

impl RandomWalk {
    fn new(seed: u64, engines: [SessionEngine; 2]) -> RandomWalk {
        let messages = long_chat(40).split_off(1);
        let rng = Rng::new(seed);
        let (n_tools, system, window, policy) = (1, 0, 500, "fanfold");
        RandomWalk { rng, engines, messages, n: 3, n_tools, system, window, policy, sent: Vec::new() }
    }

    fn step(&mut self) {
        match self.rng.below(18) {
            0 => self.n_tools = self.rng.below(5),
            1 => self.window = [350, 500, 800][self.rng.below(3)],
            2 if self.rng.percent(30) => self.system = self.rng.below(2),
            3 if self.rng.percent(30) => self.policy = ["fanfold", "rules", "hermes"][self.rng.below(3)],
            4 => {
                let message = self.rng.below(self.n) as u32;
                self.record(&SessionEvent::Pinned { message });
            }
            5 => {
                let message = self.rng.below(self.n) as u32;
                self.record(&SessionEvent::Unpinned { message });
            }
            6 => self.record(&SessionEvent::Focused { topic: format!("stage {}", self.n / 3) }),
            7 => self.record(&SessionEvent::FoldRequested { from: None, to: None }),
            8 => self.record(&SessionEvent::CacheExpired { later: false }),
            9 if self.rng.percent(30) => self.record(&SessionEvent::Refused { limit: Some(450) }),
            10 => {
                let to = self.rng.below(self.n) + 1;
                let n_stored = self.engines[0].row(&id("s")).map_or(0, |row| row.n_messages);
                if to as u32 <= n_stored {
                    self.engines
                        .iter()
                        .for_each(|engine| drop(engine.rewind(&id("s"), RewindTarget::Length(to as u32))));
                    self.n = to;
                }
            }
            11 => {
                let handles = self.engines[0].handles(&id("s")).unwrap_or_default();
                if !handles.is_empty() {
                    let handle = handles[self.rng.below(handles.len())].clone();
                    self.record(&SessionEvent::Unfolded { handle });
                }
            }
            12 => {
                let redone = [0, 1].map(|i| self.engines[i].redo(&id("s")).ok().map(|step| step.n_after));
                assert_eq!(redone[0], redone[1]);
                // The client may continue from there or from its own position.
                if let Some(n_after) = redone[0].filter(|n_after| *n_after > 0 && self.rng.percent(70)) {
                    self.n = n_after as usize;
                }
            }
            13 => {
                let checkpoints = self.engines[0].checkpoints(&id("s")).unwrap_or_default();
                if !checkpoints.is_empty() {
                    let name = &checkpoints[self.rng.below(checkpoints.len())].name;
                    let restored = [0, 1].map(|i| self.engines[i].restore(&id("s"), name).unwrap());
                    assert_eq!(restored[0], restored[1]);
                    if restored[0].n_after > 0 && self.rng.percent(70) {
                        self.n = restored[0].n_after as usize;
                    }
                }
            }
            // A window that is too small for any view.
            14 if self.rng.percent(20) => self.window = 20,
            _ => self.n = (self.n + 1 + self.rng.below(6)).min(self.messages.len()),
        }
    }

    fn record(&self, note: &SessionEvent) {
        for engine in &self.engines {
            if engine.row(&id("s")).is_ok() {
                engine.record_note(&id("s"), note).unwrap();
            }
        }
    }

    fn body(&self) -> String {
        let tools: Vec<Value> = (0..self.n_tools)
            .map(|i| json!({ "name": format!("tool_{i}"), "description": "does ".repeat(20), "input_schema": {} }))
            .collect();
        let mut body = json!({ "tools": tools, "messages": &self.messages[..self.n] });
        if self.system > 0 {
            body["system_prompt"] = json!("Be kind to everybody.");
        }
        body.to_string()
    }

    fn send(&mut self, seed: u64) {
        let terms = fanfold_engine::Terms {
            format: Some(fanfold_wire::Format::Hermes),
            ..terms(self.policy, self.window)
        };
        let body = self.body();
        let answers = [0, 1].map(|i| request(&self.engines[i], "s", &body, &terms));
        self.engines[1].clear_cache();
        assert_eq!(answers[0].body, answers[1].body, "seed {seed}, request {}", self.sent.len() + 1);
        match &answers[0].fold {
            FoldOutcome::Failed(RequestError::Overflow(_)) => {}
            FoldOutcome::Failed(trouble) => panic!("seed {seed}: {trouble}"),
            FoldOutcome::Whole | FoldOutcome::Folded(_) => self.sent.push(answers[0].body.clone()),
        }
    }
}

#[test]
fn cached_and_replayed_sessions_send_equal_bytes() {
    let n_seeds = if std::env::var_os("FANFOLD_MANY").is_some() { 1_500 } else { 40 };
    let mut n_sent = 0;
    for seed in 0..n_seeds {
        n_sent += check_walk(seed, [engine(), engine()]);
    }
    assert!(n_sent > n_seeds as usize * 15, "{n_sent}");
}

/// Runs random operations on a session in two engines. Returns the number of requests.
pub(crate) fn check_walk(seed: u64, engines: [SessionEngine; 2]) -> usize {
    let mut walk = RandomWalk::new(seed, engines);
    for _ in 0..30 {
        for _ in 0..walk.rng.below(3) {
            walk.step();
        }
        walk.send(seed);
    }
    let in_hermes_format =
        |terms| fanfold_engine::Terms { format: Some(fanfold_wire::Format::Hermes), ..terms };
    for (i, sent) in walk.sent.iter().enumerate() {
        let restore_terms = |described: &str, budget| terms_of(described, budget).map(in_hermes_format);
        let rebuilt = walk.engines[1].rebuild(&id("s"), i + 1, &restore_terms).unwrap();
        assert_eq!(rebuilt.body, *sent, "seed {seed}, request {}", i + 1);
    }
    assert_eq!(walk.engines[0].check_handles(&id("s")).unwrap().1, Vec::<String>::new(), "seed {seed}");
    walk.sent.len()
}

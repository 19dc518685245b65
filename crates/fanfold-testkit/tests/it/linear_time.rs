//! Texts of megabytes take linear time, whatever they contain.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::cases::is_fast;
use fanfold_core::{Budget, Count, FrameCosts, Policy, Session, Tokens, Words, parse};

/// Sums the bytes that it counts, as a measure of work.
#[derive(Default)]
struct WorkCounter(AtomicU64);

impl Count for WorkCounter {
    fn count(&self, text: &str) -> Tokens {
        self.0.fetch_add(text.len() as u64, Ordering::Relaxed);
        Tokens(text.len() as u64 / 4)
    }

    fn frame(&self) -> FrameCosts {
        Words.frame()
    }

    fn name(&self) -> &str {
        "work"
    }

    fn is_exact(&self) -> bool {
        false
    }
}

/// Folds conversations with a huge text as result, reply, user message and arguments. Returns the work and the
/// time.
fn measure(policy: &str, text: &str) -> (u64, Duration) {
    let counter = WorkCounter::default();
    let start = Instant::now();
    for keyword in ["result", "say", "user", "call"] {
        let budget = Budget::with_reserve(Tokens(4_000), Tokens::ZERO);
        let mut session = Session::new(Policy::named(policy).unwrap(), budget, &counter);
        let huge = match keyword {
            "result" => format!("call    read {{\"path\":\"a\"}}\nresult  {text}"),
            "call" => format!("call    write {text}\nresult  ok"),
            keyword => format!("{keyword:<8}{text}"),
        };
        let small = "call    ls\nresult  a.txt\nsay     so it is\n".repeat(8);
        let conversation = format!("user    what is it?\n{huge}\n{small}user    go on\n{small}");
        for entry in parse(&conversation).unwrap() {
            session.append(entry);
            let _ = session.view();
        }
    }
    (counter.0.load(Ordering::Relaxed), start.elapsed())
}

fn check_linear(make: impl Fn(usize) -> String) {
    if is_fast() {
        return;
    }
    let (one, two) = (make(1 << 20), make(2 << 20));
    for policy in Policy::NAMES {
        let (work, took) = measure(policy, &one);
        let (double_work, double_took) = measure(policy, &two);
        assert!(
            double_work <= work * 3,
            "{policy}: {work} bytes counted for one megabyte, {double_work} for two"
        );
        let bound = took * 5 + Duration::from_secs(5);
        assert!(double_took < bound, "{policy}: {took:?} for one megabyte, {double_took:?} for two");
        assert!(double_took < Duration::from_secs(30), "{policy}: {double_took:?}");
    }
}

#[test]
fn one_repeated_letter() {
    check_linear(|n| "a".repeat(n));
}

#[test]
fn one_long_line_of_words() {
    check_linear(|n| "all work and no play, ".repeat(n / 22));
}

#[test]
fn many_short_lines() {
    check_linear(|n| {
        let lines: Vec<_> = (0..n / 24).map(|i| format!("line {i} is error number {}", i % 7)).collect();
        lines.join("\n        ")
    });
}

#[test]
fn open_brackets() {
    check_linear(|n| "[{\"a\":".repeat(n / 6));
}

/// The time for an entry does not grow with the number of earlier entries.
#[test]
fn many_entries() {
    let took = |n: usize| {
        let budget = Budget::with_reserve(Tokens(2_000), Tokens::ZERO);
        let mut session = Session::new(Policy::fanfold(), budget, &Words);
        let text = "call    bash {\"command\":\"make\"}\nresult  one two three four five six seven eight nine ten\nsay     go on then\n";
        let start = Instant::now();
        for entry in parse(&format!("user    begin\n{}", text.repeat(n))).unwrap() {
            session.append(entry);
            let _ = session.view();
        }
        start.elapsed()
    };
    let (one, two) = (took(1_000), took(2_000));
    assert!(two < one * 8 + Duration::from_secs(2), "{one:?} for 2,000 entries, {two:?} for 4,000");
}

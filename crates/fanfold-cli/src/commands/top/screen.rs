//! What is shown, and what keys do. It knows no terminal: keys in, lines out.

use fanfold_proxy::meter::{SessionStatus, Status};

use super::picture;
use crate::terminal::{paint, style};

/// A key that does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Up,
    Down,
    Enter,
    Back,
    Sort,
    Quit,
}

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Sort {
    #[default]
    Activity,
    Saved,
    Fullness,
    Misses,
}

impl Sort {
    pub(super) fn name(self) -> &'static str {
        match self {
            Sort::Activity => "activity",
            Sort::Saved => "money saved",
            Sort::Fullness => "how full the window is",
            Sort::Misses => "misses",
        }
    }

    fn next(self) -> Sort {
        match self {
            Sort::Activity => Sort::Saved,
            Sort::Saved => Sort::Fullness,
            Sort::Fullness => Sort::Misses,
            Sort::Misses => Sort::Activity,
        }
    }
}

/// What is shown.
pub(super) struct Screen {
    status: Status,
    address: String,
    /// Why the last look failed.
    trouble: Option<String>,
    sort: Sort,
    /// The session that is chosen, by its id, so that it stays chosen when others overtake it.
    chosen: Option<String>,
    is_detail: bool,
}

/// How large a terminal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Screen {
    pub(super) fn new(status: Status, address: &str) -> Screen {
        let address = address.to_owned();
        Screen { status, address, trouble: None, sort: Sort::default(), chosen: None, is_detail: false }
    }

    /// Takes what the proxy told, or why it did not.
    pub(super) fn told(&mut self, told: Result<Status, String>) {
        match told {
            Ok(status) => (self.status, self.trouble) = (status, None),
            Err(why) => self.trouble = Some(why),
        }
    }

    /// Does what a key says. False ends it.
    pub(super) fn on(&mut self, key: Key) -> bool {
        match key {
            Key::Quit => return false,
            Key::Back if self.is_detail => self.is_detail = false,
            Key::Back => return false,
            Key::Sort => self.sort = self.sort.next(),
            Key::Enter => {
                if self.chosen.is_none() {
                    self.choose(0);
                }
                self.is_detail = self.chosen.is_some();
            }
            Key::Up => self.choose(-1),
            Key::Down => self.choose(1),
        }
        true
    }

    fn choose(&mut self, by: isize) {
        let sorted = self.sorted();
        let at = self.chosen.as_ref().and_then(|id| sorted.iter().position(|session| session.id == *id));
        let wanted = at.map_or(0, |at| at.saturating_add_signed(by).min(sorted.len().saturating_sub(1)));
        self.chosen = sorted.get(wanted).map(|session| session.id.clone());
    }

    fn sorted(&self) -> Vec<&SessionStatus> {
        let mut sessions: Vec<&SessionStatus> = self.status.sessions.iter().collect();
        let saved = |session: &SessionStatus| session.dollars.map_or(f64::MIN, |money| money.saved);
        let fullness = |session: &SessionStatus| {
            session.needs.unwrap_or(session.sent) as f64 / session.window.max(1) as f64
        };
        match self.sort {
            // They come in this order.
            Sort::Activity => {}
            Sort::Saved => sessions.sort_by(|a, b| saved(b).total_cmp(&saved(a))),
            Sort::Fullness => sessions.sort_by(|a, b| fullness(b).total_cmp(&fullness(a))),
            Sort::Misses => sessions.sort_by_key(|session| std::cmp::Reverse(session.misses)),
        }
        sessions
    }

    /// The lines of the screen, no more than it has.
    pub(super) fn lines(&self, size: Size) -> Vec<String> {
        let mut lines = picture::head(&self.status, &self.address);
        if let Some(trouble) = &self.trouble {
            lines.push(paint(style::ERROR, trouble));
        }
        lines.push(String::new());
        let sorted = self.sorted();
        let chosen = self.chosen.as_ref().and_then(|id| sorted.iter().position(|session| session.id == *id));
        match chosen.filter(|_| self.is_detail).map(|at| sorted[at]) {
            Some(session) => lines.extend(picture::detail(session)),
            None => {
                lines.push(paint(style::BOLD, format!("  {}", picture::titles(size.width - 2))));
                // The keys have the last line, and the chosen one is in sight.
                let n_rows = size.height.saturating_sub(lines.len() + 1).max(1);
                let first = chosen.map_or(0, |at| (at + 1).saturating_sub(n_rows));
                for (i, session) in sorted.iter().enumerate().skip(first).take(n_rows) {
                    let sign = if chosen == Some(i) { paint(style::HINT, ">") } else { " ".to_owned() };
                    lines.push(format!("{sign} {}", picture::line(session, size.width - 2)));
                }
                if sorted.is_empty() {
                    lines.push(paint(style::DIM, "  no session yet"));
                }
            }
        }
        lines.truncate(size.height.saturating_sub(1));
        lines.resize(size.height.saturating_sub(1), String::new());
        lines.push(picture::keys(self.sort));
        lines
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    /// A status as a proxy tells it.
    fn status() -> Status {
        let dollars = |came: f64, sent: f64| json!({ "came": came, "sent": sent, "saved": came - sent });
        let session = |id: &str, words: &str, sent: u64, misses: u64, money: serde_json::Value| {
            let (needs, pressure) = match id {
                "s2" => (Some(203_000), "critical"),
                _ => (None, "none"),
            };
            json!({
                "id": id, "words": words, "format": "anthropic", "model": "claude-opus-5-5", "since": 1_763_200_000,
                "idle_seconds": 4.2, "requests": 12, "in_flight": u64::from(id == "s1"), "window": 200_000, "room": 191_808,
                "came": 150_000, "sent": sent, "folds": 3, "folds_here": 3, "recalls": 1, "misses": misses,
                "folded_away": 150_000 - sent, "dollars": money, "needs": needs, "pressure": pressure, "turns": 9,
                "summaries": 0,
            })
        };
        let status = json!({
            "version": "0.1.0", "mode": "fold", "uptime_seconds": 3725.0, "requests_in_flight": 1,
            "totals": {
                "requests": 1203, "passed_through": 7, "outcomes": { "folded": 812, "whole": 388, "as_it_came": 3 },
                "as_it_came": { "late": 1, "store": 2 }, "ended": { "done": 1203 }, "refused": 2, "retried": 2,
                "folds": 61, "recalls": 4, "misses": 2,
                "folding": { "turns": 410, "folds_per_100_turns": 14.9, "saved_per_fold": 37_869.0, "ratio": 0.412 },
                "summaries": { "by": { "summary": 12 }, "tokens": 21_600, "tokens_each": 1_800.0, "flaws": {},
                               "fallbacks": {}, "failures": {} },
                "tokens": { "came": 98_120_400, "sent": 51_004_112, "folded_away": 2_310_008, "input": 51_000_000,
                            "read": 48_000_000, "written": 3_000_000, "output": 400_000 },
                "dollars": dollars(40.1, 27.69), "requests_priced": 1200, "requests_unpriced": 3,
            },
            "models": [],
            "sessions": [
                session("s1", "fix the flaky test in the parser and tell me why it was flaky", 61_204, 0, dollars(2.5, 1.3)),
                session("s2", "", 150_000, 2, dollars(0.2, 0.5)),
                session("s3", "write a poem", 900, 0, serde_json::Value::Null),
            ],
        });
        serde_json::from_value(status).expect("it is a status")
    }

    fn screen() -> Screen {
        Screen::new(status(), "http://127.0.0.1:7744")
    }

    /// What a person sees, without colours.
    fn seen(screen: &Screen) -> String {
        let lines = screen.lines(Size { width: 124, height: 11 });
        assert_eq!(lines.len(), 11);
        let plain = |line: &String| anstream::adapter::strip_str(line).to_string().trim_end().to_owned();
        lines.iter().map(|line| plain(line) + "\n").collect()
    }

    fn check(keys: &[Key], expected: &Expect) {
        let mut screen = screen();
        assert!(keys.iter().all(|key| screen.on(*key)));
        expected.assert_eq(&seen(&screen));
    }

    #[test]
    fn sessions_are_lines_below_what_they_come_to() {
        check(
            &[],
            &expect![[r#"
                fanfold 0.1.0  http://127.0.0.1:7744  up 62m
                requests 1,203  now 1  folded 812  as they came 3  refused 2  sent again 2
                saved $12.41 of $40.10  folded away 2.31m tokens  folds 61  recalls 4  misses 2
                a fold takes 37.9k tokens out and leaves 41 %; 14.9 for 100 turns  summaries 12 of 1.8k tokens each
                as they came: late 1, store 2

                  SESSION                          MODEL             VIEW IN WINDOW      TOKENS  FOLDS RECALLS MISSES    AWAY    SAVED  IDLE
                  fix the flaky test in the pars…  claude-opus-5-5   █████░░░░░░···  61.2k/200k      3       1      0   88.8k    $1.20   now
                  s2                               claude-opus-5-5   ██████████████   203k/200k!     3       1      2       0   -$0.30    4s
                  write a poem                     claude-opus-5-5   █░░░░░░░░░░···    900/200k      3       1      0    149k        -    4s
                q quit   up/down choose   enter one session   s sort (by activity)
            "#]],
        );
    }

    #[test]
    fn one_session_is_shown_whole() {
        let mut screen = screen();
        for key in [Key::Down, Key::Down, Key::Enter] {
            assert!(screen.on(key));
        }
        let lines = screen.lines(Size { width: 100, height: 40 });
        let text =
            lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect::<Vec<_>>();
        expect![[r#"
            fanfold 0.1.0  http://127.0.0.1:7744  up 62m
            requests 1,203  now 1  folded 812  as they came 3  refused 2  sent again 2
            saved $12.41 of $40.10  folded away 2.31m tokens  folds 61  recalls 4  misses 2
            a fold takes 37.9k tokens out and leaves 41 %; 14.9 for 100 turns  summaries 12 of 1.8k tokens each
            as they came: late 1, store 2

            session        s2
            first words    s2
            model          claude-opus-5-5
            format         anthropic
            window         200,000 tokens, 191,808 of them for the request
            as it came     150,000 tokens
            as it is sent  150,000 tokens
            pressure       nothing fits: at least 203,000 tokens are needed, and there is room for 191,808
            folds          3, 3 of them since the start
            folded away    0 tokens since the start
            summaries      0 since the start
            recalls        1
            misses         2 calls made again for a fold
            requests       12, 0 now
            cost           $0.50 folded, $0.20 as it came
            saved          -$0.30
            idle           4s

            fanfold sessions show s2














            q quit   up/down choose   enter one session   s sort (by activity)"#]]
        .assert_eq(text.join("\n").trim_end());
        assert!(screen.on(Key::Back) && !screen.is_detail && !screen.on(Key::Back));
    }

    #[test]
    fn what_is_chosen_stays_chosen_when_others_overtake_it() {
        let mut screen = screen();
        screen.on(Key::Down);
        assert_eq!(screen.chosen.as_deref(), Some("s1"));
        let mut later = status();
        later.sessions.rotate_left(1);
        screen.told(Ok(later));
        assert!(seen(&screen).lines().any(|line| line.starts_with("> fix the flaky")), "{}", seen(&screen));
    }

    #[test]
    fn sessions_are_sorted_by_what_is_asked_for() {
        let mut screen = screen();
        let mut order = Vec::new();
        for _ in 0..4 {
            order.push(
                screen.sorted().iter().map(|session| session.id.as_str()).collect::<Vec<_>>().join(" "),
            );
            screen.on(Key::Sort);
        }
        assert_eq!(order, ["s1 s2 s3", "s1 s2 s3", "s2 s1 s3", "s2 s1 s3"]);
        assert_eq!(screen.sort, Sort::Activity);
    }

    #[test]
    fn a_proxy_that_went_away_is_told_beside_what_was_last_seen() {
        let mut screen = screen();
        screen.told(Err("no proxy answers at http://127.0.0.1:7744: connection refused".to_owned()));
        let text = seen(&screen);
        assert!(text.contains("connection refused") && text.contains("fix the flaky"), "{text}");
    }

    #[test]
    fn any_size_of_terminal_will_do() {
        for (width, height) in [(40, 8), (80, 24), (300, 100)] {
            let lines = screen().lines(Size { width, height });
            assert_eq!(lines.len(), height);
        }
    }
}

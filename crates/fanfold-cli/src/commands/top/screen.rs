//! The state of the display: keys in, lines out. Independent of the terminal.

use fanfold_proxy::meter::{SessionStatus, Status};

use super::table;
use crate::terminal::{Text, paint, style, text};

/// A key with an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Up,
    Down,
    Enter,
    Back,
    Sort,
    Quit,
}

/// The order of the sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Order {
    #[default]
    Activity,
    Saved,
    Fullness,
    Misses,
}

impl Order {
    pub(super) fn name(self) -> &'static str {
        match self {
            Order::Activity => "activity",
            Order::Saved => "money saved",
            Order::Fullness => "how full the window is",
            Order::Misses => "misses",
        }
    }

    fn next(self) -> Order {
        match self {
            Order::Activity => Order::Saved,
            Order::Saved => Order::Fullness,
            Order::Fullness => Order::Misses,
            Order::Misses => Order::Activity,
        }
    }
}

/// The state of the display.
pub(super) struct Screen {
    status: Status,
    address: String,
    /// Why the last update failed.
    error: Option<String>,
    order: Order,
    /// The id of the selected session, which stays selected when the order changes.
    selected: Option<String>,
    is_detail: bool,
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScreenSize {
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Screen {
    pub(super) fn new(status: Status, address: &str) -> Screen {
        let address = address.to_owned();
        Screen { status, address, error: None, order: Order::default(), selected: None, is_detail: false }
    }

    /// Takes a new status, or the error of reading it.
    pub(super) fn update(&mut self, status: Result<Status, String>) {
        match status {
            Ok(status) => (self.status, self.error) = (status, None),
            Err(error) => self.error = Some(error),
        }
    }

    /// Handles a key. Returns false if it ends the display.
    pub(super) fn press(&mut self, key: Key) -> bool {
        match key {
            Key::Quit => return false,
            Key::Back if self.is_detail => self.is_detail = false,
            Key::Back => return false,
            Key::Sort => self.order = self.order.next(),
            Key::Enter => {
                if self.selected.is_none() {
                    self.select(0);
                }
                self.is_detail = self.selected.is_some();
            }
            Key::Up => self.select(-1),
            Key::Down => self.select(1),
        }
        true
    }

    fn select(&mut self, by: isize) {
        let sorted = self.sorted();
        let at = self.selected.as_ref().and_then(|id| sorted.iter().position(|session| session.id == *id));
        let target = at.map_or(0, |at| at.saturating_add_signed(by).min(sorted.len().saturating_sub(1)));
        self.selected = sorted.get(target).map(|session| session.id.clone());
    }

    fn sorted(&self) -> Vec<&SessionStatus> {
        let mut sessions: Vec<&SessionStatus> = self.status.sessions.iter().collect();
        let saved = |session: &SessionStatus| session.dollars.map_or(f64::MIN, |money| money.saved);
        let fullness = |session: &SessionStatus| {
            session.needs.unwrap_or(session.sent) as f64 / session.window.max(1) as f64
        };
        match self.order {
            // The proxy sorts by activity.
            Order::Activity => {}
            Order::Saved => sessions.sort_by(|a, b| saved(b).total_cmp(&saved(a))),
            Order::Fullness => sessions.sort_by(|a, b| fullness(b).total_cmp(&fullness(a))),
            Order::Misses => sessions.sort_by_key(|session| std::cmp::Reverse(session.misses)),
        }
        sessions
    }

    /// The lines of the screen, padded to its height.
    pub(super) fn lines(&self, size: ScreenSize) -> Vec<Text> {
        let mut lines = table::head(&self.status, &self.address);
        if let Some(error) = &self.error {
            lines.push(paint(style::ERROR, error));
        }
        lines.push(Text::default());
        let sorted = self.sorted();
        let selected =
            self.selected.as_ref().and_then(|id| sorted.iter().position(|session| session.id == *id));
        match selected.filter(|_| self.is_detail).map(|at| sorted[at]) {
            Some(session) => lines.extend(table::detail(session)),
            None => {
                lines.push(paint(style::BOLD, format!("  {}", table::titles(size.width - 2))));
                // The last line shows the keys. Scroll so that the selected session is visible.
                let n_rows = size.height.saturating_sub(lines.len() + 1).max(1);
                let first = selected.map_or(0, |at| (at + 1).saturating_sub(n_rows));
                for (i, session) in sorted.iter().enumerate().skip(first).take(n_rows) {
                    let marker = if selected == Some(i) { paint(style::HINT, ">") } else { Text::from(" ") };
                    lines.push(text![marker, " ", table::line(session, size.width - 2)]);
                }
                if sorted.is_empty() {
                    lines.push(paint(style::DIM, "  no session yet"));
                }
            }
        }
        lines.truncate(size.height.saturating_sub(1));
        lines.resize(size.height.saturating_sub(1), Text::default());
        lines.push(table::keys(self.order));
        lines
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    /// A status as reported by a proxy.
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

    fn plain(line: &Text) -> String {
        anstream::adapter::strip_str(&line.render_line()).to_string()
    }

    /// The screen without colours.
    fn text(screen: &Screen) -> String {
        let lines = screen.lines(ScreenSize { width: 124, height: 11 });
        assert_eq!(lines.len(), 11);
        lines.iter().map(|line| plain(line).trim_end().to_owned() + "\n").collect()
    }

    fn check(keys: &[Key], expected: &Expect) {
        let mut screen = screen();
        assert!(keys.iter().all(|key| screen.press(*key)));
        expected.assert_eq(&text(&screen));
    }

    #[test]
    fn totals_precede_a_line_per_session() {
        check(
            &[],
            &expect![[r#"
                fanfold 0.1.0  http://127.0.0.1:7744  up 62m
                requests 1,203  in progress 1  folded 812  unchanged 3  refused 2  retried 2
                saved $12.41 of $40.10  folded away 2.31m tokens  folds 61  recalls 4  misses 2
                a fold saves 37.9k tokens and leaves 41 %; 14.9 folds per 100 turns  summaries 12 of 1.8k tokens each
                unchanged: late 1, store 2

                  SESSION                          MODEL             VIEW IN WINDOW      TOKENS  FOLDS RECALLS MISSES    AWAY    SAVED  IDLE
                  fix the flaky test in the pars…  claude-opus-5-5   █████░░░░░░···  61.2k/200k      3       1      0   88.8k    $1.20   now
                  s2                               claude-opus-5-5   ██████████████   203k/200k!     3       1      2       0   -$0.30    4s
                  write a poem                     claude-opus-5-5   █░░░░░░░░░░···    900/200k      3       1      0    149k        -    4s
                q quit   up/down select   enter details   s order (activity)
            "#]],
        );
    }

    #[test]
    fn enter_shows_details() {
        let mut screen = screen();
        for key in [Key::Down, Key::Down, Key::Enter] {
            assert!(screen.press(key));
        }
        let lines = screen.lines(ScreenSize { width: 100, height: 40 });
        let text = lines.iter().map(plain).collect::<Vec<_>>();
        expect![[r#"
            fanfold 0.1.0  http://127.0.0.1:7744  up 62m
            requests 1,203  in progress 1  folded 812  unchanged 3  refused 2  retried 2
            saved $12.41 of $40.10  folded away 2.31m tokens  folds 61  recalls 4  misses 2
            a fold saves 37.9k tokens and leaves 41 %; 14.9 folds per 100 turns  summaries 12 of 1.8k tokens each
            unchanged: late 1, store 2

            session        s2
            first words    s2
            model          claude-opus-5-5
            format         anthropic
            window         200,000 tokens, 191,808 of them for requests
            unfolded       150,000 tokens
            sent           150,000 tokens
            pressure       nothing fits: at least 203,000 tokens are needed, but the room is 191,808
            folds          3, 3 of them since the start
            folded away    0 tokens since the start
            summaries      0 since the start
            recalls        1
            misses         2 calls repeated because of a fold
            requests       12, 0 in progress
            cost           $0.50 folded, $0.20 unfolded
            saved          -$0.30
            idle           4s

            fanfold sessions show s2














            q quit   up/down select   enter details   s order (activity)"#]]
        .assert_eq(text.join("\n").trim_end());
        assert!(screen.press(Key::Back) && !screen.is_detail && !screen.press(Key::Back));
    }

    #[test]
    fn a_status_with_control_characters_does_not_change_the_screen() {
        let hostile = "a\u{1b}[2J\n\r\u{9b}1m\u{202e}";
        let mut status = status();
        status.version = hostile.to_owned();
        status.totals.as_it_came.insert(hostile.to_owned(), 1);
        let session = &mut status.sessions[0];
        for text in [&mut session.id, &mut session.words, &mut session.model, &mut session.format] {
            *text = hostile.to_owned();
        }
        let mut screen = Screen::new(status, "http://127.0.0.1:7744");
        screen.update(Err(hostile.to_owned()));
        screen.update(Ok(screen.status.clone()));
        for key in [Key::Down, Key::Enter] {
            let lines = screen.lines(ScreenSize { width: 124, height: 40 });
            let drawn: Vec<String> = lines.iter().map(plain).collect();
            assert!(!drawn.concat().contains(|c: char| c.is_control() || c == '\u{202e}'), "{drawn:?}");
            assert!(drawn.concat().contains("a␛[2J␊␍<U+009B>1m<U+202E>"), "{drawn:?}");
            screen.press(key);
        }
    }

    #[test]
    fn selection_follows_the_session() {
        let mut screen = screen();
        screen.press(Key::Down);
        assert_eq!(screen.selected.as_deref(), Some("s1"));
        let mut later = status();
        later.sessions.rotate_left(1);
        screen.update(Ok(later));
        assert!(text(&screen).lines().any(|line| line.starts_with("> fix the flaky")), "{}", text(&screen));
    }

    #[test]
    fn s_changes_the_order() {
        let mut screen = screen();
        let mut order = Vec::new();
        for _ in 0..4 {
            order.push(
                screen.sorted().iter().map(|session| session.id.as_str()).collect::<Vec<_>>().join(" "),
            );
            screen.press(Key::Sort);
        }
        assert_eq!(order, ["s1 s2 s3", "s1 s2 s3", "s2 s1 s3", "s2 s1 s3"]);
        assert_eq!(screen.order, Order::Activity);
    }

    #[test]
    fn error_is_shown_above_the_last_status() {
        let mut screen = screen();
        screen.update(Err("no proxy answers at http://127.0.0.1:7744: connection refused".to_owned()));
        let text = text(&screen);
        assert!(text.contains("connection refused") && text.contains("fix the flaky"), "{text}");
    }

    #[test]
    fn screen_fills_any_terminal_size() {
        for (width, height) in [(40, 8), (80, 24), (300, 100)] {
            let lines = screen().lines(ScreenSize { width, height });
            assert_eq!(lines.len(), height);
        }
    }
}

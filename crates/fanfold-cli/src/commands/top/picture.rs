//! The status of a proxy as lines of text.

use anstyle::Style;
use fanfold_core::thousands;
use fanfold_proxy::meter::{SessionStatus, Status, dollars};

use super::screen::Sort;
use crate::terminal::{paint, style};

/// How wide things are. A narrow terminal does without the model and the recalls.
#[derive(Clone, Copy)]
struct Columns {
    words: usize,
    model: usize,
    bar: usize,
    recalls: usize,
}

/// From this width on, a line has everything.
const WIDE: usize = 112;
/// What stands behind the words of a session and is always there, in columns.
const FIGURES: usize = 2 + 2 + 11 + 6 + 7 + 8 + 9 + 6;
/// The fewest columns for the words of a session.
const LEAST_WORDS: usize = 12;

impl Columns {
    fn of(width: usize) -> Columns {
        let (model, bar, recalls) = if width >= WIDE { (18, 14, 8) } else { (0, 8, 0) };
        let words = width.saturating_sub(FIGURES + model + bar + recalls).max(LEAST_WORDS);
        Columns { words, model, bar, recalls }
    }
}

/// Everything once, for a pipe.
pub(super) fn page(status: &Status, address: &str) -> String {
    let width = WIDE + 10;
    let mut lines = head(status, address);
    lines.push(String::new());
    lines.push(paint(style::BOLD, titles(width)));
    lines.extend(status.sessions.iter().map(|session| line(session, width)));
    if status.sessions.is_empty() {
        lines.push(paint(style::DIM, "no session yet"));
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// What all sessions come to.
pub(super) fn head(status: &Status, address: &str) -> Vec<String> {
    let totals = &status.totals;
    let n_as_it_came = totals.outcomes.get("as_it_came").copied().unwrap_or_default();
    let folded = if status.mode == "observe" { "observed" } else { "folded" };
    let n_folded = totals.outcomes.get(folded).copied().unwrap_or_default();
    let mode = if status.mode == "observe" { "  observes: nothing is changed" } else { "" };
    let saved = match status.mode.as_str() {
        "observe" => "would save",
        _ => "saved",
    };
    let money = if totals.requests_priced > 0 {
        format!("{} of {}", dollars(totals.dollars.saved), dollars(totals.dollars.came))
    } else {
        "no price is known yet".to_owned()
    };
    let away = short(totals.tokens.folded_away);
    let mut lines = vec![
        format!(
            "{} {}  {address}  up {}{mode}",
            paint(style::BOLD, "fanfold"),
            status.version,
            span(status.uptime_seconds)
        ),
        format!(
            "requests {}  now {}  {folded} {}  as they came {}  refused {}  sent again {}",
            thousands(totals.requests),
            status.requests_in_flight,
            thousands(n_folded),
            thousands(n_as_it_came),
            totals.refused,
            totals.retried,
        ),
        format!(
            "{saved} {}  folded away {away} tokens  folds {}  recalls {}  misses {}",
            paint(color_of(totals.dollars.saved), money),
            thousands(totals.folds),
            thousands(totals.recalls),
            thousands(totals.misses),
        ),
    ];
    let folding = &totals.folding;
    if folding.saved_per_fold > 0.0 {
        let written: u64 = totals.summaries.by.values().sum();
        let summaries = match written {
            0 => String::new(),
            n => format!("  summaries {n} of {} tokens each", short(totals.summaries.tokens_each as u64)),
        };
        lines.push(paint(
            style::DIM,
            format!(
                "a fold takes {} tokens out and leaves {:.0} %; {:.1} for 100 turns{summaries}",
                short(folding.saved_per_fold as u64),
                folding.ratio * 100.0,
                folding.folds_per_100_turns
            ),
        ));
    }
    let troubles: Vec<String> = totals.as_it_came.iter().map(|(why, n)| format!("{why} {n}")).collect();
    if !troubles.is_empty() {
        lines.push(paint(style::DIM, format!("as they came: {}", troubles.join(", "))));
    }
    lines
}

/// The names of the columns.
pub(super) fn titles(width: usize) -> String {
    let Columns { words, model, bar, recalls } = Columns::of(width);
    let view = if bar < 14 { "VIEW" } else { "VIEW IN WINDOW" };
    let model = if model > 0 { format!("  {:<16}", "MODEL") } else { String::new() };
    let recalls = if recalls > 0 { format!("{:>8}", "RECALLS") } else { String::new() };
    format!(
        "{:<words$}{model}  {view:<bar$}  {:>10} {:>6}{recalls}{:>7}{:>8}{:>9}{:>6}",
        "SESSION", "TOKENS", "FOLDS", "MISSES", "AWAY", "SAVED", "IDLE"
    )
}

/// A session on one line.
pub(super) fn line(session: &SessionStatus, width: usize) -> String {
    let columns = Columns::of(width);
    let saved = session.dollars.map_or("-".to_owned(), |money| dollars(money.saved));
    let saved_look = session.dollars.map_or(Style::new(), |money| color_of(money.saved));
    let idle = if session.in_flight > 0 { "now".to_owned() } else { span(session.idle_seconds) };
    let used = format!("{}/{}", short(in_view(session)), short(session.window));
    let mark = if is_pressed(session) { paint(style::WARNING, "!") } else { " ".to_owned() };
    let model = if columns.model > 0 { format!("  {}", fitted(&session.model, 16)) } else { String::new() };
    let recalls = if columns.recalls > 0 { format!("{:>8}", session.recalls) } else { String::new() };
    format!(
        "{}{model}  {}  {used:>10}{mark}{:>6}{recalls}{:>7}{:>8}{}{idle:>6}",
        fitted(name(session), columns.words),
        bar(session, columns.bar),
        session.folds,
        session.misses,
        short(session.folded_away),
        paint(saved_look, format!("{saved:>9}")),
    )
}

/// All that is known of a session.
pub(super) fn detail(session: &SessionStatus) -> Vec<String> {
    let money = |amount: fn(&fanfold_proxy::meter::Dollars) -> f64| {
        session.dollars.as_ref().map_or("no price is known".to_owned(), |money| dollars(amount(money)))
    };
    let rows = [
        ("session", session.id.clone()),
        ("first words", name(session).to_owned()),
        ("model", session.model.clone()),
        ("format", session.format.clone()),
        (
            "window",
            format!(
                "{} tokens, {} of them for the request",
                thousands(session.window),
                thousands(session.room)
            ),
        ),
        ("as it came", format!("{} tokens", thousands(session.came))),
        ("as it is sent", format!("{} tokens", thousands(session.sent))),
        ("pressure", pressure(session)),
        ("folds", format!("{}, {} of them since the start", session.folds, session.folds_here)),
        ("folded away", format!("{} tokens since the start", thousands(session.folded_away))),
        ("summaries", format!("{} since the start", session.summaries)),
        ("recalls", session.recalls.to_string()),
        ("misses", format!("{} calls made again for a fold", session.misses)),
        ("requests", format!("{}, {} now", session.requests, session.in_flight)),
        ("cost", format!("{} folded, {} as it came", money(|m| m.sent), money(|m| m.came))),
        ("saved", money(|m| m.saved)),
        ("idle", span(session.idle_seconds)),
    ];
    let mut lines: Vec<String> = rows.into_iter().map(|(name, value)| format!("{name:<15}{value}")).collect();
    lines.push(String::new());
    lines.push(paint(style::DIM, format!("fanfold sessions show {}", session.id)));
    lines
}

/// What keys do.
pub(super) fn keys(sort: Sort) -> String {
    paint(style::DIM, format!("q quit   up/down choose   enter one session   s sort (by {})", sort.name()))
}

fn name(session: &SessionStatus) -> &str {
    if session.words.is_empty() { &session.id } else { &session.words }
}

/// What the view costs; where none fits, what the smallest would.
fn in_view(session: &SessionStatus) -> u64 {
    session.needs.unwrap_or(session.sent)
}

/// Whether a person should look at it: it is nearly full, or does not fit.
fn is_pressed(session: &SessionStatus) -> bool {
    session.needs.is_some() || matches!(session.pressure.as_str(), "warning" | "critical")
}

fn pressure(session: &SessionStatus) -> String {
    let percent = in_view(session) * 100 / session.room.max(1);
    match session.needs {
        Some(needs) => format!(
            "nothing fits: at least {} tokens are needed, and there is room for {}",
            thousands(needs),
            thousands(session.room)
        ),
        None => format!("{percent} % of the room is full"),
    }
}

fn color_of(saved: f64) -> Style {
    if saved < 0.0 { style::WARNING } else { style::TAIL }
}

/// The view against the window, and what is folded away behind it.
fn bar(session: &SessionStatus, width: usize) -> String {
    let cells = |tokens: u64| {
        let cells = (u128::from(tokens) * width as u128).div_ceil(u128::from(session.window.max(1)));
        (cells as usize).min(width)
    };
    let (sent, came) = (cells(in_view(session)), cells(session.came));
    let folded = came.saturating_sub(sent);
    let look = if is_pressed(session) { style::WARNING } else { style::VERBATIM };
    format!(
        "{}{}{}",
        paint(look, "█".repeat(sent)),
        paint(style::DIM, "░".repeat(folded)),
        paint(style::DIM, "·".repeat(width - sent - folded))
    )
}

/// A text in exactly so many columns.
fn fitted(text: &str, width: usize) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    let n_chars = text.chars().count();
    if n_chars <= width {
        return format!("{text:<width$}");
    }
    let cut: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{cut}…")
}

/// A number of tokens in five columns at most: `812`, `12.3k`, `1.24m`.
fn short(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..100_000 => format!("{:.1}k", tokens as f64 / 1e3),
        100_000..1_000_000 => format!("{}k", tokens / 1_000),
        _ => format!("{:.2}m", tokens as f64 / 1e6),
    }
}

/// A time in a few columns: `4s`, `12m`, `3h`, `2d`.
fn span(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

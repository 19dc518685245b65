//! The status of a proxy as a table.

use anstyle::Style;
use fanfold_core::thousands;
use fanfold_proxy::meter::{SessionStatus, Status, Totals, dollars};

use super::screen::Order;
use crate::terminal::{Text, paint, style, text, visible_line};

/// The widths of the columns. Narrow terminals omit the model and the recalls.
#[derive(Clone, Copy)]
struct Columns {
    title: usize,
    model: usize,
    bar: usize,
    recalls: usize,
}

/// The minimum width for all columns.
const FULL_WIDTH: usize = 112;
/// The width of the columns after the first that are always shown.
const NUMBERS_WIDTH: usize = 2 + 2 + 11 + 6 + 7 + 8 + 9 + 6;
/// The minimum width of the first column.
const MIN_TITLE_WIDTH: usize = 12;

impl Columns {
    fn for_width(width: usize) -> Columns {
        let (model, bar, recalls) = if width >= FULL_WIDTH { (18, 14, 8) } else { (0, 8, 0) };
        let title = width.saturating_sub(NUMBERS_WIDTH + model + bar + recalls).max(MIN_TITLE_WIDTH);
        Columns { title, model, bar, recalls }
    }
}

/// The whole table.
pub(super) fn page(status: &Status, address: &str) -> Text {
    let width = FULL_WIDTH + 10;
    let mut lines = head(status, address);
    lines.push(Text::default());
    lines.push(paint(style::BOLD, titles(width)));
    lines.extend(status.sessions.iter().map(|session| line(session, width)));
    if status.sessions.is_empty() {
        lines.push(paint(style::DIM, "no session yet"));
    }
    lines.into_iter().map(|line| text![line.trim_end(), "\n"]).collect()
}

/// The totals over all sessions.
pub(super) fn head(status: &Status, address: &str) -> Vec<Text> {
    let totals = &status.totals;
    let n_of = |outcome: &str| totals.outcomes.get(outcome).copied().unwrap_or_default();
    let (folded, saved, mode) = match status.mode.as_str() {
        "observe" => ("observed", "would save", "  observing: requests are sent unchanged"),
        _ => ("folded", "saved", ""),
    };
    let money = if totals.requests_priced > 0 {
        format!("{} of {}", dollars(totals.dollars.saved), dollars(totals.dollars.came))
    } else {
        "no known price yet".to_owned()
    };
    let away = short(totals.tokens.folded_away);
    let mut lines = vec![
        text![
            paint(style::BOLD, "fanfold"),
            format!(" {}  {address}  up {}{mode}", status.version, span(status.uptime_seconds)),
        ],
        Text::from(format!(
            "requests {}  in progress {}  {folded} {}  unchanged {}  refused {}  retried {}",
            thousands(totals.requests),
            status.requests_in_flight,
            thousands(n_of(folded)),
            thousands(n_of("as_it_came")),
            totals.refused,
            totals.retried,
        )),
        text![
            format!("{saved} "),
            paint(color_of(totals.dollars.saved), money),
            format!(
                "  folded away {away} tokens  folds {}  recalls {}  misses {}",
                thousands(totals.folds),
                thousands(totals.recalls),
                thousands(totals.misses),
            ),
        ],
    ];
    lines.extend(folding_line(totals).map(|line| paint(style::DIM, line)));
    let reasons: Vec<String> = totals.as_it_came.iter().map(|(why, n)| format!("{why} {n}")).collect();
    if !reasons.is_empty() {
        lines.push(paint(style::DIM, format!("unchanged: {}", reasons.join(", "))));
    }
    lines
}

/// The average saving of a fold, and the summaries; `None` before the first fold.
fn folding_line(totals: &Totals) -> Option<String> {
    let folding = &totals.folding;
    if folding.saved_per_fold <= 0.0 {
        return None;
    }
    let summaries = match totals.summaries.by.values().sum() {
        0u64 => String::new(),
        n => format!("  summaries {n} of {} tokens each", short(totals.summaries.tokens_each as u64)),
    };
    Some(format!(
        "a fold saves {} tokens and leaves {:.0} %; {:.1} folds per 100 turns{summaries}",
        short(folding.saved_per_fold as u64),
        folding.ratio * 100.0,
        folding.folds_per_100_turns
    ))
}

/// The head of the table.
pub(super) fn titles(width: usize) -> String {
    let Columns { title, model, bar, recalls } = Columns::for_width(width);
    let view = if bar < 14 { "VIEW" } else { "VIEW IN WINDOW" };
    let model = if model > 0 { format!("  {:<16}", "MODEL") } else { String::new() };
    let recalls = if recalls > 0 { format!("{:>8}", "RECALLS") } else { String::new() };
    format!(
        "{:<title$}{model}  {view:<bar$}  {:>10} {:>6}{recalls}{:>7}{:>8}{:>9}{:>6}",
        "SESSION", "TOKENS", "FOLDS", "MISSES", "AWAY", "SAVED", "IDLE"
    )
}

/// The line of a session.
pub(super) fn line(session: &SessionStatus, width: usize) -> Text {
    let columns = Columns::for_width(width);
    let saved = session.dollars.map_or("-".to_owned(), |money| dollars(money.saved));
    let saved_style = session.dollars.map_or(Style::new(), |money| color_of(money.saved));
    let idle = if session.in_flight > 0 { "now".to_owned() } else { span(session.idle_seconds) };
    let tokens = format!("{}/{}", short(view_tokens(session)), short(session.window));
    let mark = if needs_attention(session) { paint(style::WARNING, "!") } else { Text::from(" ") };
    let model = if columns.model > 0 { format!("  {}", fit(&session.model, 16)) } else { String::new() };
    let recalls = if columns.recalls > 0 { format!("{:>8}", session.recalls) } else { String::new() };
    let (folds, misses, away) = (session.folds, session.misses, short(session.folded_away));
    text![
        format!("{}{model}  ", fit(title(session), columns.title)),
        bar(session, columns.bar),
        format!("  {tokens:>10}"),
        mark,
        format!("{folds:>6}{recalls}{misses:>7}{away:>8}"),
        paint(saved_style, format!("{saved:>9}")),
        format!("{idle:>6}"),
    ]
}

/// The details of a session.
pub(super) fn detail(session: &SessionStatus) -> Vec<Text> {
    let money = |amount: fn(&fanfold_proxy::meter::Dollars) -> f64| {
        session.dollars.as_ref().map_or("no known price".to_owned(), |money| dollars(amount(money)))
    };
    let rows = [
        ("session", session.id.clone()),
        ("first words", title(session).to_owned()),
        ("model", session.model.clone()),
        ("format", session.format.clone()),
        (
            "window",
            format!("{} tokens, {} of them for requests", thousands(session.window), thousands(session.room)),
        ),
        ("unfolded", format!("{} tokens", thousands(session.came))),
        ("sent", format!("{} tokens", thousands(session.sent))),
        ("pressure", pressure(session)),
        ("folds", format!("{}, {} of them since the start", session.folds, session.folds_here)),
        ("folded away", format!("{} tokens since the start", thousands(session.folded_away))),
        ("summaries", format!("{} since the start", session.summaries)),
        ("recalls", session.recalls.to_string()),
        ("misses", format!("{} calls repeated because of a fold", session.misses)),
        ("requests", format!("{}, {} in progress", session.requests, session.in_flight)),
        ("cost", format!("{} folded, {} unfolded", money(|m| m.sent), money(|m| m.came))),
        ("saved", money(|m| m.saved)),
        ("idle", span(session.idle_seconds)),
    ];
    let line = |(name, value): (&str, String)| Text::from(format!("{name:<15}{value}"));
    let mut lines: Vec<Text> = rows.into_iter().map(line).collect();
    lines.push(Text::default());
    lines.push(paint(style::DIM, format!("fanfold sessions show {}", session.id)));
    lines
}

/// The help line.
pub(super) fn keys(order: Order) -> Text {
    paint(style::DIM, format!("q quit   up/down select   enter details   s order ({})", order.name()))
}

fn title(session: &SessionStatus) -> &str {
    if session.words.is_empty() { &session.id } else { &session.words }
}

/// The size of the view; if none fits, that of the smallest possible one.
fn view_tokens(session: &SessionStatus) -> u64 {
    session.needs.unwrap_or(session.sent)
}

/// True if the view is nearly full, or does not fit.
fn needs_attention(session: &SessionStatus) -> bool {
    session.needs.is_some() || matches!(session.pressure.as_str(), "warning" | "critical")
}

fn pressure(session: &SessionStatus) -> String {
    let percent = view_tokens(session) * 100 / session.room.max(1);
    match session.needs {
        Some(needs) => format!(
            "nothing fits: at least {} tokens are needed, but the room is {}",
            thousands(needs),
            thousands(session.room)
        ),
        None => format!("{percent} % of the room is full"),
    }
}

fn color_of(saved: f64) -> Style {
    if saved < 0.0 { style::WARNING } else { style::TAIL }
}

/// A bar of the view and of what was folded, within the window.
fn bar(session: &SessionStatus, width: usize) -> Text {
    let cells = |tokens: u64| {
        let cells = (u128::from(tokens) * width as u128).div_ceil(u128::from(session.window.max(1)));
        (cells as usize).min(width)
    };
    let (sent, came) = (cells(view_tokens(session)), cells(session.came));
    let folded = came.saturating_sub(sent);
    let style = if needs_attention(session) { style::WARNING } else { style::VERBATIM };
    text![
        paint(style, "█".repeat(sent)),
        paint(style::DIM, "░".repeat(folded)),
        paint(style::DIM, "·".repeat(width - sent - folded)),
    ]
}

/// Pads or truncates a text to a width.
fn fit(text: &str, width: usize) -> String {
    let text = visible_line(text);
    let n_chars = text.chars().count();
    if n_chars <= width {
        return format!("{text:<width$}");
    }
    let start: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{start}…")
}

/// A number of tokens in at most five columns: `812`, `12.3k`, `1.24m`.
fn short(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..100_000 => format!("{:.1}k", tokens as f64 / 1e3),
        100_000..1_000_000 => format!("{}k", tokens / 1_000),
        _ => format!("{:.2}m", tokens as f64 / 1e6),
    }
}

/// A duration in a few columns: `4s`, `12m`, `3h`, `2d`.
fn span(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

//! The terminal: data on stdout, messages on stderr, colours and widths.
//!
//! Everything for people is a [`Text`], whose control characters are made visible when it is printed.

mod controls; //            control characters made visible
mod text; //                text with styles
pub(crate) mod progress; // progress bars
#[cfg(feature = "network")]
pub(crate) mod log; //      log lines of servers
#[cfg(feature = "network")]
pub(crate) mod signals; //  Ctrl-C and requests to terminate

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use fanfold_core::{Budget, Pressure, Tokens, thousands};
use serde_json::Value;

use crate::failure::{Result, not_written};
use crate::settings::Color;

pub(crate) use self::controls::{Controls, RawFlag, visible_line};
pub(crate) use self::text::{Text, paint, text};

/// The styles of the program's output.
pub(crate) mod style {
    use super::{AnsiColor, Style};

    pub(crate) const BOLD: Style = Style::new().bold();
    pub(crate) const DIM: Style = Style::new().dimmed();
    pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
    pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
    pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();
    pub(crate) const HANDLE: Style = AnsiColor::Magenta.on_default();
    pub(crate) const VERBATIM: Style = AnsiColor::Blue.on_default();
    pub(crate) const CONDENSED: Style = AnsiColor::Cyan.on_default();
    pub(crate) const STUB: Style = AnsiColor::Magenta.on_default();
    pub(crate) const RECORD: Style = AnsiColor::Yellow.on_default();
    pub(crate) const TAIL: Style = AnsiColor::Green.on_default();
}

/// Sets whether both streams use colours.
pub(crate) fn set_color(color: Color) {
    match color {
        // `anstream` checks the terminal, NO_COLOR and CLICOLOR.
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    }
    .write_global();
}

/// The width to print in: the terminal's, between 40 and 100 columns; 80 without a terminal.
pub(crate) fn width() -> usize {
    let width = terminal_size::terminal_size_of(io::stderr()).map_or(80, |(width, _)| usize::from(width.0));
    width.clamp(40, 100)
}

/// Prints text for a person on stdout, with colours where they are wanted.
pub(crate) fn print_page(page: impl Into<Text>) -> Result<()> {
    print_text(page, Controls::Visible)
}

/// Prints text for a person on stdout, with its control characters as wanted.
pub(crate) fn print_text(text: impl Into<Text>, controls: Controls) -> Result<()> {
    let text = text.into();
    if controls == Controls::Visible {
        return print_to(&mut anstream::stdout().lock(), &text.render(controls));
    }
    // Where no colours are wanted, `anstream` would remove the codes in the content as well.
    let mut stdout = io::stdout().lock();
    let has_colors = AutoStream::choice(&stdout) != ColorChoice::Never;
    let text = if has_colors { text } else { text.plain() };
    print_to(&mut stdout, &text.render(controls))
}

/// Prints a JSON value on stdout, indented.
pub(crate) fn print_json(value: &Value) -> Result<()> {
    print_own_json(format_args!("{value:#}"))
}

/// Prints JSON and a line end on stdout. Its strings have the same values, but no control characters.
pub(crate) fn print_own_json(json: impl Display) -> Result<()> {
    print_to(&mut io::stdout().lock(), &controls::escape_json(&format!("{json}\n")))
}

/// Prints JSON from elsewhere on stdout, byte for byte. At a terminal, control characters in its strings are escaped.
pub(crate) fn print_body(json: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    if stdout.is_terminal() {
        return print_to(&mut stdout, &controls::escape_json(json));
    }
    print_to(&mut stdout, json)
}

/// Prints an original on stdout, byte for byte. At a terminal, control characters are printed as wanted.
pub(crate) fn print_original(content: &str, controls: Controls) -> Result<()> {
    let mut stdout = io::stdout().lock();
    if controls == Controls::Raw || !stdout.is_terminal() {
        return print_to(&mut stdout, content);
    }
    print_to(&mut stdout, &Text::from(content).render(controls))
}

fn print_to(stdout: &mut dyn io::Write, content: &str) -> Result<()> {
    match stdout.write_all(content.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        written => written.map_err(|error| not_written(Path::new("stdout"), &error)),
    }
}

/// Prints a message on stderr. Errors are ignored, because there is nowhere to report them.
pub(crate) fn print_message(message: impl Into<Text>) {
    let mut stderr = anstream::stderr().lock();
    let _ = stderr.write_all(message.into().render(Controls::Visible).as_bytes());
}

/// Prints a JSON value as a message on stderr, indented.
pub(crate) fn print_json_message(value: &Value) {
    print_message(&*controls::escape_json(&format!("{value:#}\n")));
}

/// Reports to the person at the terminal, on stderr.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reporter {
    /// True if only warnings are printed.
    pub(crate) is_quiet: bool,
}

impl Reporter {
    /// Prints a line.
    pub(crate) fn line(self, line: impl Into<Text>) {
        if !self.is_quiet {
            print_message(text![line, "\n"]);
        }
    }

    /// Prints a remark: `note: …`.
    pub(crate) fn note(self, remark: &str) {
        self.line(text![paint(style::DIM, "note:"), " ", remark]);
    }

    /// Prints a warning, even with `--quiet`.
    pub(crate) fn warn(self, warning: &str) {
        print_message(text![paint(style::WARNING, "warning:"), " ", warning, "\n"]);
    }

    /// Says at a terminal that stdin is being read.
    pub(crate) fn announce_stdin(self) {
        if io::stdin().is_terminal() {
            self.line("reading from stdin; Ctrl-D ends it");
        }
    }

    /// Reports how full the room is, as a warning from 85 % on.
    pub(crate) fn pressure(self, level: Pressure, view: Tokens, budget: Budget) {
        let room = budget.room();
        if level == Pressure::None {
            return;
        }
        let percent = view.0 * 100 / room.0.max(1);
        let text = format!("{percent} % of the room is full: {view} of {room} tokens ({level})");
        if level >= Pressure::Warning { self.warn(&text) } else { self.note(&text) }
    }
}

/// Lines of a name, a right-aligned number, and a remark.
pub(crate) fn number_rows(rows: impl IntoIterator<Item = (&'static str, String, String)>) -> Text {
    let line = |(name, number, remark): (&str, String, String)| {
        let number = format!("{name:<11}{number:>10}");
        if remark.is_empty() {
            text![number, "\n"]
        } else {
            text![number, "  ", paint(style::DIM, remark), "\n"]
        }
    };
    rows.into_iter().map(line).collect()
}

/// A number and what it counts: `1 session`, `2 sessions`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    format!("{} {noun}{}", thousands(n as u64), if n == 1 { "" } else { "s" })
}

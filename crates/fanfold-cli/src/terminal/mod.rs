//! The terminal: data on stdout, messages on stderr, colours and widths.

pub(crate) mod progress; // progress bars
#[cfg(feature = "network")]
pub(crate) mod log; //      log lines of servers
#[cfg(feature = "network")]
pub(crate) mod signals; //  Ctrl-C and requests to terminate

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use fanfold_core::{Budget, Pressure, Tokens, thousands};
use serde_json::Value;

use crate::failure::{Result, not_written};
use crate::settings::Color;

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

/// A text in a style. `anstream` removes the colours where they are not wanted.
pub(crate) fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
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

/// Prints data on stdout. Exits quietly if the reader has closed the pipe.
pub(crate) fn print_data(content: &str) -> Result<()> {
    print_to(&mut io::stdout().lock(), content)
}

/// Prints a JSON value on stdout, indented.
pub(crate) fn print_json(value: &Value) -> Result<()> {
    print_data(&format!("{value:#}\n"))
}

/// Prints text for a person on stdout, with colours where they are wanted.
pub(crate) fn print_page(content: &str) -> Result<()> {
    print_to(&mut anstream::stdout().lock(), content)
}

fn print_to(stdout: &mut dyn io::Write, content: &str) -> Result<()> {
    match stdout.write_all(content.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        written => written.map_err(|error| not_written(Path::new("stdout"), &error)),
    }
}

/// Prints a message on stderr. Errors are ignored, because there is nowhere to report them.
pub(crate) fn print_message(content: &str) {
    let mut stderr = anstream::stderr().lock();
    let _ = stderr.write_all(content.as_bytes());
}

/// Reports to the person at the terminal, on stderr.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reporter {
    /// True if only warnings are printed.
    pub(crate) is_quiet: bool,
}

impl Reporter {
    /// Prints a line.
    pub(crate) fn line(self, text: &str) {
        if !self.is_quiet {
            print_message(&format!("{text}\n"));
        }
    }

    /// Prints a remark: `note: …`.
    pub(crate) fn note(self, text: &str) {
        self.line(&format!("{} {text}", paint(style::DIM, "note:")));
    }

    /// Prints a warning, even with `--quiet`.
    pub(crate) fn warn(self, text: &str) {
        print_message(&format!("{} {text}\n", paint(style::WARNING, "warning:")));
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
pub(crate) fn number_rows(rows: impl IntoIterator<Item = (&'static str, String, String)>) -> String {
    let line = |(name, number, remark): (&str, String, String)| match remark.is_empty() {
        true => format!("{name:<11}{number:>10}\n"),
        false => format!("{name:<11}{number:>10}  {}\n", paint(style::DIM, remark)),
    };
    rows.into_iter().map(line).collect()
}

/// A number and what it counts: `1 session`, `2 sessions`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    format!("{} {noun}{}", thousands(n as u64), if n == 1 { "" } else { "s" })
}

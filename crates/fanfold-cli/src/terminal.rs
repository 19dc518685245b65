//! Colours and widths, and the two ways out: data on stdout, words for people on stderr.

use std::io::{self, Write as _};
use std::path::Path;

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use fanfold_core::thousands;

use crate::failure::not_written;
use crate::settings::Color;

/// How things look.
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
    pub(crate) const DIGEST: Style = AnsiColor::Yellow.on_default();
    pub(crate) const TAIL: Style = AnsiColor::Green.on_default();
}

/// A text in a style. The colours are taken out again where they are not wanted.
pub(crate) fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Decides about colours, once, for both streams.
pub(crate) fn set_color(color: Color) {
    match color {
        // `anstream` looks at the terminal, NO_COLOR and CLICOLOR by itself.
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    }
    .write_global();
}

/// The width to write in: the terminal's, at most 100 columns; 80 where there is none.
pub(crate) fn width() -> usize {
    let width = terminal_size::terminal_size_of(io::stderr()).map_or(80, |(width, _)| usize::from(width.0));
    width.clamp(40, 100)
}

/// Writes data. A reader that has gone away ends the program quietly.
pub(crate) fn data(content: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    quietly(stdout.write_all(content.as_bytes()).and_then(|()| stdout.flush()))
}

/// Writes something that a person asked to see, with colours where they are wanted.
pub(crate) fn page(content: &str) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout().lock();
    quietly(stdout.write_all(content.as_bytes()).and_then(|()| stdout.flush()))
}

/// Says something to a person, beside the data. If nobody can hear it, so be it.
pub(crate) fn say(content: &str) {
    let mut stderr = anstream::stderr().lock();
    let _ = stderr.write_all(content.as_bytes());
}

fn quietly(written: io::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => Ok(other.map_err(|error| not_written(Path::new("stdout"), &error))?),
    }
}

/// A number and what it counts: `1 session`, `2 sessions`.
pub(crate) fn count(n: usize, one: &str) -> String {
    format!("{} {one}{}", thousands(n as u64), if n == 1 { "" } else { "s" })
}

//! Shows the status in a terminal in raw mode: reads it every second and redraws the screen when it changes.
//!
//! Raw mode uses `rustix`, which is a dependency anyway; a library for terminal interfaces would add sixty crates
//! for a table.

use std::io::{self, Read as _, Write as _};
use std::time::{Duration, Instant};

use fanfold_proxy::meter::Status;
use rustix::termios::{OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use tokio::signal::unix::{SignalKind, signal};

use super::StatusSource;
use super::screen::{Key, Screen, ScreenSize};
use crate::failure::Result;
use crate::terminal::Text;

/// The interval between two reads of the status.
const REFRESH: Duration = Duration::from_secs(1);
/// Maximum width and height, whatever the terminal reports.
const MAX_SIZE: usize = 500;

/// Shows the status until a key or a signal ends it.
pub(super) fn run(source: &StatusSource, first: Status) -> Result<()> {
    let mut screen = Screen::new(first, source.client.address());
    let mut ends = source.runtime.block_on(async {
        io::Result::Ok([signal(SignalKind::terminate())?, signal(SignalKind::hangup())?])
    })?;
    let raw = RawMode::enter()?;
    let mut updated = Instant::now();
    let mut drawn = String::new();
    let mut is_running = true;
    while is_running {
        draw(&screen, &mut drawn)?;
        for key in raw.keys()? {
            is_running &= screen.press(key);
            draw(&screen, &mut drawn)?;
        }
        if updated.elapsed() >= REFRESH {
            screen.update(source.status().map_err(|error| error.to_string()));
            updated = Instant::now();
        }
        for end in &mut ends {
            let was_received = source
                .runtime
                .block_on(async { tokio::time::timeout(Duration::ZERO, end.recv()).await.is_ok() });
            is_running &= !was_received;
        }
    }
    drop(raw);
    Ok(())
}

/// Draws the screen, if it has changed.
fn draw(screen: &Screen, drawn: &mut String) -> io::Result<()> {
    let lines = screen.lines(size());
    // Clearing each line after its end, instead of the whole screen, avoids flicker.
    let mut frame = "\x1b[H".to_owned();
    let lines: Vec<String> = lines.iter().map(Text::render_line).collect();
    frame.push_str(&lines.join("\x1b[K\r\n"));
    frame.push_str("\x1b[K\x1b[J");
    if frame == *drawn {
        return Ok(());
    }
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(frame.as_bytes())?;
    stdout.flush()?;
    *drawn = frame;
    Ok(())
}

fn size() -> ScreenSize {
    let (width, height) = terminal_size::terminal_size_of(io::stdout())
        .map_or((100, 30), |(width, height)| (usize::from(width.0), usize::from(height.0)));
    ScreenSize { width: width.clamp(40, MAX_SIZE), height: height.clamp(8, MAX_SIZE) }
}

/// The terminal in raw mode. Restored on drop.
struct RawMode {
    before: Termios,
}

impl RawMode {
    fn enter() -> io::Result<RawMode> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        // A read returns after a tenth of a second, even without input.
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        raw.special_codes[SpecialCodeIndex::VTIME] = 1;
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        let raw = RawMode { before };
        // The alternate screen, without a cursor and without line wrapping.
        write("\x1b[?1049h\x1b[?25l\x1b[?7l")?;
        Ok(raw)
    }

    /// The keys pressed within a tenth of a second.
    fn keys(&self) -> io::Result<Vec<Key>> {
        let mut bytes = [0; 64];
        let n = io::stdin().lock().read(&mut bytes)?;
        Ok(keys(&bytes[..n]))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = write("\x1b[?7h\x1b[?25h\x1b[?1049l");
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

fn write(codes: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(codes.as_bytes())?;
    stdout.flush()
}

/// Decodes bytes read from the terminal to keys; unknown sequences are ignored.
fn keys(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let Some(&first) = rest.first() {
        let (key, length) = match rest {
            [0x1b, b'[' | b'O', b'A', ..] => (Some(Key::Up), 3),
            [0x1b, b'[' | b'O', b'B', ..] => (Some(Key::Down), 3),
            [0x1b, b'[' | b'O', _, ..] => (None, 3),
            _ => (plain_key(first), 1),
        };
        keys.extend(key);
        rest = &rest[length..];
    }
    keys
}

fn plain_key(byte: u8) -> Option<Key> {
    match byte {
        // 3 and 4 are Ctrl-C and Ctrl-D.
        b'q' | b'Q' | 3 | 4 => Some(Key::Quit),
        b's' | b'S' => Some(Key::Sort),
        b'k' => Some(Key::Up),
        b'j' => Some(Key::Down),
        b'\r' | b'\n' => Some(Key::Enter),
        0x1b | 0x7f | 8 => Some(Key::Back),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_decoded_to_keys() {
        assert_eq!(keys(b"\x1b[A\x1b[Bs\r"), [Key::Up, Key::Down, Key::Sort, Key::Enter]);
        assert_eq!(keys(b"\x1bOA\x1b"), [Key::Up, Key::Back]);
        assert_eq!(keys(b"\x1b[5~x\x03"), [Key::Quit]);
    }
}

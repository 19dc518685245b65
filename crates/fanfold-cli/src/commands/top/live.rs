//! The terminal: its own screen, keys as they are pressed, redrawn each second.
//!
//! Raw mode comes from `rustix`, which is in the program anyway for the size of the terminal; a library for whole
//! screens would add sixty crates for a table.

use std::io::{self, Read as _, Write as _};
use std::time::{Duration, Instant};

use fanfold_proxy::meter::Status;
use rustix::termios::{OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use tokio::signal::unix::{SignalKind, signal};

use super::Source;
use super::screen::{Key, Screen, Size};

/// How long between two looks.
const REFRESH: Duration = Duration::from_secs(1);
/// What is shown may not be wider or higher than this, whatever a terminal says of itself.
const MOST: usize = 500;

/// Shows a proxy until a key or a signal ends it.
pub(super) fn run(source: &Source, first: Status) -> anyhow::Result<()> {
    let mut screen = Screen::new(first, source.watcher.address());
    let mut ends = source.runtime.block_on(async {
        io::Result::Ok([signal(SignalKind::terminate())?, signal(SignalKind::hangup())?])
    })?;
    let raw = Raw::enter()?;
    let mut looked = Instant::now();
    let mut drawn = String::new();
    let mut is_on = true;
    while is_on {
        draw(&screen, &mut drawn)?;
        for key in raw.keys()? {
            is_on &= screen.on(key);
            draw(&screen, &mut drawn)?;
        }
        if looked.elapsed() >= REFRESH {
            screen.told(source.status().map_err(|error| error.to_string()));
            looked = Instant::now();
        }
        for end in &mut ends {
            let has_come = source
                .runtime
                .block_on(async { tokio::time::timeout(Duration::ZERO, end.recv()).await.is_ok() });
            is_on &= !has_come;
        }
    }
    drop(raw);
    Ok(())
}

/// Draws what has changed since it was drawn last.
fn draw(screen: &Screen, drawn: &mut String) -> io::Result<()> {
    let lines = screen.lines(size());
    // Each line is cleared behind its end, so nothing flickers and nothing old stays.
    let mut frame = "\x1b[H".to_owned();
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

fn size() -> Size {
    let (width, height) = terminal_size::terminal_size_of(io::stdout())
        .map_or((100, 30), |(width, height)| (usize::from(width.0), usize::from(height.0)));
    Size { width: width.clamp(40, MOST), height: height.clamp(8, MOST) }
}

/// A terminal that gives each key at once. It is as before when this goes.
struct Raw {
    before: Termios,
}

impl Raw {
    fn enter() -> io::Result<Raw> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        // A read waits a tenth of a second and then says that there is nothing.
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        raw.special_codes[SpecialCodeIndex::VTIME] = 1;
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        let raw = Raw { before };
        // Its own screen, without a cursor and without wrapped lines.
        write("\x1b[?1049h\x1b[?25l\x1b[?7l")?;
        Ok(raw)
    }

    /// The keys that were pressed, or none after a tenth of a second.
    fn keys(&self) -> io::Result<Vec<Key>> {
        let mut bytes = [0; 64];
        let n = io::stdin().lock().read(&mut bytes)?;
        Ok(keys(&bytes[..n]))
    }
}

impl Drop for Raw {
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

/// What bytes of a terminal mean.
fn keys(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let Some(&first) = rest.first() {
        let (key, length) = match rest {
            [0x1b, b'[' | b'O', b'A', ..] => (Some(Key::Up), 3),
            [0x1b, b'[' | b'O', b'B', ..] => (Some(Key::Down), 3),
            [0x1b, b'[' | b'O', _, ..] => (None, 3),
            _ => (plain(first), 1),
        };
        keys.extend(key);
        rest = &rest[length..];
    }
    keys
}

fn plain(byte: u8) -> Option<Key> {
    match byte {
        // Ctrl-C and Ctrl-D come as bytes here.
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
    fn bytes_are_keys() {
        assert_eq!(keys(b"\x1b[A\x1b[Bs\r"), [Key::Up, Key::Down, Key::Sort, Key::Enter]);
        assert_eq!(keys(b"\x1bOA\x1b"), [Key::Up, Key::Back]);
        assert_eq!(keys(b"\x1b[5~x\x03"), [Key::Quit]);
    }
}

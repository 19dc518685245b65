//! Reads a conversation from a file or from stdin.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use flate2::read::MultiGzDecoder;

use crate::failure::Failure;

/// What was read, and what to call it.
pub(crate) struct Input {
    pub(crate) text: String,
    pub(crate) name: String,
}

/// Reads a file; `-` is stdin. What is packed with gzip is unpacked.
pub(crate) fn read(path: &Path) -> anyhow::Result<Input> {
    let is_stdin = path == Path::new("-");
    let name = if is_stdin { "stdin".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    if is_stdin {
        std::io::stdin().lock().read_to_end(&mut bytes).context("stdin could not be read")?;
    } else {
        bytes = std::fs::read(path).map_err(|error| not_read(&name, &error))?;
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = Vec::new();
        MultiGzDecoder::new(&bytes[..])
            .read_to_end(&mut unpacked)
            .with_context(|| format!("{name} could not be unpacked"))?;
        bytes = unpacked;
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::new(
            format!("{name}: not UTF-8 at byte {at}"),
            "JSON is UTF-8; convert the file, e.g. with iconv",
        )
    })?;
    Ok(Input { text, name })
}

fn not_read(name: &str, error: &std::io::Error) -> Failure {
    let hint = match error.kind() {
        std::io::ErrorKind::NotFound => "give the path of a conversation, or `-` for stdin",
        std::io::ErrorKind::IsADirectory => "give a file, not a directory",
        _ => "check that the file may be read",
    };
    Failure::new(format!("{name} could not be read: {}", reason(error)), hint)
}

/// The system's words without its number.
fn reason(error: &std::io::Error) -> String {
    let words = error.to_string();
    words.split(" (os error").next().unwrap_or_default().to_lowercase()
}

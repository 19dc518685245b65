//! Reads a conversation from a file or from stdin.

use std::io::Read as _;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::failure::{Failure, Result, not_read};
use crate::terminal::Reporter;

/// A text and where it came from.
pub(crate) struct Input {
    pub(crate) text: String,
    /// The path, or `stdin`.
    pub(crate) name: String,
}

/// Reads a file; `-` is stdin. Decompresses gzip.
pub(crate) fn read(path: &Path, reporter: Reporter) -> Result<Input> {
    let is_stdin = path == Path::new("-");
    let name = if is_stdin { "stdin".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    if is_stdin {
        reporter.announce_stdin();
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        read.map_err(|error| Failure::caused_by("stdin could not be read", &error))?;
    } else {
        bytes = std::fs::read(path).map_err(|error| not_read(path, &error))?;
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = Vec::new();
        MultiGzDecoder::new(&bytes[..]).read_to_end(&mut unpacked).map_err(|error| {
            Failure::new(format!("{name} could not be unpacked: {error}"), "check the file with `gzip -t`")
        })?;
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

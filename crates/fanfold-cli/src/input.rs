//! Reads a conversation from a file or from stdin.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use flate2::read::MultiGzDecoder;

use crate::failure::{Failure, not_read};

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

//! Reads a conversation from a file or from stdin.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use fanfold_core::thousands;
use flate2::read::MultiGzDecoder;

use crate::failure::{Failure, Result, not_read};
use crate::terminal::Reporter;

/// A text and where it came from.
pub(crate) struct Input {
    pub(crate) text: String,
    /// The path, or `stdin`.
    pub(crate) name: String,
}

/// Maximum size of data of unknown length: a stream, a device such as `/dev/zero`, decompressed data.
const MAX_STREAM: u64 = 512 << 20;

/// Reads a file; `-` is stdin. Decompresses gzip.
pub(crate) fn read(path: &Path, reporter: Reporter) -> Result<Input> {
    let is_stdin = path == Path::new("-");
    let name = if is_stdin { "stdin".to_owned() } else { path.display().to_string() };
    let mut bytes = if is_stdin {
        reporter.announce_stdin();
        read_stream(std::io::stdin().lock())
            .map_err(|error| Failure::caused_by("stdin could not be read", &error))?
    } else {
        read_file(path)?
    };
    if bytes.starts_with(&[0x1f, 0x8b]) {
        bytes = read_stream(MultiGzDecoder::new(&bytes[..])).map_err(|error| {
            Failure::new(format!("{name} could not be unpacked: {error}"), "check the file with `gzip -t`")
        })?;
    }
    Ok(Input { text: utf8(bytes, &name)?, name })
}

/// The text of a file of this name.
pub(crate) fn utf8(bytes: Vec<u8>, name: &str) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::new(format!("{name}: not UTF-8 at byte {at}"), "convert the file to UTF-8, e.g. with iconv")
    })
}

/// Reads all bytes of a file that the user has named, which need not be a regular file.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>> {
    let read = || {
        let mut file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return read_stream(file);
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|error| not_read(path, &error))
}

/// Reads a stream to its end, which it need not have.
fn read_stream(stream: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(MAX_STREAM + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_STREAM {
        let message = format!("it does not end after {} bytes", thousands(MAX_STREAM));
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

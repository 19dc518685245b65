//! Writes files so that nobody ever finds half of one.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, not_written};

/// Writes a file whole or not at all: a temporary file beside it, renamed when all of it is there.
///
/// What is no regular file, such as `/dev/null` or a named pipe, is written to as it is.
pub(crate) fn write_file(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let not_written = |error: std::io::Error| not_written(path, &error);
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let known = std::fs::metadata(&target).ok();
    if known.as_ref().is_some_and(|known| !known.is_file()) {
        return std::fs::write(&target, content).map_err(not_written);
    }
    let directory = directory_of(&target);
    let mut builder = tempfile::Builder::new();
    builder.prefix(".fanfold-");
    // A new file gets what the user's mask leaves, a replaced one keeps what it had.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(&directory).map_err(not_written)?;
    if let Some(known) = known {
        file.as_file().set_permissions(known.permissions()).map_err(not_written)?;
    }
    file.write_all(content).map_err(not_written)?;
    file.as_file().sync_all().map_err(not_written)?;
    file.persist(&target).map_err(|error| not_written(error.error))?;
    Ok(())
}

/// Whether two paths name the same file, or would once it is there. Where nothing can be lost, such as in `/dev/null`,
/// they do not.
pub(crate) fn is_same_file(a: &Path, b: &Path) -> bool {
    match (known_by(a), known_by(b)) {
        (Some(a), Some(b)) => a == b,
        _ => false,
    }
}

/// Whether a path names the file that a conversation is read from; `-` is whatever stdin is.
pub(crate) fn is_input(input: &Path, path: &Path) -> bool {
    if input != Path::new("-") {
        return is_same_file(input, path);
    }
    #[cfg(unix)]
    {
        use std::os::fd::AsFd as _;
        let stdin = std::io::stdin().as_fd().try_clone_to_owned().map(std::fs::File::from);
        let known = stdin.and_then(|stdin| stdin.metadata()).ok().filter(std::fs::Metadata::is_file);
        known.is_some_and(|known| known_by(path) == Some(number_of(&known)))
    }
    #[cfg(not(unix))]
    false
}

/// What a file is known by, whatever it is called.
#[derive(PartialEq, Eq)]
enum KnownBy {
    /// Its device and its number there.
    #[cfg(unix)]
    Number(u64, u64),
    /// Where it is, or would be.
    Place(PathBuf),
}

fn known_by(path: &Path) -> Option<KnownBy> {
    let Ok(known) = std::fs::metadata(path) else {
        let directory = std::fs::canonicalize(directory_of(path)).ok()?;
        return Some(KnownBy::Place(directory.join(path.file_name()?)));
    };
    if !known.is_file() {
        return None;
    }
    #[cfg(unix)]
    return Some(number_of(&known));
    #[cfg(not(unix))]
    std::fs::canonicalize(path).ok().map(KnownBy::Place)
}

#[cfg(unix)]
fn number_of(known: &std::fs::Metadata) -> KnownBy {
    use std::os::unix::fs::MetadataExt as _;
    KnownBy::Number(known.dev(), known.ino())
}

fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

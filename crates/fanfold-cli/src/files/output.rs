//! Writes files atomically.

use std::fs::Permissions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::failure::{Result, not_written};

/// Writes a file atomically: a temporary file in the same directory, renamed when it is complete.
///
/// A new file is readable by its owner only, because it may contain a conversation; a replaced one keeps its permissions.
/// A path that is not a regular file, such as `/dev/null` or a named pipe, is written to directly.
pub(crate) fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    let not_written = |error: std::io::Error| not_written(path, &error);
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let metadata = std::fs::metadata(&target).ok();
    if metadata.as_ref().is_some_and(|metadata| !metadata.is_file()) {
        return std::fs::write(&target, content).map_err(not_written);
    }
    let mut builder = tempfile::Builder::new();
    let mut file = builder.prefix(".fanfold-").tempfile_in(directory_of(&target)).map_err(not_written)?;
    if let Some(permissions) = metadata.map_or_else(private, |metadata| Some(metadata.permissions())) {
        file.as_file().set_permissions(permissions).map_err(not_written)?;
    }
    file.write_all(content).map_err(not_written)?;
    file.as_file().sync_all().map_err(not_written)?;
    file.persist(&target).map_err(|error| not_written(error.error))?;
    Ok(())
}

/// The permissions of a new file, whatever the umask.
#[cfg(unix)]
fn private() -> Option<Permissions> {
    use std::os::unix::fs::PermissionsExt as _;
    Some(Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn private() -> Option<Permissions> {
    None
}

/// True if two paths name the same regular file, or would once it exists.
pub(crate) fn is_same_file(a: &Path, b: &Path) -> bool {
    match (identify(a), identify(b)) {
        (Some(a), Some(b)) => a == b,
        _ => false,
    }
}

/// True if a path names the file that a conversation is read from; `-` is the file behind stdin, if it is one.
pub(crate) fn is_input(input: &Path, path: &Path) -> bool {
    if input != Path::new("-") {
        return is_same_file(input, path);
    }
    #[cfg(unix)]
    {
        use std::os::fd::AsFd as _;
        let stdin = std::io::stdin().as_fd().try_clone_to_owned().map(std::fs::File::from);
        let metadata = stdin.and_then(|stdin| stdin.metadata()).ok().filter(std::fs::Metadata::is_file);
        metadata.is_some_and(|metadata| identify(path) == Some(inode(&metadata)))
    }
    #[cfg(not(unix))]
    false
}

/// The identity of a file, independent of its path.
#[derive(PartialEq, Eq)]
enum FileIdentity {
    /// Device and inode number.
    #[cfg(unix)]
    Inode(u64, u64),
    /// The canonical path.
    Path(PathBuf),
}

/// The identity of a regular file, or of a file that does not exist yet.
fn identify(path: &Path) -> Option<FileIdentity> {
    let Ok(metadata) = std::fs::metadata(path) else {
        let directory = std::fs::canonicalize(directory_of(path)).ok()?;
        return Some(FileIdentity::Path(directory.join(path.file_name()?)));
    };
    if !metadata.is_file() {
        return None;
    }
    #[cfg(unix)]
    return Some(inode(&metadata));
    #[cfg(not(unix))]
    std::fs::canonicalize(path).ok().map(FileIdentity::Path)
}

#[cfg(unix)]
fn inode(metadata: &std::fs::Metadata) -> FileIdentity {
    use std::os::unix::fs::MetadataExt as _;
    FileIdentity::Inode(metadata.dev(), metadata.ino())
}

fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

//! The memory files. A change holds a lock, replaces the whole file and keeps the previous text as `.bak`.

pub(crate) mod entries;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::files::entries::{EntryChange, EntryError, apply_changes};

/// One of the memory files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryFile {
    /// Notes about the work.
    Notes,
    /// Notes about the user.
    User,
}

impl MemoryFile {
    /// All memory files.
    pub const ALL: [MemoryFile; 2] = [MemoryFile::Notes, MemoryFile::User];

    /// The name of its file.
    pub fn file_name(self) -> &'static str {
        match self {
            MemoryFile::Notes => "MEMORY.md",
            MemoryFile::User => "USER.md",
        }
    }

    /// Maximum number of characters. The whole file is part of each request.
    pub fn limit(self) -> usize {
        match self {
            MemoryFile::Notes => 2_200,
            MemoryFile::User => 1_375,
        }
    }
}

/// The result of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeOutcome {
    /// The new text of the file.
    pub text: String,
    /// True if it differs from the previous text.
    pub is_changed: bool,
}

/// Why a file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The change is invalid.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// The file could not be read or written.
    #[error("{} could not be {action}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The failed action, as a participle.
        action: &'static str,
        /// The cause.
        error: io::Error,
    },
}

/// The memory files in a folder.
#[derive(Debug, Clone)]
pub struct MemoryFiles {
    folder: PathBuf,
}

impl MemoryFiles {
    /// The files in a folder, which may not exist yet.
    pub fn new(folder: &Path) -> MemoryFiles {
        MemoryFiles { folder: folder.to_owned() }
    }

    /// The path of a file.
    pub fn path(&self, file: MemoryFile) -> PathBuf {
        self.folder.join(file.file_name())
    }

    /// The text of a file; empty if the file does not exist.
    pub fn read(&self, file: MemoryFile) -> Result<String, ChangeError> {
        let path = self.path(file);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(ChangeError::File { path, action: "read", error }),
        }
    }

    /// Applies all changes or none under a lock, and keeps the previous text as `.bak`.
    pub fn change(&self, file: MemoryFile, changes: &[EntryChange]) -> Result<ChangeOutcome, ChangeError> {
        let path = self.path(file);
        let failed = |action| move |error| ChangeError::File { path: self.path(file), action, error };
        fs::create_dir_all(&self.folder).map_err(failed("made room for"))?;
        // The lock is a file of its own, since the memory file is replaced.
        let _lock = self.lock(file).map_err(failed("locked"))?;
        let before = self.read(file)?;
        let text = apply_changes(&before, changes, file.limit())?;
        let is_changed = text != before;
        if is_changed {
            if !before.is_empty() {
                self.replace(&path.with_extension("md.bak"), &before).map_err(failed("kept"))?;
            }
            self.replace(&path, &text).map_err(failed("written"))?;
        }
        Ok(ChangeOutcome { text, is_changed })
    }

    fn lock(&self, file: MemoryFile) -> io::Result<File> {
        let path = self.folder.join(format!(".{}.lock", file.file_name()));
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let lock = options.open(path)?;
        lock.lock()?;
        Ok(lock)
    }

    /// Replaces a file atomically.
    fn replace(&self, path: &Path, text: &str) -> io::Result<()> {
        let mut new = tempfile::NamedTempFile::new_in(&self.folder)?;
        new.write_all(text.as_bytes())?;
        new.as_file().sync_all()?;
        if let Ok(metadata) = fs::metadata(path) {
            new.as_file().set_permissions(metadata.permissions())?;
        }
        new.persist(path).map_err(|error| error.error)?;
        // Make the new name durable as well.
        File::open(&self.folder)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::files::entries::entries;

    fn add(entry: &str) -> [EntryChange; 1] {
        [EntryChange::Add(entry.to_owned())]
    }

    #[test]
    fn the_previous_text_is_kept_as_backup() {
        let folder = tempfile::tempdir().unwrap();
        let memory = MemoryFiles::new(&folder.path().join("not/there/yet"));
        assert_eq!(memory.read(MemoryFile::Notes).unwrap(), "");
        assert!(memory.change(MemoryFile::Notes, &add("one")).unwrap().is_changed);
        assert!(!memory.change(MemoryFile::Notes, &add("one")).unwrap().is_changed);
        memory.change(MemoryFile::Notes, &add("two")).unwrap();
        assert_eq!(entries(&memory.read(MemoryFile::Notes).unwrap()), ["one", "two"]);
        let kept = fs::read_to_string(memory.path(MemoryFile::Notes).with_extension("md.bak")).unwrap();
        assert_eq!(entries(&kept), ["one"]);
        assert_eq!(memory.read(MemoryFile::User).unwrap(), "", "the other file is unchanged");
    }

    #[cfg(unix)]
    #[test]
    fn all_files_are_private() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let memory = MemoryFiles::new(folder.path());
        memory.change(MemoryFile::Notes, &add("one")).unwrap();
        memory.change(MemoryFile::Notes, &add("two")).unwrap();
        let files = fs::read_dir(folder.path()).unwrap().map(Result::unwrap);
        let modes: Vec<u32> =
            files.map(|file| file.metadata().unwrap().permissions().mode() & 0o777).collect();
        assert_eq!(modes, [0o600; 3], "the file, its backup and its lock");
    }

    #[test]
    fn concurrent_changes_are_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let memory = MemoryFiles::new(folder.path());
        thread::scope(|scope| {
            for writer in 0..8 {
                let memory = &memory;
                scope.spawn(move || {
                    for i in 0..10 {
                        memory.change(MemoryFile::Notes, &add(&format!("entry {writer}.{i}"))).unwrap();
                    }
                });
            }
        });
        let text = memory.read(MemoryFile::Notes).unwrap();
        assert_eq!(entries(&text).len(), 80);
    }

    #[test]
    fn a_rejected_change_leaves_the_file_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let memory = MemoryFiles::new(folder.path());
        memory.change(MemoryFile::User, &add("a person")).unwrap();
        let long = "x".repeat(MemoryFile::User.limit());
        let refused = memory.change(MemoryFile::User, &add(&long)).unwrap_err();
        assert!(matches!(refused, ChangeError::Entry(EntryError::Full { .. })), "{refused}");
        assert_eq!(memory.read(MemoryFile::User).unwrap(), "a person\n");
        // An I/O error names the file.
        fs::create_dir(memory.path(MemoryFile::Notes)).unwrap();
        let failed = memory.change(MemoryFile::Notes, &add("one")).unwrap_err().to_string();
        assert!(failed.contains("MEMORY.md"), "{failed}");
    }
}

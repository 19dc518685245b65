//! The files of memory: changed by one at a time, replaced as a whole, the last one kept beside.

pub(crate) mod entries;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::files::entries::{EntryChange, EntryError, apply_changes};

/// A file of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryFile {
    /// What was learned about the work.
    Notes,
    /// What is known of the person.
    User,
}

impl MemoryFile {
    /// Both of them.
    pub const ALL: [MemoryFile; 2] = [MemoryFile::Notes, MemoryFile::User];

    /// The name of its file.
    pub fn file_name(self) -> &'static str {
        match self {
            MemoryFile::Notes => "MEMORY.md",
            MemoryFile::User => "USER.md",
        }
    }

    /// So many characters it may hold: each request pays for all of them.
    pub fn limit(self) -> usize {
        match self {
            MemoryFile::Notes => 2_200,
            MemoryFile::User => 1_375,
        }
    }
}

/// What came of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeOutcome {
    /// All that the file holds now.
    pub text: String,
    /// Whether that is anything else than before.
    pub is_changed: bool,
}

/// Why a file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The change can't be made.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// The file could not be read or written.
    #[error("{} could not be {what}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// Why not.
        error: io::Error,
    },
}

/// The files of memory in a folder.
#[derive(Debug, Clone)]
pub struct MemoryFiles {
    folder: PathBuf,
}

impl MemoryFiles {
    /// The files in a folder. It need not be there yet.
    pub fn new(folder: &Path) -> MemoryFiles {
        MemoryFiles { folder: folder.to_owned() }
    }

    /// Where a file is.
    pub fn path(&self, book: MemoryFile) -> PathBuf {
        self.folder.join(book.file_name())
    }

    /// What a file holds; nothing if it is not there.
    pub fn read(&self, book: MemoryFile) -> Result<String, ChangeError> {
        let path = self.path(book);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(ChangeError::File { path, what: "read", error }),
        }
    }

    /// Makes changes, all of them or none. Others wait meanwhile; what the file held before is kept as `.bak`.
    pub fn change(&self, book: MemoryFile, changes: &[EntryChange]) -> Result<ChangeOutcome, ChangeError> {
        let path = self.path(book);
        let failed = |what| move |error| ChangeError::File { path: self.path(book), what, error };
        fs::create_dir_all(&self.folder).map_err(failed("made room for"))?;
        // Held until the end of this call. The file itself is replaced, so it can't be what is locked.
        let _lock = self.lock(book).map_err(failed("locked"))?;
        let before = self.read(book)?;
        let text = apply_changes(&before, changes, book.limit())?;
        let is_new = text != before;
        if is_new {
            if !before.is_empty() {
                self.replace(&path.with_extension("md.bak"), &before).map_err(failed("kept"))?;
            }
            self.replace(&path, &text).map_err(failed("written"))?;
        }
        Ok(ChangeOutcome { text, is_changed: is_new })
    }

    fn lock(&self, book: MemoryFile) -> io::Result<File> {
        let path = self.folder.join(format!(".{}.lock", book.file_name()));
        let lock = OpenOptions::new().create(true).append(true).open(path)?;
        lock.lock()?;
        Ok(lock)
    }

    /// Puts another file in the place of one, so that nobody sees half of it.
    fn replace(&self, path: &Path, text: &str) -> io::Result<()> {
        let mut new = tempfile::NamedTempFile::new_in(&self.folder)?;
        new.write_all(text.as_bytes())?;
        new.as_file().sync_all()?;
        if let Ok(there) = fs::metadata(path) {
            new.as_file().set_permissions(there.permissions())?;
        }
        new.persist(path).map_err(|error| error.error)?;
        // The name, too, is on the disk before anybody is told.
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
    fn what_was_there_is_kept_beside() {
        let folder = tempfile::tempdir().unwrap();
        let memory = MemoryFiles::new(&folder.path().join("not/there/yet"));
        assert_eq!(memory.read(MemoryFile::Notes).unwrap(), "");
        assert!(memory.change(MemoryFile::Notes, &add("one")).unwrap().is_changed);
        assert!(!memory.change(MemoryFile::Notes, &add("one")).unwrap().is_changed);
        memory.change(MemoryFile::Notes, &add("two")).unwrap();
        assert_eq!(entries(&memory.read(MemoryFile::Notes).unwrap()), ["one", "two"]);
        let kept = fs::read_to_string(memory.path(MemoryFile::Notes).with_extension("md.bak")).unwrap();
        assert_eq!(entries(&kept), ["one"]);
        assert_eq!(memory.read(MemoryFile::User).unwrap(), "", "the other one is another");
    }

    #[test]
    fn what_others_wrote_meanwhile_stays() {
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
    fn a_refused_change_leaves_the_file_alone() {
        let folder = tempfile::tempdir().unwrap();
        let memory = MemoryFiles::new(folder.path());
        memory.change(MemoryFile::User, &add("a person")).unwrap();
        let long = "x".repeat(MemoryFile::User.limit());
        let refused = memory.change(MemoryFile::User, &add(&long)).unwrap_err();
        assert!(matches!(refused, ChangeError::Entry(EntryError::Full { .. })), "{refused}");
        assert_eq!(memory.read(MemoryFile::User).unwrap(), "a person\n");
        // A file that is a folder is told by its name.
        fs::create_dir(memory.path(MemoryFile::Notes)).unwrap();
        let failed = memory.change(MemoryFile::Notes, &add("one")).unwrap_err().to_string();
        assert!(failed.contains("MEMORY.md"), "{failed}");
    }
}

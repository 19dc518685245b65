//! A file system of two megabytes that tests fill or make read-only.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A small file system in memory, unmounted on drop.
pub(crate) struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// Mounts a disk; `None`, with a message, where this process may not.
    pub(crate) fn mount() -> Option<SmallDisk> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = mount(&["-t", "tmpfs", "-o", "size=2m", "tmpfs"], folder.path());
        if !mounted {
            eprintln!("skipped: no file system can be mounted");
        }
        mounted.then_some(SmallDisk { folder })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Fills the disk to the last byte.
    pub(crate) fn fill(&self) {
        let mut file = fs::File::create(self.path("filler")).unwrap();
        for size in [4096, 1] {
            while file.write_all(&vec![b'x'; size]).is_ok() {}
        }
    }

    pub(crate) fn free(&self) {
        fs::remove_file(self.path("filler")).unwrap();
    }

    pub(crate) fn make_read_only(&self) {
        assert!(mount(&["-o", "remount,ro"], self.folder.path()));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.folder.path()).status();
    }
}

fn mount(arguments: &[&str], folder: &Path) -> bool {
    let status = Command::new("mount").args(arguments).arg(folder).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

//! A connection that is cut at the commit: whether it was written is asked for, and nothing is written twice.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::cluster;
use crate::words::*;

/// Where a connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// The server never sees the commit.
    Before,
    /// The server commits, and its answer is lost.
    After,
}

const COMMIT: &[u8] = b"COMMIT\0";

/// Stands between a store and its server, and cuts so many connections when they commit.
fn stand_between(folder: &Path, server: &str, cut: Cut, n_cuts: Arc<AtomicU32>) {
    let listener = UnixListener::bind(folder.join(".s.PGSQL.5432")).unwrap();
    let server = format!("{server}/.s.PGSQL.5432");
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(client), Ok(server)) = (client, UnixStream::connect(&server)) else { return };
            let n_cuts = n_cuts.clone();
            let (mut answers, mut back) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut answers, &mut back));
            std::thread::spawn(move || forward(client, server, cut, &n_cuts));
        }
    });
}

fn forward(mut client: UnixStream, mut server: UnixStream, cut: Cut, n_cuts: &AtomicU32) {
    let mut bytes = [0; 65536];
    while let Ok(n) = client.read(&mut bytes) {
        if n == 0 {
            break;
        }
        let is_commit = bytes[..n].windows(COMMIT.len()).any(|bytes| bytes == COMMIT);
        let is_cut = is_commit
            && n_cuts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok();
        if is_cut {
            let _ = client.shutdown(std::net::Shutdown::Both);
        }
        if is_cut && cut == Cut::Before {
            break;
        }
        if server.write_all(&bytes[..n]).is_err() {
            break;
        }
    }
    let _ = server.shutdown(std::net::Shutdown::Write);
}

fn check_cut(cut: Cut) {
    let Some(database) = cluster::database() else { return };
    let folder = tempfile::tempdir().unwrap();
    let n_cuts = Arc::new(AtomicU32::new(0));
    stand_between(folder.path(), &cluster::folder_of(&database), cut, n_cuts.clone());
    let name = database.rsplit('/').next().unwrap();
    let address =
        format!("postgres://postgres@{}/{name}", folder.path().display().to_string().replace('/', "%2F"));
    let store = cluster::open(&address);
    write(&*store, vec![create("a")]);
    for word in ["one", "two", "three"] {
        n_cuts.store(1, Ordering::SeqCst);
        let committed = write(&*store, vec![append("a", &[word]), note("a", word, "{}")]);
        assert_eq!((committed.n_new_messages, n_cuts.load(Ordering::SeqCst)), (1, 0), "{cut:?}");
    }
    // As the server itself has it, past the one in between.
    let store = cluster::open(&database);
    assert_eq!(said(&*store, "a"), "one two three", "{cut:?}");
    assert_eq!(session(&*store, "a").n_events, 3);
}

#[test]
fn an_answer_that_is_lost_is_asked_for() {
    check_cut(Cut::After);
}

#[test]
fn a_commit_that_never_came_is_made_again() {
    check_cut(Cut::Before);
}

//! Connections that break at a commit: the store finds out whether the commit succeeded, and writes nothing twice.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::cluster;
use crate::shorthand::*;

/// When a connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CutPoint {
    /// Before the server receives the commit.
    Before,
    /// After the server receives the commit, so that its reply is lost.
    After,
}

const COMMIT: &[u8] = b"COMMIT\0";

/// Starts a proxy in front of a server that breaks the next `n_cuts` connections when they commit.
fn start_cutting_proxy(folder: &Path, server: &str, cut: CutPoint, n_cuts: Arc<AtomicU32>) {
    let listener = UnixListener::bind(folder.join(".s.PGSQL.5432")).unwrap();
    let server = format!("{server}/.s.PGSQL.5432");
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(client), Ok(server)) = (client, UnixStream::connect(&server)) else { return };
            let n_cuts = n_cuts.clone();
            let (mut replies, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut replies, &mut to_client));
            std::thread::spawn(move || forward(client, server, cut, &n_cuts));
        }
    });
}

fn forward(mut client: UnixStream, mut server: UnixStream, cut: CutPoint, n_cuts: &AtomicU32) {
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
        if is_cut && cut == CutPoint::Before {
            break;
        }
        if server.write_all(&bytes[..n]).is_err() {
            break;
        }
    }
    let _ = server.shutdown(std::net::Shutdown::Write);
}

fn check_cut(cut: CutPoint) {
    let Some(database) = cluster::database() else { return };
    let folder = tempfile::tempdir().unwrap();
    let n_cuts = Arc::new(AtomicU32::new(0));
    start_cutting_proxy(folder.path(), &cluster::socket_folder(&database), cut, n_cuts.clone());
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
    // Read from the server directly, without the proxy.
    let store = cluster::open(&database);
    assert_eq!(contents(&*store, "a"), "one two three", "{cut:?}");
    assert_eq!(session(&*store, "a").n_events, 3);
}

#[test]
fn commit_with_a_lost_reply_is_not_repeated() {
    check_cut(CutPoint::After);
}

#[test]
fn commit_that_did_not_arrive_is_repeated() {
    check_cut(CutPoint::Before);
}

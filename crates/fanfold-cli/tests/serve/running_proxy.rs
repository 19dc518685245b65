//! A running proxy and its store.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanfold_engine::{MachineClock, SessionEngine, SessionOverview};
use fanfold_store::{OpenMode, SessionFilter, SessionId, open};
use tempfile::TempDir;

/// A running `fanfold serve`, killed on drop.
pub(crate) struct RunningProxy {
    child: Child,
    pub(crate) port: u16,
    log: PathBuf,
}

/// A directory for a store and for the log of a proxy.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

pub(crate) fn store_in(folder: &Path) -> PathBuf {
    folder.join("sessions.db")
}

/// An unused port.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// The command `fanfold`, without the settings of this machine.
pub(crate) fn fanfold(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fanfold"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", folder).env("XDG_CONFIG_HOME", folder.join("config"));
    command
}

impl RunningProxy {
    /// Starts a proxy in front of a provider, with its store in a folder.
    pub(crate) fn start(folder: &Path, upstream: &str, more: &[&str]) -> RunningProxy {
        let port = free_port();
        let log = folder.join(format!("serve-{port}.log"));
        let file = File::create(&log).unwrap();
        let mut command = fanfold(folder);
        command
            .args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--upstream", upstream, "--store"])
            .arg(store_in(folder))
            .args(more)
            .stdin(Stdio::null())
            .stderr(file.try_clone().unwrap())
            .stdout(file);
        let mut proxy = RunningProxy { child: command.spawn().unwrap(), port, log };
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let has_ended = proxy.child.try_wait().unwrap().is_some();
            assert!(
                !has_ended && started.elapsed() < Duration::from_secs(20),
                "no proxy: {}",
                proxy.stderr_text()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        proxy
    }

    /// Stops the proxy with SIGTERM and waits for its end.
    pub(crate) fn stop(mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        let started = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(
                started.elapsed() < Duration::from_secs(20),
                "the proxy does not end: {}",
                self.stderr_text()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Its output on stderr.
    pub(crate) fn stderr_text(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for RunningProxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The state of each session in a store, after a check of all handles.
pub(crate) fn sessions(folder: &Path) -> Vec<SessionOverview> {
    let engine = engine(folder);
    let rows = engine.store().sessions(&SessionFilter::default()).unwrap();
    let mut all = Vec::new();
    for row in rows {
        let (n_handles, broken) = engine.check_handles(&row.id).unwrap();
        assert!(
            broken.is_empty(),
            "{} of {n_handles} handles of {} do not open: {broken:?}",
            broken.len(),
            row.id
        );
        all.push(engine.session_overview(&row.id).unwrap());
    }
    all
}

/// Every handle of a session.
pub(crate) fn handles(folder: &Path, session: &SessionId) -> Vec<String> {
    engine(folder).handles(session).unwrap()
}

fn engine(folder: &Path) -> SessionEngine {
    let store = open(&store_in(folder).display().to_string(), OpenMode::Read).unwrap();
    SessionEngine::new(Arc::from(store), Arc::new(MachineClock))
}

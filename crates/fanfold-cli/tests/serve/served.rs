//! A running proxy and its store.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanfold_engine::{Engine, MachineClock, SessionOverview};
use fanfold_store::{OpenMode, SessionFilter, SessionId, open};
use tempfile::TempDir;

/// `fanfold serve`, ended with this.
pub(crate) struct Served {
    child: Child,
    pub(crate) port: u16,
    log: PathBuf,
}

/// A directory for a store and for what a proxy says.
pub(crate) fn place() -> TempDir {
    tempfile::tempdir().unwrap()
}

pub(crate) fn store_in(place: &Path) -> PathBuf {
    place.join("sessions.db")
}

/// An unused port.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// The command `fanfold`, with nothing of this machine's settings.
pub(crate) fn fanfold(place: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fanfold"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", place).env("XDG_CONFIG_HOME", place.join("config"));
    command
}

impl Served {
    /// Starts a proxy in front of a provider, its store in a place.
    pub(crate) fn start(place: &Path, upstream: &str, more: &[&str]) -> Served {
        let port = free_port();
        let log = place.join(format!("serve-{port}.log"));
        let file = File::create(&log).unwrap();
        let mut command = fanfold(place);
        command
            .args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--upstream", upstream, "--store"])
            .arg(store_in(place))
            .args(more)
            .stdin(Stdio::null())
            .stderr(file.try_clone().unwrap())
            .stdout(file);
        let mut served = Served { child: command.spawn().unwrap(), port, log };
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let has_ended = served.child.try_wait().unwrap().is_some();
            assert!(
                !has_ended && started.elapsed() < Duration::from_secs(20),
                "no proxy: {}",
                served.stderr_text()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        served
    }

    /// Ends it as a person does, and waits for that.
    pub(crate) fn stop(mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        let started = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < Duration::from_secs(20), "it does not end: {}", self.stderr_text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Its output on stderr.
    pub(crate) fn stderr_text(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The sessions of a store, each with how it stands. Every handle that any of them was given opens what it stands for.
pub(crate) fn sessions(place: &Path) -> Vec<SessionOverview> {
    let engine = engine(place);
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

/// Every handle that a session was given.
pub(crate) fn handles(place: &Path, session: &SessionId) -> Vec<String> {
    engine(place).handles(session).unwrap()
}

fn engine(place: &Path) -> Engine {
    let store = open(&store_in(place).display().to_string(), OpenMode::Read).unwrap();
    Engine::new(Arc::from(store), Arc::new(MachineClock))
}

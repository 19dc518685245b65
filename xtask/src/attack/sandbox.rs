//! The program in a directory of its own: its runs with a time limit, and servers that are killed on drop.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::Trial;
use crate::bench::free_port;

/// A run that takes longer counts as a hang.
const MAX_RUN: Duration = Duration::from_secs(60);
const STARTING: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(2);

/// An empty home and directory.
pub(super) struct Sandbox {
    program: PathBuf,
    folder: PathBuf,
    n_runs: AtomicUsize,
}

/// A finished or killed run.
pub(super) struct FinishedRun {
    /// `None` if it was killed by a signal.
    pub(super) code: Option<i32>,
    pub(super) is_timed_out: bool,
    pub(super) out: Vec<u8>,
    pub(super) err: Vec<u8>,
}

impl FinishedRun {
    pub(super) fn is_ok(&self) -> bool {
        self.code == Some(0)
    }

    pub(super) fn out_text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    pub(super) fn err_text(&self) -> String {
        String::from_utf8_lossy(&self.err).into_owned()
    }

    /// Stdout as JSON; null if it is not.
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.out).unwrap_or_default()
    }

    /// A panic, a signal or a hang.
    pub(super) fn crash(&self) -> Option<String> {
        match self.code {
            _ if self.is_timed_out => Some(format!("no end after {} s", MAX_RUN.as_secs())),
            None => Some("killed by a signal".to_owned()),
            Some(101) => Some(format!("panic: {}", self.err_text())),
            Some(_) => None,
        }
    }
}

impl Sandbox {
    /// Creates a directory below that of the trial.
    pub(super) fn new(trial: &Trial, name: &str) -> anyhow::Result<Sandbox> {
        let folder = trial.folder().join(name);
        fs::create_dir_all(&folder)?;
        Ok(Sandbox { program: trial.program.clone(), folder, n_runs: AtomicUsize::new(0) })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> anyhow::Result<PathBuf> {
        let path = self.path(name);
        fs::write(&path, content).with_context(|| path.display().to_string())?;
        Ok(path)
    }

    /// Runs the program with arguments that are separated by spaces.
    pub(super) fn run(&self, line: &str) -> anyhow::Result<FinishedRun> {
        self.run_with(&line.split_whitespace().collect::<Vec<_>>(), None)
    }

    /// Runs the program with a file as its stdin.
    pub(super) fn run_with(&self, arguments: &[&str], stdin: Option<&Path>) -> anyhow::Result<FinishedRun> {
        let mut running = self.start(arguments, stdin)?;
        Ok(running.wait(MAX_RUN))
    }

    /// Runs the program in a terminal, by the program `script`; `None` if that is missing.
    pub(super) fn run_in_terminal(&self, line: &str) -> anyhow::Result<Option<FinishedRun>> {
        let command = format!("{} {line}", self.program.display());
        match self.spawn(Command::new("script").args(["-q", "-e", "-c", &command, "/dev/null"]), None) {
            Ok(mut running) => Ok(Some(running.wait(MAX_RUN))),
            Err(error) if error.root_cause().to_string().contains("No such file") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Starts the program.
    pub(super) fn start(&self, arguments: &[&str], stdin: Option<&Path>) -> anyhow::Result<Running> {
        self.spawn(Command::new(&self.program).args(arguments), stdin)
    }

    fn spawn(&self, command: &mut Command, stdin: Option<&Path>) -> anyhow::Result<Running> {
        let n = self.n_runs.fetch_add(1, Ordering::Relaxed);
        let (out, err) = (self.path(&format!("run-{n}.out")), self.path(&format!("run-{n}.err")));
        command.current_dir(&self.folder).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", &self.folder).env("XDG_CONFIG_HOME", self.path("config"));
        command.stdout(File::create(&out)?).stderr(File::create(&err)?);
        command.stdin(stdin.map_or(Ok(Stdio::null()), |file| File::open(file).map(Stdio::from))?);
        let child = command.spawn().with_context(|| format!("{command:?} does not start"))?;
        Ok(Running { child, out, err })
    }

    /// Starts `serve` before a provider and waits until it listens.
    pub(super) fn serve(&self, upstream: &str, store: &str, more: &[&str]) -> anyhow::Result<Server> {
        let mut arguments = vec!["serve", "--upstream", upstream, "--store", store];
        arguments.extend(more);
        self.start_server(&arguments)
    }

    /// Starts a command with `--listen` and waits until it listens.
    pub(super) fn start_server(&self, arguments: &[&str]) -> anyhow::Result<Server> {
        let port = free_port()?;
        let address = format!("127.0.0.1:{port}");
        let running = self.start(&[arguments, &["--listen", &address]].concat(), None)?;
        let mut server = Server { running, port };
        let until = Instant::now() + STARTING;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > until || server.running.child.try_wait()?.is_some() {
                bail!("{arguments:?} does not listen: {}", server.log());
            }
            thread::sleep(POLL);
        }
        Ok(server)
    }
}

/// A started process; killed on drop.
pub(super) struct Running {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Running {
    /// Waits for the end. Kills the process after the time limit.
    pub(super) fn wait(&mut self, limit: Duration) -> FinishedRun {
        let until = Instant::now() + limit;
        let ended = loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < until => thread::sleep(POLL),
                Ok(ended) => break ended,
                Err(_) => break None,
            }
        };
        let is_timed_out = ended.is_none();
        self.kill();
        let (out, err) = (fs::read(&self.out).unwrap_or_default(), fs::read(&self.err).unwrap_or_default());
        let _ = (fs::remove_file(&self.out), fs::remove_file(&self.err));
        FinishedRun { code: ended.and_then(|status| status.code()), is_timed_out, out, err }
    }

    /// Kills the process with SIGKILL.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A process that listens on a port; killed on drop.
pub(super) struct Server {
    pub(super) running: Running,
    pub(super) port: u16,
}

impl Server {
    /// The lines that it has logged.
    pub(super) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.running.err).unwrap_or_default()).into_owned()
    }

    /// Its resident memory in MB; `None` once it has ended.
    pub(super) fn memory_mb(&self) -> Option<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.running.child.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
        Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1024.0)
    }
}

//! Latency that the proxy adds to a direct call, streams in parallel, memory; and the same for other proxies.
//!
//! The provider and the agents are one program (`crates/fanfold-testkit/benches/proxy`). Each proxy gets the same
//! load: a growing conversation whose requests are sent both directly and through the proxy.

mod page; //  the tables
mod peers; // others' proxies, installed and started

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::bench::run_command;

/// Sizes of bodies and the number of timed requests of each.
const SIZES: [(u64, u64); 3] = [(20_000, 1_000), (400_000, 400), (4_000_000, 120)];
/// Other proxies are slower and get fewer requests.
const PEER_SIZES: [(u64, u64); 3] = [(20_000, 200), (400_000, 80), (4_000_000, 24)];
const STARTING: Duration = Duration::from_secs(90);

/// Figures of one proxy, one per size, or the reason why they are missing.
pub(crate) struct ProxyFigures {
    pub(crate) name: String,
    pub(crate) latencies: Result<Vec<Value>, String>,
}

/// Runs the benchmark and prints the tables.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let has_flag = |name: &str| arguments.iter().any(|argument| argument == name);
    let root = crate::tidy::root();
    let work = root.join("target/bench/proxy");
    fs::create_dir_all(&work)?;
    let program = build(&root)?;
    // A short run only shows that everything works.
    let scale = if has_flag("--short") { 20 } else { 1 };
    let ours = |name: &str| Subject::fanfold(&program, &work, name);
    let mut measured = vec![latencies(&root, &work, &ours("latency")?, &SIZES, scale)];
    let streams = {
        let subject = ours("streams")?;
        let _running = subject.start(&work)?;
        let seconds = (120 / scale).to_string();
        measure(&root, &["streams", "--streams", "200", "--seconds", &seconds], &subject)?
    };
    let memory = {
        let subject = ours("memory")?;
        let running = subject.start(&work)?;
        let (n_requests, pid) = ((100_000 / scale).to_string(), running.child.id().to_string());
        measure(&root, &["memory", "--requests", &n_requests, "--pid", &pid], &subject)?
    };
    if !has_flag("--alone") {
        for peer in peers::all(&root, &work) {
            measured.push(match peer {
                Ok(subject) => latencies(&root, &work, &subject, &PEER_SIZES, scale),
                Err((name, why)) => ProxyFigures { name, latencies: Err(why) },
            });
        }
    }
    let tables = page::tables(&measured, &streams, &memory)?;
    if has_flag("--write") {
        page::write(&root, &tables)?;
    }
    crate::page::print(&tables);
    Ok(())
}

/// A proxy under test.
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) port: u16,
    pub(crate) upstream_port: u16,
}

impl Subject {
    /// fanfold with an empty store.
    fn fanfold(program: &Path, work: &Path, name: &str) -> anyhow::Result<Subject> {
        let (port, upstream_port) = (free_port()?, free_port()?);
        let folder = work.join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        let arguments = [
            "serve".to_owned(),
            "--listen".to_owned(),
            format!("127.0.0.1:{port}"),
            "--upstream".to_owned(),
            format!("http://127.0.0.1:{upstream_port}"),
            "--store".to_owned(),
            folder.join("sessions.db").display().to_string(),
        ];
        Ok(Subject {
            name: "fanfold".to_owned(),
            program: program.to_owned(),
            arguments: arguments.into(),
            environment: vec![("HOME".to_owned(), folder.display().to_string())],
            port,
            upstream_port,
        })
    }

    /// Starts the proxy and waits until it listens.
    fn start(&self, work: &Path) -> anyhow::Result<Running> {
        let log = work.join(format!("{}.log", self.name));
        let file = File::create(&log)?;
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .envs(self.environment.iter().cloned())
            .current_dir(work)
            .stdin(Stdio::null())
            .stderr(file.try_clone()?)
            .stdout(file);
        let child =
            command.spawn().with_context(|| format!("{} cannot be started", self.program.display()))?;
        let mut running = Running { child };
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let has_ended = running.child.try_wait()?.is_some();
            if has_ended || started.elapsed() > STARTING {
                let output = fs::read_to_string(&log).unwrap_or_default();
                let end: Vec<&str> = output.lines().rev().take(5).collect();
                bail!(
                    "{} does not listen: {}",
                    self.name,
                    end.into_iter().rev().collect::<Vec<_>>().join(" / ")
                );
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(running)
    }
}

/// A program that is killed on drop.
struct Running {
    child: Child,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn latencies(root: &Path, work: &Path, subject: &Subject, sizes: &[(u64, u64)], scale: u64) -> ProxyFigures {
    let measured = || -> anyhow::Result<Vec<Value>> {
        let _running = subject.start(work)?;
        let mut lines = Vec::new();
        for (bytes, n_requests) in sizes {
            let (bytes, n_requests) = (bytes.to_string(), (n_requests / scale).max(8).to_string());
            lines.push(measure(root, &["latency", "--bytes", &bytes, "--requests", &n_requests], subject)?);
        }
        Ok(lines)
    };
    ProxyFigures { name: subject.name.clone(), latencies: measured().map_err(|error| format!("{error:#}")) }
}

/// One measurement as JSON.
fn measure(root: &Path, arguments: &[&str], subject: &Subject) -> anyhow::Result<Value> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["bench", "--quiet", "-p", "fanfold-testkit", "--bench", "proxy", "--"]);
    cargo.args(arguments).args(["--port", &subject.port.to_string()]);
    cargo.args(["--upstream-port", &subject.upstream_port.to_string()]);
    let output = run_command(&mut cargo)?;
    let line =
        output.lines().find(|line| line.starts_with('{')).context("the benchmark printed no figures")?;
    Ok(serde_json::from_str(line)?)
}

fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    run_command(cargo.current_dir(root).args(["build", "--quiet", "--release", "-p", "fanfold-cli"]))?;
    Ok(root.join("target/release/fanfold"))
}

/// A free port.
pub(crate) fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

//! Real coding agents, Codex and Claude Code, installed from npm and connected to a scripted provider on loopback.
//!
//! A sandbox keeps their requests and session files until it is dropped. If a client cannot run, because node, the
//! npm registry, python3 or the script of the provider is missing, the error says so.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use tempfile::TempDir;

/// A client that can be installed from npm.
pub struct ClientProgram {
    /// The name of its npm package.
    pub name: &'static str,
    /// The pinned version.
    pub version: &'static str,
    /// The name of its executable.
    pub program: &'static str,
    invocation: fn(&ClientTask<'_>, &Path) -> io::Result<Invocation>,
}

/// Codex.
pub const CODEX: ClientProgram =
    ClientProgram { name: "@openai/codex", version: "0.166.0", program: "codex", invocation: codex };
/// Claude Code.
pub const CLAUDE_CODE: ClientProgram = ClientProgram {
    name: "@anthropic-ai/claude-code",
    version: "2.1.197",
    program: "claude",
    invocation: claude_code,
};

/// The number of tool calls that the scripted provider requests before its final answer.
pub const N_STEPS: usize = 10;

/// The recorded run of a client.
pub struct ClientRun {
    /// The request bodies as exact JSON text, in order of arrival.
    pub bodies: Vec<String>,
    /// Its home directory, with its session files.
    pub home: PathBuf,
    /// Deletes the files when it is dropped.
    _sandbox: ClientSandbox,
}

/// The default task.
pub const PROMPT: &str = "Look at notes.md and big.log and say what is in them.";
const INSTALL_TIMEOUT: Duration = Duration::from_secs(90);
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs a client for `N_STEPS` steps. Installs it below `target` if necessary.
pub fn run(client: &ClientProgram, target: &Path) -> Result<ClientRun, String> {
    let sandbox = ClientSandbox::new(N_STEPS)?;
    let program = install(client, target)?;
    let mut command = sandbox.command(client, &program, &ClientTask::new("home", sandbox.port))?;
    // From here on, a failure is the fault of the client or the script and not of the machine, so it panics.
    sandbox.run_to_end(&mut command, "home", Duration::from_secs(40));
    Ok(ClientRun { bodies: sandbox.bodies(), home: sandbox.path("home"), _sandbox: sandbox })
}

/// A temporary directory with a project and homes for clients, and a running scripted provider.
pub struct ClientSandbox {
    /// The port of the provider.
    pub port: u16,
    directory: TempDir,
    _upstream: ProcessGroup,
}

/// The task of one client in a sandbox.
pub struct ClientTask<'a> {
    /// The name of its home directory, unique in the sandbox.
    pub home: &'a str,
    /// The port of its provider.
    pub port: u16,
    /// The user prompt.
    pub prompt: &'a str,
}

impl<'a> ClientTask<'a> {
    /// Creates the default task.
    pub fn new(home: &'a str, port: u16) -> ClientTask<'a> {
        ClientTask { home, port, prompt: PROMPT }
    }
}

impl ClientSandbox {
    /// Starts a provider that requests `n_steps` tool calls. Fails without python3 or the script of the provider.
    pub fn new(n_steps: usize) -> Result<ClientSandbox, String> {
        let script = script()?;
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let [project, saved] = ["project", "saved"].map(|name| directory.path().join(name));
        for directory in [&project, &saved] {
            fs::create_dir_all(directory).map_err(|error| error.to_string())?;
        }
        write_project(&project).map_err(|error| error.to_string())?;
        let (upstream, port) = start_upstream(&script, &saved, n_steps)?;
        Ok(ClientSandbox { port, directory, _upstream: upstream })
    }

    /// The path of a file or directory in the sandbox.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The command that starts a client with its home, the project and its provider.
    pub fn command(
        &self,
        client: &ClientProgram,
        program: &Path,
        task: &ClientTask<'_>,
    ) -> Result<Command, String> {
        let home = self.path(task.home);
        fs::create_dir_all(&home).map_err(|error| error.to_string())?;
        let invocation = (client.invocation)(task, &home).map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(invocation.arguments);
        self.isolate(&mut command, task.home);
        command.envs(invocation.environment);
        Ok(command)
    }

    /// Sets the home and the working directory of a command and clears the rest of its environment except `PATH`.
    pub fn isolate(&self, command: &mut Command, home: &str) {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path(home))
            .env("TMPDIR", self.directory.path())
            .current_dir(self.path("project"));
    }

    /// Runs a command and returns its output. Panics if it fails or exceeds `timeout`.
    pub fn run_to_end(&self, command: &mut Command, name: &str, timeout: Duration) -> String {
        let log = self.path(&format!("{name}.log"));
        let result = ProcessGroup::start(command, &log).map(|process| process.wait(timeout));
        let output = fs::read_to_string(&log).unwrap_or_default();
        assert!(result == Ok(Some(true)), "{name} ended with {result:?}:\n{output}");
        output
    }

    /// The request bodies that the provider has received.
    pub fn bodies(&self) -> Vec<String> {
        bodies(&self.path("saved"))
    }
}

struct Invocation {
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

fn codex(task: &ClientTask<'_>, home: &Path) -> io::Result<Invocation> {
    let port = task.port;
    let config = format!(
        "model = \"gpt-5\"\nmodel_provider = \"scripted\"\n[model_providers.scripted]\nname = \"scripted\"\n\
         base_url = \"http://127.0.0.1:{port}/v1\"\nwire_api = \"responses\"\nenv_key = \"SCRIPTED_KEY\"\n\
         request_max_retries = 1\nstream_max_retries = 1\n"
    );
    fs::create_dir_all(home.join(".codex"))?;
    fs::write(home.join(".codex/config.toml"), config)?;
    let arguments =
        ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", task.prompt];
    let arguments = arguments.map(str::to_owned).into();
    Ok(Invocation { arguments, environment: vec![("SCRIPTED_KEY", "dummy".to_owned())] })
}

fn claude_code(task: &ClientTask<'_>, _home: &Path) -> io::Result<Invocation> {
    Ok(Invocation {
        arguments: ["-p", task.prompt, "--dangerously-skip-permissions"].map(str::to_owned).into(),
        environment: vec![
            ("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}", task.port)),
            ("ANTHROPIC_API_KEY", "dummy".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            // Root may skip permission prompts only in a sandbox.
            ("IS_SANDBOX", "1".to_owned()),
        ],
    })
}

fn write_project(project: &Path) -> io::Result<()> {
    let log: String = (0..2_000).map(|i| format!("INFO request {i} took {} ms\n", i * 7 % 91)).collect();
    fs::write(project.join("notes.md"), "# Notes\n\nalpha is in src/alpha.rs\nbeta waits for alpha\n")?;
    fs::write(project.join("big.log"), log)
}

/// Reads the request bodies that the provider saved.
fn bodies(saved: &Path) -> Vec<String> {
    let files = fs::read_dir(saved).expect("the provider creates the folder");
    let mut files: Vec<PathBuf> = files.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut bodies = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a saved request can be read");
        let fields: BTreeMap<String, &RawValue> =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let path: String = serde_json::from_str(fields["path"].get()).expect("a path is a string");
        let path = path.split('?').next().unwrap_or_default();
        let is_request = ["/messages", "/count_tokens", "/responses"].iter().any(|end| path.ends_with(end));
        assert!(is_request, "an unexpected request to {path}");
        bodies.push(fields["body"].get().to_owned());
    }
    bodies
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The path of the script of the provider.
fn script() -> Result<PathBuf, String> {
    let shared = std::env::var_os("FANFOLD_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    let script = shared.join("tools/scripted_upstream.py");
    if script.is_file() {
        Ok(script)
    } else {
        Err(format!("no script {}; FANFOLD_SHARED names another folder", script.display()))
    }
}

/// Locks an installation directory, so that parallel tests do not start a program that another one is still
/// installing.
fn lock_directory(directory: &Path) -> io::Result<File> {
    fs::create_dir_all(directory.parent().unwrap_or(directory))?;
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let lock = File::create(directory.with_file_name(format!("{name}.lock")))?;
    lock.lock()?;
    Ok(lock)
}

/// Installs a client below `target` if necessary, and returns the path of its executable.
pub fn install(client: &ClientProgram, target: &Path) -> Result<PathBuf, String> {
    install_npm(client.name, client.version, client.program, target)
}

/// Installs an npm package below `target` if necessary, and returns the path of its executable `program`.
pub fn install_npm(name: &str, version: &str, program: &str, target: &Path) -> Result<PathBuf, String> {
    let clients = target.join("clients");
    let directory = clients.join(format!("{program}-{version}"));
    let program = directory.join("node_modules/.bin").join(program);
    let ready = directory.join("installed");
    let _lock = lock_directory(&directory).map_err(|error| error.to_string())?;
    if ready.is_file() {
        return Ok(program);
    }
    fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let log = directory.join("npm.log");
    let mut command = Command::new("npm");
    command
        .args(["install", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--fetch-retries=1"])
        .arg("--prefix")
        .arg(&directory)
        .arg(format!("{name}@{version}"))
        .env("npm_config_cache", clients.join("npm"))
        .env("npm_config_update_notifier", "false")
        .current_dir(&directory);
    let npm = ProcessGroup::start(&mut command, &log).map_err(|why| format!("no npm: {why}"))?;
    let is_installed = npm.wait(INSTALL_TIMEOUT) == Some(true) && program.exists();
    if !is_installed {
        return Err(format!("npm did not install {name}: {}", last_line(&log)));
    }
    fs::write(ready, version).map_err(|error| error.to_string())?;
    Ok(program)
}

/// Creates a Python environment with these packages (`name==version`) below `target` if necessary, and returns the
/// path of its interpreter.
pub fn install_python(name: &str, packages: &[&str], target: &Path) -> Result<PathBuf, String> {
    let directory = target.join("clients").join(name);
    let python = directory.join("bin/python");
    let ready = directory.join("installed");
    let wanted = packages.join("\n");
    let _lock = lock_directory(&directory).map_err(|error| error.to_string())?;
    if fs::read_to_string(&ready).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let log = directory.join("pip.log");
    let mut create = Command::new("python3");
    create.args(["-m", "venv"]).arg(&directory);
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--retries", "1"]).args(packages);
    for command in [&mut create, &mut install] {
        let process = ProcessGroup::start(command, &log).map_err(|why| format!("no python3: {why}"))?;
        if process.wait(INSTALL_TIMEOUT) != Some(true) {
            return Err(format!("pip did not install {name}: {}", last_line(&log)));
        }
    }
    fs::write(ready, wanted).map_err(|error| error.to_string())?;
    Ok(python)
}

fn last_line(log: &Path) -> String {
    let output = fs::read_to_string(log).unwrap_or_default();
    output.lines().last().unwrap_or("no output before the timeout").to_owned()
}

fn start_upstream(script: &Path, saved: &Path, n_steps: usize) -> Result<(ProcessGroup, u16), String> {
    let free = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    let port = free.map_err(|error| error.to_string())?.port();
    // The timeout ends the provider even if this test is killed.
    let mut command = Command::new("timeout");
    command.args(["400", "python3"]).arg(script).arg(port.to_string()).arg(saved).arg(n_steps.to_string());
    let log = saved.with_extension("log");
    let upstream = ProcessGroup::start(&mut command, &log).map_err(|why| format!("no `timeout`: {why}"))?;
    let started = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if started.elapsed() > START_TIMEOUT {
            let output = fs::read_to_string(&log).unwrap_or_default();
            return Err(format!("the provider did not start: {output}"));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok((upstream, port))
}

/// A running program and its child processes, killed on drop.
pub struct ProcessGroup(Child);

impl ProcessGroup {
    /// Starts a program with stdout and stderr redirected to a file.
    pub fn start(command: &mut Command, log: &Path) -> Result<ProcessGroup, String> {
        let log = File::create(log).map_err(|error| error.to_string())?;
        let errors = log.try_clone().map_err(|error| error.to_string())?;
        command.stdin(Stdio::null()).stdout(log).stderr(errors).process_group(0);
        command.spawn().map(ProcessGroup).map_err(|error| error.to_string())
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits for the program and returns whether it succeeded, or `None` after a timeout.
    pub fn wait(mut self, timeout: Duration) -> Option<bool> {
        let started = Instant::now();
        while started.elapsed() < timeout {
            if let Ok(Some(status)) = self.0.try_wait() {
                return Some(status.success());
            }
            thread::sleep(Duration::from_millis(20));
        }
        None
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

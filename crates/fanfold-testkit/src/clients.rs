//! Real clients, installed from npm, that talk to a scripted provider on loopback: Codex and Claude Code.
//!
//! What they sent and what they wrote down is there for a test to look at, and gone after it. Where a client can't be run,
//! without node, npm's registry, python3 or the script of the provider, there is a word on why.

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

/// A client, as npm has it.
pub struct Client {
    /// The name of its package.
    pub name: &'static str,
    /// The version that is tried.
    pub version: &'static str,
    /// What it is called by.
    pub program: &'static str,
    invocation: fn(&Part<'_>, &Path) -> io::Result<Invocation>,
}

/// Codex.
pub const CODEX: Client =
    Client { name: "@openai/codex", version: "0.166.0", program: "codex", invocation: codex };
/// Claude Code.
pub const CLAUDE_CODE: Client = Client {
    name: "@anthropic-ai/claude-code",
    version: "2.1.197",
    program: "claude",
    invocation: claude_code,
};

/// So many calls the provider asks for before it is done.
pub const N_STEPS: usize = 10;

/// What a client did.
pub struct Ran {
    /// The bodies that it sent, each the exact text of its JSON, in the order in which they came.
    pub bodies: Vec<String>,
    /// Its home, with the session that it wrote.
    pub home: PathBuf,
    /// All of it goes with this.
    _stage: Stage,
}

/// What a client is asked to do.
pub const PROMPT: &str = "Look at notes.md and big.log and say what is in them.";
const INSTALLING: Duration = Duration::from_secs(90);
const STARTING: Duration = Duration::from_secs(10);

/// Runs a client for a few steps. It is installed below `target`, if it is not there yet.
pub fn run(client: &Client, target: &Path) -> Result<Ran, String> {
    let stage = Stage::new(N_STEPS)?;
    let program = install(client, target)?;
    let mut command = stage.command(client, &program, &Part::new("home", stage.port))?;
    // From here on it is not the machine but the client or the script.
    stage.play(&mut command, "home", Duration::from_secs(40));
    Ok(Ran { bodies: stage.bodies(), home: stage.place("home"), _stage: stage })
}

/// A scripted provider, a project to work on, and homes for clients.
pub struct Stage {
    /// The provider's port.
    pub port: u16,
    directory: TempDir,
    _upstream: Running,
}

/// What one client on a stage is told.
pub struct Part<'a> {
    /// The name of its home, which no other has.
    pub home: &'a str,
    /// Where its provider is.
    pub port: u16,
    /// What it is asked.
    pub prompt: &'a str,
}

impl<'a> Part<'a> {
    /// The usual task.
    pub fn new(home: &'a str, port: u16) -> Part<'a> {
        Part { home, port, prompt: PROMPT }
    }
}

impl Stage {
    /// A stage whose provider asks for so many calls; none without python3 or the script of the provider.
    pub fn new(n_steps: usize) -> Result<Stage, String> {
        let script = script()?;
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let [project, saved] = ["project", "saved"].map(|name| directory.path().join(name));
        for directory in [&project, &saved] {
            fs::create_dir_all(directory).map_err(|error| error.to_string())?;
        }
        write_project(&project).map_err(|error| error.to_string())?;
        let (upstream, port) = start_upstream(&script, &saved, n_steps)?;
        Ok(Stage { port, directory, _upstream: upstream })
    }

    /// A file or directory of the stage.
    pub fn place(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// How a client is started with its home, its project and its provider.
    pub fn command(&self, client: &Client, program: &Path, part: &Part<'_>) -> Result<Command, String> {
        let home = self.place(part.home);
        fs::create_dir_all(&home).map_err(|error| error.to_string())?;
        let invocation = (client.invocation)(part, &home).map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(invocation.arguments);
        self.settle(&mut command, part.home);
        command.envs(invocation.environment);
        Ok(command)
    }

    /// Gives a command its home and the project, and nothing else of this machine.
    pub fn settle(&self, command: &mut Command, home: &str) {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.place(home))
            .env("TMPDIR", self.directory.path())
            .current_dir(self.place("project"));
    }

    /// Runs a command to its end, which must be a good one, and gives what it said.
    pub fn play(&self, command: &mut Command, name: &str, most: Duration) -> String {
        let log = self.place(&format!("{name}.log"));
        let is_well = Running::start(command, &log).map(|running| running.wait(most));
        let said = fs::read_to_string(&log).unwrap_or_default();
        assert!(is_well == Ok(Some(true)), "{name} ended with {is_well:?}:\n{said}");
        said
    }

    /// The bodies that came to the provider so far.
    pub fn bodies(&self) -> Vec<String> {
        bodies(&self.place("saved"))
    }
}

struct Invocation {
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

fn codex(part: &Part<'_>, home: &Path) -> io::Result<Invocation> {
    let port = part.port;
    let config = format!(
        "model = \"gpt-5\"\nmodel_provider = \"scripted\"\n[model_providers.scripted]\nname = \"scripted\"\n\
         base_url = \"http://127.0.0.1:{port}/v1\"\nwire_api = \"responses\"\nenv_key = \"SCRIPTED_KEY\"\n\
         request_max_retries = 1\nstream_max_retries = 1\n"
    );
    fs::create_dir_all(home.join(".codex"))?;
    fs::write(home.join(".codex/config.toml"), config)?;
    let arguments =
        ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", part.prompt];
    let arguments = arguments.map(str::to_owned).into();
    Ok(Invocation { arguments, environment: vec![("SCRIPTED_KEY", "dummy".to_owned())] })
}

fn claude_code(part: &Part<'_>, _home: &Path) -> io::Result<Invocation> {
    Ok(Invocation {
        arguments: ["-p", part.prompt, "--dangerously-skip-permissions"].map(str::to_owned).into(),
        environment: vec![
            ("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}", part.port)),
            ("ANTHROPIC_API_KEY", "dummy".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            // Root may skip the questions only where nothing can be broken.
            ("IS_SANDBOX", "1".to_owned()),
        ],
    })
}

fn write_project(project: &Path) -> io::Result<()> {
    let log: String = (0..2_000).map(|i| format!("INFO request {i} took {} ms\n", i * 7 % 91)).collect();
    fs::write(project.join("notes.md"), "# Notes\n\nalpha is in src/alpha.rs\nbeta waits for alpha\n")?;
    fs::write(project.join("big.log"), log)
}

/// The bodies as the provider saved them.
fn bodies(saved: &Path) -> Vec<String> {
    let files = fs::read_dir(saved).expect("what was saved is there");
    let mut files: Vec<PathBuf> = files.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut bodies = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("what was saved can be read");
        let fields: BTreeMap<String, &RawValue> =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let path: String = serde_json::from_str(fields["path"].get()).expect("a path is a text");
        let path = path.split('?').next().unwrap_or_default();
        let is_request = ["/messages", "/count_tokens", "/responses"].iter().any(|end| path.ends_with(end));
        assert!(is_request, "a request to {path}");
        bodies.push(fields["body"].get().to_owned());
    }
    bodies
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The scripted provider.
fn script() -> Result<PathBuf, String> {
    let shared = std::env::var_os("FANFOLD_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    let script = shared.join("tools/scripted_upstream.py");
    if script.is_file() { Ok(script) } else { Err(format!("no {} (FANFOLD_SHARED)", script.display())) }
}

/// Waits until nobody else installs anything at a place. Tests run side by side, and a program that is still being written
/// can't be started.
fn alone(place: &Path) -> io::Result<File> {
    fs::create_dir_all(place.parent().unwrap_or(place))?;
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let lock = File::create(place.with_file_name(format!("{name}.lock")))?;
    lock.lock()?;
    Ok(lock)
}

/// The client's program, installed if it is not there yet.
pub fn install(client: &Client, target: &Path) -> Result<PathBuf, String> {
    install_npm(client.name, client.version, client.program, target)
}

/// A program of a package of npm's, installed below `target` if it is not there yet.
pub fn install_npm(name: &str, version: &str, program: &str, target: &Path) -> Result<PathBuf, String> {
    let clients = target.join("clients");
    let place = clients.join(format!("{program}-{version}"));
    let program = place.join("node_modules/.bin").join(program);
    let ready = place.join("installed");
    let _alone = alone(&place).map_err(|error| error.to_string())?;
    if ready.is_file() {
        return Ok(program);
    }
    fs::create_dir_all(&place).map_err(|error| error.to_string())?;
    let log = place.join("npm.log");
    let mut command = Command::new("npm");
    command
        .args(["install", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--fetch-retries=1"])
        .arg("--prefix")
        .arg(&place)
        .arg(format!("{name}@{version}"))
        .env("npm_config_cache", clients.join("npm"))
        .env("npm_config_update_notifier", "false")
        .current_dir(&place);
    let npm = Running::start(&mut command, &log).map_err(|why| format!("no npm: {why}"))?;
    let is_there = npm.wait(INSTALLING) == Some(true) && program.exists();
    if !is_there {
        return Err(format!("npm did not install it: {}", last_line(&log)));
    }
    fs::write(ready, version).map_err(|error| error.to_string())?;
    Ok(program)
}

/// A Python of its own below `target` that has these packages (`name==version`), made if it is not there yet.
pub fn install_python(name: &str, packages: &[&str], target: &Path) -> Result<PathBuf, String> {
    let place = target.join("clients").join(name);
    let python = place.join("bin/python");
    let ready = place.join("installed");
    let wanted = packages.join("\n");
    let _alone = alone(&place).map_err(|error| error.to_string())?;
    if fs::read_to_string(&ready).is_ok_and(|there| there == wanted) {
        return Ok(python);
    }
    fs::create_dir_all(&place).map_err(|error| error.to_string())?;
    let log = place.join("pip.log");
    let mut make = Command::new("python3");
    make.args(["-m", "venv"]).arg(&place);
    let mut fill = Command::new(&python);
    fill.args(["-m", "pip", "install", "--quiet", "--retries", "1"]).args(packages);
    for command in [&mut make, &mut fill] {
        let running = Running::start(command, &log).map_err(|why| format!("no python3: {why}"))?;
        if running.wait(INSTALLING) != Some(true) {
            return Err(format!("pip did not install it: {}", last_line(&log)));
        }
    }
    fs::write(ready, wanted).map_err(|error| error.to_string())?;
    Ok(python)
}

fn last_line(log: &Path) -> String {
    let said = fs::read_to_string(log).unwrap_or_default();
    said.lines().last().unwrap_or("no answer in time").to_owned()
}

fn start_upstream(script: &Path, saved: &Path, n_steps: usize) -> Result<(Running, u16), String> {
    let free = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    let port = free.map_err(|error| error.to_string())?.port();
    // It ends by itself, too, should this test be killed.
    let mut command = Command::new("timeout");
    command.args(["400", "python3"]).arg(script).arg(port.to_string()).arg(saved).arg(n_steps.to_string());
    let log = saved.with_extension("log");
    let upstream = Running::start(&mut command, &log).map_err(|why| format!("no `timeout`: {why}"))?;
    let started = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if started.elapsed() > STARTING {
            let said = fs::read_to_string(&log).unwrap_or_default();
            return Err(format!("the provider did not start: {said}"));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok((upstream, port))
}

/// A program with all that it started; ended when this is dropped.
pub struct Running(Child);

impl Running {
    /// Starts a program that says everything into a file.
    pub fn start(command: &mut Command, log: &Path) -> Result<Running, String> {
        let log = File::create(log).map_err(|error| error.to_string())?;
        let errors = log.try_clone().map_err(|error| error.to_string())?;
        command.stdin(Stdio::null()).stdout(log).stderr(errors).process_group(0);
        command.spawn().map(Running).map_err(|error| error.to_string())
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Whether it ended well; none if it did not end in time.
    pub fn wait(mut self, most: Duration) -> Option<bool> {
        let started = Instant::now();
        while started.elapsed() < most {
            if let Ok(Some(status)) = self.0.try_wait() {
                return Some(status.success());
            }
            thread::sleep(Duration::from_millis(20));
        }
        None
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

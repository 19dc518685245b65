//! What real clients send: Codex and Claude Code, installed from npm, talking to a scripted provider on loopback.
//!
//! Every body they send is recognised, leaves as it came while it fits, and is still valid once it is folded. The test
//! says so and passes where it can't be made: without node, npm's registry, python3 or the script of the provider.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail, and says what it did not do")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fanfold_core::{
    Budget, Count as _, Entry, Extent, Policy, Refusal, Session, Tokens, Transcript, check_deeply,
};
use fanfold_testkit::bodies::Kind;
use fanfold_testkit::valid;
use fanfold_tokens::o200k;
use fanfold_wire::{Change, Conversation, Format, detect};
use serde_json::value::RawValue;

const CODEX: Package = Package { name: "@openai/codex", version: "0.166.0", program: "codex" };
const CLAUDE: Package = Package { name: "@anthropic-ai/claude-code", version: "2.1.197", program: "claude" };

const N_STEPS: usize = 10;
const PROMPT: &str = "Look at notes.md and big.log and say what is in them.";
const INSTALLING: Duration = Duration::from_secs(90);
const RUNNING: Duration = Duration::from_secs(40);
const STARTING: Duration = Duration::from_secs(10);
/// What is left for the steps beside tools, system text and what people said, which can't be folded.
const ROOM: Tokens = Tokens(1_500);

struct Package {
    name: &'static str,
    version: &'static str,
    program: &'static str,
}

#[test]
fn what_codex_sends_goes_through() {
    let sent = run(&CODEX, |port, home| {
        let config = format!(
            "model = \"gpt-5\"\nmodel_provider = \"scripted\"\n[model_providers.scripted]\nname = \"scripted\"\n\
             base_url = \"http://127.0.0.1:{port}/v1\"\nwire_api = \"responses\"\nenv_key = \"SCRIPTED_KEY\"\n\
             request_max_retries = 1\nstream_max_retries = 1\n"
        );
        fs::create_dir_all(home.join(".codex")).unwrap();
        fs::write(home.join(".codex/config.toml"), config).unwrap();
        let arguments =
            vec!["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT];
        Invocation { arguments, environment: vec![("SCRIPTED_KEY", "dummy".to_owned())] }
    });
    if let Some(bodies) = sent {
        check_all(&CODEX, Format::Responses, &bodies);
    }
}

#[test]
fn what_claude_code_sends_goes_through() {
    let sent = run(&CLAUDE, |port, _| Invocation {
        arguments: vec!["-p", PROMPT, "--dangerously-skip-permissions"],
        environment: vec![
            ("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{port}")),
            ("ANTHROPIC_API_KEY", "dummy".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            // Root may skip the questions only where nothing can be broken.
            ("IS_SANDBOX", "1".to_owned()),
        ],
    });
    if let Some(bodies) = sent {
        check_all(&CLAUDE, Format::Anthropic, &bodies);
    }
}

// What must hold for what they sent.

fn check_all(client: &Package, format: Format, bodies: &[String]) {
    let Package { program, version, .. } = client;
    assert!(bodies.len() >= N_STEPS, "{program} sent {} requests", bodies.len());
    for (i, body) in bodies.iter().enumerate() {
        assert_eq!(detect(body), Some(format), "request {i}");
        assert_eq!(valid::check(kind(format), body), Ok(()), "request {i}, as {program} sent it");
        check_untouched(i, body);
    }
    let mut faults = Vec::new();
    let mut n_folded = 0;
    for (i, body) in bodies.iter().enumerate() {
        for name in Policy::NAMES {
            match folded(body, &Policy::named(name).unwrap()) {
                Ok(is_folded) => n_folded += usize::from(is_folded),
                Err(why) => faults.push(format!("request {i}, {name}: {why}")),
            }
        }
    }
    let n = bodies.len();
    println!(
        "{program} {version}: {n} requests recognised as {format}, each leaving byte for byte while it fits"
    );
    println!("{program} {version}: {n_folded} of {} views folded and sound", n * Policy::NAMES.len());
    assert!(faults.is_empty(), "{} views are not sound:\n{}", faults.len(), faults.join("\n"));
    assert!(n_folded > 0, "nothing of {program} was folded");
}

fn check_untouched(i: usize, body: &str) {
    let (conversation, changes) = Conversation::decode(body, None).unwrap();
    let mut session = Session::new(Policy::fanfold(), Budget::of_window(Tokens(10_000_000)), o200k());
    follow(&mut session, &conversation, changes);
    let view = session.view().unwrap().clone();
    let encoded = conversation.encode(session.transcript(), &view);
    assert!(encoded == body, "request {i} does not leave as it came");
    let oddities: Vec<String> = conversation.repairs().iter().map(ToString::to_string).collect();
    assert!(oddities.is_empty(), "request {i}: {oddities:?}");
}

/// Folds a body into a small window. Says whether anything was folded, or what is wrong with what leaves.
fn folded(body: &str, policy: &Policy) -> Result<bool, String> {
    let (conversation, changes) = Conversation::decode(body, None).unwrap();
    let budget = Budget::with_reserve(unfoldable(&conversation, &changes) + ROOM, Tokens::ZERO);
    let mut session = Session::new(policy.clone(), budget, o200k());
    follow(&mut session, &conversation, changes);
    let view = match session.view() {
        Ok(view) => view.clone(),
        Err(Refusal::Overflow(overflow)) => return Err(overflow.to_string()),
        Err(Refusal::Fault(fault)) => return Err(fault.to_string()),
    };
    let encoded = conversation.encode(session.transcript(), &view);
    valid::check(kind(conversation.format()), &encoded)?;
    check_deeply(session.transcript(), session.ledger(), &view, o200k())
        .map_err(|fault| fault.to_string())?;
    for &handle in &view.handles {
        session.recall(handle, &Extent::Whole).map_err(|error| error.to_string())?;
        if !encoded.contains(&handle.to_string()) {
            return Err(format!("{handle} is not sent"));
        }
    }
    Ok(!view.handles.is_empty())
}

/// What can't be folded: tools, system text, what people said.
fn unfoldable(conversation: &Conversation, changes: &[Change]) -> Tokens {
    let mut transcript = Transcript::new();
    for change in changes {
        if let Change::Append(entry @ Entry::Prompt(_)) = change {
            transcript.append(entry.clone(), o200k());
        }
    }
    transcript.set_tools(schemas(conversation));
    transcript.total()
}

fn follow(session: &mut Session<'_>, conversation: &Conversation, changes: Vec<Change>) {
    session.set_tools(schemas(conversation));
    for change in changes {
        match change {
            Change::Append(entry) => {
                session.append(entry);
            }
            Change::Answer(call, outcome) => assert!(session.answer(call, outcome), "{call:?} is not there"),
        }
    }
}

fn schemas(conversation: &Conversation) -> Tokens {
    conversation.tools().map_or(Tokens::ZERO, |tools| o200k().count(tools))
}

fn kind(format: Format) -> Kind {
    match format {
        Format::Chat => Kind::Chat,
        Format::Responses => Kind::Responses,
        Format::Anthropic => Kind::Anthropic,
        Format::ShareGpt => Kind::ShareGpt,
        Format::Hermes => Kind::Hermes,
    }
}

// How they are made to send it.

struct Invocation {
    arguments: Vec<&'static str>,
    environment: Vec<(&'static str, String)>,
}

/// The bodies that a client sends in a few steps, or none, with a word on why, where it can't be run.
fn run(client: &Package, invocation: impl Fn(u16, &Path) -> Invocation) -> Option<Vec<String>> {
    let sent = try_run(client, invocation);
    sent.map_err(|why| println!("skipped: {} {}: {why}", client.name, client.version)).ok()
}

fn try_run(client: &Package, invocation: impl Fn(u16, &Path) -> Invocation) -> Result<Vec<String>, String> {
    let script = script()?;
    let program = install(client)?;
    let temporary = tempfile::tempdir().map_err(|error| error.to_string())?;
    let [home, project, saved] = ["home", "project", "saved"].map(|name| temporary.path().join(name));
    for directory in [&home, &project, &saved] {
        fs::create_dir_all(directory).unwrap();
    }
    write_project(&project);
    let (_upstream, port) = start_upstream(&script, &saved)?;
    let Invocation { arguments, environment } = invocation(port, &home);
    let log = temporary.path().join("log");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &home)
        .env("TMPDIR", temporary.path())
        .envs(environment)
        .current_dir(&project);
    let is_well = Running::start(&mut command, &log)?.wait(RUNNING);
    // From here on it is not the machine but the client or the script.
    let said = fs::read_to_string(&log).unwrap_or_default();
    assert!(is_well == Some(true), "{} ended with {is_well:?}:\n{said}", client.program);
    Ok(bodies(&saved))
}

fn write_project(project: &Path) {
    let log: String = (0..2_000).map(|i| format!("INFO request {i} took {} ms\n", i * 7 % 91)).collect();
    fs::write(project.join("notes.md"), "# Notes\n\nalpha is in src/alpha.rs\nbeta waits for alpha\n")
        .unwrap();
    fs::write(project.join("big.log"), log).unwrap();
}

/// The bodies as the provider saved them, each the exact text of its JSON, in the order in which they came.
fn bodies(saved: &Path) -> Vec<String> {
    let mut files: Vec<PathBuf> = fs::read_dir(saved).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut bodies = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let fields: BTreeMap<String, &RawValue> =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let path: String = serde_json::from_str(fields["path"].get()).unwrap();
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

/// The client's program, installed into `target/clients/` if it is not there yet.
fn install(client: &Package) -> Result<PathBuf, String> {
    let clients = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../clients");
    let place = clients.join(format!("{}-{}", client.program, client.version));
    let program = place.join("node_modules/.bin").join(client.program);
    let ready = place.join("installed");
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
        .arg(format!("{}@{}", client.name, client.version))
        .env("npm_config_cache", clients.join("npm"))
        .env("npm_config_update_notifier", "false")
        .current_dir(&place);
    let npm = Running::start(&mut command, &log).map_err(|why| format!("no npm: {why}"))?;
    let is_there = npm.wait(INSTALLING) == Some(true) && program.exists();
    if !is_there {
        let said = fs::read_to_string(&log).unwrap_or_default();
        return Err(format!(
            "npm did not install it: {}",
            said.lines().last().unwrap_or("no answer in time")
        ));
    }
    fs::write(ready, client.version).map_err(|error| error.to_string())?;
    Ok(program)
}

fn start_upstream(script: &Path, saved: &Path) -> Result<(Running, u16), String> {
    let free = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    let port = free.map_err(|error| error.to_string())?.port();
    // It ends by itself, too, should this test be killed.
    let mut command = Command::new("timeout");
    command.args(["150", "python3"]).arg(script).arg(port.to_string()).arg(saved).arg(N_STEPS.to_string());
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
struct Running(Child);

impl Running {
    fn start(command: &mut Command, log: &Path) -> Result<Running, String> {
        let log = File::create(log).map_err(|error| error.to_string())?;
        let errors = log.try_clone().map_err(|error| error.to_string())?;
        command.stdin(Stdio::null()).stdout(log).stderr(errors).process_group(0);
        command.spawn().map(Running).map_err(|error| error.to_string())
    }

    /// Whether it ended well; none if it did not end in time.
    fn wait(mut self, most: Duration) -> Option<bool> {
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

//! Codex and Claude Code, unmodified, through the proxy: a task of forty steps ends as without the proxy.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fanfold_core::{Count as _, Entry, Tokens, Transcript};
use fanfold_store::SessionId;
use fanfold_testkit::clients::programs::{
    CLAUDE_CODE, CODEX, ClientProgram, ClientSandbox, ClientTask, PROMPT, install,
};
use fanfold_testkit::contracts::api_rules::violations;
use fanfold_testkit::fakes::upstream::{RecordedRequest, Script, Upstream};
use fanfold_testkit::generators::bodies::BodyFormat;
use fanfold_tokens::o200k;
use fanfold_wire::{Change, Conversation};

use crate::running_proxy::{RunningProxy, fanfold, folder, free_port, handles, sessions, store_in};

const N_STEPS: usize = 40;
/// Room left for steps besides tools, system text and user messages: a few results.
const ROOM: Tokens = Tokens(8_000);
const LONGEST: Duration = Duration::from_secs(180);

#[test]
fn codex_behaves_as_without_the_proxy() {
    check(&CODEX, BodyFormat::Responses);
}

#[test]
fn claude_code_behaves_as_without_the_proxy() {
    check(&CLAUDE_CODE, BodyFormat::Anthropic);
}

/// An installed client, and a scripted provider for it.
fn ready(client: &ClientProgram) -> Result<(PathBuf, ClientSandbox), String> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..");
    let program = install(client, &target)?;
    Ok((program, ClientSandbox::new(N_STEPS)?))
}

fn check(client: &ClientProgram, kind: BodyFormat) {
    let (program, stage) = match ready(client) {
        Ok(ready) => ready,
        Err(why) => return println!("skipped: {} {}: {why}", client.name, client.version),
    };
    let mut direct = stage.command(client, &program, &ClientTask::new("direct", stage.port)).unwrap();
    let expected = last_line(&stage.run_to_end(&mut direct, "direct", LONGEST));
    let bodies = stage.bodies();
    let longest = bodies.iter().max_by_key(|body| body.len()).unwrap();
    let window = unfoldable(longest) + ROOM;
    let whole = size(longest);
    assert!(whole > window + ROOM, "{whole} tokens fit {window} without a fold");

    let (folder, stage) = (folder(), ClientSandbox::new(N_STEPS).unwrap());
    let upstream = format!("http://127.0.0.1:{}", stage.port);
    let proxy =
        RunningProxy::start(folder.path(), &upstream, &["--window", &window.to_string(), "--reserve", "0"]);
    let mut proxied = stage.command(client, &program, &ClientTask::new("proxied", proxy.port)).unwrap();
    let output = last_line(&stage.run_to_end(&mut proxied, "proxied", LONGEST));
    assert_eq!(output, expected, "the task has another result");
    let arrived = stage.bodies();
    let sizes = check_bodies(kind, &arrived, window);
    let session_list = sessions(folder.path());
    let longest = session_list.iter().max_by_key(|session| session.n_requests).unwrap();
    println!(
        "{} {}: {N_STEPS} steps, {} requests, {whole} tokens at the end; window {window}: {} folds, {} handles, all open; \
         the largest request has {sizes} tokens; it ends with {output:?}",
        client.program,
        client.version,
        arrived.len(),
        longest.n_folds,
        longest.n_handles,
    );
    assert!(longest.n_requests > N_STEPS, "{} requests in the session", longest.n_requests);
    assert!(longest.n_folds >= 3, "{} folds", longest.n_folds);
    drop(proxy);
    let n_recalled = recall_all(folder.path(), &longest.row.id, &arrived);
    println!("{n_recalled} handles of its requests recalled by `fanfold recall`");
    assert!(n_recalled > 0, "no handle was sent");
}

/// Checks that every body is valid and fits. Returns the size of the largest.
pub(crate) fn check_bodies(kind: BodyFormat, bodies: &[String], window: Tokens) -> Tokens {
    let mut largest = Tokens::ZERO;
    for (i, body) in bodies.iter().enumerate() {
        assert_eq!(violations(kind, body.as_bytes()), [], "request {i}: {body}");
        largest = largest.max(size(body));
    }
    assert!(largest <= window, "a request of {largest} tokens in a window of {window}");
    largest
}

/// Checks that `fanfold recall` opens every handle in a request.
pub(crate) fn recall_all(folder: &Path, session: &SessionId, bodies: &[String]) -> usize {
    let sent: Vec<String> = handles(folder, session)
        .into_iter()
        .filter(|handle| bodies.iter().any(|body| body.contains(handle)))
        .collect();
    for handle in &sent {
        let mut command = fanfold(folder);
        command.args(["recall", handle, "--session", &session.0, "--store"]).arg(store_in(folder));
        let opened = command.output().unwrap();
        assert!(opened.status.success() && !opened.stdout.is_empty(), "{handle}: {opened:?}");
    }
    sent.len()
}

/// Two clients with different tasks share a proxy, as subagents do.
#[test]
fn concurrent_clients_get_separate_sessions() {
    let (program, stage) = match ready(&CLAUDE_CODE) {
        Ok(ready) => ready,
        Err(why) => return println!("skipped: {}: {why}", CLAUDE_CODE.name),
    };
    let (folder, upstream) = (folder(), format!("http://127.0.0.1:{}", stage.port));
    let proxy = RunningProxy::start(folder.path(), &upstream, &["--window", "60000"]);
    let tasks =
        [("one", "Look at notes.md and count its lines."), ("two", "Look at big.log and count its lines.")];
    std::thread::scope(|scope| {
        for (home, prompt) in tasks {
            let part = ClientTask { home, port: proxy.port, prompt };
            let mut command = stage.command(&CLAUDE_CODE, &program, &part).unwrap();
            let stage = &stage;
            scope.spawn(move || {
                let output = stage.run_to_end(&mut command, home, LONGEST);
                assert!(output.contains("Finished after 40 tool results."), "{home}: {output}");
            });
        }
    });
    let long: Vec<_> =
        sessions(folder.path()).into_iter().filter(|session| session.n_requests > N_STEPS).collect();
    assert_eq!(long.len(), 2, "two tasks are two sessions");
    check_bodies(BodyFormat::Anthropic, &stage.bodies(), Tokens(60_000));
}

/// The proxy starts the client and ends with it.
#[test]
fn serve_starts_claude_code() {
    let (program, stage) = match ready(&CLAUDE_CODE) {
        Ok(ready) => ready,
        Err(why) => return println!("skipped: {}: {why}", CLAUDE_CODE.name),
    };
    let (folder, upstream) = (folder(), format!("http://127.0.0.1:{}", stage.port));
    let client = stage.command(&CLAUDE_CODE, &program, &ClientTask::new("home", free_port())).unwrap();
    let mut command = fanfold(folder.path());
    stage.isolate(&mut command, "home");
    command
        .args(["serve", "--upstream", &upstream, "--window", "40000", "--store"])
        .arg(store_in(folder.path()));
    command.arg("--").arg(client.get_program()).args(client.get_args());
    // The whole environment of the client, except for the address of its provider.
    let settings = client.get_envs().filter(|(name, _)| *name != "ANTHROPIC_BASE_URL");
    command.envs(settings.filter_map(|(name, value)| Some((name, value?))));
    let output = stage.run_to_end(&mut command, "home", LONGEST);
    assert!(output.contains("Finished after 40 tool results."), "{output}");
    assert!(sessions(folder.path()).iter().any(|session| session.n_requests > N_STEPS));
}

/// `fanfold serve` with a client, in an empty home directory.
fn serving(folder: &Path, stage: &ClientSandbox, upstream: &Upstream, client: &[&str]) -> Command {
    std::fs::create_dir_all(stage.path("home")).unwrap();
    let mut command = fanfold(folder);
    stage.isolate(&mut command, "home");
    command
        .args(["serve", "--upstream", &upstream.url(), "--window", "200000", "--store"])
        .arg(store_in(folder));
    command.arg("--").args(client);
    command.env("OPENAI_API_KEY", "dummy").env("ANTHROPIC_API_KEY", "dummy").env("IS_SANDBOX", "1");
    command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
    command
}

/// Codex reads no variable for its base URL, so the proxy passes it as a flag.
#[test]
fn serve_starts_codex() {
    let (program, stage) = match ready(&CODEX) {
        Ok(ready) => ready,
        Err(why) => return println!("skipped: {}: {why}", CODEX.name),
    };
    let (folder, upstream) = (folder(), provider());
    let program = program.display().to_string();
    let client =
        [&program, "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT];
    let output = stage.run_to_end(&mut serving(folder.path(), &stage, &upstream, &client), "home", LONGEST);
    assert!(output.contains("Finished after"), "{output}");
    let n_requests: usize = sessions(folder.path()).iter().map(|session| session.n_requests).sum();
    let arrived = bodies_of(&upstream).len();
    println!("{arrived} requests arrived, {n_requests} of them are in the store");
    assert!(arrived > 0 && n_requests == arrived);
}

#[test]
fn serve_returns_the_exit_code_of_the_client() {
    for (client, wrong) in [(&CODEX, "--no-such-flag"), (&CLAUDE_CODE, "--no-such-flag")] {
        let (program, stage) = match ready(client) {
            Ok(ready) => ready,
            Err(why) => return println!("skipped: {}: {why}", client.name),
        };
        let (folder, upstream) = (folder(), provider());
        let program = program.display().to_string();
        let mut direct = Command::new(&program);
        std::fs::create_dir_all(stage.path("home")).unwrap();
        stage.isolate(&mut direct, "home");
        let expected = direct.arg(wrong).output().unwrap().status.code().unwrap();
        assert_ne!(expected, 0, "{program} takes {wrong}");
        let output = serving(folder.path(), &stage, &upstream, &[&program, wrong]).output().unwrap();
        assert_eq!(output.status.code(), Some(expected), "{}: {output:?}", client.name);
    }
}

/// A terminal sends Ctrl-C to its whole foreground group: the client ends, and the proxy with it.
#[test]
fn ctrl_c_ends_proxy_and_client() {
    for client in [&CODEX, &CLAUDE_CODE] {
        let (program, stage) = match ready(client) {
            Ok(ready) => ready,
            Err(why) => return println!("skipped: {}: {why}", client.name),
        };
        let folder = folder();
        let mut script = Script::steps(N_STEPS);
        // The client is in the middle of an answer.
        script.pause = Duration::from_secs(20);
        let upstream = Upstream::start(script).unwrap();
        let program = program.display().to_string();
        let arguments: &[&str] = match client.program {
            "codex" => &[&program, "exec", "--skip-git-repo-check", PROMPT],
            _ => &[&program, "-p", PROMPT],
        };
        let mut command = serving(folder.path(), &stage, &upstream, arguments);
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let has_request = |seen: &[RecordedRequest]| seen.iter().any(|seen| seen.kind.is_some());
        let was_requested = upstream.wait_for(Duration::from_secs(60), has_request);
        let group = format!("-{}", child.id());
        let kill =
            |signal: &str| Command::new("kill").args([signal, "--", &group]).stderr(Stdio::null()).status();
        assert!(kill("-INT").unwrap().success());
        let until = Instant::now() + Duration::from_secs(20);
        let mut ended = None;
        while ended.is_none() && Instant::now() < until {
            ended = child.try_wait().unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
        // Child processes of the client may take a moment longer.
        let mut is_running_still = true;
        while is_running_still && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
            is_running_still = is_running(child.id());
        }
        let _ = kill("-KILL");
        child.wait().unwrap();
        assert!(was_requested, "{}: it sent no request", client.name);
        // Some clients exit with 0 when they are interrupted.
        assert!(ended.is_some(), "{}: it did not end", client.name);
        assert!(!is_running_still, "{}: a process is left", client.name);
    }
}

/// True if a process of the group still runs. Zombies do not count.
fn is_running(group: u32) -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok()).any(|stat| {
        // The name is in brackets and may contain any character. The state, the parent and the group follow it.
        let behind = stat.rsplit_once(") ").map_or("", |(_, behind)| behind);
        let mut fields = behind.split(' ');
        let state = fields.next();
        fields.nth(1).and_then(|field| field.parse().ok()) == Some(group) && state != Some("Z")
    })
}

/// A scripted provider.
fn provider() -> Upstream {
    Upstream::start(Script::steps(N_STEPS)).unwrap()
}

fn bodies_of(upstream: &Upstream) -> Vec<String> {
    upstream.seen().iter().filter(|seen| seen.kind.is_some()).map(RecordedRequest::text).collect()
}

fn last_line(output: &str) -> String {
    output.lines().rev().find(|line| line.contains("Finished")).unwrap_or_default().trim().to_owned()
}

/// The size of an unfolded body.
fn size(body: &str) -> Tokens {
    counted(body, |_| true)
}

/// The size of the parts that cannot be folded: tools, system text, user messages.
fn unfoldable(body: &str) -> Tokens {
    counted(body, |change| matches!(change, Change::Append(Entry::Prompt(_))))
}

fn counted(body: &str, is_wanted: impl Fn(&Change) -> bool) -> Tokens {
    let (conversation, changes) = Conversation::decode(body, None).unwrap();
    let mut transcript = Transcript::new();
    transcript.set_tools(conversation.tools().map_or(Tokens::ZERO, |tools| o200k().count(tools)));
    for change in changes.into_iter().filter(is_wanted) {
        change.apply(&mut transcript, o200k());
    }
    transcript.total()
}

//! The proxy as a program: it starts, serves, starts a client, and ends in good order.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use expect_test::expect;
use fanfold_testkit::upstream::{Said, Script, Upstream};
use serde_json::json;

use crate::sandbox::Sandbox;

/// A proxy that runs.
struct Proxy {
    child: Child,
    address: String,
}

fn upstream(pause: Duration) -> Upstream {
    let mut script =
        Script::of(|_| Said { text: "one two three four five six".to_owned(), ..Said::default() });
    script.pause = pause;
    Upstream::start(script).unwrap()
}

fn command(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("fanfold"));
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", sandbox.path(""));
    command.env("XDG_CONFIG_HOME", sandbox.path("config")).current_dir(sandbox.path(""));
    command.args(arguments);
    command
}

impl Proxy {
    fn start(sandbox: &Sandbox, upstream: &Upstream) -> Proxy {
        let url = upstream.url();
        let arguments = ["serve", "--listen", "0", "--upstream", &url, "--store", "s.db", "--window", "32k"];
        let mut child = command(sandbox, &arguments).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        stderr.read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).and_then(|rest| rest.split(',').next());
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        // Nobody reads on, and it must not wait for that.
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        Proxy { child, address }
    }

    fn kill(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    fn ends_within(&mut self, most: Duration) -> Option<i32> {
        let until = Instant::now() + most;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks for a stream. Gives the connection, with its first bytes read.
fn ask(address: &str) -> (TcpStream, Vec<u8>) {
    let body = json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "hi" }] });
    let body = body.to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut first = vec![0; 1];
    stream.read_exact(&mut first).unwrap();
    (stream, first)
}

#[test]
fn a_signal_under_load_lets_every_stream_end() {
    let (sandbox, upstream) = (Sandbox::new(), upstream(Duration::from_millis(60)));
    let mut proxy = Proxy::start(&sandbox, &upstream);
    let streams: Vec<_> = (0..12).map(|_| ask(&proxy.address)).collect();
    proxy.kill("-TERM");
    let readers: Vec<_> = streams
        .into_iter()
        .map(|(mut stream, mut got)| {
            std::thread::spawn(move || {
                stream.read_to_end(&mut got).unwrap();
                String::from_utf8_lossy(&got).into_owned()
            })
        })
        .collect();
    for reader in readers {
        let got = reader.join().unwrap();
        assert!(got.starts_with("HTTP/1.1 200") && got.contains("[DONE]"), "{got}");
    }
    assert_eq!(proxy.ends_within(Duration::from_secs(10)), Some(0));
    assert!(TcpStream::connect(&proxy.address).is_err(), "nobody listens any more");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let (sandbox, upstream) = (Sandbox::new(), upstream(Duration::from_secs(5)));
    let mut proxy = Proxy::start(&sandbox, &upstream);
    let (_stream, _) = ask(&proxy.address);
    proxy.kill("-TERM");
    assert_eq!(proxy.ends_within(Duration::from_millis(500)), None, "it waits for the stream");
    proxy.kill("-INT");
    assert_eq!(proxy.ends_within(Duration::from_secs(4)), Some(0));
}

#[test]
fn a_client_is_started_with_its_base_urls_and_ended_with() {
    let (sandbox, upstream) = (Sandbox::new(), upstream(Duration::ZERO));
    let url = upstream.url();
    let script = r#"echo "$ANTHROPIC_BASE_URL $OPENAI_BASE_URL"; exit 7"#;
    let arguments = ["serve", "--upstream", &url, "--store", "s.db", "--", "sh", "-c", script];
    let output = command(&sandbox, &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8(output.stdout).unwrap();
    let (anthropic, openai) = told.trim().split_once(' ').unwrap();
    assert!(anthropic.starts_with("http://127.0.0.1:") && openai == format!("{anthropic}/v1"), "{told}");
    // A signal that is meant for the client reaches it.
    let script = "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    let arguments = ["-q", "serve", "--upstream", &url, "--store", "s.db", "--", "sh", "-c", script];
    let mut child = command(&sandbox, &arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let mut proxy = Proxy { child, address: String::new() };
    proxy.kill("-TERM");
    assert_eq!(proxy.ends_within(Duration::from_secs(10)), Some(3));
}

#[test]
fn what_can_not_be_served_is_told_with_the_next_step() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run("serve --listen 0.0.0.0:0");
    expect![[r#"
        error: 0.0.0.0:0 can be reached from other machines, and there is no token

        hint: set FANFOLD_TOKEN or --token-file, or listen on 127.0.0.1
    "#]]
    .assert_eq(&ran.err);
    let ran = sandbox.run("serve --upstream api.openai.com");
    expect![[r#"
        error: `api.openai.com` is no address of a provider: relative URL without a base

        hint: write it as https://api.openai.com/v1
    "#]]
    .assert_eq(&ran.err);
    let ran = sandbox.run("serve --listen 0 --token short");
    assert!(ran.code == 1 && ran.err.contains("openssl rand"), "{}", ran.err);
    let ran = sandbox.run("serve --listen 0 -- no-such-program-anywhere");
    assert!(
        ran.code == 1 && ran.err.contains("no-such-program-anywhere could not be started"),
        "{}",
        ran.err
    );
}

#[test]
fn a_project_does_not_decide_where_credentials_go() {
    let sandbox = Sandbox::new();
    sandbox.write(".fanfold.toml", "[serve]\nupstream = \"https://elsewhere.example\"\n");
    let ran = sandbox.run("config show");
    expect![[r#"
        error: HERE/.fanfold.toml: [serve] is not a project's to set

        hint: put it into your own file (`fanfold config path`): it decides where credentials go
    "#]]
    .assert_eq(&ran.err);
    std::fs::remove_file(sandbox.path(".fanfold.toml")).unwrap();
    sandbox.write("config/fanfold/config.toml", "[serve]\nopenai = \"http://127.0.0.1:9/v1\"\n");
    let ran = sandbox.run("serve --listen 0 --store s.db -- true");
    assert!(ran.err.contains("sends to http://127.0.0.1:9/v1 and https://api.anthropic.com"), "{}", ran.err);
}

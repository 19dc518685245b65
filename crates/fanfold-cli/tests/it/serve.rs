//! `fanfold serve` as a process: start, clients, signals, shutdown.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use expect_test::expect;
use fanfold_testkit::fakes::upstream::{Script, ScriptedReply, Upstream};
use serde_json::json;

use crate::sandbox::Sandbox;

/// A running proxy.
struct Proxy {
    child: Child,
    address: String,
}

fn upstream(pause: Duration) -> Upstream {
    let mut script = Script::new(|_| ScriptedReply {
        text: "one two three four five six".to_owned(),
        ..ScriptedReply::default()
    });
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
        // No client reads the rest, and the proxy must not wait for it.
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

/// Requests a stream. Returns the connection after its first byte.
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
fn signal_under_load_lets_every_stream_end() {
    let (sandbox, upstream) = (Sandbox::new(), upstream(Duration::from_millis(60)));
    let mut proxy = Proxy::start(&sandbox, &upstream);
    let streams: Vec<_> = (0..12).map(|_| ask(&proxy.address)).collect();
    proxy.kill("-TERM");
    let readers: Vec<_> = streams
        .into_iter()
        .map(|(mut stream, mut received)| {
            std::thread::spawn(move || {
                stream.read_to_end(&mut received).unwrap();
                String::from_utf8_lossy(&received).into_owned()
            })
        })
        .collect();
    for reader in readers {
        let received = reader.join().unwrap();
        assert!(received.starts_with("HTTP/1.1 200") && received.contains("[DONE]"), "{received}");
    }
    assert_eq!(proxy.ends_within(Duration::from_secs(10)), Some(0));
    assert!(TcpStream::connect(&proxy.address).is_err(), "the proxy no longer listens");
}

#[test]
fn second_signal_stops_the_proxy_at_once() {
    let (sandbox, upstream) = (Sandbox::new(), upstream(Duration::from_secs(5)));
    let mut proxy = Proxy::start(&sandbox, &upstream);
    let (_stream, _) = ask(&proxy.address);
    proxy.kill("-TERM");
    assert_eq!(proxy.ends_within(Duration::from_millis(500)), None, "it waits for the stream");
    proxy.kill("-INT");
    assert_eq!(proxy.ends_within(Duration::from_secs(4)), Some(0));
}

#[test]
fn signal_is_handled_as_soon_as_the_address_is_printed() {
    let (sandbox, upstream) = (Sandbox::new(), upstream(Duration::ZERO));
    for _ in 0..10 {
        let mut proxy = Proxy::start(&sandbox, &upstream);
        proxy.kill("-TERM");
        assert_eq!(proxy.ends_within(Duration::from_secs(10)), Some(0));
    }
}

#[test]
fn client_is_started_with_its_base_urls() {
    let (sandbox, upstream) = (Sandbox::new(), upstream(Duration::ZERO));
    let url = upstream.url();
    let script = r#"echo "$ANTHROPIC_BASE_URL $OPENAI_BASE_URL"; exit 7"#;
    let arguments = ["serve", "--upstream", &url, "--store", "s.db", "--", "sh", "-c", script];
    let output = command(&sandbox, &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
    let output = String::from_utf8(output.stdout).unwrap();
    let (anthropic, openai) = output.trim().split_once(' ').unwrap();
    assert!(anthropic.starts_with("http://127.0.0.1:") && openai == format!("{anthropic}/v1"), "{output}");
    // A signal is forwarded to the client.
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
fn upstream_is_taken_from_client_variables() {
    let sandbox = Sandbox::new();
    let output = |variables: &[(&str, &str)]| {
        let mut command = command(&sandbox, &["serve", "--store", "s.db", "--", "true"]);
        command.envs(variables.iter().copied());
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    let stderr = output(&[("OPENAI_API_BASE", "http://127.0.0.1:9/v1")]);
    assert!(stderr.contains("sends to http://127.0.0.1:9/v1 and https://api.anthropic.com"), "{stderr}");
    let stderr =
        output(&[("OPENAI_API_BASE", "http://127.0.0.1:9"), ("OPENAI_BASE_URL", "http://127.0.0.1:8")]);
    assert!(stderr.contains("sends to http://127.0.0.1:8 and"), "{stderr}");
    assert!(stderr.contains("warning: OPENAI_BASE_URL and OPENAI_API_BASE differ"), "{stderr}");
}

/// A stand-in for Codex that prints its arguments.
fn codex(sandbox: &Sandbox, settings: &str, arguments: &[&str]) -> (String, String) {
    use std::os::unix::fs::PermissionsExt as _;
    let program = sandbox.write("bin/codex", "#!/bin/sh\necho \"$@\"\n");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    sandbox.write(".codex/config.toml", settings);
    let program = program.to_str().unwrap().to_owned();
    let mut all = vec!["serve", "--store", "s.db"];
    all.extend(arguments);
    all.extend(["--", &program, "exec", "hi"]);
    let output = command(sandbox, &all).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

#[test]
fn upstream_is_taken_from_codex_settings() {
    let sandbox = Sandbox::new();
    let (output, stderr) = codex(&sandbox, "", &[]);
    assert!(
        stderr.contains("sends to https://api.openai.com/v1 and") && !stderr.contains("warning"),
        "{stderr}"
    );
    assert!(
        output.starts_with("-c openai_base_url=\"http://127.0.0.1:") && output.ends_with("/v1\" exec hi\n")
    );
    let (output, stderr) = codex(&sandbox, "openai_base_url = \"http://127.0.0.1:9/openai\"\n", &[]);
    assert!(
        stderr.contains("sends to http://127.0.0.1:9/openai and") && !stderr.contains("warning"),
        "{stderr}"
    );
    assert!(output.starts_with("-c openai_base_url=") && !output.contains("/v1"), "the same paths: {output}");
    // The flag overrides the selected provider.
    let other = "model_provider = \"mine\"\n[model_providers.mine]\nbase_url = \"http://127.0.0.1:9/v1\"\n";
    let (output, stderr) = codex(&sandbox, other, &[]);
    assert!(stderr.contains("sends to http://127.0.0.1:9/v1 and"), "{stderr}");
    assert!(output.starts_with("-c model_providers.mine.base_url=\"http://127.0.0.1:"), "{output}");
}

#[test]
fn conflicts_with_codex_settings_are_reported() {
    let sandbox = Sandbox::new();
    let settings = "openai_base_url = \"http://127.0.0.1:9/v1\"\n";
    let (_, stderr) = codex(&sandbox, settings, &["--upstream", "http://127.0.0.1:8"]);
    assert!(stderr.contains("sends to http://127.0.0.1:8,"), "{stderr}");
    assert!(
        stderr.contains("config.toml sets the base URL http://127.0.0.1:9/v1, but requests go to"),
        "{stderr}"
    );
    assert!(stderr.contains("pass --upstream http://127.0.0.1:9/v1"), "{stderr}");
    let (_, stderr) = codex(&sandbox, settings, &["--upstream", "http://127.0.0.1:9/v1/"]);
    assert!(!stderr.contains("warning"), "{stderr}");
    let (output, stderr) = codex(&sandbox, "model_provider = \"oss\"\n", &[]);
    assert!(stderr.contains("names the provider `oss`") && stderr.contains("bypass fanfold"), "{stderr}");
    assert_eq!(output, "exec hi\n");
}

#[test]
fn variables_of_a_shared_proxy_are_ignored_with_a_client() {
    let (sandbox, upstream) = (Sandbox::new(), upstream(Duration::ZERO));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (url, address) = (upstream.url(), taken.local_addr().unwrap().to_string());
    let script = r#"echo "$ANTHROPIC_BASE_URL"; read end"#;
    let arguments = ["-q", "serve", "--upstream", &url, "--store", "s.db", "--", "sh", "-c", script];
    let mut command = command(&sandbox, &arguments);
    command.env("FANFOLD_LISTEN", &address).env("FANFOLD_TOKEN", "a-token-of-enough-letters");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().trim_start_matches("http://").to_owned();
    let mut proxy = Proxy { child, address };
    let (mut stream, mut received) = ask(&proxy.address);
    stream.read_to_end(&mut received).unwrap();
    assert!(received.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&received));
    drop(proxy.child.stdin.take());
    assert!(proxy.ends_within(Duration::from_secs(10)).is_some());
}

#[test]
fn signal_is_forwarded_to_the_client() {
    use std::os::unix::process::CommandExt as _;
    let (sandbox, upstream) = (Sandbox::new(), upstream(Duration::ZERO));
    let url = upstream.url();
    for (signal, number) in [("-INT", 2), ("-HUP", 1)] {
        let script =
            format!("trap 'exit {number}' {}; echo ready; while :; do sleep 0.05; done", &signal[1..]);
        let arguments = ["-q", "serve", "--upstream", &url, "--store", "s.db", "--", "sh", "-c", &script];
        // A process group of its own has no terminal, so only the proxy can signal the client.
        let mut command = command(&sandbox, &arguments);
        let mut child = command.process_group(0).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let mut proxy = Proxy { child, address: String::new() };
        proxy.kill(signal);
        assert_eq!(proxy.ends_within(Duration::from_secs(10)), Some(number), "{signal}");
    }
}

#[test]
fn missing_certificates_allow_plain_upstreams() {
    let sandbox = Sandbox::new();
    let empty = sandbox.write("empty.pem", "");
    let run = |upstream: &str| {
        let arguments = ["serve", "--upstream", upstream, "--store", "s.db", "--", "true"];
        let mut command = command(&sandbox, &arguments);
        command.env("SSL_CERT_FILE", &empty).env("SSL_CERT_DIR", sandbox.path("none"));
        command.output().unwrap()
    };
    let output = run("http://127.0.0.1:9");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = run("https://127.0.0.1:9");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && stderr.contains("certificates") && !stderr.contains("builder"),
        "{stderr}"
    );
}

#[test]
fn serve_errors_have_hints() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run("serve --listen 0.0.0.0:0");
    expect![[r#"
        error: 0.0.0.0:0 can be reached from other machines, but no token is set

        hint: set FANFOLD_TOKEN or --token-file, or listen on 127.0.0.1
    "#]]
    .assert_eq(&ran.err);
    let ran = sandbox.run("serve --upstream api.openai.com");
    expect![[r#"
        error: `api.openai.com` is not the address of a provider: relative URL without a base

        hint: write it as https://api.openai.com/v1
    "#]]
    .assert_eq(&ran.err);
    let ran = sandbox.run("serve --listen 0.0.0.0:0 --token a-token-of-enough-letters -- true");
    expect![[r#"
        error: the client cannot use 0.0.0.0:0, because it has no token

        hint: leave out --listen, or start the proxy and the client separately
    "#]]
    .assert_eq(&ran.err);
    let ran = sandbox.run("serve --store s.db --window 0 -- true");
    expect![[r#"
        error: a window of 0 tokens has no room for a request

        hint: set --window to the window of the model, such as 128k
    "#]]
    .assert_eq(&ran.err);
    let ran = sandbox.run("serve --store s.db --window 500 -- true");
    assert!(ran.code == 0 && ran.err.contains("warning: a window of 500 tokens is smaller"), "{}", ran.err);
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
fn project_file_cannot_set_serve() {
    let sandbox = Sandbox::new();
    sandbox.write(".fanfold.toml", "[serve]\nupstream = \"https://elsewhere.example\"\n");
    let ran = sandbox.run("config show");
    expect![[r#"
        error: HERE/.fanfold.toml: [serve] is not allowed in a project's file

        hint: move it to your own file (`fanfold config path`): it decides where credentials go
    "#]]
    .assert_eq(&ran.err);
    std::fs::remove_file(sandbox.path(".fanfold.toml")).unwrap();
    sandbox.write("config/fanfold/config.toml", "[serve]\nopenai = \"http://127.0.0.1:9/v1\"\n");
    let ran = sandbox.run("serve --listen 0 --store s.db -- true");
    assert!(ran.err.contains("sends to http://127.0.0.1:9/v1 and https://api.anthropic.com"), "{}", ran.err);
}

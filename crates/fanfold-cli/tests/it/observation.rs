//! Observing a proxy: log, metrics, status and spans. None of them may contain a secret.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use fanfold_testkit::clients::http::HttpClient;
use fanfold_testkit::fakes::upstream::{Fault, Script, Upstream};
use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// A running `fanfold serve`, and its output.
struct Proxy {
    child: Child,
    port: u16,
    output: Arc<Mutex<String>>,
    listeners: Vec<JoinHandle<()>>,
}

impl Proxy {
    fn start(sandbox: &Sandbox, upstream: &str, flags: &[&str]) -> Proxy {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("fanfold"))
            .args(["serve", "--listen", "127.0.0.1:0", "--store", "kept.db", "--upstream", upstream])
            .args(flags)
            .env_clear()
            .current_dir(sandbox.path("."))
            .env("HOME", sandbox.path("."))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = Arc::new(Mutex::new(String::new()));
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("listens on http://") {
            assert_ne!(err.read_line(&mut line).unwrap(), 0, "the proxy ended: {line}");
        }
        let address = line.split("listens on http://").nth(1).unwrap();
        let port = address.split([':', ',']).nth(1).unwrap().trim().parse().unwrap();
        output.lock().unwrap().push_str(&line);
        let out = BufReader::new(child.stdout.take().unwrap());
        let listeners = vec![listen(err, Arc::clone(&output)), listen(out, Arc::clone(&output))];
        Proxy { child, port, output, listeners }
    }

    fn caller(&self) -> HttpClient {
        HttpClient::new(self.port)
    }

    fn get(&self, path: &str) -> String {
        let answered = self.caller().call("GET", path, &[], "").unwrap();
        assert_eq!(answered.status, 200, "{path}");
        answered.text()
    }

    /// Stops the proxy and returns its output.
    fn end(mut self) -> String {
        let ended = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        let code = self.child.wait().unwrap();
        assert!(ended.success() && code.success(), "{code}: {}", self.output.lock().unwrap());
        self.listeners.drain(..).for_each(|listener| listener.join().unwrap());
        std::mem::take(&mut *self.output.lock().unwrap())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

fn listen(mut from: impl std::io::BufRead + Send + 'static, output: Arc<Mutex<String>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut line = String::new();
        while from.read_line(&mut line).is_ok_and(|n| n > 0) {
            output.lock().unwrap().push_str(&std::mem::take(&mut line));
        }
    })
}

/// A conversation of `n` steps, each with a long result.
fn conversation(n_steps: usize) -> Value {
    let mut messages = vec![json!({ "role": "user", "content": "read the files" })];
    for n in 0..n_steps {
        let lines: Vec<String> =
            (0..60).map(|line| format!("line {line} of file {n} says {}", n * 7 + line)).collect();
        let id = format!("call_{n}");
        let function =
            json!({ "name": "read", "arguments": json!({ "path": format!("f{n}.txt") }).to_string() });
        let call = json!({ "id": id, "type": "function", "function": function });
        messages.push(json!({ "role": "assistant", "content": null, "tool_calls": [call] }));
        messages.push(json!({ "role": "tool", "tool_call_id": id, "content": lines.join("\n") }));
    }
    let parameters = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let tool = json!({ "type": "function", "function": { "name": "read", "parameters": parameters } });
    json!({ "model": "gpt-5", "messages": messages, "tools": [tool] })
}

const CHAT: &str = "/v1/chat/completions";

#[test]
fn requests_appear_in_log_metrics_and_status() {
    let upstream = Upstream::start(Script::steps(99)).unwrap();
    let sandbox = Sandbox::new();
    let proxy = Proxy::start(&sandbox, &upstream.url(), &["--window", "8k", "--log", "json"]);
    let mut caller = proxy.caller();
    for n_steps in [1, 2, 14, 15] {
        let answered = caller.post(CHAT, &[], &conversation(n_steps).to_string()).unwrap();
        assert_eq!(answered.status, 200, "{}", answered.text());
    }
    // The agent reads the first file again, whose result was folded.
    let mut again = conversation(15);
    let messages = again["messages"].as_array_mut().unwrap();
    let repeated = [messages[1].clone(), messages[2].clone()];
    messages.extend(repeated);
    let (call, result) = (messages.len() - 2, messages.len() - 1);
    messages[call]["tool_calls"][0]["id"] = json!("call_again");
    messages[result]["tool_call_id"] = json!("call_again");
    assert_eq!(caller.post(CHAT, &[], &again.to_string()).unwrap().status, 200);
    upstream.fault(Fault::Status(429));
    assert_eq!(caller.post(CHAT, &[], &conversation(1).to_string()).unwrap().status, 429);
    assert_eq!(caller.call("GET", "/v1/models", &[], "").unwrap().status, upstream_models(&upstream));
    drop(caller);

    let status: Value = serde_json::from_str(&proxy.get("/fanfold/status")).unwrap();
    let totals = &status["totals"];
    assert_eq!(totals["requests"], 6, "{status:#}");
    assert_eq!(totals["passed_through"], 1);
    assert!(totals["outcomes"]["folded"].as_u64().unwrap() >= 3, "{status:#}");
    assert!(totals["folds"].as_u64().unwrap() >= 1 && totals["misses"] == 1, "{status:#}");
    let tokens = |key: &str| totals["tokens"][key].as_u64().unwrap();
    assert!(
        tokens("sent") < tokens("came") && tokens("folded_away") > 0 && tokens("input") > 0,
        "{status:#}"
    );
    let session = &status["sessions"].as_array().unwrap().iter().find(|one| one["misses"] == 1).unwrap();
    assert_eq!(session["words"], "read the files");
    assert!(session["sent"].as_u64() <= session["room"].as_u64(), "{session:#}");
    let dollars = |key: &str| totals["dollars"][key].as_f64().unwrap();
    assert!((dollars("came") - dollars("sent") - dollars("saved")).abs() < 1e-5 && dollars("came") > 0.0);

    let metrics = proxy.get("/fanfold/metrics");
    for line in [
        r#"fanfold_requests_total{format="chat",family="gpt-5",outcome="folded"}"#,
        "fanfold_misses_total 1",
        "fanfold_passed_through_total 1",
        r#"fanfold_answers_total{format="chat",status="4xx"} 1"#,
        r#"fanfold_added_seconds_count{format="chat"} 6"#,
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    let top = sandbox.run(&format!("top --once --url http://127.0.0.1:{}", proxy.port));
    assert!(
        top.code == 0 && top.out.contains("read the files") && top.out.contains("misses 1"),
        "{}",
        top.out
    );
    assert!(proxy.get("/fanfold/ready").contains("true") && proxy.get("/fanfold/health").contains("true"));

    let output = proxy.end();
    let lines: Vec<Value> = output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let requests: Vec<&Value> = lines.iter().filter(|line| line["target"] == "fanfold::request").collect();
    assert_eq!(requests.len(), 6, "{output}");
    let folded = requests.iter().find(|line| line["outcome"] == "folded").unwrap();
    assert!(folded["came"].as_u64() > folded["sent"].as_u64() && folded["status"] == 200, "{folded:#}");
    assert_eq!(requests[5]["status"], 429);
    assert!(output.contains("requests were folded"), "{output}");
}

#[test]
fn pressure_is_logged_once() {
    let upstream = Upstream::start(Script::steps(99)).unwrap();
    let sandbox = Sandbox::new();
    let flags = ["--window", "9k", "--reserve", "0", "--cadence", "window"];
    let proxy = Proxy::start(&sandbox, &upstream.url(), &flags);
    let mut caller = proxy.caller();
    for n_steps in [1, 6, 7, 8, 8, 8] {
        assert_eq!(caller.post(CHAT, &[], &conversation(n_steps).to_string()).unwrap().status, 200);
    }
    drop(caller);
    let output = proxy.end();
    let lines: Vec<&str> = output.lines().filter(|line| line.contains("% of the room is full")).collect();
    let has = |level: &str| lines.iter().filter(|line| line.contains(&format!("pressure={level}"))).count();
    assert!(
        !lines.is_empty() && ["info", "notice", "warning", "critical"].iter().all(|level| has(level) <= 1),
        "{output}"
    );
    assert_eq!(lines.len(), has("info") + has("notice") + has("warning") + has("critical"), "{output}");
}

/// True if a line of JSON has no duplicate keys.
fn has_each_key_once(line: &str) -> bool {
    struct Once;
    impl<'de> serde::de::Visitor<'de> for Once {
        type Value = bool;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
            let mut keys = std::collections::BTreeSet::new();
            let mut is_once = true;
            while let Some((key, _)) = map.next_entry::<String, serde::de::IgnoredAny>()? {
                is_once &= keys.insert(key);
            }
            Ok(is_once)
        }
    }
    serde::Deserializer::deserialize_map(&mut serde_json::Deserializer::from_str(line), Once).unwrap()
}

#[test]
fn json_log_line_has_unique_keys() {
    let upstream = Upstream::start(Script::steps(99)).unwrap();
    let sandbox = Sandbox::new();
    let flags = ["--window", "9k", "--reserve", "0", "--cadence", "window", "--max-body", "1"];
    let flags: Vec<&str> = flags.into_iter().chain(["--log", "json", "--talk", "debug"]).collect();
    let proxy = Proxy::start(&sandbox, &upstream.url(), &flags);
    let mut caller = proxy.caller();
    for n_steps in [1, 6, 7, 8] {
        assert_eq!(caller.post(CHAT, &[], &conversation(n_steps).to_string()).unwrap().status, 200);
    }
    let large = conversation(1).to_string().replacen("read the files", &"word ".repeat(300_000), 1);
    assert_eq!(caller.post(CHAT, &[], &large).unwrap().status, 200);
    let secret = [("x-api-key", "sk-secret"), ("user-agent", "an-agent")];
    assert_eq!(caller.call("GET", "/v1/models?key=sk-secret", &secret, "").unwrap().status, 200);
    drop(caller);
    let output = proxy.end();
    let lines: Vec<&str> = output.lines().filter(|line| line.starts_with('{')).collect();
    assert!(lines.iter().any(|line| line.contains(r#""pressure":""#)), "{output}");
    for line in &lines {
        assert!(has_each_key_once(line), "{line}");
    }
    let find = |words: &str| -> Value {
        let line = lines.iter().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{output}"));
        serde_json::from_str(line).unwrap()
    };
    let passed = find(r#""why":"too_large""#);
    assert_eq!((&passed["status"], &passed["exit"]), (&json!(200), &json!("done")), "{passed}");
    let through = find("fanfold::passed");
    assert_eq!((&through["method"], &through["path"]), (&json!("GET"), &json!("/v1/models?…")), "{through}");
    assert!(through["headers"].as_str().unwrap().contains(r#"user-agent="an-agent""#), "{through}");
    assert!(!output.contains("sk-secret"), "{output}");
}

/// The reply of the upstream to the same request without a proxy.
fn upstream_models(upstream: &Upstream) -> u16 {
    HttpClient::new(upstream.port()).call("GET", "/v1/models", &[], "").unwrap().status
}

#[test]
fn observing_proxy_reports_possible_savings() {
    let upstream = Upstream::start(Script::steps(99)).unwrap();
    let sandbox = Sandbox::new();
    let proxy = Proxy::start(&sandbox, &upstream.url(), &["--window", "8k", "--observe", "--log", "off"]);
    let mut caller = proxy.caller();
    let bodies = [conversation(14).to_string(), conversation(15).to_string()];
    for body in &bodies {
        assert_eq!(caller.post(CHAT, &[], body).unwrap().status, 200);
    }
    drop(caller);
    let status: Value = serde_json::from_str(&proxy.get("/fanfold/status")).unwrap();
    assert_eq!((&status["mode"], &status["totals"]["outcomes"]["observed"]), (&json!("observe"), &json!(2)));
    let output = proxy.end();
    assert!(
        output.contains("2 of 2 requests would have been folded") && output.contains("would have saved $"),
        "{output}"
    );
    let sent: Vec<String> = upstream.seen().iter().map(|seen| seen.text()).collect();
    assert_eq!(sent, bodies, "nothing is changed");
}

#[test]
fn secrets_are_never_logged() {
    const SECRET: &str = "sk-s3cr3t";
    let upstream = Upstream::start(Script::steps(99)).unwrap();
    for look in ["human", "json"] {
        let sandbox = Sandbox::new();
        let flags = ["--window", "8k", "--log", look, "--talk", "trace"];
        let proxy = Proxy::start(&sandbox, &upstream.url(), &flags);
        let bearer = format!("Bearer {SECRET}");
        let headers: &[(&str, &str)] = &[
            ("authorization", &bearer),
            ("x-api-key", SECRET),
            ("api-key", SECRET),
            ("cookie", SECRET),
            ("x-some-new-header", SECRET),
            ("x-goog-api-key", SECRET),
        ];
        let path = format!("{CHAT}?key={SECRET}");
        let mut with_secrets = conversation(14);
        with_secrets["messages"][0]["content"] = json!(format!("my key is {SECRET}"));
        with_secrets["messages"][2]["content"] = json!(format!("KEY={SECRET}\n").repeat(200));
        with_secrets["user"] = json!(SECRET);
        let odd = format!(r#"{{"model":"gpt-5","messages":[{{"role":"{SECRET}"}}], {SECRET} not JSON"#);
        let strange = json!({ "model": "gpt-5", "messages": [{ "role": SECRET, "content": { SECRET: 1 } }] });
        let faults = [
            None,
            Some(Fault::Answer(400, format!(r#"{{"error":{{"message":"invalid key {SECRET}"}}}}"#))),
            Some(Fault::Answer(401, format!(r#"{{"error":{{"message":"invalid key {SECRET}"}}}}"#))),
            Some(Fault::Answer(413, SECRET.to_owned())),
            Some(Fault::Garbage),
            Some(Fault::HangUp),
            Some(Fault::NotHttp),
            Some(Fault::Disconnect(1)),
            Some(Fault::Status(500)),
        ];
        let mut n_sent = 0;
        for fault in faults {
            for body in [&with_secrets.to_string(), &odd, &strange.to_string()] {
                if let Some(fault) = &fault {
                    upstream.fault(fault.clone());
                }
                // Some of these requests fail; only the log matters here.
                let _ = proxy.caller().post(&path, headers, body);
                n_sent += 1;
            }
        }
        let _ = proxy.caller().call("GET", &format!("/v1/models?key={SECRET}"), headers, "");
        let _ = proxy.caller().call("GET", &format!("/fanfold/none?key={SECRET}"), headers, "");
        let metrics = proxy.get("/fanfold/metrics");
        assert!(!metrics.contains(SECRET), "{metrics}");
        let output = proxy.end();
        let n_logged =
            output.matches(if look == "json" { "fanfold::request" } else { " ms  first byte " }).count();
        assert!(n_logged >= n_sent, "only {n_logged} of {n_sent} requests are logged:\n{output}");
        let leak = output.lines().find(|line| line.contains(SECRET) || line.contains("c2stczNjcjN0"));
        assert_eq!(leak, None, "a secret is in the log");
    }
    let wrong = Sandbox::new().run(&format!("serve --upstream http://user:{SECRET}@localhost"));
    assert!(
        wrong.code == 1 && !wrong.err.contains(SECRET) && wrong.err.contains("…@localhost"),
        "{}",
        wrong.err
    );
    // The key was in the requests: it reached the upstream.
    assert!(upstream.seen().iter().any(|seen| seen.header("x-api-key") == Some(SECRET)));
}

/// A collector of spans. Returns its address and the spans that it receives.
fn collector() -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let spans = Arc::new(Mutex::new(Vec::new()));
    let shared_spans = Arc::clone(&spans);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut length, mut line) = (0, String::new());
            while stream.read_line(&mut line).is_ok_and(|n| n > 2) {
                if let Some(lines) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = lines.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            let spans = serde_json::from_slice::<Value>(&body).unwrap();
            let spans = spans["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
            shared_spans.lock().unwrap().extend(spans);
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            stream.get_mut().write_all(answer).unwrap();
        }
    });
    (address, spans)
}

#[test]
fn spans_reach_the_collector_and_upstream() {
    let (collector, spans) = collector();
    let upstream = Upstream::start(Script::steps(99)).unwrap();
    let sandbox = Sandbox::new();
    let proxy = Proxy::start(&sandbox, &upstream.url(), &["--otlp", &collector, "--log", "off"]);
    let client = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let answered =
        proxy.caller().post(CHAT, &[("traceparent", client)], &conversation(2).to_string()).unwrap();
    assert_eq!(answered.status, 200);
    proxy.end();
    let spans = spans.lock().unwrap();
    let mut names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["chat gpt-5", "first byte", "fold", "recognise", "stream"]);
    let top = spans.iter().find(|span| span["name"] == "chat gpt-5").unwrap();
    assert_eq!((&top["parentSpanId"], &top["traceId"]), (&json!("00f067aa0ba902b7"), &json!(&client[3..35])));
    let lines = upstream.seen()[0].header("traceparent").unwrap().to_owned();
    assert_eq!(lines, format!("00-{}-{}-01", &client[3..35], top["spanId"].as_str().unwrap()));
}

#[test]
fn requests_do_not_control_the_terminal_through_the_log() {
    const HOSTILE: &str = "m\u{1b}[2J\u{9b}31m\u{202e}\r\n12:00:00 forged";
    let is_control = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
    let upstream = Upstream::start(Script::steps(99)).unwrap();
    for format in ["human", "json"] {
        let sandbox = Sandbox::new();
        let flags = ["--window", "8k", "--log", format, "--talk", "trace"];
        let proxy = Proxy::start(&sandbox, &upstream.url(), &flags);
        let mut caller = proxy.caller();
        let mut body = conversation(2);
        body["model"] = json!(HOSTILE);
        caller.post(CHAT, &[("x-fanfold-session", "s\u{202e}")], &body.to_string()).unwrap();
        caller.call("GET", "/v1/\u{202e}models", &[("user-agent", "a\u{202e}")], "").unwrap();
        let log = proxy.end();
        assert!(log.contains("forged"), "{log}");
        assert!(!log.contains(is_control), "{log:?}");
        assert!(!log.lines().any(|line| line.starts_with("12:00:00")), "{log}");
    }
}

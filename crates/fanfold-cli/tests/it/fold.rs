//! `fanfold fold`: output, errors, receipts.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, body, long_chat};

#[test]
fn fitting_conversation_is_written_unchanged() {
    let sandbox = Sandbox::new();
    for odd in [
        "[ ]",
        " [{\"role\":\"user\",\"content\":\"hi\"}]\n\n",
        &body(&long_chat(3)),
        "{\"messages\" : []}\r\n",
    ] {
        let ran = sandbox.run_with("fold --window 100k", odd);
        assert_eq!((ran.code, &*ran.out), (0, odd), "{}", ran.err);
    }
}

#[test]
fn oversized_conversation_is_folded() {
    let sandbox = Sandbox::new();
    let messages = long_chat(50);
    sandbox.write("chat.json", &body(&messages));
    let ran = sandbox.run("fold chat.json --window 12k");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let folded: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(folded["temperature"], 0);
    let kept = folded["messages"].as_array().unwrap();
    for user in messages.iter().filter(|message| message["role"] == "user") {
        assert!(kept.contains(user), "{user} is missing");
    }
    assert!(ran.out.len() * 2 < body(&messages).len());
    assert!(ran.err.contains(" times: ") && ran.err.contains(", for a room of 9,000"), "{}", ran.err);
    assert_eq!(sandbox.run("fold chat.json --window 12k --quiet").err, "");
}

#[test]
fn now_folds_a_fitting_conversation() {
    let sandbox = Sandbox::new();
    let text = body(&long_chat(60));
    sandbox.write("chat.json", &text);
    let flags = "-w 60k --cadence window";
    let ran = sandbox.run(&format!("fold chat.json {flags} --now"));
    assert!(ran.code == 0 && ran.out.len() < text.len(), "{}", ran.err);
    assert!(ran.err.contains("folded once: ") && ran.err.contains(" → "), "{}", ran.err);
    // A request without an effect reports the reason.
    sandbox.write("short.json", &body(&long_chat(1)));
    let ran = sandbox.run("fold short.json -w 100k --now");
    assert_eq!(ran.out, body(&long_chat(1)));
    assert!(ran.err.contains("nothing was folded: ") && ran.err.contains("tokens, unchanged"), "{}", ran.err);
    assert!(ran.err.contains("within the low mark"), "{}", ran.err);
    let explained = sandbox.run("fold short.json -w 100k --now --explain").err;
    assert!(
        explained.contains("a smaller window") && !explained.contains("nothing old is left"),
        "{explained}"
    );
    // The requested fold of a session stays in later requests.
    let kept = format!("{flags} --session s --store kept.db");
    assert_eq!(sandbox.run(&format!("fold chat.json {kept}")).out, text);
    let now = sandbox.run(&format!("fold {kept} --now"));
    assert!(now.out.len() < text.len() && now.err.contains("folded once: "), "{}", now.err);
    assert_eq!(sandbox.run(&format!("fold {kept}")).out, now.out);
    let again = sandbox.run(&format!("fold {kept} --now"));
    assert_eq!(again.out, now.out);
    assert!(again.err.contains("within the low mark"), "{}", again.err);
}

#[test]
fn pressure_is_reported_on_stderr() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(60)));
    let count = sandbox.run("inspect chat.json -w 900k --json");
    let tokens = serde_json::from_str::<Value>(&count.out).unwrap()["transcript"].as_u64().unwrap();
    for (percent, words) in [(50, ""), (70, "note:"), (80, "note:"), (90, "warning:"), (97, "warning:")] {
        let window = tokens * 100 / percent;
        let ran = sandbox.run(&format!("fold chat.json -w {window} --reserve 0 --strategy off"));
        assert_eq!(ran.out, body(&long_chat(60)));
        let is_reported = ran.err.contains("% of the room is full");
        assert_eq!(is_reported, !words.is_empty(), "{percent}: {}", ran.err);
        assert!(ran.err.contains(words), "{percent}: {}", ran.err);
    }
    // A session reports each level once.
    let window = tokens * 100 / 90;
    let line = format!("fold chat.json -w {window} --reserve 0 --strategy off --session s --store kept.db");
    assert!(sandbox.run(&line).err.contains("% of the room is full"));
    assert!(!sandbox.run(&line).err.contains("% of the room is full"));
}

#[test]
fn stdin_and_gzip_are_read() {
    let sandbox = Sandbox::new();
    let text = body(&long_chat(60));
    sandbox.write("chat.json", &text);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    std::fs::write(sandbox.path("chat.json.gz"), packed.finish().unwrap()).unwrap();
    let from_file = sandbox.run("fold chat.json -w 12k").out;
    assert_eq!(sandbox.run_with("fold - -w 12k", &text).out, from_file);
    assert_eq!(sandbox.run("fold chat.json.gz -w 12k").out, from_file);
}

#[cfg(unix)]
#[test]
fn an_endless_file_is_not_read_without_end() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", "[]");
    for line in ["fold /dev/zero", "fold chat.json --rules /dev/zero"] {
        let ran = sandbox.run(line);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{line}");
        assert!(
            ran.err.contains("/dev/zero could not be read: it does not end after 536,870,912 bytes"),
            "{}",
            ran.err
        );
        assert!(ran.err.contains("hint: give a regular file"), "{}", ran.err);
    }
}

/// JSON has no byte order mark, and a provider may refuse one.
#[test]
fn a_folded_conversation_has_no_byte_order_mark() {
    let sandbox = Sandbox::new();
    let whole = format!("\u{feff}{}", body(&long_chat(60)));
    sandbox.write("chat.json", &whole);
    let ran = sandbox.run("fold chat.json --window 12k");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let folded: Value = serde_json::from_str(&ran.out).expect("it is JSON from its first byte on");
    assert!(ran.out.len() < whole.len() && folded["model"] == "gpt-4o");
    let stored = sandbox.run("fold chat.json --window 12k --session s --store s.db");
    assert_eq!(stored.out, ran.out);
    assert_eq!(
        sandbox.run("fold chat.json --window 128k --cadence window").out,
        whole,
        "a fitting one is unchanged"
    );
}

#[test]
fn overflow_exits_with_3_and_writes_nothing() {
    let sandbox = Sandbox::new();
    let messages = [
        json!({ "role": "system", "content": "word ".repeat(5000) }),
        json!({ "role": "user", "content": "hi" }),
    ];
    sandbox.write("chat.json", &body(&messages));
    let ran = sandbox.run("fold chat.json --window 2k -o out.json");
    assert_eq!((ran.code, &*ran.out), (3, ""));
    assert!(ran.err.contains("system text (entry 0)") && ran.err.contains("\n\nhint: "), "{}", ran.err);
    assert!(!sandbox.path("out.json").exists());
}

#[test]
fn output_is_atomic_and_never_the_input() {
    let sandbox = Sandbox::new();
    let text = body(&long_chat(60));
    sandbox.write("chat.json", &text);
    let folded = sandbox.run("fold chat.json -w 12k").out;
    assert_eq!(sandbox.run("fold chat.json -w 12k -o out.json").out, "");
    assert_eq!(sandbox.read("out.json"), folded);
    let ran = sandbox.run("fold chat.json -w 12k -o ./chat.json");
    assert_eq!((ran.code, sandbox.read("chat.json")), (1, text));
    assert!(ran.err.contains("hint: folds are recalled from the original"), "{}", ran.err);
    assert_eq!(sandbox.run("fold chat.json -w 12k -o chat.json --force").code, 0);
    assert_eq!(sandbox.read("chat.json"), folded);
}

#[test]
fn receipt_does_not_overwrite_input_or_output() {
    let sandbox = Sandbox::new();
    let text = body(&long_chat(60));
    sandbox.write("chat.json", &text);
    std::fs::create_dir(sandbox.path("sub")).unwrap();
    let check = |line: &str, stdin: &str| {
        let ran = sandbox.run_with(&format!("fold -w 12k {line}"), stdin);
        assert_eq!((ran.code, sandbox.read("chat.json") == text), (1, true), "{line}: {}", ran.err);
        assert!(ran.err.contains("\n\nhint: "), "{line}: {}", ran.err);
        ran.err
    };
    for path in ["chat.json", "./sub/../chat.json"] {
        let err = check(&format!("chat.json --receipt {path} -o out.json"), "");
        assert!(err.contains("is the conversation itself"), "{err}");
        check(&format!("chat.json --receipt {path} -o out.json --force"), "");
    }
    // Neither file exists yet.
    for (receipt, output) in [("x.json", "x.json"), ("sub/../x.json", "./x.json")] {
        let err = check(&format!("chat.json --receipt {receipt} -o {output}"), "");
        assert!(err.contains("--receipt and --output both name"), "{err}");
        check(&format!("--receipt {receipt} -o {output}"), &text);
    }
    let err = check("chat.json --dry-run --receipt zz.json", "");
    assert!(err.contains("--dry-run writes no files") && !sandbox.path("zz.json").exists(), "{err}");
    assert!(!sandbox.path("x.json").exists() && !sandbox.path("out.json").exists());
    let dry = sandbox.run("fold -w 12k chat.json --dry-run --receipt -");
    assert_eq!((dry.code, &*dry.out), (0, ""));
    assert!(dry.err.contains("\"receipts\"") || dry.err.contains("\"before\""), "{}", dry.err);
    assert_eq!(sandbox.run("fold -w 12k chat.json --receipt /dev/null -o /dev/null").code, 0);
}

#[cfg(unix)]
#[test]
fn input_is_recognised_under_any_path() {
    let sandbox = Sandbox::new();
    let text = body(&long_chat(60));
    let chat = sandbox.write("chat.json", &text);
    std::os::unix::fs::symlink(&chat, sandbox.path("link.json")).unwrap();
    std::fs::hard_link(&chat, sandbox.path("hard.json")).unwrap();
    for name in ["link.json", "hard.json"] {
        for flags in [format!("--receipt {name}"), format!("-o {name}")] {
            let ran = sandbox.run(&format!("fold chat.json -w 12k {flags}"));
            assert_eq!((ran.code, sandbox.read("chat.json") == text), (1, true), "{flags}: {}", ran.err);
        }
    }
    // Also where a shell gives it to stdin.
    for flags in [["--receipt", "chat.json"], ["-o", "chat.json"]] {
        let stdin = std::fs::File::open(&chat).unwrap();
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("fanfold"));
        let ran =
            command.arg("fold").args(flags).current_dir(sandbox.path("")).stdin(stdin).output().unwrap();
        assert_eq!((ran.status.code(), sandbox.read("chat.json") == text), (Some(1), true), "{flags:?}");
    }
}

#[test]
fn output_does_not_overwrite_the_store() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(20)));
    assert_eq!(sandbox.run("fold chat.json -w 12k --session s --store kept.db -q").code, 0);
    for line in [
        "fold chat.json -w 12k --session s --store kept.db --receipt ./kept.db",
        "fold --session s --store kept.db -o kept.db",
        "fold chat.json --session s --store kept.db --receipt chat.json",
        "sessions export --all --store kept.db -o kept.db",
    ] {
        let ran = sandbox.run(line);
        assert_eq!(ran.code, 1, "{line}: {}", ran.err);
    }
    let listed = sandbox.run("sessions list --store kept.db --json");
    assert!(listed.code == 0 && listed.out.contains("\"s\""), "{} {}", listed.out, listed.err);
}

#[test]
fn shortened_message_is_counted_once() {
    let sandbox = Sandbox::new();
    let shortened = |n_messages: usize, words: usize, window: &str| {
        let mut messages = vec![json!({ "role": "system", "content": "You are careful." })];
        for i in 0..n_messages {
            let text: String = (0..words).map(|word| format!("line {word} of wish {i}\n")).collect();
            messages.push(json!({ "role": "user", "content": text }));
            messages.push(json!({ "role": "assistant", "content": format!("Done with {i}.") }));
        }
        sandbox.write("chat.json", &body(&messages));
        let ran = sandbox.run(&format!("fold chat.json -w {window} --json"));
        let report: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}", ran.err));
        let receipts = report["receipts"].as_array().unwrap();
        let all: Vec<u64> = receipts
            .iter()
            .flat_map(|receipt| receipt["user_text"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()))
            .collect();
        let distinct: std::collections::BTreeSet<u64> = all.iter().copied().collect();
        (all.len(), distinct.len(), ran.err)
    };
    let (n_all, n_distinct, err) = shortened(60, 20, "3k");
    assert!(n_all > n_distinct, "some are shortened twice: {n_all}, {n_distinct}");
    assert!(err.contains(&format!("warning: {n_distinct} user messages were shortened")), "{err}");
    let (_, n_distinct, err) = shortened(1, 500, "3k");
    assert_eq!(n_distinct, 1);
    assert!(err.contains("warning: 1 user message was shortened"), "{err}");
}

#[test]
fn every_command_that_prints_has_json() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(60)));
    let json_of = |line: &str| -> Value {
        let ran = sandbox.run(line);
        assert_eq!(ran.code, 0, "{line}: {}", ran.err);
        serde_json::from_str(&ran.out).unwrap()
    };
    let plain = sandbox.run("fold chat.json -w 12k").out;
    let folded = json_of("fold chat.json -w 12k --json");
    assert_eq!((&folded["body"], &folded["room"]), (&json!(plain), &json!(9_000)));
    assert!(folded["tokens"].as_u64() < folded["tokens_whole"].as_u64());
    let handle = folded["receipts"][0]["left"][0]["handle"].as_str().unwrap();
    let dry = json_of("fold chat.json -w 12k --json --dry-run -o out.json");
    assert_eq!((&dry["body"], &dry["receipts"]), (&Value::Null, &folded["receipts"]));
    assert!(!sandbox.path("out.json").exists());
    let recalled = json_of(&format!("recall chat.json {handle} -w 12k --json"));
    assert_eq!(recalled["content"], sandbox.run(&format!("recall chat.json {handle} -w 12k")).out);
    for flags in ["", "--folded -w 12k"] {
        let shown = json_of(&format!("show chat.json {flags} --json"));
        assert_eq!(shown["text"], sandbox.run(&format!("show chat.json {flags}")).out);
        assert_eq!(shown["tokens"], folded[if flags.is_empty() { "tokens_whole" } else { "tokens" }]);
    }
    assert!(json_of("demo --json")["receipts"].as_array().is_some_and(|receipts| !receipts.is_empty()));
    let paths = json_of("config path --json");
    assert_eq!(paths["project"]["exists"], false);
    let kept = json_of("fold chat.json -w 12k --session s --store kept.db --json");
    assert_eq!((&kept["body"], &kept["session"], &kept["kept"]), (&json!(plain), &json!("s"), &json!(true)));
    let kept = json_of(&format!("recall --session s {handle} --store kept.db --json"));
    assert_eq!(kept["content"], recalled["content"]);
}

#[test]
fn interrupted_fold_leaves_no_file() {
    let sandbox = Sandbox::new();
    let program = assert_cmd::cargo::cargo_bin("fanfold");
    let mut child = std::process::Command::new(program)
        .args(["fold", "-", "-o", "out.json"])
        .current_dir(sandbox.path(""))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"[{\"role\": \"user\", \"content\": \"unfinished").unwrap();
    // Tests in the background and their children ignore Ctrl-C, so a second signal follows.
    for signal in ["-INT", "-TERM"] {
        std::process::Command::new("kill").args([signal, &child.id().to_string()]).output().unwrap();
    }
    assert!(!child.wait().unwrap().success());
    drop(stdin);
    assert_eq!(std::fs::read_dir(sandbox.path("")).unwrap().count(), 0);
}

#[test]
fn receipts_list_every_fold() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(60)));
    sandbox.run("fold chat.json -w 12k --receipt receipts.json");
    let receipts: Value = serde_json::from_str(&sandbox.read("receipts.json")).unwrap();
    let first = &receipts[0];
    assert!(first["before"].as_u64() > first["after"].as_u64());
    assert!(first["left"][0]["handle"].as_str().unwrap().starts_with('#'));
    assert!(receipts.as_array().unwrap().len() > 1);
}

#[test]
fn pinned_message_is_not_folded() {
    let sandbox = Sandbox::new();
    let messages = long_chat(60);
    sandbox.write("chat.json", &body(&messages));
    let has_message_5 = |ran: String| {
        let folded: Value = serde_json::from_str(&ran).unwrap();
        folded["messages"].as_array().unwrap().contains(&messages[5])
    };
    assert!(!has_message_5(sandbox.run("fold chat.json -w 12k").out));
    assert!(has_message_5(sandbox.run("fold chat.json -w 12k --pin 5").out));
    let ran = sandbox.run("fold chat.json --pin 900");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("there is no message 900"), "{}", ran.err);
}

#[test]
fn rules_are_read_from_yaml() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(60)));
    sandbox.write("compaction.yaml", "compaction:\n  trigger_threshold: 0.9\n  protect_last_n_turns: 2\n");
    let ran = sandbox.run("inspect chat.json -w 12k --rules compaction.yaml --json");
    let numbers: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&numbers["policy"], &numbers["trigger"]), (&json!("rules"), &json!(8_100)), "{}", ran.err);
    sandbox.write("compaction.yaml", "compaction:\n  treshold: 0.9\n");
    let ran = sandbox.run("fold chat.json --rules compaction.yaml");
    assert!(ran.code == 1 && ran.err.contains("treshold"), "{}", ran.err);
}

#[test]
fn every_format_is_folded() {
    let sandbox = Sandbox::new();
    for kind in fanfold_testkit::generators::bodies::BodyFormat::ALL {
        for seed in 0..6 {
            let text = fanfold_testkit::generators::bodies::rich(kind, seed);
            let ran = sandbox.run_with("fold --window 200k -q", &text);
            assert_eq!((ran.code, &*ran.out), (0, &*text), "{kind:?} {seed}: {}", ran.err);
        }
    }
}

#[test]
fn window_suggested_by_overflow_is_sufficient() {
    let sandbox = Sandbox::new();
    let messages = long_chat(60);
    sandbox.write("chat.json", &body(&messages));
    let pins: String = (0..messages.len()).map(|i| format!(" --pin {i}")).collect();
    let ran = sandbox.run(&format!("fold chat.json --window 4k{pins}"));
    assert_eq!(ran.code, 3, "{}", ran.err);
    let needed = ran.err.split("at least ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let window: u64 = needed.replace(',', "").parse().unwrap();
    assert_eq!(sandbox.run(&format!("fold chat.json --window {window}{pins}")).code, 0);
    assert_eq!(sandbox.run(&format!("fold chat.json --window {}{pins}", window - 1)).code, 3);
}

/// Forty steps, each after a short prompt of the user.
fn steps_with_prompts() -> Vec<Value> {
    let mut messages = Vec::new();
    for i in 0..40 {
        let call = json!({ "id": format!("c{i}"), "type": "function",
            "function": { "name": "bash", "arguments": format!("{{\"command\":\"make part_{i}\"}}") } });
        messages.push(json!({ "role": "user", "content": format!("part {i}, please") }));
        messages.push(json!({ "role": "assistant", "content": null, "tool_calls": [call] }));
        let lines: String = (0..60).map(|n| format!("compiled unit_{i}_{n}.o in {n} ms\n")).collect();
        messages.push(json!({ "role": "tool", "tool_call_id": format!("c{i}"), "content": lines }));
    }
    messages
}

#[test]
fn user_text_never_keeps_user_messages() {
    let sandbox = Sandbox::new();
    let messages = steps_with_prompts();
    sandbox.write("chat.json", &body(&messages));
    let n_prompts = |out: &str| out.matches(", please").count();
    for policy in ["fanfold", "hermes", "rules", "hamr", "mask", "window"] {
        let ran = sandbox.run(&format!("fold chat.json --window 12k --policy {policy} --user-text never"));
        assert_eq!((ran.code, n_prompts(&ran.out)), (0, 40), "{policy}: {}", ran.err);
        assert!(!ran.err.contains("user message"), "{policy}: {}", ran.err);
    }
    let rules = sandbox.run("fold chat.json --window 12k --policy rules");
    assert_eq!((n_prompts(&rules.out), rules.err.contains("user message")), (40, false), "{}", rules.err);
    let hermes = sandbox.run("fold chat.json --window 12k --policy hermes").err;
    assert!(hermes.contains("because the policy `hermes` folds old user messages"), "{hermes}");
    assert!(!hermes.contains("nothing else fitted"), "{hermes}");
}

#[test]
fn repairs_are_reported_with_their_effect() {
    let sandbox = Sandbox::new();
    let call = |arguments: Value| {
        json!({ "role": "assistant", "content": null, "tool_calls": [
            { "id": "x", "type": "function", "function": { "name": "f", "arguments": arguments } }] })
    };
    let orphan = json!({ "role": "tool", "tool_call_id": "nobody", "content": "lost" });
    let user = json!({ "role": "user", "content": "never mind" });
    // A fitting conversation is unchanged.
    let fits = body(&[user.clone(), orphan, call(Value::Null), user.clone()]);
    let ran = sandbox.run_with("fold --window 100k", &fits);
    assert_eq!((ran.code, &*ran.out), (0, &*fits), "{}", ran.err);
    assert_eq!(ran.err.matches("left unchanged").count(), 3, "{}", ran.err);
    assert!(!ran.err.contains("sent as"), "{}", ran.err);
    // A folded conversation is repaired.
    let mut messages = long_chat(60);
    messages.extend([call(json!("{}")), user]);
    sandbox.write("chat.json", &body(&messages));
    let ran = sandbox.run("fold chat.json --window 12k");
    assert!(ran.out.contains("[no result was recorded]"), "{}", ran.out);
    let expected = "a call that was never answered (x); sent with a placeholder result";
    assert!(ran.err.contains(expected), "{}", ran.err);
    let line = json!({ "session": "s", "window": 12_000, "messages": messages }).to_string();
    let answer: Value = serde_json::from_str(&sandbox.run_with("pipe", &line).out).unwrap();
    let repairs = answer["report"]["repairs"].to_string();
    assert!(repairs.contains(expected), "{repairs}");
}

#[test]
fn dash_writes_to_stdout() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &json!(long_chat(40)).to_string());
    let plain = sandbox.run("fold chat.json -w 12k");
    let dashed = sandbox.run("fold chat.json -w 12k -o -");
    assert_eq!((plain.code, dashed.code), (0, 0), "{}", dashed.err);
    assert!(!plain.out.is_empty() && plain.out == dashed.out);
    assert!(!sandbox.path("-").exists());
}

#[test]
fn explain_implies_folded() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &json!(long_chat(40)).to_string());
    let explained = sandbox.run("show chat.json -w 12k --explain");
    let folded = sandbox.run("show chat.json -w 12k --folded --explain");
    assert_eq!((explained.code, &explained.out, &explained.err), (0, &folded.out, &folded.err));
    assert!(explained.err.contains("fold"), "{}", explained.err);
}

#[test]
fn every_strategy_folds_well_below_its_trigger() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &json!(long_chat(40)).to_string());
    let marks = |strategy: &str| -> (f64, f64) {
        let ran = sandbox.run(&format!("inspect chat.json -w 16k --budget --json --strategy {strategy}"));
        let budget: Value = serde_json::from_str(&ran.out).unwrap();
        (budget["trigger"].as_f64().unwrap(), budget["low_mark"].as_f64().unwrap())
    };
    for strategy in ["aggressive", "moderate", "light"] {
        let (trigger, low_mark) = marks(strategy);
        assert!(low_mark <= 0.76 * trigger, "{strategy}: {low_mark} of {trigger}");
    }
}

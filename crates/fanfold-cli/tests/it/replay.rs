//! `fanfold replay` and `fanfold prices`.

use expect_test::expect;
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, long_chat};

fn record(id: &str, messages: &[Value]) -> String {
    json!({ "id": id, "source": "made up", "messages": messages, "tools": [{ "name": "read" }] }).to_string()
}

fn figures(sandbox: &Sandbox, line: &str) -> Value {
    let ran = sandbox.run(line);
    assert_eq!(ran.code, 0, "{}", ran.err);
    serde_json::from_str(&ran.out).unwrap()
}

#[test]
fn replay_sends_what_pipe_would_send() {
    let messages = long_chat(40);
    let sandbox = Sandbox::new();
    sandbox.write("runs.jsonl", &record("a", &messages));
    for policy in ["fanfold", "window", "mask"] {
        let replayed = figures(
            &sandbox,
            &format!("replay runs.jsonl --json --window 6k --cadence window --policy {policy}"),
        );
        let sums = &replayed["results"][0]["sums"];
        let replies: Vec<usize> =
            (1..messages.len()).filter(|i| messages[*i]["role"] == "assistant").collect();
        let requests: String = replies
            .iter()
            .map(|&end| {
                let messages = &messages[..end];
                let tools = json!([{ "name": "read" }]);
                format!("{}\n", json!({ "window": 6000, "messages": messages, "tools": tools }))
            })
            .collect();
        let ran = sandbox.run_with(&format!("pipe --policy {policy}"), &requests);
        let answers: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let views: Vec<&Vec<Value>> =
            answers.iter().map(|answer| answer["messages"].as_array().unwrap()).collect();
        let tokens: u64 = answers.iter().map(|answer| answer["report"]["tokens"].as_u64().unwrap()).sum();
        let n_broken = views.windows(2).filter(|pair| !pair[1].starts_with(pair[0])).count();
        let n_folds = &answers.last().unwrap()["report"]["folds"];
        assert_eq!(sums["calls"], replies.len(), "{policy}");
        assert_eq!(sums["messages"], views.iter().map(|view| view.len()).sum::<usize>(), "{policy}");
        assert_eq!(sums["rewrites"], n_broken, "{policy}");
        assert_eq!(&sums["folds"], n_folds, "{policy}");
        // A session counts its messages one by one, and schemas verbatim.
        let per_call = sums["sent"].as_f64().unwrap() / replies.len() as f64;
        let per_answer = tokens as f64 / replies.len() as f64;
        assert!((per_call / per_answer - 1.0).abs() < 0.002, "{policy}: {per_call} is not {per_answer}");
        assert_eq!(sums["over"], 0, "{policy}");
        assert_eq!(sums["invalid"], 0, "{policy}");
    }
}

#[test]
fn window_cadence_does_not_fold_fitting_views() {
    let sandbox = Sandbox::new();
    sandbox.write("runs.jsonl", &record("a", &long_chat(40)));
    let early = |flags: &str| {
        let row = &figures(&sandbox, &format!("replay runs.jsonl --json --window 6k {flags}"))["summary"][0];
        (
            row["sums"]["early"]["calls"].clone(),
            row["sums"]["early"]["sent"].clone(),
            row["sums"]["peak"].clone(),
        )
    };
    let (calls, sent, peak) = early("--cadence window");
    // While everything fits, the whole conversation is sent, as under a policy that drops only what does not fit.
    let (window_calls, window_sent, _) = early("--policy window");
    assert_eq!((&calls, &sent), (&window_calls, &window_sent));
    assert!(calls.as_u64() > Some(5) && peak.as_u64() <= Some(6_000), "{calls} calls, {peak} tokens");
    // A preset keeps its own trigger.
    assert_eq!(early("--policy hermes"), early("--policy hermes --cadence window"));
    let ran = sandbox.run("replay runs.jsonl --cadence often");
    assert_eq!(ran.code, 2, "{}", ran.err);
}

#[test]
fn a_fifth_is_reserved() {
    let sandbox = Sandbox::new();
    let messages = long_chat(20);
    let lines: Vec<String> = (0..20).map(|n| record(&format!("run {n}"), &messages)).collect();
    sandbox.write("runs.jsonl", &lines.join("\n"));
    let ids = |flags: &str| -> Vec<String> {
        let replayed = figures(&sandbox, &format!("replay runs.jsonl --json --window 6k {flags}"));
        let results = replayed["results"].as_array().unwrap();
        results.iter().map(|result| result["id"].as_str().unwrap().to_owned()).collect()
    };
    let (all, aside, rest) = (ids(""), ids("--only-aside"), ids("--without-aside"));
    assert_eq!((all.len(), aside.len(), rest.len()), (20, 5, 15));
    assert!(aside.iter().all(|id| !rest.contains(id)));
    assert_eq!(ids("--max 4").len(), 4);
}

#[test]
fn formats_are_recognised_and_other_files_counted() {
    let sandbox = Sandbox::new();
    let messages = long_chat(12);
    sandbox.write("runs/a/records.jsonl", &record("a", &messages));
    sandbox.write("runs/b/list.json", &json!(messages).to_string());
    sandbox.write("runs/b/body.json", &json!({ "model": "gpt-5", "messages": messages }).to_string());
    sandbox.write("runs/package.json", r#"{ "name": "no conversation" }"#);
    sandbox.write("runs/notes.txt", "not even looked at");
    let ran = sandbox.run("replay runs --window 6k --min-ratio 1");
    assert_eq!(ran.err.lines().next(), Some("skipped 1 of 4 files without a conversation"));
    assert!(ran.err.contains("note: 2 conversations without a known price"), "{}", ran.err);
    let line = ran.out.lines().nth(1).unwrap();
    assert!(line.starts_with("fanfold    6000     3 "), "{line}");
}

/// A session of Claude Code whose results exceed the window.
fn claude_session() -> String {
    let mut lines = Vec::new();
    let mut push = |kind: &str, message: Value| {
        let n = lines.len();
        let parent = n.checked_sub(1).map(|n| n.to_string());
        let at = format!("2026-03-01T1{}:{:02}:00.000Z", n / 60, n % 60);
        lines.push(
            json!({ "type": kind, "uuid": n.to_string(), "parentUuid": parent, "timestamp": at,
                    "isSidechain": false, "message": message })
            .to_string(),
        );
    };
    push("user", json!({ "role": "user", "content": "Mend the parser." }));
    for i in 0..90 {
        let input = json!({ "file_path": format!("src/parser_{i}.rs") });
        let call = json!({ "type": "tool_use", "id": format!("t{i}"), "name": "Read", "input": input });
        let usage = json!({ "input_tokens": 10, "cache_read_input_tokens": 2000 * i, "output_tokens": 40 });
        let model = "claude-sonnet-4-5-20250929";
        push(
            "assistant",
            json!({ "role": "assistant", "id": format!("m{i}"), "model": model, "content": [call], "usage": usage }),
        );
        let text: String = (0..120).map(|n| format!("fn rule_{i}_{n}() -> Rule {{ take({n}) }}\n")).collect();
        let result = json!({ "type": "tool_result", "tool_use_id": format!("t{i}"), "content": text });
        push("user", json!({ "role": "user", "content": [result] }));
    }
    lines.join("\n")
}

#[test]
fn own_sessions_are_summed_up_in_dollars() {
    let sandbox = Sandbox::new();
    sandbox.write(".claude/projects/x/s.jsonl", &claude_session());
    let item = |payload: Value| json!({ "timestamp": "2026-03-01T10:00:00Z", "type": "response_item", "payload": payload });
    let codex = [
        json!({ "timestamp": "2026-03-01T10:00:00Z", "type": "turn_context", "payload": { "model": "gpt-5-codex" } }),
        item(
            json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "hello" }] }),
        ),
        item(
            json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "hi" }] }),
        ),
    ];
    let codex: String = codex.iter().map(|line| format!("{line}\n")).collect();
    sandbox.write(".codex/sessions/2026/03/01/rollout-1.jsonl", &codex);
    let ran = sandbox.run("replay --window 16k 32k 200k");
    let money: Vec<&str> = ran.out.lines().skip_while(|line| !line.contains("unfolded")).collect();
    expect![[r#"
        2 sessions, 183 messages; by the providers' counts they cost $2.46
        $2.79 unfolded; at a window of 200,000 no fold would have saved money
    "#]]
    .assert_eq(&ran.out.lines().take(2).map(|line| format!("{line}\n")).collect::<String>());
    expect![[r#"
        $2.79 unfolded; at a window of 200,000 no fold would have saved money

        policy   window  runs  calls  press  over  inval  tok/call    peak  billA/M  billO/M  rewr%  recall  old  95% int.  bare  early  tool-only  lines  recov  suff  old-suff   user
        fanfold   16000     2     91     81     0      0     11683   14625     0.38     0.32   27.5       -    -         -     -      -          -      -      -     -         -  1.000
        fanfold   32000     2     91     72     0      0     23134   29671     0.46     0.40   11.0       -    -         -     -      -          -      -      -     -         -  1.000
        fanfold  200000     2     91      0     0      0         -  162612     0.92     0.88    0.0       -    -         -     -      -          -      -      -     -         -      -

        policy   window  folds   cost  unfolded  saved  saved%  recalls  net%  worst  breaks  break cost  repeats  folded  recall tok  recall all  copied
        fanfold   16000     25  $1.17     $2.79  $1.62    58.1        0  58.1  1.235      25       $0.27        0       0           -           -       -
        fanfold   32000     10  $1.42     $2.79  $1.37    49.0        0  49.0  1.207      10       $0.25        0       0           -           -       -
        fanfold  200000      0  $2.79     $2.79  $0.00     0.0        0   0.0  1.000       0       $0.00        0       0           -           -       -
    "#]]
    .assert_eq(&(money.join("\n") + "\n"));
    let none = Sandbox::new().run("replay");
    assert_eq!(none.code, 1);
    expect![[r#"
        error: there are no sessions in HERE/.claude/projects or HERE/.codex/sessions

        hint: name files or directories of recorded conversations
    "#]]
    .assert_eq(&none.err);
}

#[test]
fn plot_and_receipts_are_written() {
    let sandbox = Sandbox::new();
    sandbox.write("runs.jsonl", &record("a", &long_chat(40)));
    let ran = sandbox.run("replay runs.jsonl --window 6k --policy all --receipts --picture runs.svg");
    let picture = sandbox.read("runs.svg");
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    assert_eq!(picture.matches("<circle").count(), picture.matches("</circle>").count() + 6);
    let receipt = ran.out.lines().skip_while(|line| !line.starts_with("conversation")).nth(1).unwrap();
    assert!(receipt.starts_with("a ") && receipt.contains('$'), "{receipt}");
}

#[test]
fn prices_are_listed_and_can_be_set() {
    let sandbox = Sandbox::new();
    expect![[r#"
        model     us.anthropic.claude-opus-5-5-v1
        row       claude-opus-5-5: it is the longest prefix of the model's name
        provider  Anthropic, 5-minute cache
        input     $4 a million tokens
        output    $20 a million tokens
        cache     written at 1.25×, read at 0.05×
        lifetime  5 min
        match     marks
        minimum   512 tokens
        cliffs    -
        source    the terms of the cache are published by the provider, the dollars have no known source
    "#]]
    .assert_eq(&sandbox.run("prices us.anthropic.claude-opus-5-5-v1").out);
    expect![[r#"
        error: no price is known for `cluade`

        hint: did you mean `claude`?
    "#]]
    .assert_eq(&sandbox.run("prices cluade").err);
    sandbox.write(".fanfold.toml", "[[prices]]\nname = \"claude-opus-5-5\"\nread = 0.2\n");
    let price: Value = serde_json::from_str(&sandbox.run("prices claude-opus-5-5 --json").out).unwrap();
    assert_eq!((&price["price"]["read"], &price["price"]["base"]), (&json!(0.2), &json!(4.0)));
    sandbox.write("runs.jsonl", &record("a", &long_chat(40)));
    let cost = |name: &str| {
        let replayed = figures(&sandbox, &format!("replay runs.jsonl --json --window 6k --prices {name}"));
        replayed["results"][0]["sums"]["bill"]["dollars"].as_f64().unwrap()
    };
    // The price is half, with the same ratio for cache reads.
    assert!((cost("claude-opus-5") / cost("claude-fable") - 0.5).abs() < 1e-9);
    assert!(cost("none") > cost("claude"));
}

#[test]
fn omissions_of_tables_are_reported() {
    let sandbox = Sandbox::new();
    sandbox.write("runs.jsonl", &record("a", &long_chat(40)));
    let ran = sandbox.run("replay runs.jsonl --window 6k 500k");
    expect![[r#"
        note: no conversation is long enough at 500,000
        note: 1 conversation without a known price, charged as `anthropic`; --prices selects another
    "#]]
    .assert_eq(&ran.err);
    let ran = sandbox.run("replay runs.jsonl --window 6k --prices gpt-5");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

#[test]
fn plot_must_be_svg() {
    let sandbox = Sandbox::new();
    sandbox.write("runs.jsonl", &record("a", &long_chat(40)));
    let ran = sandbox.run("replay runs.jsonl --window 6k --picture runs.png");
    assert_eq!(ran.code, 1);
    expect![[r#"
        error: the plot is an SVG file, but is to be named runs.png

        hint: name it runs.svg
    "#]]
    .assert_eq(&ran.err);
    assert!(!sandbox.path("runs.png").exists());
}

#[test]
fn negative_prices_are_refused() {
    let sandbox = Sandbox::new();
    for price in ["read = -0.1", "base = nan", "cliffs = [{ above = 1000, base = -1, output = 1 }]"] {
        sandbox.write(".fanfold.toml", &format!("[[prices]]\nname = \"mine\"\n{price}\n"));
        let ran = sandbox.run("prices");
        assert_ne!(ran.code, 0, "{price}");
        assert!(
            ran.err.contains("is not a price") && ran.err.contains(".fanfold.toml"),
            "{price}: {}",
            ran.err
        );
    }
}

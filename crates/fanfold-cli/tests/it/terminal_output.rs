//! Output for people.

use expect_test::expect;

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, body, long_chat};
use crate::story;

#[test]
fn demo_output() {
    let ran = Sandbox::new().run("demo");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("identical byte for byte"), "{}", ran.out);
    let widest = ran.out.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{}", ran.out);
    assert!(!ran.out.contains('\u{1b}'));
    assert!(Sandbox::new().run("demo --color always").out.contains("\u{1b}[34m"));
    expect![[r#"
        An agent fixes a small project in 62 steps: 125 messages, 27,327 tokens.
        The model's window is 16,000 tokens; 4,000 of them are reserved for its reply.

        before  ▒█████████████████████████████████████████████████████████████ 27,327
        after   ▒█░░░░░░░░░░░░░■■■■■■■■■■ 11,086
        room                              ▲ 12,000
                ▒ tools 139  █ verbatim 461  ░ record 6,086  ■ tail 4,400
        growth  ▁▁▁▁▂▂▂▂▂▃▃▄▄▅▆▆▆▇▇▇▆▆▆▆▆▆▆▇▇▅▆▆▆▆▆▆▆▇▇▇▇▇▇▇▇▇▇▇▇▇▅▆▆▆▆▆▆▇▇▇▇▇ of 12,000
        folds                       ▲        ▲                    ▲            3

        fold 3 after entry 53: 12,287 → 7,238 tokens
          why      the view no longer fitted
          stage    normal
          passes   dedupe           1 folded  −422
                   digest           1 folded  −4,627
          rewrote  1,564 of 7,238 tokens, which miss the provider's cache
          costs    as much as 552 uncached input tokens, for the cache miss
          won      5,049 tokens of room

        a recalled fold, as printed by `fanfold recall FILE #20`
          sent     #20 There it is: at midnight of 29 March it is still +01:00, at 04:1…
          original There it is: at midnight of 29 March it is still +01:00, at 04:10 it…
                   call bash: {"command":"python scripts/replay_ticket.py HB-2207 --tra…
                   replaying HB-2207: Hamme (IMO9321483) asks for 2026-03-29 04:10, por…
                   2026-03-29T00:00:00Z gauge=sill height=4.03 lock=open queue=0 seq=40…
                   2026-03-29T00:05:00Z gauge=sill height=4.13 lock=open queue=1 seq=40…
                   2026-03-29T00:10:00Z gauge=sill height=4.22 lock=open queue=2 seq=40…
                   … and 119 more lines: 9,011 bytes, identical byte for byte

        `fanfold demo --print` prints the example. To fold a conversation of your own:
          fanfold fold chat.json --window 32k --explain > folded.json
    "#]]
    .assert_eq(&ran.out);
}

/// A file that is read again is shown by its changes, and the receipt shows the reason.
#[test]
fn repeated_file_shows_only_changes() {
    let text = |changed: &str| -> String {
        let line = |n: usize| if n == 30 { changed.to_owned() } else { format!("combine(left, right, {n})") };
        (0..60).map(|n| format!("def part_{n}(left, right):\n    return {}\n", line(n))).collect()
    };
    let mut messages = vec![json!({ "role": "user", "content": "swap the arguments in part_30" })];
    let calls = [
        ("read_file", json!({ "path": "parts.py" }), text("combine(left, right, 30)")),
        ("bash", json!({ "command": "./swap 30 && cat parts.py" }), text("combine(right, left, 30)")),
    ];
    for (i, (name, arguments, result)) in calls.iter().enumerate() {
        let (id, arguments) = (format!("c{i}"), arguments.to_string());
        let call =
            json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
        messages.push(json!({ "role": "assistant", "content": null, "tool_calls": [call] }));
        messages.push(json!({ "role": "tool", "tool_call_id": id, "content": result }));
    }
    let sandbox = Sandbox::new();
    let chat = json!({ "model": "gpt-4o", "messages": messages }).to_string();
    sandbox.write("chat.json", &chat);
    let ran = sandbox.run("fold chat.json --window 100k --explain");
    let sent: Value = serde_json::from_str(&ran.out).unwrap();
    expect![[r#"
        def part_0(left, right):
        [59 lines as shown above: parts.py]
        def part_30(left, right):
            return combine(right, left, 30)
        def part_31(left, right):
        [56 lines as shown above: parts.py]
            return combine(left, right, 59)
        [what stands above is left out; all of it: #2.1]"#]]
    .assert_eq(sent["messages"][4]["content"].as_str().unwrap());
    expect![[r#"
        fold 1 after entry 2: 2,224 → 1,225 tokens
          why      the newest results repeated visible lines
          stage    again
          passes   again            1 folded  −999
          rewrote  nothing: the folded text had not been sent yet
          won      999 tokens of room
        next fold: waiting: the backlog of 0 tokens has not reached 5,000
        folded once: 2,224 → 1,225 tokens, for a room of 91,808
    "#]]
    .assert_eq(&ran.err);
    let unfolded = sandbox.run("fold chat.json --window 100k --cadence window");
    assert_eq!(unfolded.out.trim_end(), chat);
}

#[test]
fn demo_matches_its_generator() {
    let printed: Value = serde_json::from_str(&Sandbox::new().run("demo --print").out).unwrap();
    let written = json!({ "model": "gpt-4o", "messages": story::messages(), "tools": story::tools() });
    assert!(printed == written, "run `cargo run -p fanfold-cli --example make_demo`");
}

#[test]
fn file_has_no_requests() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(2)));
    for flags in ["--request 1", "--requests"] {
        let ran = sandbox.run(&format!("inspect chat.json {flags}"));
        assert_eq!((ran.code, &*ran.out), (1, ""));
        assert!(ran.err.contains("name one with --session"), "{}", ran.err);
    }
}

#[test]
fn estimating_counter_is_named_once() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(2)));
    let ran = sandbox.run("inspect chat.json --model nonsense-9");
    assert!(ran.out.ends_with("\ncounter     nonsense-9 (estimate)\n"), "{}", ran.out);
}

#[test]
fn budget_output() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(6)));
    expect![[r#"
        window         16,000
        reserve         4,000  reserved for the reply
        room           12,000  available for a request
        trigger        11,400  folding starts here: light (policy fanfold)
        cadence          cost  waiting: the backlog of 749 tokens has not reached 5,000
        low mark        7,392  target of a fold when the window is full
        transcript      4,460  37.2 % of the room, 8 entries
        tools               0  schemas of tools, part of transcript and view
        view            4,460  37.2 % of the room after 0 folds
        pressure         none
        counter     o200k_base (exact)
    "#]]
    .assert_eq(&sandbox.run("inspect chat.json --window 16k").out);
}

#[test]
fn metrics_output() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(60)));
    expect![[r#"
        turns               6  65 steps of the model
        folds              10  0 saved less than a tenth
        per 100         166.7  folds per 100 turns
        saved           3,860  tokens saved per fold
        ratio          56.9 %  size of the view after a fold, of before
        view           13.4 %  of the transcript: 5,997 of 44,598 tokens
        summaries           0  by a model; the one in the view has 0 tokens
        rewrote        27,364  tokens that missed the provider's cache after folds
    "#]]
    .assert_eq(&sandbox.run("inspect chat.json --window 12k --metrics").out);
    let numbers: Value =
        serde_json::from_str(&sandbox.run("inspect chat.json -w 12k --metrics --json").out).unwrap();
    let ledger: Value =
        serde_json::from_str(&sandbox.run("inspect chat.json -w 12k --ledger --json").out).unwrap();
    let receipts = ledger["receipts"].as_array().unwrap();
    let won: u64 = receipts.iter().map(|receipt| receipt["won"].as_u64().unwrap()).sum();
    assert_eq!(numbers["folds"], receipts.len());
    assert_eq!(numbers["saved_per_fold"], (won as f64 * 1000.0 / receipts.len() as f64).round() / 1000.0);
    // For a session, events are counted as well.
    sandbox.run("fold chat.json -w 12k --session s --store kept.db");
    let kept = sandbox.run("inspect --session s --store kept.db --metrics --json");
    let kept: Value = serde_json::from_str(&kept.out).unwrap();
    assert_eq!(
        (&kept["folds"], &kept["requests"], &kept["begun"]),
        (&numbers["folds"], &json!(1), &json!(1))
    );
    let turns = numbers["turns"].as_u64().unwrap() as f64;
    assert_eq!(numbers["folds_per_100_turns"], (receipts.len() as f64 * 100_000.0 / turns).round() / 1000.0);
}

#[test]
fn working_context_output() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(4)));
    expect![[r#"
        files seen:
        - src/stage_0.py
        - src/stage_3.py
        tests:
        - `pytest tests/test_1.py` → 1 failed, 50 passed (#2: AssertionError: lost record 101)
        open:
        - AssertionError: lost record 101 (#2)
    "#]]
    .assert_eq(&sandbox.run("inspect chat.json --context").out);
}

#[test]
fn notation_output() {
    let sandbox = Sandbox::new();
    let text =
        r#"[{"role":"user","content":"what is on the list?"},{"role":"assistant","content":"buy milk"}]"#;
    expect![[r#"
        user    what is on the list?
        say     buy milk
    "#]]
    .assert_eq(&sandbox.run_with("show", text).out);
}

#[test]
fn explain_says_why_nothing_was_folded() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(2)));
    expect![[r#"
        nothing was folded: 1,671 of 119,808 tokens, and waiting: the backlog of 0 tokens has not reached 5,000
        nothing was folded: 1,671 tokens, unchanged, for a room of 119,808
    "#]]
    .assert_eq(&sandbox.run("fold chat.json --explain").err);
    expect![[r#"
        nothing was folded: 1,671 of 1,500 tokens, and the strategy is off
        error: the conversation has 1,671 tokens, the room is 1,500, and nothing may be folded
                991  a step with its results (entry 2)
                654  a step with its results (entry 3)
                 16  a user message (entry 1)
                 10  system text (entry 0)

        hint: the strategy is `off`; choose `light` to let fanfold fold
    "#]]
    .assert_eq(&sandbox.run("fold chat.json --window 2k --strategy off --explain").err);
}

#[test]
fn assumptions_are_reported() {
    let sandbox = Sandbox::new();
    expect![[r#"
        note: neither a window nor a model is given; assuming a window of 128,000 tokens (--window)
    "#]]
    .assert_eq(&sandbox.run_with("fold", r#"[{"role":"user","content":"hi"}]"#).err);
    expect![[r#"
        note: the window of `own-1` is not known; assuming a window of 128,000 tokens (--window)
    "#]]
    .assert_eq(&sandbox.run_with("fold", r#"{"model":"own-1","messages":[]}"#).err);
}

#[test]
fn errors_have_hints() {
    let sandbox = Sandbox::new();
    expect![[r#"
        error: missing.json could not be read: no such file or directory

        hint: check the path; `-` reads a conversation from stdin
    "#]]
    .assert_eq(&sandbox.run("fold missing.json").err);
    expect![[r#"
        error: stdin: no list of messages in an object of `a`

        hint: fanfold looks for `messages`, `input` or `conversations`, or a bare list; --format says which one it is
    "#]].assert_eq(&sandbox.run_with("fold", "{\"a\": 1}").err);
    expect![[r#"
        error: stdin: not JSON at line 1, column 15: expected value

        hint: give a request body, a list of messages, or one message per line, as JSON
    "#]]
    .assert_eq(&sandbox.run_with("fold", "{\"messages\": [}").err);
    expect![[r#"
        error: stdin: not JSON at line 1, column 1: there is nothing

        hint: give a request body, a list of messages, or one message per line, as JSON
    "#]]
    .assert_eq(&sandbox.run_with("fold", "").err);
    assert_eq!(sandbox.run("fold --window many").code, 2);
}

#[test]
fn completions_and_version() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(sandbox.run(&format!("completions {shell}")).out.contains("fanfold"));
    }
    assert!(sandbox.run("--version").out.starts_with("fanfold 0."));
    assert_eq!(sandbox.run("").code, 2);
}

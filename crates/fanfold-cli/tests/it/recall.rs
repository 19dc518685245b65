//! `fanfold recall`.

use serde_json::Value;

use crate::sandbox::{Sandbox, body, long_chat};

/// The handles of single results or texts that were folded.
fn handles(sandbox: &Sandbox, part: &str) -> Vec<(String, u64)> {
    let ran = sandbox.run("inspect chat.json -w 12k --ledger --json --policy rules");
    let ledger: Value = serde_json::from_str(&ran.out).unwrap();
    let receipts = ledger["receipts"].as_array().unwrap();
    let left = receipts.iter().flat_map(|receipt| receipt["left"].as_array().unwrap());
    let of_part = left.filter(|left| left["what"]["part"] == part || !left["what"][part].is_null());
    of_part
        .map(|left| {
            (left["handle"].as_str().unwrap().to_owned(), left["what"]["entry"].as_u64().unwrap_or_default())
        })
        .collect()
}

#[test]
fn result_is_recalled_with_any_flags() {
    let sandbox = Sandbox::new();
    let messages = long_chat(60);
    sandbox.write("chat.json", &body(&messages));
    let found = handles(&sandbox, "result");
    assert!(!found.is_empty());
    for (handle, _) in found.iter().take(3) {
        let content = sandbox.run(&format!("recall chat.json {handle} -w 12k --policy rules")).out;
        assert!(messages.iter().any(|message| message["content"] == content.as_str()), "{handle}");
        assert_eq!(sandbox.run(&format!("recall chat.json {handle} -w 900k")).out, content);
        let line = content.lines().nth(2).unwrap();
        let third = sandbox.run(&format!("recall chat.json {handle} --lines 3 -w 900k")).out;
        assert_eq!(third, line);
        let last = content.lines().last().unwrap().split_whitespace().last().unwrap();
        let hits = sandbox.run(&format!("recall chat.json {handle} --search {last}")).out;
        assert!(hits.contains(": ") && hits.contains(last), "{hits}");
    }
}

#[test]
fn segment_is_recalled_with_any_flags() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(60)));
    let ran = sandbox.run("inspect chat.json -w 12k --cadence window --ledger --json");
    let ledger: Value = serde_json::from_str(&ran.out).unwrap();
    let segments = ledger["segments"].as_array().unwrap().iter();
    let mut handles = segments.map(|segment| segment["handle"].as_str().unwrap());
    let handle = handles.find(|handle| handle.starts_with('#')).expect("a segment of consecutive steps");
    let opened = sandbox.run(&format!("recall chat.json {handle} -w 12k --cadence window")).out;
    assert!(opened.contains("call read: {\"path\":\"src/stage_"), "{opened}");
    // A step number names the same steps in every window.
    assert_eq!(sandbox.run(&format!("recall chat.json {handle} -w 900k --cadence window")).out, opened);
}

#[test]
fn unknown_handle_error_counts_the_steps() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(60)));
    let ran = sandbox.run("inspect chat.json -w 12k --ledger --json");
    let ledger: Value = serde_json::from_str(&ran.out).unwrap();
    let handle = ledger["segments"][0]["handle"].as_str().unwrap();
    assert!(handle.starts_with("#1-"), "{handle}");
    let ran = sandbox.run("recall chat.json #999 -w 12k");
    assert!(
        ran.code == 1 && ran.err.contains("there is no #999: the conversation has 65 steps"),
        "{}",
        ran.err
    );
    assert_eq!(sandbox.run("recall chat.json xyz").code, 2);
}

#[test]
fn search_without_a_handle_prints_folded_lines() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(60)));
    let ran = sandbox.run("recall chat.json --search take_0_0 -w 12k");
    assert!(ran.code == 0 && ran.out.starts_with('#') && ran.out.contains("take_0_0"), "{}", ran.err);
    let whole = sandbox.run("recall chat.json --search take_0_0 -w 900k --cadence window");
    assert!(whole.out.is_empty() && whole.err.contains("no line contains this text"), "{}", whole.out);
    assert_eq!(sandbox.run("recall chat.json").code, 2);
}

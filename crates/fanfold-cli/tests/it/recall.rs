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
fn segment_is_recalled_with_the_flags_of_the_fold() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(60)));
    let ran = sandbox.run("inspect chat.json -w 12k --cadence window --ledger --json");
    let ledger: Value = serde_json::from_str(&ran.out).unwrap();
    let handle = ledger["segments"][0]["handle"].as_str().unwrap();
    let opened = sandbox.run(&format!("recall chat.json {handle} -w 12k --cadence window")).out;
    assert!(opened.contains("call read: {\"path\":\"src/stage_"), "{opened}");
    let ran = sandbox.run(&format!("recall chat.json {handle} -w 900k --cadence window"));
    assert_eq!((ran.code, &*ran.out), (1, ""));
    assert!(
        ran.err.contains("nothing is folded") && ran.err.contains("hint: pass the same --window"),
        "{}",
        ran.err
    );
}

#[test]
fn unknown_handle_error_lists_similar_ones() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(60)));
    let ran = sandbox.run("inspect chat.json -w 12k --ledger --json");
    let ledger: Value = serde_json::from_str(&ran.out).unwrap();
    let handle = ledger["segments"][0]["handle"].as_str().unwrap();
    let last = if handle.ends_with('0') { '1' } else { '0' };
    let mistyped = format!("{}{last}", &handle[..handle.len() - 1]);
    let ran = sandbox.run(&format!("recall chat.json {mistyped} -w 12k"));
    assert!(ran.err.contains(&format!("similar handles: {handle}, ")), "{}", ran.err);
    assert_eq!(sandbox.run("recall chat.json xyz").code, 2);
}

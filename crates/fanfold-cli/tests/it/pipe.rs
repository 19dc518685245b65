//! JSON lines in, JSON lines out.

use std::collections::{BTreeMap, BTreeSet};

use fanfold_testkit::generators::bodies::{BodyFormat, hostile};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, long_chat};

/// The positions before the replies of the assistant, where a client sends a request.
fn calls(messages: &[Value]) -> Vec<usize> {
    (1..messages.len()).filter(|i| messages[*i]["role"] == "assistant").collect()
}

fn request(session: &str, call: usize, messages: &[Value]) -> String {
    json!({ "session": session, "call": call, "window": 6000, "messages": messages, "tools": [{ "name": "read" }] })
        .to_string()
}

fn whole(session: &str, messages: &[Value]) -> Vec<String> {
    calls(messages).iter().enumerate().map(|(n, end)| request(session, n + 1, &messages[..*end])).collect()
}

fn increments(session: &str, messages: &[Value]) -> Vec<String> {
    let ends = calls(messages);
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts
        .zip(&ends)
        .enumerate()
        .map(|(n, (start, end))| request(session, n + 1, &messages[start..*end]))
        .collect()
}

fn answers(lines: &[String], flags: &str) -> Vec<String> {
    let ran = Sandbox::new().run_with(&format!("pipe {flags}"), &(lines.join("\n") + "\n"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.out.lines().map(str::to_owned).collect()
}

fn messages_of(answer: &str) -> Value {
    let answer: Value = serde_json::from_str(answer).unwrap();
    assert!(answer["error"].is_null(), "{answer}");
    answer["messages"].clone()
}

#[test]
fn histories_increments_and_restarts_give_the_same_bytes() {
    let messages = long_chat(40);
    let from_histories = answers(&whole("a", &messages), "");
    assert_eq!(answers(&increments("a", &messages), ""), from_histories);
    assert_eq!(answers(&increments("a", &messages), "--incremental"), from_histories);
    assert!(from_histories.iter().any(|answer| answer.contains("\"receipts\":[{")));
    for (request, answer) in whole("a", &messages).into_iter().zip(&from_histories).skip(10).step_by(13) {
        assert_eq!(messages_of(&answers(&[request], "")[0]), messages_of(answer));
    }
}

#[test]
fn sessions_are_independent() {
    let (a, b) = (long_chat(30), long_chat(21));
    let mixed: Vec<String> =
        increments("a", &a).into_iter().zip(whole("b", &b)).flat_map(|(a, b)| [a, b]).collect();
    let mixed = answers(&mixed, "");
    let alone = answers(&whole("b", &b), "");
    let of_b: Vec<_> = mixed.into_iter().skip(1).step_by(2).collect();
    assert_eq!(of_b, alone[..of_b.len()]);
}

#[test]
fn edited_history_restarts() {
    let messages = long_chat(30);
    let mut edited = messages.clone();
    edited[1]["content"] = json!("Something else altogether.");
    let mut lines = whole("a", &messages);
    let n = lines.len();
    lines.push(request("a", n + 1, &edited[..20]));
    let answers = answers(&lines, "");
    let alone = self::answers(&[request("a", 1, &edited[..20])], "");
    assert_eq!(messages_of(&answers[n]), messages_of(&alone[0]));
}

#[test]
fn evicted_sessions_are_rebuilt() {
    let messages = long_chat(30);
    let mut lines = whole("old", &messages);
    let n = lines.len();
    lines.extend((0..70).map(|i| request(&format!("s{i}"), 1, &messages[..2])));
    lines.push(request("old", n + 1, &messages));
    let answers = answers(&lines, "");
    let alone = self::answers(&[request("old", 1, &messages)], "");
    assert_eq!(messages_of(answers.last().unwrap()), messages_of(&alone[0]));
}

/// The terms that a session sets, field by field.
fn fields() -> [(&'static str, Value); 5] {
    [
        ("window", json!(5000)),
        ("reserve", json!(700)),
        ("model", json!("gpt-4o")),
        ("format", json!("chat")),
        ("tools", json!([{ "name": "read", "description": "Reads a file. ".repeat(40) }])),
    ]
}

/// A request with the fields whose bits are set.
fn request_with_fields(session: &str, call: usize, bits: u32, messages: &[Value]) -> String {
    let mut request = json!({ "session": session, "call": call, "messages": messages });
    for (i, (name, value)) in fields().into_iter().enumerate() {
        if bits & 1 << i != 0 {
            request[name] = value;
        }
    }
    request.to_string()
}

#[test]
fn omitted_fields_keep_their_values() {
    const ALL: u32 = 0b11111;
    let chat = long_chat(24);
    let mut edited = chat[..40].to_vec();
    edited[1]["content"] = json!("Something else.");
    // The second request is a longer history, an increment, an edited history, and a rewound one.
    let seconds = [&chat[..40], &chat[31..40], &edited[..], &chat[..20]];
    let others: Vec<String> =
        (0..64).map(|i| request_with_fields(&format!("o{i}"), 1, ALL, &chat[..2])).collect();
    for (way, second) in seconds.into_iter().enumerate() {
        let mut lines = Vec::new();
        for bits in 0..=ALL {
            let name = format!("s{bits}");
            lines.push(request_with_fields(&name, 1, ALL, &chat[..31]));
            lines.push(request_with_fields(&name, 2, bits, second));
        }
        let answers = answers(&lines, "");
        let repeated = &answers[answers.len() - 1];
        assert!(repeated.contains("\"window\":5000,\"room\":4300"), "{repeated}");
        for (bits, answer) in answers.iter().skip(1).step_by(2).enumerate() {
            assert_eq!(answer, repeated, "way {way}, fields {bits:05b}");
        }
        // Also for a session that was evicted in between, which has to send its whole history.
        if way == 1 {
            continue;
        }
        let evicted = |bits| {
            let mut lines = vec![request_with_fields("a", 1, ALL, &chat[..31])];
            lines.extend(others.iter().cloned());
            lines.push(request_with_fields("a", 2, bits, second));
            self::answers(&lines, "").pop().unwrap()
        };
        assert_eq!(evicted(0), evicted(ALL), "way {way}");
        assert_eq!(messages_of(&evicted(0)), messages_of(repeated), "way {way}");
    }
}

#[test]
fn model_change_keeps_window_and_tools() {
    let chat = long_chat(24);
    let tools = json!([{ "name": "read", "description": "Reads a file. ".repeat(40) }]);
    let first = json!({ "session": "a", "call": 1, "window": 5000, "messages": chat[..31], "tools": tools });
    let same = |incremental: bool, model: &str| {
        let messages = if incremental { &chat[31..40] } else { &chat[..40] };
        let omitted = json!({ "session": "a", "call": 2, "model": model, "messages": messages });
        let mut repeated = omitted.clone();
        repeated["window"] = json!(5000);
        repeated["tools"] = tools.clone();
        let last_answer =
            |second: Value| answers(&[first.to_string(), second.to_string()], "").pop().unwrap();
        assert_eq!(last_answer(omitted.clone()), last_answer(repeated));
        last_answer(omitted)
    };
    for model in ["gpt-5", "nobodys-model"] {
        let whole = same(false, model);
        assert!(whole.contains("\"window\":5000"), "{whole}");
        assert_eq!(same(true, model), whole);
    }
}

#[test]
fn focus_survives_a_restarted_history() {
    let chat = long_chat(40);
    let focus = json!({ "session": "a", "op": "focus", "topic": "take_6_11 batch_8" }).to_string();
    let mut edited = chat.clone();
    edited[1]["content"] = json!("Something else.");
    let after = |lines: &[String]| messages_of(answers(lines, "").last().unwrap());
    let with = after(&[request("a", 1, &chat[..9]), focus.clone(), request("a", 2, &edited)]);
    let without = after(&[request("a", 1, &chat[..9]), request("a", 2, &edited)]);
    assert_ne!(with, without);
}

#[test]
fn increment_to_an_evicted_session_is_an_error() {
    let chat = long_chat(12);
    let others: Vec<String> = (0..64).map(|i| request(&format!("o{i}"), 1, &chat[..2])).collect();
    let last = |lines: &[String]| {
        answers(&[lines, &others, &[request("a", lines.len() + 1, &chat[9..12])]].concat(), "").pop().unwrap()
    };
    // The mode of a session is unknown after one request and known after two.
    let once = [request("a", 1, &chat[..9])];
    let whole = [request("a", 1, &chat[..5]), request("a", 2, &chat[..9])];
    let new = [request("a", 1, &chat[..5]), request("a", 2, &chat[5..9])];
    for lines in [&once[..], &new] {
        let answer = last(lines);
        assert!(answer.contains("the beginning of session `a` is no longer in memory"), "{answer}");
    }
    // A session that sends whole histories sends one with another beginning.
    assert_eq!(messages_of(&last(&whole)).as_array().unwrap()[..], chat[9..12]);
}

#[test]
fn session_mode_is_kept() {
    let chat = long_chat(9);
    let mut lines = vec![request("a", 1, &chat[..3]), request("a", 2, &chat[..5])];
    for call in 3..6 {
        let mut other = chat[..2 * call + 1].to_vec();
        other[0]["content"] = json!(format!("It is {call} o'clock."));
        lines.push(request("a", call, &other));
    }
    for (call, answer) in answers(&lines, "").iter().enumerate().skip(2) {
        assert_eq!(messages_of(answer).as_array().unwrap().len(), 2 * (call + 1) + 1, "call {}", call + 1);
    }
}

#[test]
fn assumed_window_is_reported_once() {
    let chat = long_chat(3);
    let line = |call: usize, more: Value| {
        let mut line = json!({ "session": "a", "call": call, "messages": chat[..2 * call] });
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line.to_string()
    };
    let assumed = |lines: &[String], flags: &str| -> Vec<String> {
        let assumed_window = |answer: &String| {
            let answer: Value = serde_json::from_str(answer).unwrap();
            let notices = answer["report"]["notices"].as_array().unwrap().clone();
            notices.into_iter().find(|notice| notice["kind"] == "assumed")
        };
        let why =
            |notice: Option<Value>| notice.map_or(String::new(), |it| it["why"].as_str().unwrap().to_owned());
        answers(lines, flags).iter().map(|answer| why(assumed_window(answer))).collect()
    };
    let expected = "neither a window nor a model is given; assuming a window of 128,000 tokens (`window`)";
    assert_eq!(assumed(&[line(1, json!({})), line(2, json!({}))], ""), [expected, ""]);
    let unknown = assumed(&[line(1, json!({ "model": "nobodys-model" }))], "");
    assert!(unknown[0].starts_with("the window of `nobodys-model` is not known"), "{unknown:?}");
    for known in [json!({ "window": 4000 }), json!({ "model": "gpt-4o" })] {
        assert_eq!(assumed(&[line(1, known)], ""), [""]);
    }
    assert_eq!(assumed(&[line(1, json!({}))], "--model gpt-4o"), [""]);
    assert_eq!(assumed(&[line(1, json!({}))], "--window 20k"), [""]);
}

#[test]
fn bad_line_is_answered_with_an_error() {
    let lines = [
        "not json",
        "[]",
        "{\"session\": \"a\", \"messages\": [",
        "{\"session\": \"a\", \"windwo\": 2000, \"messages\": []}",
        "{\"session\": \"a\", \"temperature\": 1, \"messages\": []}",
        "{\"session\": \"a\", \"window\": }",
    ];
    let answers = answers(&lines.map(str::to_owned), "");
    let error = |i: usize| -> (String, String) {
        let answer: Value = serde_json::from_str(&answers[i]).unwrap();
        let text = |key: &str| answer["error"][key].as_str().unwrap().to_owned();
        (text("message"), text("hint"))
    };
    assert_eq!(error(0).0, "this is not JSON");
    assert_eq!(error(1).0, "this is JSON, but not an object");
    assert!(error(2).0.ends_with("the JSON ends before it is complete"), "{:?}", error(2));
    assert_eq!(
        error(3),
        ("column 25: there is no field `windwo`".to_owned(), "did you mean `window`?".to_owned())
    );
    assert!(error(4).1.starts_with("the fields are session, op, call, window"), "{:?}", error(4));
    assert!(error(5).0.contains("not JSON: expected value"), "{:?}", error(5));
}

#[test]
fn every_handle_in_an_answer_is_recallable() {
    let messages = long_chat(40);
    let lines = whole("a", &messages);
    let last: Value = serde_json::from_str(answers(&lines, "").last().unwrap()).unwrap();
    let handles = last["handles"].as_array().unwrap();
    assert!(!handles.is_empty());
    let sent = last["messages"].to_string();
    let mut lines = lines;
    let n = lines.len();
    for handle in handles {
        assert!(sent.contains(handle["id"].as_str().unwrap()));
        lines.push(json!({ "session": "a", "op": "expand", "handle": handle["id"] }).to_string());
    }
    let mut covered = BTreeSet::new();
    for (answer, handle) in answers(&lines, "")[n..].iter().zip(handles) {
        let content: Value = serde_json::from_str(answer).unwrap();
        assert!(!content["content"].as_str().unwrap().is_empty(), "{answer}");
        covered.extend(handle["covers"].as_array().unwrap().iter().map(|i| i.as_u64().unwrap() as usize));
    }
    let kept = last["messages"].as_array().unwrap();
    let end = *calls(&messages).last().unwrap();
    for (i, message) in messages[..end].iter().enumerate() {
        assert!(kept.contains(message) || covered.contains(&i), "message {i} is missing");
    }
}

#[test]
fn operations_change_the_view() {
    let messages = long_chat(12);
    let op = |value: Value| {
        let mut value = value;
        value["session"] = json!("a");
        value.to_string()
    };
    let mut first: Value = serde_json::from_str(&request("a", 1, &messages)).unwrap();
    first["window"] = json!(100_000);
    let lines = [
        first.to_string(),
        op(json!({ "op": "pin", "entry": 3 })),
        op(json!({ "op": "fold", "from": 2, "to": 6 })),
        op(json!({ "op": "report" })),
        op(json!({ "op": "focus", "topic": "records" })),
        op(json!({ "op": "sing" })),
        op(json!({ "op": "pin", "entry": 900 })),
    ];
    let answers = answers(&lines, "");
    assert!(answers[0].contains("\"folds\":0"));
    assert!(answers[2].contains("\"reason\":\"asked\""), "{}", answers[2]);
    assert!(messages_of(&answers[2]).as_array().unwrap().contains(&messages[4]), "entry 3 was pinned");
    assert!(answers[3].starts_with("{\"report\":{"));
    assert!(answers[5].contains("there is no op `sing`") && answers[5].contains("\"line\":6"));
    assert!(answers[6].contains("there is no entry 900"));
    let folded: Value = serde_json::from_str(&answers[2]).unwrap();
    let handle = folded["handles"][0]["id"].as_str().unwrap();
    let again = [
        lines[0].clone(),
        lines[2].clone(),
        op(json!({ "op": "recall", "handle": handle, "lines": [1, 1] })),
        op(json!({ "op": "recall", "handle": handle, "search": "take_" })),
        op(json!({ "op": "unfold", "handle": handle })),
        op(json!({ "op": "recall", "search": "no such words" })),
    ];
    let again = self::answers(&again, "");
    assert_eq!(again[5], r#"{"content":""}"#, "a search without a handle");
    assert!(
        again.iter().all(|answer| !answer.contains("\"error\"") || answer.contains("no original")),
        "{again:?}"
    );
}

#[test]
fn pipe_continues_after_bad_lines() {
    let lines = [
        "not json".to_owned(),
        "{\"session\":\"a\"}".to_owned(),
        "{\"session\":\"a\",\"messages\":7}".to_owned(),
        json!({ "session": "nobody", "op": "expand", "handle": "12345678" }).to_string(),
        String::new(),
        json!({ "messages": [{ "role": "user", "content": "hi" }] }).to_string(),
    ];
    let answers = answers(&lines, "");
    assert_eq!(answers.len(), 5);
    for (answer, line) in answers[..4].iter().zip(1..) {
        let answer: Value = serde_json::from_str(answer).unwrap();
        assert_eq!(answer["error"]["line"], line);
        assert!(answer["error"]["hint"].as_str().is_some_and(|hint| !hint.is_empty()));
    }
    assert_eq!(messages_of(&answers[4]), json!([{ "role": "user", "content": "hi" }]));
}

#[test]
fn wrong_value_error_names_the_field() {
    let wrong = |fields: &str| {
        let line = format!("{{{fields},\"messages\":[]}}");
        let answer: Value = serde_json::from_str(&answers(&[line], "")[0]).unwrap();
        answer["error"]["message"].as_str().unwrap_or_default().to_owned()
    };
    let error = wrong(r#""session":"a","window":"8k""#);
    assert!(error.contains("`window`: ") && error.ends_with("\"8k\", expected a whole number"), "{error}");
    let error = wrong(r#""idle":"long","window":8000"#);
    assert!(error.contains("`idle`: ") && error.ends_with("expected a number"), "{error}");
    let error = wrong(r#""op":"expand","lines":[1]"#);
    assert!(error.ends_with("expected a list of two whole numbers"), "{error}");
}

#[test]
fn byte_order_mark_is_ignored() {
    let line = json!({ "messages": [{ "role": "user", "content": "hi" }] });
    let answers = answers(&[format!("\u{feff}{line}")], "");
    assert_eq!(messages_of(&answers[0]), json!([{ "role": "user", "content": "hi" }]));
}

#[test]
fn hostile_lines_do_not_stop_the_pipe() {
    let mut lines = Vec::new();
    for seed in 0..300 {
        let kind = BodyFormat::ALL[seed as usize % BodyFormat::ALL.len()];
        let hostile = hostile(kind, seed).replace('\n', " ");
        let wrapped = [
            format!("{{\"session\":{seed},\"call\":1,\"window\":300,\"messages\":{hostile}}}"),
            format!("{{\"session\":{seed},\"call\":2,\"window\":300,\"messages\":[{hostile}]}}"),
        ];
        lines.push(if hostile.trim().is_empty() { "?".to_owned() } else { hostile });
        lines.extend(wrapped);
    }
    let answers = answers(&lines, "--quiet");
    assert_eq!(answers.len(), lines.len());
    for answer in answers {
        // Strings may contain half a surrogate pair, so they are not decoded.
        let answer: BTreeMap<String, &RawValue> = serde_json::from_str(&answer).unwrap();
        assert!(answer.contains_key("messages") || answer.contains_key("error"));
    }
}

#[test]
fn overflow_asks_to_send_the_original() {
    let huge =
        json!([{ "role": "system", "content": "word ".repeat(9000) }, { "role": "user", "content": "hi" }]);
    let line = json!({ "session": "a", "call": 1, "window": 1000, "messages": huge }).to_string();
    let answer: Value = serde_json::from_str(&answers(&[line], "")[0]).unwrap();
    assert_eq!((&answer["error"]["kind"], &answer["original"]), (&json!("overflow"), &json!(true)));
    assert!(answer["messages"].is_null());
}

#[test]
fn missing_increment_is_an_error() {
    let messages = long_chat(9);
    let mut lines = increments("a", &messages);
    lines.remove(3);
    let answers = answers(&lines, "");
    assert!(answers[3].contains("call 5 came after call 3: messages are missing"), "{}", answers[3]);
}

#[test]
fn priced_model_is_folded_when_that_saves_money() {
    let messages = long_chat(90);
    let request = |idle: Option<f64>| {
        json!({ "session": "a", "window": 1_000_000, "model": "claude-sonnet-4-5", "messages": messages, "idle": idle })
            .to_string()
    };
    let all = answers(&[request(None), request(Some(100.0)), request(Some(400.0))], "--quality economy");
    let all: Vec<Value> = all.iter().map(|answer| serde_json::from_str(answer).unwrap()).collect();
    let reasons = |answer: &Value| -> Vec<String> {
        let receipts = answer["report"]["receipts"].as_array().unwrap();
        receipts.iter().map(|receipt| receipt["why"].as_str().unwrap().to_owned()).collect()
    };
    assert!(!reasons(&all[0]).is_empty() && reasons(&all[0]).iter().all(|why| why.contains("folding pays")));
    assert!(reasons(&all[1]).is_empty());
    assert!(reasons(&all[2]).iter().all(|why| why.contains("the cache is cold")));
    let never = answers(&[request(None)], "--cadence window");
    assert!(never[0].contains("\"folds\":0"));
}

#[test]
fn requested_fold_is_answered_with_feedback() {
    let messages = long_chat(60);
    let line = json!({ "session": "a", "call": 1, "window": 60_000, "messages": messages }).to_string();
    let fold = json!({ "session": "a", "op": "fold", "topic": "stage 3" }).to_string();
    let all = answers(&[line, fold.clone(), fold], "");
    let all: Vec<Value> = all.iter().map(|answer| serde_json::from_str(answer).unwrap()).collect();
    let feedback = |i: usize| &all[i]["report"]["feedback"];
    assert!(feedback(0).is_null() && all[0]["report"]["folds"] == 0);
    assert_eq!((&feedback(1)["ended"], &feedback(1)["headline"]), (&json!("folded"), &json!("folded once")));
    assert!(feedback(1)["token_line"].as_str().unwrap().contains(" → "), "{}", feedback(1));
    assert_eq!(feedback(2)["ended"], "nothing");
    assert!(feedback(2)["note"].as_str().unwrap().contains("within the low mark"), "{}", feedback(2));
    assert_eq!(all[2]["messages"], all[1]["messages"]);
}

#[test]
fn smallest_fallback_window_applies() {
    let line = json!({ "session": "a", "model": "gpt-5", "messages": long_chat(3) }).to_string();
    let window = |flags: &str| {
        let answer: Value = serde_json::from_str(&answers(std::slice::from_ref(&line), flags)[0]).unwrap();
        answer["report"]["window"].as_u64().unwrap()
    };
    assert!(window("") > 100_000);
    assert_eq!(window("--fallback gpt-4.1,gpt-4"), 8_192);
}

/// Calls counted from 0 are all accepted.
#[test]
fn calls_may_be_counted_from_zero() {
    let sandbox = Sandbox::new();
    let message = |role: &str, text: &str| json!({ "role": role, "content": text });
    let calls = [
        vec![message("user", "one"), message("assistant", "two")],
        vec![message("user", "three"), message("assistant", "four")],
        vec![message("user", "five")],
    ];
    for first in [0, 1] {
        let request = |(i, messages): (usize, &Vec<Value>)| {
            let request = json!({ "session": "s", "call": first + i, "window": 8000, "messages": messages });
            format!("{request}\n")
        };
        let requests: String = calls.iter().enumerate().map(request).collect();
        let ran = sandbox.run_with("pipe --incremental", &requests);
        let n_messages = ran.out.lines().map(|line| {
            let answer: Value = serde_json::from_str(line).unwrap();
            answer["messages"].as_array().unwrap_or_else(|| panic!("{line}")).len()
        });
        assert_eq!(n_messages.collect::<Vec<_>>(), [2, 4, 5], "from {first}");
    }
}

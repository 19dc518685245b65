//! Examples of bodies: their entries, and the bodies after folds.

use expect_test::{Expect, expect};
use fanfold_core::{CallId, Edit, Entry, EntryId, Item, Place, Speaker, Transcript, View, Voice};
use fanfold_wire::{Conversation, Format};
use serde_json::value::RawValue;

use crate::contract::transcript_of;
use crate::provider_rules;

fn show(transcript: &Transcript) -> String {
    let mut shown = String::new();
    for (i, entry) in transcript.entries().iter().enumerate() {
        match entry {
            Entry::Prompt(prompt) => {
                let speaker = match prompt.speaker {
                    Speaker::System => "system",
                    Speaker::User => "user",
                    Speaker::Harness => "harness",
                    Speaker::Provider => "sealed",
                };
                shown += &format!("{i} {speaker} {:?}", prompt.body.as_str());
                prompt.media.iter().for_each(|media| shown += &format!(" <{}>", media.label));
                shown += "\n";
            }
            Entry::Step(step) => {
                shown += &format!("{i} step {:?}\n", step.text.as_str());
                if !step.reasoning.original().is_empty() {
                    shown += &format!("    thought {:?}\n", step.reasoning.as_str());
                }
                for call in &step.calls {
                    shown += &format!("    call {} {} {}\n", call.id, call.tool, call.arguments.as_str());
                    let Some(outcome) = &call.result else { continue };
                    let error = if outcome.is_error { " error" } else { "" };
                    shown += &format!("    result{error} {:?}", outcome.body.as_str());
                    outcome.media.iter().for_each(|media| shown += &format!(" <{}>", media.label));
                    shown += "\n";
                }
            }
        }
    }
    shown
}

fn check_decode(body: &str, expected: &Expect) {
    let (conversation, changes) = Conversation::decode(body, None).unwrap();
    let mut shown = format!("{}\n{}", conversation.format(), show(&transcript_of(changes)));
    conversation.repairs().iter().for_each(|repair| shown += &format!("! {repair}\n"));
    expected.assert_eq(&shown);
}

/// Encodes a view and prints a line for each message.
fn check_encode(body: &str, items: Vec<Item>, expected: &Expect) {
    let (conversation, changes) = Conversation::decode(body, None).unwrap();
    let transcript = transcript_of(changes);
    let view = View { items, ..View::default() };
    let messages = conversation.encode_messages(&transcript, &view);
    let encoded = conversation.encode(&transcript, &view);
    assert_eq!(provider_rules::check(conversation.format(), &encoded), Ok(()));
    expected.assert_eq(&format!("{}\n", messages.join("\n")));
}

fn whole(entry: u32) -> Item {
    Item::Whole(EntryId(entry))
}

fn note(text: &str) -> Item {
    Item::Note { text: text.into(), voice: Voice::Fanfold }
}

fn edited(entry: u32, edits: &[(Place, &str)]) -> Item {
    let edits = edits.iter().map(|(place, stub)| Edit { place: *place, stub: (*stub).into() });
    Item::Edited(EntryId(entry), edits.collect())
}

fn call(step: u32, call: u16) -> CallId {
    CallId { step: EntryId(step), call }
}

const CHAT: &str = r#"{"model":"m", "messages":[
{"role":"system","content":"be kind"},
{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]},
{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{\"d\":\"\/\"}"}},{"id":"b","type":"function","function":{"name":"cat","arguments":"{}"}}],"x":1.10},
{"role":"tool","tool_call_id":"b","content":"B"},
{"role":"tool","tool_call_id":"a","content":"A\u00e9"},
{"role":"assistant","content":"done"},
{"role":"user","name":"harness","content":"go on"}
]}"#;

#[test]
fn chat_is_decoded() {
    check_decode(
        CHAT,
        &expect![[r#"
        chat
        0 system "be kind"
        1 user "look" <image/png>
        2 step ""
            thought "hm"
            call a ls {"d":"/"}
            result "Aé"
            call b cat {}
            result "B"
        3 step "done"
        4 harness "go on"
    "#]],
    );
}

#[test]
fn chat_is_folded_in_place() {
    check_encode(
        CHAT,
        vec![
            whole(0),
            edited(1, &[(Place::PromptMedia(EntryId(1), 0), "[image]")]),
            edited(
                2,
                &[
                    (Place::Reasoning(EntryId(2)), ""),
                    (Place::Arguments(call(2, 0)), r#"{"d":"..."}"#),
                    (Place::Result(call(2, 1)), "[B]"),
                ],
            ),
            edited(3, &[(Place::Text(EntryId(3)), "[said]")]),
            whole(4),
        ],
        &expect![[r#"
            {"role":"system","content":"be kind"}
            {"role":"user","content":[{"type":"text","text":"look"},{"type":"text","text":"[image]"}]}
            {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{\"d\":\"...\"}"}},{"id":"b","type":"function","function":{"name":"cat","arguments":"{}"}}],"x":1.10}
            {"role":"tool","tool_call_id":"b","content":"[B]"}
            {"role":"tool","tool_call_id":"a","content":"A\u00e9"}
            {"role":"assistant","content":"[said]"}
            {"role":"user","name":"harness","content":"go on"}
        "#]],
    );
}

#[test]
fn chat_steps_fold_into_notes() {
    check_encode(
        CHAT,
        vec![whole(0), note("what was done"), whole(3), whole(4)],
        &expect![[r#"
        {"role":"system","content":"be kind"}
        {"role":"user","content":"what was done"}
        {"role":"assistant","content":"done"}
        {"role":"user","name":"harness","content":"go on"}
    "#]],
    );
    check_encode(
        CHAT,
        vec![whole(0), whole(2), whole(4)],
        &expect![[r#"
            {"role":"system","content":"be kind"}
            {"role":"user","content":"[continued]"}
            {"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{\"d\":\"\/\"}"}},{"id":"b","type":"function","function":{"name":"cat","arguments":"{}"}}],"x":1.10}
            {"role":"tool","tool_call_id":"b","content":"B"}
            {"role":"tool","tool_call_id":"a","content":"A\u00e9"}
            {"role":"user","name":"harness","content":"go on"}
        "#]],
    );
}

#[test]
fn malformed_chat_is_kept_and_repaired() {
    let body = r#"[{"role":"tool","tool_call_id":"zzz","content":"lost"},
{"role":"user","content":null},
{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":null}},{"id":"x","function":{"name":"g","arguments":"{"}},{"id":"x","function":{"name":"g","arguments":{"a":1}}}]},
{"role":"user","content":"in between"},
{"role":"tool","tool_call_id":"x","content":"one"},{"role":"tool","tool_call_id":"x","content":"two"},{"role":"tool","tool_call_id":"x","content":"three"},
{"role":"banana","content":"?"}, 42, {"role":"user","content":"\ud83d half"}]"#;
    check_decode(
        body,
        &expect![[r#"
            chat
            0 harness "lost"
            1 user ""
            2 step ""
                call call_2_0 f 
                result "three"
                call x g {
                result "one"
                call call_2_2 g {"a":1}
                result "two"
            3 user "in between"
            4 harness "{\"role\":\"banana\",\"content\":\"?\"}"
            5 harness "42"
            6 user "� half"
            ! message 0: a result without its call (zzz); sent as text of the harness
            ! message 2: a call without an id; renamed to call_2_0
            ! message 2: the arguments of f are null; sent as {}
            ! message 2: the arguments of g are not JSON; kept
            ! message 2: a call with the id of another; renamed to call_2_2
            ! message 4: the result of call 1 of entry 2 does not follow its call; moved after it
            ! message 5: the result of call 2 of entry 2 does not follow its call; moved after it
            ! message 6: the result of call 0 of entry 2 does not follow its call; moved after it
            ! message 7: the role `banana` is not known; sent unchanged
            ! message 8: not a message; sent unchanged
            ! message 9: half a surrogate pair; decoded as U+FFFD, sent unchanged
        "#]],
    );
}

#[test]
fn folding_malformed_chat_gives_a_valid_body() {
    let body = r#"[{"role":"tool","tool_call_id":"zzz","content":"lost"},
{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":null}},{"id":"x","function":{"name":"g","arguments":"{"}},{"id":"x","function":{"name":"g","arguments":{"a":1}}}]},
{"role":"user","content":"in between"},
{"role":"tool","tool_call_id":"x","content":"one"},{"role":"tool","tool_call_id":"x","content":"two"},{"role":"tool","tool_call_id":"x","content":null},
{"role":"assistant","content":"x","function_call":{"name":"old","arguments":"{}"}}, {"role":"user","content":"hi"}]"#;
    let items = vec![whole(0), whole(1), whole(2), whole(3), whole(4), note("more")];
    check_encode(
        body,
        items,
        &expect![[r#"
            {"role":"user","name":"harness","content":"lost"}
            {"role":"assistant","tool_calls":[{"id": "call_1_0", "function":{"name":"f","arguments":"{}"}},{"id":"x","function":{"name":"g","arguments":"{"}},{"id":"call_1_2","function":{"name":"g","arguments":{"a":1}}}]}
            {"role":"tool","tool_call_id":"x","content":"one"}
            {"role":"tool","tool_call_id":"call_1_2","content":"two"}
            {"role":"tool","tool_call_id":"call_1_0","content":""}
            {"role":"user","content":"in between"}
            {"role":"assistant","content":"x","function_call":{"name":"old","arguments":"{}"}}
            {"role":"function","name":"old","content":"[no result was recorded]"}
            {"role":"user","content":"hi"}
            {"role":"user","content":"more"}
        "#]],
    );
}

const TEXT_CALLS: &str = r#"{"conversations":[{"from":"human","value":"go"},
{"from":"gpt","value":"<think>\nhm\n</think>\nI'll look.\n<tool_call>\n{\"name\": \"ls\", \"arguments\": {\"d\": \"\u00e9\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"pwd\", \"arguments\": {}}\n</tool_call>","w":0.50},
{"from":"tool","value":"<tool_response>\nfirst\n</tool_response>\n<tool_response>\nsecond\n</tool_response>\nKeep going."},
{"from":"function_call","value":"{\"name\": \"cat\", \"arguments\": {\"f\": 1}}"},
{"from":"observation","value":"meow"},
{"from":"gpt","value":"done"}], "id": 7}"#;

#[test]
fn calls_in_text_are_decoded() {
    check_decode(
        TEXT_CALLS,
        &expect![[r#"
        sharegpt
        0 user "go"
        1 step "\nI'll look.\n"
            thought "\nhm\n"
            call call_1_0 ls {"d": "é"}
            result "first"
            call call_1_1 pwd {}
            result "second"
        2 harness "\nKeep going."
        3 step ""
            call call_3_0 cat {"f": 1}
            result "meow"
        4 step "done"
    "#]],
    );
}

#[test]
fn calls_in_text_are_folded_in_place() {
    check_encode(
        TEXT_CALLS,
        vec![
            whole(0),
            edited(
                1,
                &[
                    (Place::Text(EntryId(1)), "[said]"),
                    (Place::Reasoning(EntryId(1)), ""),
                    (Place::Arguments(call(1, 0)), r#"{"d": "[folded]"}"#),
                    (Place::Result(call(1, 1)), "[2]"),
                ],
            ),
            whole(2),
            note("a note"),
            edited(3, &[(Place::Arguments(call(3, 0)), "gone"), (Place::Result(call(3, 0)), "[cat]")]),
            whole(4),
        ],
        &expect![[r#"
            {"from":"human","value":"go"}
            {"from":"gpt","value":"[said]<tool_call>\n{\"name\": \"ls\", \"arguments\": {\"d\": \"[folded]\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"pwd\", \"arguments\": {}}\n</tool_call>","w":0.50}
            {"from":"tool","value":"<tool_response>\nfirst\n</tool_response>\n<tool_response>\n[2]\n</tool_response>\nKeep going."}
            {"from":"human","value":"a note"}
            {"from":"function_call","value":"{\"name\": \"cat\", \"arguments\": {\"_folded\": \"gone\"}}"}
            {"from":"observation","value":"[cat]"}
            {"from":"gpt","value":"done"}
        "#]],
    );
    check_encode(
        TEXT_CALLS,
        vec![whole(0), note("folded"), whole(2), whole(4)],
        &expect![[r#"
            {"from":"human","value":"go"}
            {"from":"human","value":"folded"}
            {"from":"human","value":"\n\nKeep going."}
            {"from":"gpt","value":"done"}
        "#]],
    );
}

const ANTHROPIC: &str = r#"{"system":[{"type":"text","text":"be kind","cache_control":{"type":"ephemeral"}}],"messages":[
{"role":"user","content":"look"},
{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s1"},{"type":"text","text":"Looking."},{"type":"tool_use","id":"t1","name":"ls","input":{"d": 1.0}},{"type":"tool_use","id":"t2","name":"cat","input":{}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"A"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}}],"is_error":true},{"type":"tool_result","tool_use_id":"t2","content":"B","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"and then?"}]},
{"role":"assistant","content":[{"type":"thinking","thinking":"so","signature":"s2"},{"type":"tool_use","id":"t3","name":"cat","input":{"f":"x"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"t3","content":"C"}]}
]}"#;

#[test]
fn anthropic_is_decoded() {
    check_decode(
        ANTHROPIC,
        &expect![[r#"
        anthropic
        0 system "be kind"
        1 user "look"
        2 step "Looking."
            thought "hm"
            call t1 ls {"d": 1.0}
            result error "A" <image/png>
            call t2 cat {}
            result "B"
        3 user "and then?"
        4 step ""
            thought "so"
            call t3 cat {"f":"x"}
            result "C"
    "#]],
    );
}

#[test]
fn anthropic_is_folded_in_place() {
    let thoughts = |entry: u32| (Place::Reasoning(EntryId(entry)), "");
    check_encode(
        ANTHROPIC,
        vec![
            whole(0),
            whole(1),
            edited(
                2,
                &[
                    thoughts(2),
                    (Place::Arguments(call(2, 0)), r#"["folded"]"#),
                    (Place::Result(call(2, 1)), "[B]"),
                    (Place::ResultMedia(call(2, 0), 0), "[image]"),
                ],
            ),
            whole(3),
            edited(4, &[thoughts(4)]),
        ],
        &expect![[r#"
            {"role":"user","content":"look"}
            {"role":"assistant","content":[{"type":"text","text":"Looking."},{"type":"tool_use","id":"t1","name":"ls","input":{"_folded": ["folded"]}},{"type":"tool_use","id":"t2","name":"cat","input":{}}]}
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"A"},{"type":"text","text":"[image]"}],"is_error":true},{"type":"tool_result","tool_use_id":"t2","content":"[B]","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"and then?"}]}
            {"role":"assistant","content":[{"type":"thinking","thinking":"so","signature":"s2"},{"type":"tool_use","id":"t3","name":"cat","input":{"f":"x"}}]}
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"t3","content":"C"}]}
        "#]],
    );
}

#[test]
fn anthropic_steps_fold_into_notes_and_breakpoints_move() {
    check_encode(
        ANTHROPIC,
        vec![whole(0), whole(1), note("a digest"), whole(3), whole(4)],
        &expect![[r#"
            {"role":"user","content":"look"}
            {"role":"user","content":[{"type":"text","text":"a digest","cache_control":{"type":"ephemeral","ttl":"1h"}}]}
            {"role":"user","content":[{"type":"text","text":"and then?"}]}
            {"role":"assistant","content":[{"type":"thinking","thinking":"so","signature":"s2"},{"type":"tool_use","id":"t3","name":"cat","input":{"f":"x"}}]}
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"t3","content":"C"}]}
        "#]],
    );
    check_encode(
        ANTHROPIC,
        vec![whole(0), whole(4), note("more")],
        &expect![[r#"
            {"role":"user","content":[{"type":"text","text":"[continued]"}]}
            {"role":"assistant","content":[{"type":"thinking","thinking":"so","signature":"s2"},{"type":"tool_use","id":"t3","name":"cat","input":{"f":"x"}}]}
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"t3","content":"C"}, {"type":"text","text":"more"}]}
        "#]],
    );
}

#[test]
fn malformed_anthropic_is_sent_valid() {
    let body = r#"{"system":"s","messages":[
{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"ls","input":null},{"type":"text","text":" "},{"type":"tool_use","id":"t1","name":"ls","input":{}}]},
{"role":"user","content":[{"type":"text","text":"first"},{"type":"tool_result","tool_use_id":"t1"},{"type":"tool_result","tool_use_id":"nobody","content":"lost"}]},
{"role":"user","content":""},
{"role":"user","content":"again"}]}"#;
    check_decode(
        body,
        &expect![[r#"
            anthropic
            0 system "s"
            1 step ""
                call t1 ls 
                result ""
                call call_1_1 ls {}
            2 user "first"
            3 harness "lost"
            4 user ""
            5 user "again"
            ! message 0: a call with the id of another; renamed to call_1_1
            ! message 1: the result of call 0 of entry 1 does not follow its call; moved after it
            ! message 1: a result without its call (nobody); sent as text of the harness
            ! message 0: a call that was never answered (call_1_1); sent with a placeholder result
        "#]],
    );
    let items = vec![whole(0), whole(1), whole(2), whole(3), whole(4), whole(5), note("end")];
    check_encode(
        body,
        items,
        &expect![[r#"
            {"role":"user","content":[{"type":"text","text":"[continued]"}]}
            {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"ls","input":{}},{"type":"tool_use","id":"call_1_1","name":"ls","input":{}}]}
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"}, {"type":"tool_result","tool_use_id":"call_1_1","content":"[no result was recorded]"}, {"type":"text","text":"first"}, {"type":"text","text":"lost"}]}
            {"role":"user","content":"again"}
            {"role":"user","content":[{"type":"text","text":"end"}]}
        "#]],
    );
}

const RESPONSES: &str = r#"{"model":"m","instructions":"be kind","input":[
{"role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"data:image/png;base64,AA"}]},
{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gA"},
{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Looking.","annotations":[]}]},
{"type":"function_call","id":"fc_1","call_id":"c1","name":"ls","arguments":"{\"d\":1}"},
{"type":"custom_tool_call","id":"ct_2","call_id":"c2","name":"patch","input":"*** Begin"},
{"type":"function_call_output","call_id":"c1","output":"A"},
{"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"B"}]},
{"type":"compaction","encrypted_content":"zzz"},
{"type":"reasoning","id":"rs_2","summary":[]},
{"type":"local_shell_call","id":"ls_1","call_id":"c3","action":{"type":"exec","command":["ls"]}},
{"type":"hologram","z":1.10},
{"type":"function_call_output","call_id":"nobody","output":"lost"},
{"role":"user","content":"next"}]}"#;

#[test]
fn responses_are_decoded() {
    check_decode(
        RESPONSES,
        &expect![[r#"
            responses
            0 system "be kind"
            1 user "look" <image/png>
            2 step "Looking."
                thought "hm"
                call c1 ls {"d":1}
                result "A"
                call c2 patch *** Begin
                result "B"
            3 sealed "{\"type\":\"compaction\",\"encrypted_content\":\"zzz\"}"
            4 step ""
                thought ""
                call c3 local_shell_call {"type":"exec","command":["ls"]}
            5 harness "lost"
            6 user "next"
            ! message 11: a result without its call (nobody); sent as text of the harness
            ! message 9: a call that was never answered (c3); sent with a placeholder result
        "#]],
    );
}

#[test]
fn responses_are_folded_in_place() {
    check_encode(
        RESPONSES,
        vec![
            whole(0),
            edited(1, &[(Place::PromptMedia(EntryId(1), 0), "[image]")]),
            edited(
                2,
                &[
                    (Place::Text(EntryId(2)), "[said]"),
                    (Place::Reasoning(EntryId(2)), ""),
                    (Place::Arguments(call(2, 0)), r#"{"d":"..."}"#),
                    (Place::Result(call(2, 1)), "[B]"),
                ],
            ),
            whole(4),
            whole(5),
            whole(6),
        ],
        &expect![[r#"
            {"role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_text","text":"[image]"}]}
            {"type":"message","role":"assistant","content":[{"type":"output_text","text":"[said]","annotations":[]}]}
            {"type":"function_call","call_id":"c1","name":"ls","arguments":"{\"d\":\"...\"}"}
            {"type":"custom_tool_call","call_id":"c2","name":"patch","input":"*** Begin"}
            {"type":"function_call_output","call_id":"c1","output":"A"}
            {"type":"custom_tool_call_output","call_id":"c2","output":"[B]"}
            {"type":"compaction","encrypted_content":"zzz"}
            {"type":"reasoning","id":"rs_2","summary":[]}
            {"type":"local_shell_call","id":"ls_1","call_id":"c3","action":{"type":"exec","command":["ls"]}}
            {"type":"hologram","z":1.10}
            {"type":"local_shell_call_output","call_id":"c3","output":"[no result was recorded]"}
            {"type":"message","role":"user","content":"lost"}
            {"role":"user","content":"next"}
        "#]],
    );
}

#[test]
fn responses_fold_into_notes_and_keep_compactions() {
    check_encode(
        RESPONSES,
        vec![whole(0), whole(1), note("a digest"), whole(6)],
        &expect![[r#"
        {"role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"data:image/png;base64,AA"}]}
        {"type":"message","role":"user","content":[{"type":"input_text","text":"a digest"}]}
        {"type":"compaction","encrypted_content":"zzz"}
        {"role":"user","content":"next"}
    "#]],
    );
    let lone = r#"{"input":"hi","model":"m"}"#;
    check_encode(
        lone,
        vec![whole(0), note("more")],
        &expect![[r#"
        {"role":"user","content":"hi"}
        {"type":"message","role":"user","content":[{"type":"input_text","text":"more"}]}
    "#]],
    );
}

/// The thought belongs to the message, even if it is empty. The unknown item may belong to both.
#[test]
fn an_empty_reply_between_a_thought_and_an_unknown_item_stays() {
    let body = r#"{"input":[
{"role":"user","content":"look"},
{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gA"},
{"type":"message","id":"msg_1","role":"assistant","content":[],"status":"incomplete"},
{"type":"hologram","z":1.10},
{"role":"user","content":"go on"},
{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"gB"},
{"type":"message","id":"msg_2","role":"assistant","content":null,"x":1},
{"role":"user","content":"next"}]}"#;
    check_encode(
        body,
        vec![whole(0), whole(1), whole(2), whole(3), whole(4), note("more")],
        &expect![[r#"
            {"role":"user","content":"look"}
            {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gA"}
            {"type":"message","id":"msg_1","role":"assistant","content":[],"status":"incomplete"}
            {"type":"hologram","z":1.10}
            {"role":"user","content":"go on"}
            {"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"gB"}
            {"type":"message","id":"msg_2","role":"assistant","content":[],"x":1}
            {"role":"user","content":"next"}
            {"type":"message","role":"user","content":[{"type":"input_text","text":"more"}]}
        "#]],
    );
}

#[test]
fn hermes_is_decoded_and_its_count_updated() {
    let body = r#"{"session_id":"s","model":"h","platform":"cli","system_prompt":"be kind","message_count": 3,"messages": [
    {"role":"user","content":"hi"},
    {"role":"assistant","content":"","reasoning":"hm","reasoning_details":[{"type":"t","text":"hm"}],"finish_reason":"tool_calls","tool_calls":[{"id":"a","call_id":"a","type":"function","function":{"name":"ls","arguments":"{}"}}]},
    {"role":"tool","tool_name":"ls","tool_call_id":"a","content":"A"}
  ]}"#;
    check_decode(
        body,
        &expect![[r#"
        hermes
        0 system "be kind"
        1 user "hi"
        2 step ""
            thought "hm"
            call a ls {}
            result "A"
    "#]],
    );
    let (conversation, changes) = Conversation::decode(body, None).unwrap();
    let transcript = transcript_of(changes);
    let items = vec![whole(0), whole(1), edited(2, &[(Place::Reasoning(EntryId(2)), "")]), note("more")];
    expect![[r#"
        {"session_id":"s","model":"h","platform":"cli","system_prompt":"be kind","message_count": 4,"messages": [
            {"role":"user","content":"hi"},
            {"role":"assistant","content":"","finish_reason":"tool_calls","tool_calls":[{"id":"a","call_id":"a","type":"function","function":{"name":"ls","arguments":"{}"}}]},
            {"role":"tool","tool_name":"ls","tool_call_id":"a","content":"A"},
            {"role":"user","content":"more"}
          ]}"#]].assert_eq(&conversation.encode(&transcript, &View { items, ..View::default() }));
}

#[test]
fn message_lines_stay_lines() {
    let body = "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"assistant\",\"content\":\"b\"}\n";
    let (conversation, changes) = Conversation::decode(body, None).unwrap();
    assert_eq!(conversation.format(), Format::Chat);
    let transcript = transcript_of(changes);
    let view = View { items: vec![whole(0), note("n"), whole(1)], ..View::default() };
    expect![[r#"
        {"role":"user","content":"a"}
        {"role":"user","content":"n"}
        {"role":"assistant","content":"b"}
    "#]]
    .assert_eq(&conversation.encode(&transcript, &view));
}

/// Only calls before other entries are reported, because the newest may still run.
#[test]
fn unanswered_calls_are_reported() {
    let call = |id: &str| {
        format!(r#"{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#)
    };
    let step = |ids: &[&str]| {
        let calls: Vec<String> = ids.iter().map(|id| call(id)).collect();
        format!(r#"{{"role":"assistant","content":null,"tool_calls":[{}]}}"#, calls.join(","))
    };
    let result = |id: &str| format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"R"}}"#);
    let user = r#"{"role":"user","content":"hi"}"#.to_owned();
    let messages = [user.clone(), step(&["a", "b"]), result("b"), user, step(&["c"])];
    let repairs = |conversation: &Conversation| -> Vec<String> {
        conversation.repairs().iter().map(ToString::to_string).collect()
    };
    let never = "message 1: a call that was never answered (a); sent with a placeholder result";
    let (conversation, _) = Conversation::decode(format!("[{}]", messages.join(",")), None).unwrap();
    assert_eq!(repairs(&conversation), [never]);
    let unchanged = "message 1: a call that was never answered (a); left unchanged";
    assert_eq!(conversation.repairs()[0].describe_unchanged(), unchanged);
    // Appended messages report a call when another entry follows, and a late result by itself.
    let mut conversation = Conversation::empty(Format::Chat);
    let late = [result("a"), result("c")];
    for (i, message) in messages.iter().chain(&late).enumerate() {
        conversation.append(&[&RawValue::from_string(message.clone()).unwrap()]);
        assert_eq!(
            repairs(&conversation).len(),
            [0, 0, 0, 1, 1, 2, 2][i],
            "{i}: {:?}",
            repairs(&conversation)
        );
    }
    // A late result within one body answers its call.
    let body = format!("[{},{}]", messages.join(","), late.join(","));
    let (conversation, _) = Conversation::decode(&body, None).unwrap();
    let repairs = repairs(&conversation);
    assert!(
        repairs.len() == 1 && repairs[0].ends_with("does not follow its call; moved after it"),
        "{repairs:?}"
    );
}

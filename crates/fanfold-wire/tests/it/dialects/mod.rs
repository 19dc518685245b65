//! The contract of a dialect, checked for every entry of the registry.
//!
//! Each dialect has a folder here with the same conversation and the same reply in its format. A dialect without a
//! provider has no replies.

use std::fs;
use std::path::PathBuf;

use fanfold_core::{Edit, Entry, EntryId, Item, Place, Speaker, Transcript, View};
use fanfold_wire::reply::{
    ParsedReply, PromptFill, ReplyJoiner, ReplyReader, ReplyScrubber, RoundEffect, TextReader, Transport,
    add_recall_tool, recall_tool, refusal, remove_recall_tool,
};
use fanfold_wire::{
    Conversation, Format, append_memory_block, detect, fence, restore_style, strip_style, user_prompts,
};
use serde_json::Value;

use crate::contract::{continue_with, transcript_of, whole};

fn read(format: Format, file: &str) -> String {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/dialects").join(format.name()).join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn decode(format: Format, file: &str) -> (Conversation, Transcript) {
    let (conversation, changes) = Conversation::decode(read(format, file), Some(format)).unwrap();
    (conversation, transcript_of(changes))
}

/// The dialects of providers.
fn apis() -> impl Iterator<Item = Format> {
    Format::ALL.into_iter().filter(|format| format.provider().is_some())
}

/// The only call of the sample conversation.
fn the_call(transcript: &Transcript) -> (EntryId, &fanfold_core::Call) {
    let steps = transcript.entries().iter().enumerate().filter_map(|(i, entry)| Some((i, entry.step()?)));
    let calls: Vec<_> = steps.flat_map(|(i, step)| step.calls.iter().map(move |call| (i, call))).collect();
    let [(step, call)] = calls.as_slice() else { panic!("{} calls", calls.len()) };
    (EntryId::from(*step), call)
}

#[test]
fn formats_are_detected() {
    for format in Format::ALL {
        assert_eq!(detect(&read(format, "request.json")), Some(format));
    }
}

#[test]
fn bodies_round_trip() {
    for format in Format::ALL {
        let (conversation, transcript) = decode(format, "request.json");
        assert_eq!(
            conversation.encode(&transcript, &whole(&transcript)),
            read(format, "request.json"),
            "{format}"
        );
        assert!(conversation.repairs().is_empty(), "{format}: {:?}", conversation.repairs());
    }
}

#[test]
fn conversations_have_the_same_entries() {
    for format in Format::ALL {
        let (_, transcript) = decode(format, "request.json");
        let prompts: Vec<_> = transcript.entries().iter().filter_map(Entry::prompt).collect();
        let texts: Vec<_> = prompts.iter().map(|prompt| (prompt.speaker, prompt.body.as_str())).collect();
        let expected =
            [(Speaker::System, "Be brief."), (Speaker::User, "List the files."), (Speaker::User, "Thanks.")];
        assert_eq!(texts, expected, "{format}");
        let step = transcript.entries().iter().find_map(Entry::step).unwrap();
        assert_eq!(step.text.as_str().trim(), "Looking.", "{format}");
    }
}

#[test]
fn results_are_paired_with_their_calls() {
    for format in Format::ALL {
        let (_, transcript) = decode(format, "request.json");
        let (_, call) = the_call(&transcript);
        assert_eq!((&*call.tool, call.arguments.as_str()), ("read", r#"{"path": "a.txt"}"#), "{format}");
        let result = call.result.as_ref().expect("the call is finished");
        assert_eq!(result.body.as_str(), "alpha", "{format}");
    }
}

#[test]
fn unknown_fields_survive_folds() {
    for format in Format::ALL {
        let (conversation, transcript) = decode(format, "request.json");
        let (step, _) = the_call(&transcript);
        let place = Place::Result(fanfold_core::CallId { step, call: 0 });
        let mut view = whole(&transcript);
        view.items[step.index()] = Item::Edited(step, vec![Edit { place, stub: "[read, 2243bf1f]".into() }]);
        let body = conversation.encode(&transcript, &view);
        for kept in
            ["\"x_body\": {\"a\": 1}", "\"x_message\": [1.50]", "\"x_call\": true", "\"x_result\": null"]
        {
            assert!(body.contains(kept), "{format}: {kept} in {body}");
        }
        assert!(body.contains("[read, 2243bf1f]") && !body.contains("alpha"), "{format}: {body}");
        let (_, changes) = Conversation::decode(body, Some(format)).unwrap();
        let again = transcript_of(changes);
        assert_eq!(the_call(&again).1.result.as_ref().unwrap().body.as_str(), "[read, 2243bf1f]");
    }
}

#[test]
fn orphan_results_are_sent_as_text() {
    for format in apis() {
        let (conversation, transcript) = decode(format, "orphan.json");
        assert_eq!(conversation.repairs().len(), 1, "{format}");
        let mut view = whole(&transcript);
        let last = EntryId::from(transcript.len() - 1);
        view.items[last.index()] =
            Item::Edited(last, vec![Edit { place: Place::Text(last), stub: "Bye.".into() }]);
        let body = conversation.encode(&transcript, &view);
        let (again, changes) = Conversation::decode(body.clone(), Some(format)).unwrap();
        assert!(again.repairs().is_empty(), "{format}: {body}");
        let texts: Vec<_> = transcript_of(changes)
            .entries()
            .iter()
            .filter_map(|entry| Some(entry.prompt()?.body.as_str().to_owned()))
            .collect();
        assert!(texts.ends_with(&["alpha".to_owned(), "Bye.".to_owned()]), "{format}: {texts:?}");
    }
}

#[test]
fn a_longer_body_continues_the_conversation_whatever_its_cache_markers() {
    for format in Format::ALL {
        let (mut conversation, _) = decode(format, "request.json");
        let body = read(format, "request.json");
        for message in conversation.messages() {
            let (plain, style) = strip_style(format, message);
            assert_eq!(restore_style(&plain, &style), message, "{format}");
        }
        let moved = body.replace(r#", "cache_control": {"type": "ephemeral"}"#, "");
        let has_markers = conversation.styles().iter().any(|style| !style.markers.is_empty());
        assert_eq!(has_markers, body != moved, "{format}");
        let changes = continue_with(&mut conversation, &moved).expect("it is the same conversation");
        assert!(changes.is_empty(), "{format}");
        assert_eq!(conversation.body(), moved);
    }
}

fn view_without(transcript: &Transcript, left_out: EntryId) -> View {
    let mut view = whole(transcript);
    view.items.retain(|item| !matches!(item, Item::Whole(entry) if *entry == left_out));
    view
}

#[test]
fn a_step_is_left_out_with_its_results() {
    for format in Format::ALL {
        let (conversation, transcript) = decode(format, "request.json");
        let (step, _) = the_call(&transcript);
        let body = conversation.encode(&transcript, &view_without(&transcript, step));
        assert!(serde_json::from_str::<Value>(&body).is_ok(), "{format}: {body}");
        assert!(!body.contains("Looking.") && !body.contains("alpha"), "{format}: {body}");
        let (again, _) = Conversation::decode(body, Some(format)).unwrap();
        assert!(again.repairs().is_empty(), "{format}");
    }
}

#[test]
fn requests_get_a_memory_block_and_the_recall_tool() {
    for format in Format::ALL {
        let body = read(format, "request.json");
        let is_api = format.provider().is_some();
        let block = fence("the port is 8443");
        let with_memory = append_memory_block(&body, format, &block);
        assert_eq!((with_memory.is_some(), recall_tool(format).is_some()), (is_api, is_api), "{format}");
        let Some(with_memory) = with_memory else { continue };
        assert!(
            user_prompts(&with_memory, format).last().unwrap().ends_with(&block),
            "{format}: {with_memory}"
        );
        let with_tool = add_recall_tool(&body, format).expect("the request has tools");
        assert!(serde_json::from_str::<Value>(&with_tool).is_ok(), "{format}");
        assert_eq!(remove_recall_tool(&with_tool, format).as_deref(), Some(&*body), "{format}");
    }
}

fn parse(format: Format, transport: Transport, bytes: &[u8], size: usize) -> ParsedReply {
    let mut reader = ReplyReader::new(format, transport);
    bytes.chunks(size).for_each(|chunk| reader.feed(chunk));
    reader.end()
}

const REPLIES: [(Transport, &str); 2] = [(Transport::Whole, "reply.json"), (Transport::Stream, "reply.sse")];

#[test]
fn replies_are_read_in_chunks_of_any_size() {
    for format in apis() {
        for (transport, file) in REPLIES {
            let bytes = read(format, file).into_bytes();
            let reply = parse(format, transport, &bytes, bytes.len());
            assert!(reply.is_ended && reply.failure.is_none(), "{format}, {file}");
            assert_eq!((reply.id.as_deref(), reply.model.as_deref()), (Some("r1"), Some("m")), "{format}");
            let calls: Vec<_> =
                reply.calls.iter().map(|call| (&*call.id, &*call.name, &*call.arguments)).collect();
            assert_eq!(calls, [("call_2", "read", r#"{"path": "é"}"#)], "{format}, {file}");
            for size in 1..40 {
                assert_eq!(
                    parse(format, transport, &bytes, size),
                    reply,
                    "{format}, {file}, chunks of {size}"
                );
                let mut text = TextReader::new(format, transport);
                bytes.chunks(size).for_each(|chunk| text.feed(chunk));
                assert_eq!(text.end().text, "Hello.", "{format}, {file}, chunks of {size}");
            }
        }
    }
}

#[test]
fn usage_counts_cached_tokens_as_input() {
    for format in apis() {
        for (transport, file) in REPLIES {
            let bytes = read(format, file).into_bytes();
            let usage = parse(format, transport, &bytes, bytes.len()).usage.expect("the sample has a usage");
            assert_eq!((usage.input, usage.cache_read, usage.output), (100, 60, 7), "{format}, {file}");
        }
    }
}

#[test]
fn replies_without_recalls_and_memory_pass_byte_for_byte() {
    for format in apis() {
        let request = read(format, "request.json");
        for (transport, file) in REPLIES {
            let bytes = read(format, file).into_bytes();
            let mut joiner = ReplyJoiner::new(format, transport, &request).unwrap();
            let mut effects: Vec<_> = bytes.chunks(7).flat_map(|chunk| joiner.feed(chunk)).collect();
            effects.extend(joiner.end());
            let joined = effects.into_iter().flat_map(|effect| match effect {
                RoundEffect::ToClient(bytes) => bytes,
                other => panic!("{format}, {file}: {other:?}"),
            });
            assert_eq!(joined.collect::<Vec<_>>(), bytes, "{format}, {file}");
            let mut scrubber = ReplyScrubber::new(format, transport);
            let mut scrubbed: Vec<u8> = bytes.chunks(7).flat_map(|chunk| scrubber.feed(chunk)).collect();
            scrubbed.extend(scrubber.end());
            assert_eq!(scrubbed, bytes, "{format}, {file}");
            assert_eq!(scrubber.shown_text().trim_end(), "Hello.", "{format}, {file}");
        }
    }
}

#[test]
fn refusals_for_length_are_recognised() {
    for format in apis() {
        let error = read(format, "refusal.json");
        let found = refusal(400, error.as_bytes(), PromptFill::UNKNOWN).expect("it is a refusal for length");
        assert!(found.limit.is_some() && found.size > found.limit, "{format}: {found:?}");
        assert_eq!(parse(format, Transport::Whole, error.as_bytes(), 9).refusal(), Some(found), "{format}");
    }
}

#[test]
fn every_provider_serves_its_own_requests_only() {
    for format in apis() {
        let provider = format.provider().unwrap();
        assert!(provider.serves("GET", "/v1/models") && provider.serves("GET", "/"), "{format}");
        for foreign in
            ["/v1beta/models/gemini-pro:generateContent", "/api2/chat", "/v2/chat", "/model/x/converse"]
        {
            assert!(!provider.serves("POST", foreign), "{format}: {foreign}");
            assert_eq!(Format::from_path(foreign), None);
        }
    }
}

#[test]
fn an_unknown_item_of_the_user_is_user_text() {
    let unknown = r#"{"type":"x","role":"user","content":"keep this"}"#;
    let call = r#"{"type":"function_call","call_id":"c1","name":"read","arguments":"{}"}"#;
    let output = r#"{"type":"function_call_output","call_id":"c1","output":"long"}"#;
    for items in [[unknown, call, output], [call, unknown, output], [call, output, unknown]] {
        let body = format!(r#"{{"model":"m","input":[{}]}}"#, items.join(","));
        let (conversation, changes) = Conversation::decode(body.clone(), Some(Format::Responses)).unwrap();
        let transcript = transcript_of(changes);
        let prompts = transcript.entries().iter().filter_map(Entry::prompt);
        let texts: Vec<_> = prompts.map(|prompt| (prompt.speaker, prompt.body.as_str())).collect();
        assert_eq!(texts, [(Speaker::User, unknown)], "{body}");
        assert_eq!(conversation.encode(&transcript, &whole(&transcript)), body);
    }
}

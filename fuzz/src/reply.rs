//! Answers of providers: any bytes, split in any way, in one round or several.
//!
//! The first byte selects the format, streaming and the size of parts; a NUL separates the answers of rounds.

use fanfold_testkit::fakes::upstream::{ScriptedReply, render_reply};
use fanfold_testkit::generators::bodies::BodyFormat;
use fanfold_wire::Format;
use fanfold_wire::reply::sse::{Splitter, SseEvent};
use fanfold_wire::reply::{RECALL_TOOL, ReplyJoiner, ReplyReader, RoundEffect, Transport, add_recall_tool};
use serde_json::{Value, json};

const FORMATS: [Format; 3] = [Format::Anthropic, Format::Chat, Format::Responses];

/// Answers of each provider with and without recalls, in one round and two.
pub fn seeds() -> Vec<Vec<u8>> {
    let call = |name: &str| (name.to_owned(), json!({ "handle": "123456", "path": "a\"b" }));
    let reply = |calls: &[&str]| {
        let calls = calls.iter().map(|name| call(name)).collect();
        ScriptedReply { text: "It is so.".to_owned(), calls, ..ScriptedReply::default() }
    };
    let (recall, read) = ("fanfold_recall", "read");
    let rounds: [&[&[&str]]; 5] =
        [&[&[]], &[&[read]], &[&[recall], &[]], &[&[recall, read]], &[&[recall], &[recall]]];
    let mut all = Vec::new();
    for (i, kind) in [BodyFormat::Anthropic, BodyFormat::Chat, BodyFormat::Responses].into_iter().enumerate()
    {
        for (n, rounds) in rounds.iter().enumerate() {
            let answers: Vec<_> = rounds.iter().map(|calls| render_reply(kind, &reply(calls))).collect();
            let streams: Vec<&str> = answers.iter().map(|(_, stream)| stream.as_str()).collect();
            let wholes: Vec<&str> = answers.iter().map(|(whole, _)| whole.as_str()).collect();
            for (transport, answers) in [streams, wholes].iter().enumerate() {
                let choice = (i + 3 * transport + 6 * (n + 1)) as u8;
                all.push([&[choice], answers.join("\0").as_bytes()].concat());
            }
        }
    }
    all
}

/// Reads an answer whole, in parts and byte by byte. Panics if the results differ or a byte is lost.
pub fn check(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else { return };
    let choice = usize::from(*choice);
    let format = FORMATS[choice % 3];
    let transport = if choice / 3 % 2 == 0 { Transport::Stream } else { Transport::Whole };
    let part = 1 + choice / 6;
    let rounds: Vec<&[u8]> = rest.split(|byte| *byte == 0).collect();
    for round in &rounds {
        check_events(round, part);
        check_reading(round, part, format, transport);
    }
    let whole = trace(&rounds, usize::MAX, format, transport);
    for size in [part, 1] {
        assert_eq!(trace(&rounds, size, format, transport), whole, "in parts of {size}");
    }
    let has_recall = rounds[0].windows(RECALL_TOOL.len()).any(|word| word == RECALL_TOOL.as_bytes());
    // The name may be written with escapes.
    let may_have_recall = has_recall || rounds[0].contains(&b'\\');
    if !may_have_recall {
        assert_eq!(whole.client, rounds[0], "an answer without a recall changed");
        assert!(whole.requests.is_empty() && whole.hidden.is_empty());
    }
}

fn split(bytes: &[u8], size: usize) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(size.min(bytes.len().max(1)))
}

/// Checks that the concatenated events are the stream.
fn check_events(bytes: &[u8], part: usize) {
    let events = |size: usize| -> Vec<SseEvent> {
        let mut splitter = Splitter::new(1 + part * 16);
        let mut events: Vec<SseEvent> = split(bytes, size).flat_map(|part| splitter.feed(part)).collect();
        events.extend(splitter.end());
        events
    };
    let whole = events(usize::MAX);
    let joined: Vec<u8> = whole.iter().flat_map(|event| event.raw().to_vec()).collect();
    assert_eq!(joined, bytes, "the events are not the stream");
    for size in [part, 1] {
        assert_eq!(events(size), whole, "in parts of {size}");
    }
    for event in whole {
        let _ = (event.name(), event.data());
    }
}

/// Checks that the parsed reply does not depend on the split.
fn check_reading(bytes: &[u8], part: usize, format: Format, transport: Transport) {
    let parsed = |size: usize| {
        let mut reply = ReplyReader::new(format, transport);
        split(bytes, size).for_each(|part| reply.feed(part));
        reply.end()
    };
    let whole = parsed(usize::MAX);
    let _ = whole.refusal();
    for size in [part, 1] {
        assert_eq!(parsed(size), whole, "in parts of {size}");
    }
}

/// The effects of the rounds of a reply.
#[derive(Debug, Default, PartialEq, Eq)]
struct RoundTrace {
    client: Vec<u8>,
    /// The arguments of hidden recalls, and the calls next to them.
    hidden: Vec<String>,
    requests: Vec<String>,
    n_recalls: usize,
}

fn trace(rounds: &[&[u8]], size: usize, format: Format, transport: Transport) -> RoundTrace {
    let request = request(format);
    let mut joiner = ReplyJoiner::new(format, transport, &request).expect("a provider's format");
    let mut trace = RoundTrace::default();
    let record = |effects: Vec<RoundEffect>, trace: &mut RoundTrace| {
        let mut recalls = None;
        for effect in effects {
            assert!(recalls.is_none(), "output after a recall");
            match effect {
                RoundEffect::ToClient(bytes) => trace.client.extend(bytes),
                RoundEffect::Recall(all) => recalls = Some(all),
                RoundEffect::Hidden { recalls, client_calls } => {
                    trace.hidden.extend(recalls.into_iter().map(|call| call.arguments));
                    trace.hidden.extend(client_calls);
                }
            }
        }
        recalls
    };
    for round in rounds {
        let mut effects: Vec<RoundEffect> = split(round, size).flat_map(|part| joiner.feed(part)).collect();
        effects.extend(joiner.end());
        let Some(recalls) = record(effects, &mut trace) else { return trace };
        let originals = vec!["the \"original\"\n".to_owned(); recalls.len()];
        let Some(request) = joiner.follow_up(&originals) else { break };
        let is_json = serde_json::from_str::<Value>(&request).is_ok();
        assert!(is_json, "the follow-up request is not JSON: {request}");
        trace.requests.push(request);
    }
    // Close the answer if the last round ended with a recall.
    let effects = joiner.close();
    assert!(record(effects, &mut trace).is_none());
    trace.n_recalls = joiner.n_recalls();
    trace
}

fn request(format: Format) -> String {
    let body = match format {
        Format::Anthropic => {
            r#"{"model":"m","max_tokens":9,"tools":[],"messages":[{"role":"user","content":"hi"}]}"#
        }
        Format::Responses => r#"{"model":"m","store":false,"input":"hi"}"#,
        _ => r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}"#,
    };
    add_recall_tool(body, format).expect("the request has no recall tool yet")
}

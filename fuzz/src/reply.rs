//! Answers of providers: any bytes, split in any way, in one round or several.
//!
//! The first byte selects the format, streaming and the size of parts; a NUL separates the answers of rounds.

use fanfold_testkit::bodies::Kind;
use fanfold_testkit::upstream::{Said, written};
use fanfold_wire::Format;
use fanfold_wire::reply::sse::{Event, Splitter};
use fanfold_wire::reply::{RECALL_TOOL, ReplyJoiner, ReplyReader, RoundEffect, Transport, add_recall_tool};
use serde_json::{Value, json};

const FORMATS: [Format; 3] = [Format::Anthropic, Format::Chat, Format::Responses];

/// Answers of each provider with and without recalls, in one round and two.
pub fn seeds() -> Vec<Vec<u8>> {
    let call = |name: &str| (name.to_owned(), json!({ "handle": "123456", "path": "a\"b" }));
    let said = |calls: &[&str]| {
        let calls = calls.iter().map(|name| call(name)).collect();
        Said { text: "It is so.".to_owned(), calls, ..Said::default() }
    };
    let (ours, theirs) = ("fanfold_recall", "read");
    let rounds: [&[&[&str]]; 5] =
        [&[&[]], &[&[theirs]], &[&[ours], &[]], &[&[ours, theirs]], &[&[ours], &[ours]]];
    let mut all = Vec::new();
    for (i, kind) in [Kind::Anthropic, Kind::Chat, Kind::Responses].into_iter().enumerate() {
        for (n, rounds) in rounds.iter().enumerate() {
            let answers: Vec<_> = rounds.iter().map(|calls| written(kind, &said(calls))).collect();
            let streams: Vec<&str> = answers.iter().map(|(_, stream)| stream.as_str()).collect();
            let wholes: Vec<&str> = answers.iter().map(|(whole, _)| whole.as_str()).collect();
            for (carried, answers) in [streams, wholes].iter().enumerate() {
                let choice = (i + 3 * carried + 6 * (n + 1)) as u8;
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
    let carried = if choice / 3 % 2 == 0 { Transport::Stream } else { Transport::Whole };
    let part = 1 + choice / 6;
    let rounds: Vec<&[u8]> = rest.split(|byte| *byte == 0).collect();
    for round in &rounds {
        check_events(round, part);
        check_reading(round, part, format, carried);
    }
    let whole = course(&rounds, usize::MAX, format, carried);
    for size in [part, 1] {
        assert_eq!(course(&rounds, size, format, carried), whole, "in parts of {size}");
    }
    let has_recall = rounds[0].windows(RECALL_TOOL.len()).any(|word| word == RECALL_TOOL.as_bytes());
    // The name may be written with escapes.
    let may_have_recall = has_recall || rounds[0].contains(&b'\\');
    if !may_have_recall {
        assert_eq!(whole.client, rounds[0], "an answer without a recall changed");
        assert!(whole.requests.is_empty() && whole.beside.is_empty());
    }
}

fn split(bytes: &[u8], size: usize) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(size.min(bytes.len().max(1)))
}

/// Checks that the concatenated events are the stream.
fn check_events(bytes: &[u8], part: usize) {
    let events = |size: usize| -> Vec<Event> {
        let mut splitter = Splitter::new(1 + part * 16);
        let mut events: Vec<Event> = split(bytes, size).flat_map(|part| splitter.feed(part)).collect();
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
fn check_reading(bytes: &[u8], part: usize, format: Format, carried: Transport) {
    let parsed = |size: usize| {
        let mut reply = ReplyReader::new(format, carried);
        split(bytes, size).for_each(|part| reply.feed(part));
        reply.end()
    };
    let whole = parsed(usize::MAX);
    let _ = whole.refusal();
    for size in [part, 1] {
        assert_eq!(parsed(size), whole, "in parts of {size}");
    }
}

/// The results of passing an answer through.
#[derive(Debug, Default, PartialEq, Eq)]
struct Course {
    client: Vec<u8>,
    beside: Vec<String>,
    requests: Vec<String>,
    n_recalls: usize,
}

fn course(rounds: &[&[u8]], size: usize, format: Format, carried: Transport) -> Course {
    let request = request(format);
    let mut held = ReplyJoiner::new(format, carried, &request).expect("a provider's format");
    let mut course = Course::default();
    let show = |outs: Vec<RoundEffect>, course: &mut Course| {
        let mut wanted = None;
        for out in outs {
            assert!(wanted.is_none(), "output after a recall");
            match out {
                RoundEffect::ToClient(bytes) => course.client.extend(bytes),
                RoundEffect::Recall(all) => wanted = Some(all),
                RoundEffect::Hidden { recalls: ours, client_calls: theirs } => {
                    course.beside.extend(ours.into_iter().map(|call| call.arguments));
                    course.beside.extend(theirs);
                }
            }
        }
        wanted
    };
    for round in rounds {
        let mut outs: Vec<RoundEffect> = split(round, size).flat_map(|part| held.feed(part)).collect();
        outs.extend(held.end());
        let Some(wanted) = show(outs, &mut course) else { return course };
        let originals = vec!["the \"original\"\n".to_owned(); wanted.len()];
        let Some(request) = held.follow_up(&originals) else { break };
        let is_json = serde_json::from_str::<Value>(&request).is_ok();
        assert!(is_json, "the follow-up request is not JSON: {request}");
        course.requests.push(request);
    }
    // Close the answer if the last round ended with a recall.
    let closed = held.close();
    assert!(show(closed, &mut course).is_none());
    course.n_recalls = held.n_recalls();
    course
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

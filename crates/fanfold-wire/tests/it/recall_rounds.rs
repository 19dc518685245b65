//! Replies with recalls: in chunks of any size, the client sees one valid reply without them.

use fanfold_testkit::Rng;
use fanfold_wire::Format;
use fanfold_wire::reply::{
    RECALL_TOOL, RecallRequest, ReplyFailure, ReplyJoiner, RoundEffect, Transport, add_recall_tool,
};

use crate::client_view::{self, ClientView};
use crate::provider_rules;
use crate::streams::{Answer, Part};
use Part::{ClientCall, RecallCall, Text, Thinking};

const FORMATS: [Format; 3] = [Format::Anthropic, Format::Chat, Format::Responses];

fn request(format: Format) -> String {
    let body = match format {
        Format::Anthropic => {
            r#"{"model":"m","max_tokens":100,"tools":[{"name":"read","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"hi"}]}"#
        }
        Format::Chat => r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}"#,
        _ => r#"{"model":"m","input":"hi","store":false,"include":["reasoning.encrypted_content"]}"#,
    };
    add_recall_tool(body, format).unwrap()
}

/// The effects of a joined reply.
#[derive(Debug, Default, PartialEq, Eq)]
struct JoinedReply {
    client: Vec<u8>,
    recalled: Vec<String>,
    hidden: Vec<String>,
    requests: Vec<String>,
}

/// Joins replies in rounds, in the given chunks. Each original is `the original of` its handle.
fn run(
    format: Format,
    is_stream: bool,
    answers: &[Answer],
    split: &dyn Fn(&[u8]) -> Vec<Vec<u8>>,
) -> JoinedReply {
    let transport = if is_stream { Transport::Stream } else { Transport::Whole };
    let mut joiner = ReplyJoiner::new(format, transport, &request(format)).unwrap();
    let mut joined = JoinedReply::default();
    for answer in answers {
        let bytes = answer.write(format, is_stream).into_bytes();
        let mut outs: Vec<_> = split(&bytes).iter().flat_map(|part| joiner.feed(part)).collect();
        outs.extend(joiner.end());
        let mut originals = None;
        for out in outs {
            assert!(originals.is_none(), "a recall is the last effect");
            match out {
                RoundEffect::ToClient(bytes) => joined.client.extend(bytes),
                RoundEffect::Recall(wanted) => {
                    originals = Some(
                        wanted.iter().map(|w| format!("the original of {}", w.handle)).collect::<Vec<_>>(),
                    );
                    joined.recalled.extend(wanted.into_iter().map(|wanted| wanted.handle));
                }
                RoundEffect::Hidden { recalls: ours, client_calls: theirs } => {
                    assert!(!theirs.is_empty() && theirs.iter().all(|id| !id.is_empty()), "{theirs:?}");
                    joined.hidden.extend(ours.iter().map(|call| RecallRequest::read(call).handle));
                }
            }
        }
        let Some(originals) = originals else { break };
        joined.requests.push(joiner.follow_up(&originals).expect("the reply can be continued"));
    }
    joined
}

fn answers(rounds: &[&[Part]]) -> Vec<Answer> {
    rounds.iter().enumerate().map(|(n, parts)| Answer { n, parts: parts.to_vec(), is_cut: false }).collect()
}

fn whole(bytes: &[u8]) -> Vec<Vec<u8>> {
    vec![bytes.to_vec()]
}

fn check(format: Format, is_stream: bool, answers: &[Answer]) -> (JoinedReply, ClientView) {
    let joined = run(format, is_stream, answers, &whole);
    let shown = String::from_utf8_lossy(&joined.client).into_owned();
    let seen = client_view::read(format, &joined.client, is_stream)
        .unwrap_or_else(|error| panic!("{format}: {error}\n{answers:?}\n{shown}"));
    assert!(!shown.contains(RECALL_TOOL), "{format}: {shown}");
    for request in &joined.requests {
        provider_rules::check(format, request).unwrap_or_else(|error| panic!("{format}: {error}\n{request}"));
    }
    (joined, seen)
}

/// Splits at every `stride` bytes, in chunks of a random size, and byte by byte.
fn check_splits(format: Format, answers: &[Answer], stride: usize, rng: &mut Rng) {
    let expected = run(format, true, answers, &whole);
    let longest = answers.iter().map(|answer| answer.write(format, true).len()).max().unwrap_or(0);
    for at in (0..=longest).step_by(stride) {
        let joined = run(format, true, answers, &|bytes| {
            let (head, tail) = bytes.split_at(at.min(bytes.len()));
            vec![head.to_vec(), tail.to_vec()]
        });
        assert_eq!(joined, expected, "{format} split at {at}");
    }
    let size = 1 + rng.below(40);
    for size in [1, size] {
        let joined = run(format, true, answers, &|bytes| bytes.chunks(size).map(<[u8]>::to_vec).collect());
        assert_eq!(joined, expected, "{format} in parts of {size}");
    }
}

#[test]
fn replies_without_recalls_pass_byte_for_byte() {
    let rounds: &[&[Part]] =
        &[&[], &[Text("hello")], &[Thinking("hm"), Text("a"), ClientCall("x"), ClientCall("y")]];
    for format in FORMATS {
        for parts in rounds {
            let answers = answers(&[parts]);
            for is_stream in [true, false] {
                let joined = run(format, is_stream, &answers, &whole);
                assert_eq!(String::from_utf8_lossy(&joined.client), answers[0].write(format, is_stream));
                assert!(joined.recalled.is_empty() && joined.hidden.is_empty());
            }
            let crlf = answers[0].write(format, true).replace('\n', "\r\n");
            let mut joiner = ReplyJoiner::new(format, Transport::Stream, "{}").unwrap();
            let seen: Vec<u8> =
                joiner.feed(crlf.as_bytes()).into_iter().flat_map(|out| to_client(&out)).collect();
            assert_eq!(String::from_utf8_lossy(&seen), crlf);
        }
    }
}

#[test]
fn a_last_event_without_a_blank_line_passes() {
    for format in FORMATS {
        let stream = answers(&[&[Text("hello"), ClientCall("x")]])[0].write(format, true);
        for cut in [1, 2, 9] {
            let stream = &stream.as_bytes()[..stream.len() - cut];
            let mut joiner = ReplyJoiner::new(format, Transport::Stream, &request(format)).unwrap();
            let outs: Vec<_> = joiner.feed(stream).into_iter().chain(joiner.end()).collect();
            let seen: Vec<u8> = outs.iter().flat_map(to_client).collect();
            assert_eq!(String::from_utf8_lossy(&seen), String::from_utf8_lossy(stream), "{format}");
        }
    }
}

fn to_client(out: &RoundEffect) -> Vec<u8> {
    if let RoundEffect::ToClient(bytes) = out { bytes.clone() } else { Vec::new() }
}

#[test]
fn events_pass_as_soon_as_they_are_complete() {
    let answer = &answers(&[&[Thinking("hm"), Text("a"), RecallCall("111111"), ClientCall("x")]])[0];
    for format in FORMATS {
        let mut joiner = ReplyJoiner::new(format, Transport::Stream, &request(format)).unwrap();
        for event in answer.write(format, true).split_inclusive("\n\n") {
            let seen: Vec<u8> = joiner.feed(event.as_bytes()).iter().flat_map(to_client).collect();
            let is_recall = event.contains(RECALL_TOOL)
                || event.contains("call_0_2")
                || event.contains("fc_0_2")
                || event.contains("1-9")
                || event.contains("handle");
            let is_recall_stop = event.contains(r#""index":2"#) && event.contains("content_block_stop");
            let is_recall_part = event.contains(r#""tool_calls":[{"index":0,"function""#);
            if !is_recall && !is_recall_stop && !is_recall_part {
                assert!(!seen.is_empty(), "{format} delays {event}");
            }
        }
    }
}

#[test]
fn a_recall_is_hidden_from_the_client() {
    for format in FORMATS {
        for is_stream in [true, false] {
            let rounds = answers(&[
                &[Thinking("hm. "), Text("Let me look."), RecallCall("111111"), RecallCall("222222")],
                &[Thinking("ah."), Text("It is é.")],
            ]);
            let (joined, seen) = check(format, is_stream, &rounds);
            assert_eq!(joined.recalled, ["111111", "222222"]);
            assert!(joined.hidden.is_empty());
            let gap = if format == Format::Chat { "\n\n" } else { "" };
            assert_eq!(seen.text, format!("Let me look.{gap}It is é."));
            let has_thoughts = is_stream || format != Format::Chat;
            assert_eq!(seen.thoughts, if has_thoughts { "hm. ah." } else { "" });
            assert!(seen.calls.is_empty());
            assert!(matches!(&*seen.stop, "end_turn" | "stop" | "completed"), "{}", seen.stop);
            // 20 of the first round, 21 of the second.
            assert_eq!(seen.output, 41);
            let follow_up = &joined.requests[0];
            for needed in
                ["the original of 111111", "the original of 222222", "call_0_2", "call_0_3", "Let me look."]
            {
                assert!(follow_up.contains(needed), "{needed} in {follow_up}");
            }
            let thought = match format {
                Format::Anthropic => r#""signature":"sig_0_0""#,
                Format::Responses => r#""encrypted_content":"gAAA""#,
                _ if is_stream => r#""reasoning_content":"hm. ""#,
                _ => "",
            };
            assert!(follow_up.contains(thought), "{thought} in {follow_up}");
        }
    }
}

#[test]
fn mixed_calls_end_the_reply() {
    for format in FORMATS {
        for is_stream in [true, false] {
            let rounds =
                answers(&[&[RecallCall("111111"), ClientCall("x"), RecallCall("222222"), ClientCall("y")]]);
            let (joined, seen) = check(format, is_stream, &rounds);
            assert_eq!(joined.hidden, ["111111", "222222"]);
            assert!(joined.recalled.is_empty());
            assert_eq!(seen.calls.len(), 2);
            assert!(seen.calls[0].contains("\"x\"") && seen.calls[1].contains("\"y\""));
        }
    }
}

#[test]
fn several_rounds_make_one_reply() {
    for format in FORMATS {
        for is_stream in [true, false] {
            let rounds = answers(&[
                &[RecallCall("111111")],
                &[Text("so"), RecallCall("222222")],
                &[RecallCall("333333"), Text("then"), ClientCall("x")],
            ]);
            let (joined, seen) = check(format, is_stream, &rounds);
            assert_eq!(joined.recalled, ["111111", "222222"]);
            assert_eq!(joined.hidden, ["333333"]);
            assert_eq!(seen.calls.len(), 1);
            assert_eq!(seen.output, 20 + 21 + 22);
            assert!(matches!(&*seen.stop, "tool_use" | "tool_calls" | "completed"));
            assert!(
                joined.requests[1].contains("the original of 111111"),
                "earlier originals stay in the request"
            );
        }
    }
}

#[test]
fn truncated_calls_are_not_answered() {
    for format in FORMATS {
        for is_stream in [true, false] {
            let mut rounds = answers(&[&[Text("a"), RecallCall("111111")]]);
            rounds[0].is_cut = true;
            let (joined, seen) = check(format, is_stream, &rounds);
            assert!(joined.recalled.is_empty());
            assert_eq!(seen.text, "a");
            assert!(matches!(&*seen.stop, "max_tokens" | "length" | "incomplete"), "{}", seen.stop);
        }
    }
}

#[test]
fn every_split_gives_the_same_reply() {
    let mut rng = Rng::new(7);
    let rounds: &[&[&[Part]]] = &[
        &[&[Text("a")]],
        &[&[Thinking("hm"), Text("Let me look."), RecallCall("111111")], &[Text("é")]],
        &[&[RecallCall("111111"), ClientCall("x")]],
    ];
    for format in FORMATS {
        for rounds in rounds {
            check_splits(format, &answers(rounds), 1, &mut rng);
        }
    }
}

#[test]
fn random_replies_are_valid() {
    let n_seeds = if std::env::var_os("FANFOLD_MANY").is_some() { 20_000 } else { 150 };
    for seed in 0..n_seeds {
        let mut rng = Rng::new(seed);
        let mut rounds = Vec::new();
        for n in 0..1 + rng.below(3) {
            let n_parts = rng.below(6);
            let parts = (0..n_parts).map(|_| match rng.below(5) {
                0 => Thinking("hm"),
                1 => Text("some words"),
                2 => ClientCall("x"),
                _ => RecallCall("111111"),
            });
            rounds.push(Answer { n, parts: parts.collect(), is_cut: rng.percent(5) });
        }
        rounds.push(Answer { n: 9, parts: vec![Text("the end")], is_cut: false });
        for format in FORMATS {
            for is_stream in [true, false] {
                let (joined, seen) = check(format, is_stream, &rounds);
                let n_rounds = joined.requests.len() + 1;
                let theirs = rounds[..n_rounds].iter().flat_map(|answer| &answer.parts);
                let theirs = theirs.filter(|part| matches!(part, ClientCall(_))).count();
                assert_eq!(seen.calls.len(), theirs, "seed {seed}, {format}");
            }
            if seed % 150 == 0 {
                check_splits(format, &rounds, 61, &mut rng);
            }
        }
    }
}

#[test]
fn a_reply_can_be_closed_without_originals() {
    for format in FORMATS {
        for is_stream in [true, false] {
            let transport = if is_stream { Transport::Stream } else { Transport::Whole };
            let mut joiner = ReplyJoiner::new(format, transport, &request(format)).unwrap();
            let answer = &answers(&[&[Text("a"), RecallCall("111111")]])[0];
            let mut outs = joiner.feed(answer.write(format, is_stream).as_bytes());
            outs.extend(joiner.end());
            assert!(matches!(outs.pop(), Some(RoundEffect::Recall(_))));
            outs.extend(joiner.close());
            let bytes: Vec<u8> = outs.iter().flat_map(to_client).collect();
            let seen = client_view::read(format, &bytes, is_stream).unwrap();
            assert_eq!(seen.text, "a");
            assert!(matches!(&*seen.stop, "end_turn" | "stop" | "completed"), "{}", seen.stop);
        }
    }
}

#[test]
fn failed_streams_end_with_an_error_event() {
    use fanfold_wire::reply::ReplyReader;
    for format in FORMATS {
        let mut joiner = ReplyJoiner::new(format, Transport::Stream, &request(format)).unwrap();
        let answer = &answers(&[&[Text("a"), RecallCall("111111")]])[0];
        let mut outs = joiner.feed(answer.write(format, true).as_bytes());
        joiner.follow_up(&["x".to_owned()]).unwrap();
        let message = "the provider did not answer".to_owned();
        outs.extend(joiner.fail(&ReplyFailure {
            kind: "overloaded_error".to_owned(),
            message,
            raw: String::new(),
        }));
        let mut reply = ReplyReader::new(format, Transport::Stream);
        outs.iter().for_each(|out| reply.feed(&to_client(out)));
        let reply = reply.end();
        let failure = reply.failure.unwrap();
        assert_eq!((&*failure.kind, &*failure.message), ("overloaded_error", "the provider did not answer"));
    }
}

#[test]
fn garbage_passes_without_panics() {
    let rounds = answers(&[&[Text("a"), RecallCall("111111")], &[Text("b")]]);
    for format in FORMATS {
        let mut bytes = rounds[0].write(format, true).into_bytes();
        for i in 0..bytes.len() {
            let kept = std::mem::replace(&mut bytes[i], if i % 2 == 0 { b'"' } else { 0xff });
            let mut joiner = ReplyJoiner::new(format, Transport::Stream, &request(format)).unwrap();
            let outs: Vec<_> = joiner.feed(&bytes).into_iter().chain(joiner.end()).collect();
            if outs.iter().any(|out| matches!(out, RoundEffect::Recall(_))) {
                let _ = joiner.follow_up(&["x".to_owned()]);
            }
            let _ = joiner.close();
            bytes[i] = kept;
        }
        for body in ["", "{", "[]", "null", "{\"content\":7}", "\u{feff}{}"] {
            let mut joiner = ReplyJoiner::new(format, Transport::Whole, &request(format)).unwrap();
            let outs: Vec<_> = joiner.feed(body.as_bytes()).into_iter().chain(joiner.end()).collect();
            let seen: Vec<u8> = outs.iter().flat_map(to_client).collect();
            assert_eq!(seen, body.as_bytes());
        }
    }
}

#[test]
fn blank_texts_are_not_sent_back() {
    for is_stream in [true, false] {
        let rounds = answers(&[&[Text(""), RecallCall("111111")], &[Text("b")]]);
        let (joined, _) = check(Format::Anthropic, is_stream, &rounds);
        assert!(!joined.requests[0].contains(r#""text":"""#), "{}", joined.requests[0]);
    }
}

#[test]
fn unstored_thoughts_and_later_ids_are_not_sent_back() {
    let answer = answers(&[&[Thinking("hm"), RecallCall("111111")]])[0].write(Format::Responses, true);
    let without = answer.replace(r#""encrypted_content":"gAAA""#, r#""encrypted_content":null"#);
    assert_ne!(without, answer);
    let stored = request(Format::Responses).replace(r#""store":false"#, r#""store":true"#);
    for (request, answer, is_kept) in [
        (&request(Format::Responses), &without, false),
        (&request(Format::Responses), &answer, true),
        (&stored, &without, true),
    ] {
        let mut joiner = ReplyJoiner::new(Format::Responses, Transport::Stream, request).unwrap();
        joiner.feed(answer.as_bytes());
        let follow_up = joiner.follow_up(&["x".to_owned()]).unwrap();
        assert_eq!(follow_up.contains(r#""type":"reasoning""#), is_kept, "{follow_up}");
        assert_eq!(follow_up.contains("fc_0_1"), is_kept, "{follow_up}");
        assert!(follow_up.contains("call_0_1"));
        provider_rules::check(Format::Responses, &follow_up).unwrap();
    }
}

#[test]
fn the_reply_has_the_id_to_continue_from() {
    let rounds = answers(&[&[RecallCall("111111")], &[Text("b")]]);
    for (store, expected) in [("true", "resp_1"), ("false", "resp_0")] {
        let request = request(Format::Responses).replace(r#""store":false"#, &format!(r#""store":{store}"#));
        let mut joiner = ReplyJoiner::new(Format::Responses, Transport::Whole, &request).unwrap();
        joiner.feed(rounds[0].write(Format::Responses, false).as_bytes());
        assert!(matches!(joiner.end()[..], [RoundEffect::Recall(_)]));
        joiner.follow_up(&["x".to_owned()]).unwrap();
        joiner.feed(rounds[1].write(Format::Responses, false).as_bytes());
        let body: Vec<u8> = joiner.end().iter().flat_map(to_client).collect();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["id"], expected);
    }
}

#[test]
fn an_error_in_the_second_round_passes_unchanged() {
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    for format in FORMATS {
        let mut joiner = ReplyJoiner::new(format, Transport::Whole, &request(format)).unwrap();
        joiner.feed(answers(&[&[Text("a"), RecallCall("111111")]])[0].write(format, false).as_bytes());
        assert!(matches!(joiner.end()[..], [RoundEffect::Recall(_)]));
        joiner.follow_up(&["x".to_owned()]).unwrap();
        joiner.feed(error.as_bytes());
        assert_eq!(joiner.end(), [RoundEffect::ToClient(error.as_bytes().to_vec())], "{format}");
        assert_eq!((joiner.n_recalls(), joiner.rounds().len()), (1, 2));
    }
}

/// Streams of Chat Completions with the index 0 for every call, and with a new id for every part.
#[test]
fn calls_with_unusual_indexes_are_distinguished() {
    let rounds = answers(&[&[ClientCall("x"), RecallCall("111111"), ClientCall("y")]]);
    let usual = rounds[0].write(Format::Chat, true);
    let alike =
        usual.replace(r#"[{"index":1,"#, r#"[{"index":0,"#).replace(r#"[{"index":2,"#, r#"[{"index":0,"#);
    let renamed: String = (0..)
        .zip(usual.split(r#","function":{"arguments""#))
        .map(|(n, part)| {
            let id =
                if n == 0 { String::new() } else { format!(r#","id":"new_{n}","function":{{"arguments""#) };
            id + part
        })
        .collect();
    for stream in [&usual, &alike, &renamed] {
        let mut joiner = ReplyJoiner::new(Format::Chat, Transport::Stream, &request(Format::Chat)).unwrap();
        let outs: Vec<_> = joiner.feed(stream.as_bytes()).into_iter().chain(joiner.end()).collect();
        let bytes: Vec<u8> = outs.iter().flat_map(to_client).collect();
        let seen = client_view::read(Format::Chat, &bytes, true).unwrap();
        assert_eq!(seen.calls.len(), 2, "{stream}");
        assert!(seen.calls[0].contains("\"x\"") && seen.calls[1].contains("\"y\""), "{:?}", seen.calls);
        let position = outs.iter().position(
            |out| matches!(out, RoundEffect::Hidden { recalls: ours, client_calls: theirs } if ours.len() == 1 && theirs.len() == 2),
        );
        assert!(
            position.is_some_and(|position| position + 1 < outs.len()),
            "the recalls are reported before the end: {outs:?}"
        );
    }
    // Without hidden items nothing is renumbered.
    let theirs = answers(&[&[ClientCall("x"), ClientCall("y")]])[0]
        .write(Format::Chat, true)
        .replace(r#"[{"index":1,"#, r#"[{"index":0,"#);
    let mut joiner = ReplyJoiner::new(Format::Chat, Transport::Stream, &request(Format::Chat)).unwrap();
    let bytes: Vec<u8> = joiner.feed(theirs.as_bytes()).iter().flat_map(to_client).collect();
    assert_eq!(String::from_utf8_lossy(&bytes), theirs);
}

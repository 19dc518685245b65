//! Replies that repeat memory: the memory is removed, and every other byte is unchanged.

use fanfold_wire::reply::{ReplyScrubber, Transport, scrub};
use fanfold_wire::{Format, fence};
use serde_json::{Value, json};

const FORMATS: [Format; 3] = [Format::Chat, Format::Anthropic, Format::Responses];

/// A stream with a text in these chunks.
fn stream(format: Format, pieces: &[&str]) -> String {
    let mut out = String::new();
    let mut event = |name: &str, data: &Value| {
        if format != Format::Chat {
            out.push_str(&format!("event: {name}\n"));
        }
        out.push_str(&format!("data: {data}\n\n"));
    };
    let text = pieces.concat();
    match format {
        Format::Chat => {
            event(
                "",
                &json!({ "id": "c", "choices": [{ "index": 0, "delta": { "role": "assistant", "content": "" }, "finish_reason": null }] }),
            );
            for piece in pieces {
                event(
                    "",
                    &json!({ "id": "c", "choices": [{ "index": 0, "delta": { "content": piece }, "finish_reason": null }] }),
                );
            }
            event(
                "",
                &json!({ "id": "c", "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }),
            );
            out.push_str("data: [DONE]\n\n");
        }
        Format::Anthropic => {
            event(
                "message_start",
                &json!({ "type": "message_start", "message": { "id": "m", "content": [] } }),
            );
            event(
                "content_block_start",
                &json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
            );
            for piece in pieces {
                event(
                    "content_block_delta",
                    &json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": piece } }),
                );
            }
            event("ping", &json!({ "type": "ping" }));
            event("content_block_stop", &json!({ "type": "content_block_stop", "index": 0 }));
            event(
                "message_delta",
                &json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }),
            );
            event("message_stop", &json!({ "type": "message_stop" }));
        }
        _ => {
            let part = json!({ "type": "output_text", "text": text, "annotations": [] });
            let item = json!({ "type": "message", "role": "assistant", "content": [part] });
            event("response.created", &json!({ "type": "response.created", "response": { "id": "r" } }));
            for (i, piece) in pieces.iter().enumerate() {
                event(
                    "response.output_text.delta",
                    &json!({ "type": "response.output_text.delta", "output_index": 0, "content_index": 0, "sequence_number": i, "delta": piece }),
                );
            }
            event(
                "response.output_text.done",
                &json!({ "type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": text }),
            );
            event(
                "response.content_part.done",
                &json!({ "type": "response.content_part.done", "output_index": 0, "content_index": 0, "part": part }),
            );
            event("response.output_item.done", &json!({ "type": "response.output_item.done", "item": item }));
            event(
                "response.completed",
                &json!({ "type": "response.completed", "response": { "id": "r", "output": [item] } }),
            );
        }
    }
    out
}

fn whole(format: Format, text: &str) -> String {
    let body = match format {
        Format::Chat => {
            json!({ "choices": [{ "message": { "role": "assistant", "content": text }, "finish_reason": "stop" }] })
        }
        Format::Anthropic => {
            json!({ "content": [{ "type": "thinking", "thinking": text }, { "type": "text", "text": text }] })
        }
        _ => {
            json!({ "output": [{ "type": "message", "content": [{ "type": "output_text", "text": text }] }] })
        }
    };
    body.to_string()
}

/// The scrubbed bytes, the same for chunks of any size, and the shown text.
fn scrub_reply(format: Format, transport: Transport, chunks: &[&[u8]]) -> (String, String) {
    let mut scrubbed = ReplyScrubber::new(format, transport);
    let mut out: Vec<u8> = chunks.iter().flat_map(|chunk| scrubbed.feed(chunk)).collect();
    out.extend(scrubbed.end());
    (String::from_utf8(out).unwrap(), scrubbed.shown_text().trim_end().to_owned())
}

/// The texts of a stream: concatenated from deltas, and repeated as a whole.
fn texts(format: Format, stream: &str) -> Vec<String> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let events: Vec<Value> = data.filter_map(|data| serde_json::from_str(data).ok()).collect();
    let pieces: String = events
        .iter()
        .filter_map(|event| match format {
            Format::Chat => event["choices"][0]["delta"]["content"].as_str(),
            Format::Anthropic => event["delta"]["text"].as_str(),
            _ => event["delta"].as_str(),
        })
        .collect();
    let all = events.iter().flat_map(|event| {
        [
            &event["text"],
            &event["part"]["text"],
            &event["item"]["content"][0]["text"],
            &event["response"]["output"][0]["content"][0]["text"],
        ]
        .map(|text| text.as_str().map(str::to_owned))
    });
    std::iter::once(pieces).chain(all.flatten()).collect()
}

fn vectors() -> Vec<String> {
    let block = fence("port 8443");
    vec![
        format!("Sure.\n{block}\nIt is \"8443\"."),
        format!("{block}ä"),
        "a\n<fan\n<fanfold-me".to_owned(),
        format!("x\n{}", &block[..40]),
        "<fanfold-memory> in a sentence\n<".to_owned(),
        format!("Sure.\n{block}\n<b>8443</b>"),
    ]
}

#[test]
fn every_split_of_every_text_is_scrubbed() {
    for format in FORMATS {
        for text in vectors() {
            let scrubbed_text = scrub(&text);
            let places: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
            for at in &places {
                let (a, b) = text.split_at(*at);
                let original = stream(format, &[a, b]);
                let (out, shown) = scrub_reply(format, Transport::Stream, &[original.as_bytes()]);
                for shown_text in texts(format, &out) {
                    assert_eq!(shown_text, scrubbed_text, "{format} {text:?} at {at}");
                }
                assert_eq!(shown, scrubbed_text.trim_end(), "{format} {text:?} at {at}");
                if scrubbed_text == text {
                    assert_eq!(out, original, "{format}: without memory every byte is unchanged");
                }
            }
            let letters: Vec<String> = text.chars().map(String::from).collect();
            let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
            let original = stream(format, &letters);
            let (out, _) = scrub_reply(format, Transport::Stream, &[original.as_bytes()]);
            assert!(
                texts(format, &out).iter().all(|shown_text| *shown_text == scrubbed_text),
                "{format} {text:?} letter by letter"
            );
            assert!(!out.contains("8443\\n</") && !out.contains("Recalled from memory"), "{out}");
            assert!(scrubbed_text != text || out == original, "{format}: unchanged");
            let events = |stream: &str| stream.matches("\n\n").count();
            assert_eq!(events(&out), events(&original), "no event is lost or added");
        }
    }
}

#[test]
fn every_split_of_the_bytes_is_scrubbed() {
    for format in FORMATS {
        let original =
            stream(format, &["Sure.\n<fanfold-", "memory>\nport\n</fanfold", "-memory>\nIt is é."]);
        let expected = scrub_reply(format, Transport::Stream, &[original.as_bytes()]);
        for at in 0..original.len() {
            let (a, b) = original.as_bytes().split_at(at);
            assert_eq!(scrub_reply(format, Transport::Stream, &[a, b]), expected, "{format} at {at}");
        }
    }
}

#[test]
fn whole_replies_are_scrubbed() {
    for format in FORMATS {
        for text in vectors() {
            let original = whole(format, &text);
            let (out, shown) = scrub_reply(format, Transport::Whole, &[original.as_bytes()]);
            assert_eq!(shown, scrub(&text).trim_end());
            match scrub(&text) == text {
                true => assert_eq!(out, original),
                // Thoughts are signed and not shown.
                false => {
                    let quoted = |text: &str| serde_json::to_string(text).unwrap();
                    let expected = original.rfind(&quoted(&text)).map(|at| {
                        format!(
                            "{}{}{}",
                            &original[..at],
                            quoted(&scrub(&text)),
                            &original[at + quoted(&text).len()..]
                        )
                    });
                    assert_eq!(Some(out), expected);
                }
            }
        }
        for odd in ["", "{", "no JSON", "{\"error\":{}}", "\u{feff}"] {
            assert_eq!(scrub_reply(format, Transport::Whole, &[odd.as_bytes()]).0, odd);
            assert_eq!(scrub_reply(format, Transport::Stream, &[odd.as_bytes()]).0, odd);
        }
    }
}

#[test]
fn possible_tags_delay_events_briefly() {
    let original = stream(Format::Chat, &["a\n<fan", "cy that"]);
    let at = original.find("cy that").unwrap();
    let at = original[..at].rfind("data:").unwrap();
    let mut scrubbed = ReplyScrubber::new(Format::Chat, Transport::Stream);
    let first = scrubbed.feed(&original.as_bytes()[..at]);
    assert!(!String::from_utf8_lossy(&first).contains("fan"), "a possible tag is held back");
    let next = scrubbed.feed(&original.as_bytes()[at..]);
    assert_eq!([first, next].concat(), original.as_bytes(), "the text is unchanged");
}

#[test]
fn scrubbed_text_stays_scrubbed_when_its_undecided_end_is_text() {
    let pieces = [&format!("Sure.\n{}\n<", fence("port 8443")), "b>"];
    let mut scrubbed = ReplyScrubber::new(Format::Chat, Transport::Stream);
    let mut out = scrubbed.feed(stream(Format::Chat, &pieces).as_bytes());
    out.extend(scrubbed.end());
    assert_eq!(String::from_utf8(out).unwrap(), stream(Format::Chat, &["Sure.\n\n<", "b>"]));
    assert_eq!((scrubbed.n_scrubbed(), scrubbed.shown_text().trim_end()), (1, "Sure.\n\n<b>"));
}

//! Parsed replies, whole and streamed, in chunks of any size.

use fanfold_wire::Format;
use fanfold_wire::reply::{ParsedReply, ReplyReader, Transport};

const ANTHROPIC: &str = "event: message_start
data: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":4,\"cache_creation_input_tokens\":10,\"cache_read_input_tokens\":100,\"output_tokens\":1}}}

event: ping
data: {\"type\": \"ping\"}

event: content_block_start
data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}

event: content_block_delta
data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Look: \\\"usage\\\"\"}}

event: content_block_stop
data: {\"type\":\"content_block_stop\",\"index\":0}

event: content_block_start
data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"read\",\"input\":{}}}

event: content_block_delta
data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"path\\\": \"}}

event: content_block_delta
data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"\\\"é\\\"}\"}}

event: content_block_stop
data: {\"type\":\"content_block_stop\",\"index\":1}

event: message_delta
data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":57}}

event: message_stop
data: {\"type\":\"message_stop\"}

";

const CHAT: &str = r#"data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}

data: {"id":"c1","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}],"usage":null}

data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"read","arguments":""}}]},"finish_reason":null}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\": "}},{"index":1,"id":"t2","type":"function","function":{"name":"ls","arguments":"{}"}}]},"finish_reason":null}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"é\"}"}}]},"finish_reason":null}]}

data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"c1","choices":[],"usage":{"prompt_tokens":12,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":8}}}

data: [DONE]

"#;

const RESPONSES: &str = r#"event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"r1","model":"m","status":"in_progress","output":[],"usage":null,"error":null}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"fc","type":"function_call","call_id":"t1","name":"read","arguments":""}}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","sequence_number":2,"output_index":0,"item_id":"fc","delta":"{\"path\": \"é\"}"}

event: response.output_item.done
data: {"type":"response.output_item.done","sequence_number":3,"output_index":0,"item":{"id":"fc","type":"function_call","call_id":"t1","name":"read","arguments":"{\"path\": \"é\"}","status":"completed"}}

event: response.completed
data: {"type":"response.completed","sequence_number":4,"response":{"id":"r1","model":"m","status":"completed","output":[{"id":"fc","type":"function_call","call_id":"t1","name":"read","arguments":"{\"path\": \"é\"}","status":"completed"}],"usage":{"input_tokens":12,"input_tokens_details":{"cached_tokens":8},"output_tokens":5},"error":null}}

"#;

fn parse(format: Format, transport: Transport, parts: &[&[u8]]) -> ParsedReply {
    let mut reply = ReplyReader::new(format, transport);
    for part in parts {
        reply.feed(part);
    }
    reply.end()
}

fn shown(parse: &ParsedReply) -> String {
    let calls: Vec<_> = parse.calls.iter().map(|c| format!("{} {}({})", c.id, c.name, c.arguments)).collect();
    let usage = parse.usage.map(|u| format!("{}/{}/{}/{}", u.input, u.cache_read, u.cache_written, u.output));
    format!(
        "{} {} | {} | {} | {} | {} | {}",
        parse.id.as_deref().unwrap_or("-"),
        parse.model.as_deref().unwrap_or("-"),
        usage.as_deref().unwrap_or("-"),
        parse.stop.as_deref().unwrap_or("-"),
        calls.join(", "),
        parse.failure.as_ref().map_or(String::new(), |f| format!("{}: {}", f.kind, f.message)),
        if parse.is_ended { "ended" } else { "cut" },
    )
}

fn check(format: Format, transport: Transport, answer: &str, expected: &str) {
    let bytes = answer.as_bytes();
    assert_eq!(shown(&parse(format, transport, &[bytes])), expected);
    for cut in 0..=bytes.len() {
        let (head, tail) = bytes.split_at(cut);
        assert_eq!(shown(&parse(format, transport, &[head, tail])), expected, "cut at {cut}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(shown(&parse(format, transport, &single)), expected, "byte by byte");
}

#[test]
fn streams_are_read_in_chunks_of_any_size() {
    check(
        Format::Anthropic,
        Transport::Stream,
        ANTHROPIC,
        "msg_1 m | 114/100/10/57 | tool_use | t1 read({\"path\": \"é\"}) |  | ended",
    );
    check(
        Format::Chat,
        Transport::Stream,
        CHAT,
        "c1 m | 12/8/0/5 | tool_calls | t1 read({\"path\": \"é\"}), t2 ls({}) |  | ended",
    );
    check(
        Format::Responses,
        Transport::Stream,
        RESPONSES,
        "r1 m | 12/8/0/5 | completed | t1 read({\"path\": \"é\"}) |  | ended",
    );
    // Line ends of any kind, and events without names.
    check(
        Format::Anthropic,
        Transport::Stream,
        &ANTHROPIC.replace('\n', "\r\n"),
        "msg_1 m | 114/100/10/57 | tool_use | t1 read({\"path\": \"é\"}) |  | ended",
    );
    let nameless: String =
        ANTHROPIC.lines().filter(|line| !line.starts_with("event")).flat_map(|line| [line, "\n"]).collect();
    check(
        Format::Anthropic,
        Transport::Stream,
        &nameless,
        "msg_1 m | 114/100/10/57 | tool_use | t1 read({\"path\": \"é\"}) |  | ended",
    );
}

#[test]
fn whole_replies_are_read() {
    check(
        Format::Anthropic,
        Transport::Whole,
        r#"{"id":"msg_1","model":"m","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t1","name":"read","input":{"path":"x"}}],"stop_reason":"tool_use","usage":{"input_tokens":4,"output_tokens":5}}"#,
        r#"msg_1 m | 4/0/0/5 | tool_use | t1 read({"path":"x"}) |  | ended"#,
    );
    check(
        Format::Chat,
        Transport::Whole,
        r#"{"id":"c1","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"read","arguments":"{\"path\":1}"}},{"id":"t2","function":{"name":"ls","arguments":{"a":1}}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":4,"completion_tokens":5}}"#,
        r#"c1 m | 4/0/0/5 | tool_calls | t1 read({"path":1}), t2 ls({"a":1}) |  | ended"#,
    );
    check(
        Format::Responses,
        Transport::Whole,
        r#"{"id":"r1","model":"m","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"reasoning","id":"rs"},{"type":"custom_tool_call","call_id":"t1","name":"patch","input":"*** Begin"}],"usage":{"input_tokens":4,"output_tokens":5}}"#,
        "r1 m | 4/0/0/5 | max_output_tokens | t1 patch(*** Begin) |  | ended",
    );
}

#[test]
fn errors_in_a_stream_are_read_and_refusals_for_length_recognised() {
    let cases = [
        (
            Format::Anthropic,
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
            "overloaded_error: Overloaded",
            None,
        ),
        (
            Format::Anthropic,
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 5001 tokens > 5000 maximum\"}}\n\n",
            "invalid_request_error: prompt is too long: 5001 tokens > 5000 maximum",
            Some(Some(5000)),
        ),
        (
            Format::Responses,
            "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"id\":\"r\",\"status\":\"failed\",\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"Your input exceeds the context window of this model. Please adjust your input and try again.\"}}}\n\n",
            "context_length_exceeded: Your input exceeds the context window of this model. Please adjust your input and try again.",
            Some(None),
        ),
        (
            Format::Responses,
            "event: error\ndata: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"Rate limit reached\",\"param\":null}\n\n",
            "rate_limit_exceeded: Rate limit reached",
            None,
        ),
        (
            Format::Chat,
            "data: {\"error\":{\"code\":400,\"message\":\"the request exceeds the available context size\",\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":9,\"n_ctx\":8}}\n\n",
            "exceed_context_size_error: the request exceeds the available context size",
            Some(Some(8)),
        ),
        (Format::Chat, "data: {\"error\":\"it broke\"}\n\n", ": it broke", None),
    ];
    for (format, stream, failure, limit) in cases {
        let parse = parse(format, Transport::Stream, &[stream.as_bytes()]);
        let found = parse.failure.as_ref().map(|f| format!("{}: {}", f.kind, f.message));
        assert_eq!(found.as_deref(), Some(failure));
        assert_eq!(parse.refusal().map(|refusal| refusal.limit), limit, "{failure}");
    }
}

#[test]
fn an_empty_reply_with_a_full_window_is_a_refusal() {
    let full = r#"{"id":"c1","choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"model_context_window_exceeded"}],"usage":{"prompt_tokens":4,"completion_tokens":0}}"#;
    assert!(parse(Format::Chat, Transport::Whole, &[full.as_bytes()]).refusal().is_some());
    let cut = full.replace("\"completion_tokens\":0", "\"completion_tokens\":900");
    assert!(parse(Format::Chat, Transport::Whole, &[cut.as_bytes()]).refusal().is_none());
}

#[test]
fn truncated_replies_are_not_complete() {
    for (format, stream) in
        [(Format::Anthropic, ANTHROPIC), (Format::Chat, CHAT), (Format::Responses, RESPONSES)]
    {
        for cut in 0..stream.len() - 120 {
            let Some(head) = stream.get(..cut) else { continue };
            let half = parse(format, Transport::Stream, &[head.as_bytes()]);
            assert!(!half.is_ended || half.stop.is_some());
        }
        // Every byte replaced once: nothing panics.
        let mut bytes = stream.as_bytes().to_vec();
        for i in 0..bytes.len() {
            for byte in [b'"', b'{', b'\\', 0xff, b'\n'] {
                let kept = std::mem::replace(&mut bytes[i], byte);
                let _ = parse(format, Transport::Stream, &[&bytes]);
                bytes[i] = kept;
            }
        }
    }
    let broken = parse(Format::Chat, Transport::Whole, &[b"{\"id\":\"c1\",\"choices\":["]);
    assert!(!broken.is_ended && broken.id.is_none());
}

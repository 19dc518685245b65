//! Broken answers of the provider, read directly and through the proxy.
//!
//! A client must get the same status and body, as far as they arrived, or a proper 502. An answer that breaks off
//! must not look complete, and a redirect must not be followed.

mod fault_list; // the answers of a broken provider

use std::io::Read as _;
use std::time::Duration;

use fanfold_testkit::generators::long_chat::long_chat;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use serde_json::{Value, json};

use crate::attack::Trial;
use crate::attack::http::{Answer, exchange, request};
use crate::attack::provider::Provider;
use crate::attack::sandbox::Sandbox;
use crate::attack::table::Row;
use fault_list::faults;

const PATH: &str = "/v1/chat/completions";
const LIMIT: Duration = Duration::from_secs(10);

pub(super) fn run(trial: &Trial) -> anyhow::Result<Vec<Row>> {
    let mut row =
        Row::new("faults of the provider, direct and through the proxy", "the same, or a proper 502");
    let sandbox = Sandbox::new(trial, "faults")?;
    let elsewhere = Provider::start(Vec::new())?;
    let provider = Provider::start(faults(&elsewhere.url()))?;
    let server = sandbox.serve(&provider.url(), "x.db", &["-w", "8k"])?;
    let mut n_faults = 0;
    for fault in faults(&elsewhere.url()) {
        n_faults += 1;
        for (n, (variant, body)) in bodies(fault.name).into_iter().enumerate() {
            // A short run takes the simplest and the hardest body.
            let is_left_out = trial.is_short && (n == 1 || n == 2);
            if is_left_out {
                continue;
            }
            let headers = [("x-fault", fault.name), ("authorization", "Bearer dummy")];
            let send = |port| exchange(port, &request("POST", PATH, port, &headers, body.as_bytes()), LIMIT);
            let (direct, through) = (send(provider.port()), send(server.port));
            let problem = compare(fault.name, &direct, &through);
            row.count(problem.is_none(), || {
                let (direct, through) = (direct.describe(), through.describe());
                format!(
                    "{}, {variant}: {}: {through}; directly {direct}",
                    fault.name,
                    problem.unwrap_or_default()
                )
            });
        }
    }
    let n_followed = elsewhere.n_requests();
    row.count(n_followed == 0, || format!("{n_followed} redirects were followed"));
    row.figure = format!("{n_faults} faults");
    Ok(vec![row])
}

/// A small body, one with tools, a stream with tools, and folded ones. Each is a session and a model of its own,
/// because the proxy remembers what a provider refuses.
fn bodies(fault: &str) -> Vec<(&'static str, String)> {
    let function = json!({ "name": "read", "parameters": { "type": "object" } });
    let tools = json!([{ "type": "function", "function": function }]);
    let body = |n_steps: usize, is_stream: bool, tools: &Value| {
        let mut messages = long_chat(n_steps);
        messages[0]["content"] = format!("{fault}, {n_steps} steps, {is_stream}").into();
        let model = fault.replace(' ', "-");
        let mut body = json!({ "model": model, "stream": is_stream, "messages": messages });
        if !tools.is_null() {
            body["tools"] = tools.clone();
        }
        body.to_string()
    };
    vec![
        ("small", body(0, false, &Value::Null)),
        ("with tools", body(1, false, &tools)),
        ("stream with tools", body(1, true, &tools)),
        ("folded stream with tools", body(40, true, &tools)),
        ("folded with tools", body(40, false, &tools)),
    ]
}

/// A description of the difference, if it is not allowed.
fn compare(fault: &str, direct: &Answer, through: &Answer) -> Option<String> {
    let is_gateway_error =
        through.is_complete && matches!(through.status, Some(502 | 504)) && !through.body.is_empty();
    let (expected, found) = (Content::new(direct), Content::new(through));
    // Headers that are no HTTP are refused by the proxy, though a lenient client accepts them.
    let may_be_refused = direct.status.is_none() || !expected.is_whole || fault.starts_with("illegal");
    match (direct.status, through.status) {
        _ if through.is_timed_out => Some("hangs".to_owned()),
        (_, None) => Some("no answer".to_owned()),
        _ if is_gateway_error && may_be_refused => None,
        (direct, through) if direct != through => Some("another status".to_owned()),
        _ if expected.is_whole && !found.is_whole => Some("breaks off".to_owned()),
        _ if !expected.is_whole && found.is_whole => Some("half an answer looks complete".to_owned()),
        _ if expected.is_whole && found.bytes != expected.bytes => Some("another body".to_owned()),
        _ if !expected.bytes.starts_with(&found.bytes) => Some("another body".to_owned()),
        _ => None,
    }
}

/// A body without its compression.
struct Content {
    bytes: Vec<u8>,
    is_whole: bool,
}

impl Content {
    fn new(answer: &Answer) -> Content {
        let mut bytes = Vec::new();
        let read = match answer.header("content-encoding") {
            Some("gzip") => MultiGzDecoder::new(&*answer.body).read_to_end(&mut bytes),
            Some("deflate") => ZlibDecoder::new(&*answer.body).read_to_end(&mut bytes),
            _ => (&*answer.body).read_to_end(&mut bytes),
        };
        Content { is_whole: answer.is_complete && read.is_ok(), bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::compare;
    use crate::attack::http::Answer;

    fn answer(status: Option<u16>, body: &str, is_complete: bool) -> Answer {
        Answer { status, body: body.into(), is_complete, ..Answer::default() }
    }

    #[test]
    fn only_the_same_answer_or_a_gateway_error_passes() {
        let (whole, cut) = (answer(Some(200), "abc", true), answer(Some(200), "ab", false));
        let gateway_error = answer(Some(502), "why", true);
        assert_eq!(compare("x", &whole, &whole), None);
        assert_eq!(compare("x", &cut, &answer(Some(200), "a", false)), None);
        assert_eq!(compare("x", &cut, &gateway_error), None);
        assert!(compare("x", &whole, &gateway_error).is_some());
        assert!(compare("x", &cut, &answer(Some(200), "ab", true)).is_some());
        assert!(compare("x", &cut, &answer(None, "", false)).is_some());
        assert!(compare("x", &answer(None, "", false), &whole).is_some());
    }
}

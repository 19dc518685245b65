//! Serves one connection: answers each request with a reply of the script, a fault or a refusal.

use std::io::{self, BufReader, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http::{self, Request};
use super::{
    ConstantReply, Fault, Limit, RecordedRequest, RequestEnd, Script, ScriptInput, ScriptedReply, Shared,
    faults, locked, reply, too_long_error,
};
use crate::contracts::api_rules;
use crate::generators::bodies::BodyFormat;

/// Serves a connection until it is closed.
pub(super) fn serve(shared: &Shared, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let (Ok(handle), Ok(mut out)) = (stream.try_clone(), stream.try_clone()) else { return };
    let id = shared.n_connections.fetch_add(1, Ordering::SeqCst);
    locked(&shared.open).insert(id, handle);
    let mut from = BufReader::with_capacity(64 * 1024, stream);
    while let Ok(Some(request)) = http::read(&mut from) {
        shared.n_seen.fetch_add(1, Ordering::SeqCst);
        let result = match (&shared.constant_reply, &shared.script) {
            (Some(reply), _) => answer_constantly(reply, &mut out, &request),
            (None, Some(script)) => answer(shared, script, &mut out, &request),
            (None, None) => return,
        };
        if result.is_err() {
            break;
        }
    }
    let _ = out.shutdown(Shutdown::Both);
    locked(&shared.open).remove(&id);
}

fn kind_of(request: &Request) -> Option<BodyFormat> {
    let path = request.path();
    let is_post = request.method == "POST";
    let kinds = [
        ("/chat/completions", BodyFormat::Chat),
        ("/responses", BodyFormat::Responses),
        ("/messages", BodyFormat::Anthropic),
    ];
    kinds.iter().find(|(end, _)| is_post && path.ends_with(end)).map(|(_, kind)| *kind)
}

fn answer_constantly(reply: &ConstantReply, out: &mut TcpStream, request: &Request) -> io::Result<()> {
    let Some(kind) = kind_of(request) else { return out.write_all(&answer_other_route(request)) };
    let body = &request.body;
    // Every client writes the flag near one end of the body, so there is no need to parse it.
    let ends = [&body[..body.len().min(400)], &body[body.len().saturating_sub(400)..]];
    let is_stream = ends.iter().any(|end| {
        let text = String::from_utf8_lossy(end);
        text.contains("\"stream\":true") || text.contains("\"stream\": true")
    });
    if !is_stream {
        return out.write_all(reply.whole(kind));
    }
    for (i, piece) in reply.stream(kind).iter().enumerate() {
        if i > 0 && !reply.pause.is_zero() {
            thread::sleep(reply.pause);
        }
        out.write_all(piece)?;
    }
    Ok(())
}

/// Answers other routes: `models`, `count_tokens`, and 404 for the rest.
fn answer_other_route(request: &Request) -> Vec<u8> {
    let path = request.path();
    let (status, body) = if path.ends_with("/models") && request.method == "GET" {
        let model = json!({ "id": "scripted-1", "object": "model", "type": "model", "owned_by": "nobody",
            "display_name": "Scripted", "created": 0, "created_at": "2026-01-01T00:00:00Z" });
        let list = json!({ "object": "list", "data": [model], "has_more": false, "first_id": "scripted-1",
            "last_id": "scripted-1" });
        (200, list)
    } else if path.ends_with("/count_tokens") {
        (200, json!({ "input_tokens": request.body.len() / 4 }))
    } else {
        let message = format!("not found: {path}");
        (404, json!({ "type": "error", "error": { "type": "not_found_error", "message": message } }))
    };
    http::whole(status, &[("x-request-id", "req_other")], body.to_string().as_bytes())
}

fn answer(shared: &Shared, script: &Script, out: &mut TcpStream, request: &Request) -> io::Result<()> {
    let body = request.decompressed().unwrap_or_default();
    let kind = kind_of(request);
    let violations = kind.map_or(Vec::new(), |kind| api_rules::violations(kind, &body));
    let too_long = kind.and_then(|_| exceeds(*locked(&shared.limit), &body));
    let at = shared.record(RecordedRequest {
        method: request.method.clone(),
        path: request.target.clone(),
        headers: request.headers.clone(),
        kind,
        violations: violations.clone(),
        is_too_long: too_long.is_some(),
        body: body.clone(),
        ended: None,
    });
    let ended = match kind {
        None => {
            let body = locked(&shared.routes).get(request.path()).cloned();
            let answer = body
                .map_or_else(|| answer_other_route(request), |body| http::whole(200, &[], body.as_bytes()));
            out.write_all(&answer)?;
            RequestEnd::Answered(200)
        }
        Some(kind) => {
            let fault = locked(&shared.faults).pop_front().or_else(|| named_fault(&body));
            let refusal = match (too_long, violations.first(), unknown_model(shared, &body)) {
                (_, _, Some(model)) => Some((404, faults::error(kind, 404, &model))),
                (Some((n_tokens, limit)), _, None) => Some((400, too_long_error(kind, n_tokens, limit))),
                (None, Some(violation), None) if script.is_strict => {
                    let message = violation.to_string();
                    let error = json!({ "type": "invalid_request_error", "message": message });
                    Some((400, json!({ "type": "error", "error": error })))
                }
                _ => apply_rule(shared, &body),
            };
            let mut writer = AnswerWriter { out, pause: script.pause };
            let result = match fault {
                Some(fault) if !fault.needs_reply() => writer.send_fault(&fault, kind, &body),
                fault => match refusal {
                    Some((status, error)) => writer.send_whole(status, &error.to_string()),
                    None => writer.send_reply(shared, script, kind, &body, fault.as_ref()),
                },
            };
            result.unwrap_or(RequestEnd::ClientGone)
        }
    };
    shared.end(at, ended);
    if matches!(ended, RequestEnd::Answered(_)) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
}

/// The fault that the model `fault-STATUS` requests.
fn named_fault(body: &[u8]) -> Option<Fault> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let status = body["model"].as_str()?.strip_prefix("fault-")?;
    status.parse().ok().map(Fault::Status)
}

/// The refusal of a body that breaks the rule of this provider.
fn apply_rule(shared: &Shared, body: &[u8]) -> Option<(u16, Value)> {
    let rule = locked(&shared.rule);
    let (status, message) = rule.as_ref()?(&serde_json::from_slice(body).ok()?)?;
    let error = json!({ "object": "error", "message": message, "type": "BadRequestError", "code": status });
    Some((status, if message.is_empty() { json!({}) } else { error }))
}

/// The model of a body, if the provider does not have it.
fn unknown_model(shared: &Shared, body: &[u8]) -> Option<String> {
    let models = locked(&shared.models);
    let model = model_of(body);
    (!models.is_empty() && !models.contains(&model)).then_some(model)
}

fn model_of(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    body["model"].as_str().unwrap_or_default().to_owned()
}

/// The tokens of a body and the limit in tokens, if the body exceeds the limit.
fn exceeds(limit: Option<Limit>, body: &[u8]) -> Option<(usize, usize)> {
    match limit? {
        Limit::Bytes(most) => (body.len() > most).then_some((body.len() / 4, most / 4)),
        Limit::Tokens(most, counter) => {
            let n_tokens = counter.count(&String::from_utf8_lossy(body)).0 as usize;
            (n_tokens > most).then_some((n_tokens, most))
        }
    }
}

struct AnswerWriter<'a> {
    out: &'a mut TcpStream,
    pause: Duration,
}

impl AnswerWriter<'_> {
    fn send_whole(&mut self, status: u16, body: &str) -> io::Result<RequestEnd> {
        let answer = http::whole(status, &[("x-request-id", "req_scripted")], body.as_bytes());
        self.out.write_all(&answer)?;
        Ok(RequestEnd::Answered(status))
    }

    fn send_fault(&mut self, fault: &Fault, kind: BodyFormat, body: &[u8]) -> io::Result<RequestEnd> {
        match fault {
            Fault::HangUp => Ok(RequestEnd::Aborted),
            Fault::Garbage => {
                self.out.write_all(&http::whole(
                    200,
                    &[],
                    b"\xff\xfe{\"choices\": [{\"mess\x00 <html>oops",
                ))?;
                Ok(RequestEnd::Answered(200))
            }
            Fault::NotHttp => {
                self.out.write_all(b"\x16\x03\x01 this is no answer\r\n\r\n")?;
                Ok(RequestEnd::Aborted)
            }
            Fault::Status(status) => {
                let body = faults::error(kind, *status, &model_of(body)).to_string();
                let headers =
                    [("retry-after", "7"), ("x-ratelimit-remaining", "0"), ("x-request-id", "req_fault")];
                self.out.write_all(&http::whole(*status, &headers, body.as_bytes()))?;
                Ok(RequestEnd::Answered(*status))
            }
            Fault::Answer(status, body) => self.send_whole(*status, body),
            Fault::AnswerWith(status, headers, body) => {
                let headers: Vec<(&str, &str)> =
                    headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                self.out.write_all(&http::whole(*status, &headers, body.as_bytes()))?;
                Ok(RequestEnd::Answered(*status))
            }
            Fault::GatewayPage(status) => {
                let page = faults::page(*status);
                let length = page.len().to_string();
                let headers =
                    [("content-type", "text/html; charset=utf-8"), ("content-length", length.as_str())];
                self.out.write_all(&http::head(*status, &headers))?;
                self.out.write_all(page.as_bytes())?;
                Ok(RequestEnd::Answered(*status))
            }
            Fault::Stall(_)
            | Fault::Disconnect(_)
            | Fault::EndEarly(_)
            | Fault::LateError(_)
            | Fault::Drip(_)
            | Fault::ReplyText(_)
            | Fault::StopReason(_) => Ok(RequestEnd::Aborted),
        }
    }

    /// Sends the reply of the script, changed by a fault.
    fn send_reply(
        &mut self,
        shared: &Shared,
        script: &Script,
        kind: BodyFormat,
        body: &[u8],
        fault: Option<&Fault>,
    ) -> io::Result<RequestEnd> {
        if let Some(Fault::Stall(time)) = fault
            && !self.wait(*time)
        {
            return Ok(RequestEnd::ClientGone);
        }
        if let Some(Fault::Drip(pause)) = fault {
            self.pause = *pause;
        }
        let Ok(parsed) = serde_json::from_slice::<Value>(body) else {
            return self.send_whole(400, "{\"error\":{\"message\":\"not JSON\"}}");
        };
        let mut reply = script_reply(shared, script, kind, &parsed);
        match fault {
            Some(Fault::ReplyText(text)) => {
                reply = ScriptedReply { text: text.clone(), ..ScriptedReply::default() }
            }
            Some(Fault::StopReason(stop)) => reply.stop.clone_from(stop),
            _ => {}
        }
        let id = shared.next_id();
        let disconnect = if let Some(Fault::Disconnect(n)) = fault { Some(*n) } else { None };
        let late_error = if let Some(Fault::LateError(n)) = fault { Some(*n) } else { None };
        let end_early = if let Some(Fault::EndEarly(n)) = fault { Some(*n) } else { late_error };
        let is_stream = parsed["stream"] == true;
        let n_tokens = body.len() / 4;
        if !is_stream && late_error.is_some() {
            return self.send_whole(200, &faults::error(kind, 529, "").to_string());
        }
        if !is_stream {
            let answer = reply::whole(kind, &reply, &parsed, id, n_tokens).to_string();
            if disconnect.is_some() || !self.pause.is_zero() {
                return self.send_in_parts(&answer, disconnect.is_some());
            }
            return self.send_whole(200, &answer);
        }
        let mut headers = reply::STREAM.to_vec();
        headers.push(("x-request-id", "req_scripted"));
        self.out.write_all(&http::head(200, &headers))?;
        for (i, event) in reply::events(kind, &reply, &parsed, id, n_tokens).iter().enumerate() {
            if disconnect == Some(i) {
                return Ok(RequestEnd::Aborted);
            }
            if end_early == Some(i) {
                break;
            }
            if i > 0 && !self.pause.is_zero() && !self.wait(self.pause) {
                return Ok(RequestEnd::ClientGone);
            }
            self.out.write_all(&http::chunk(event.as_bytes()))?;
        }
        if late_error.is_some() {
            let error = reply::error_event(kind, &faults::error(kind, 529, ""));
            self.out.write_all(&http::chunk(error.as_bytes()))?;
        }
        self.out.write_all(&http::chunk(b""))?;
        Ok(RequestEnd::Answered(200))
    }

    /// Sends an answer in parts, with pauses between them. If `is_aborted`, stops in the middle.
    fn send_in_parts(&mut self, answer: &str, is_aborted: bool) -> io::Result<RequestEnd> {
        const N_PARTS: usize = 8;
        let bytes = http::whole(200, &[("x-request-id", "req_scripted")], answer.as_bytes());
        for (i, part) in bytes.chunks(bytes.len().div_ceil(N_PARTS)).enumerate() {
            if is_aborted && i > N_PARTS / 2 {
                return Ok(RequestEnd::Aborted);
            }
            if i > 0 && !self.pause.is_zero() && !self.wait(self.pause) {
                return Ok(RequestEnd::ClientGone);
            }
            self.out.write_all(part)?;
        }
        Ok(RequestEnd::Answered(200))
    }

    /// Waits, and returns false if the client disconnects meanwhile.
    fn wait(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            let step = left.min(Duration::from_millis(20)).max(Duration::from_micros(100));
            if self.out.set_read_timeout(Some(step)).is_err() {
                return false;
            }
            match self.out.peek(&mut [0]) {
                Ok(0) => return false,
                // The client has sent its next request already; keep waiting.
                Ok(_) => thread::sleep(step),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                }
                Err(_) => return false,
            }
        }
        self.out.set_read_timeout(None).is_ok()
    }
}

/// Runs the script and counts its calls.
fn script_reply(shared: &Shared, script: &Script, kind: BodyFormat, body: &Value) -> ScriptedReply {
    let list = body[if kind == BodyFormat::Responses { "input" } else { "messages" }].as_array();
    let first = list.into_iter().flatten().find(|message| message["role"] == "user");
    let key = first.map(|first| text_of(&first["content"])).unwrap_or_default();
    let mut counts = locked(&shared.n_calls);
    let n_calls = counts.entry(key).or_default();
    let reply = (script.model)(&ScriptInput { kind, body, n_calls: *n_calls });
    *n_calls += reply.calls.len();
    reply
}

/// The texts of a message without cache markers, which change between the requests of a conversation.
fn text_of(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten();
    let texts = parts.filter_map(|part| part["text"].as_str());
    content.as_str().into_iter().chain(texts).collect()
}

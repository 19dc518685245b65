//! One connection: requests one after another, each answered by the script, by a fault or by a refusal.

use std::io::{self, BufReader, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http::{self, Request};
use super::{Asked, Ended, Fault, Limit, Quick, Said, Script, Seen, Shared, faults, locked, refusal, reply};
use crate::bodies::Kind;
use crate::rules;

/// Answers a connection until it ends.
pub(super) fn serve(shared: &Shared, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let (Ok(kept), Ok(mut out)) = (stream.try_clone(), stream.try_clone()) else { return };
    let id = shared.n_connections.fetch_add(1, Ordering::SeqCst);
    locked(&shared.open).insert(id, kept);
    let mut from = BufReader::with_capacity(64 * 1024, stream);
    while let Ok(Some(request)) = http::read(&mut from) {
        shared.n_seen.fetch_add(1, Ordering::SeqCst);
        let done = match (&shared.quick, &shared.script) {
            (Some(quick), _) => answer_quickly(quick, &mut out, &request),
            (None, Some(script)) => answer(shared, script, &mut out, &request),
            (None, None) => return,
        };
        if done.is_err() {
            break;
        }
    }
    let _ = out.shutdown(Shutdown::Both);
    locked(&shared.open).remove(&id);
}

fn kind_of(request: &Request) -> Option<Kind> {
    let path = request.path();
    let is_post = request.method == "POST";
    let kinds =
        [("/chat/completions", Kind::Chat), ("/responses", Kind::Responses), ("/messages", Kind::Anthropic)];
    kinds.iter().find(|(end, _)| is_post && path.ends_with(end)).map(|(_, kind)| *kind)
}

fn answer_quickly(quick: &Quick, out: &mut TcpStream, request: &Request) -> io::Result<()> {
    let Some(kind) = kind_of(request) else { return out.write_all(&other(request)) };
    let body = &request.body;
    // The flag stands near one end of a body, whoever wrote it; a body need not be read for it.
    let ends = [&body[..body.len().min(400)], &body[body.len().saturating_sub(400)..]];
    let is_stream = ends.iter().any(|end| {
        let text = String::from_utf8_lossy(end);
        text.contains("\"stream\":true") || text.contains("\"stream\": true")
    });
    if !is_stream {
        return out.write_all(quick.whole(kind));
    }
    for (i, piece) in quick.stream(kind).iter().enumerate() {
        if i > 0 && !quick.pause.is_zero() {
            thread::sleep(quick.pause);
        }
        out.write_all(piece)?;
    }
    Ok(())
}

/// Routes beside the three: models, count_tokens, and none.
fn other(request: &Request) -> Vec<u8> {
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
    let body = request.unpacked().unwrap_or_default();
    let kind = kind_of(request);
    let broken = kind.map_or(Vec::new(), |kind| rules::broken(kind, &body));
    let too_long = kind.and_then(|_| over(*locked(&shared.limit), &body));
    let at = shared.note(Seen {
        method: request.method.clone(),
        path: request.target.clone(),
        headers: request.headers.clone(),
        kind,
        broken: broken.clone(),
        is_too_long: too_long.is_some(),
        body: body.clone(),
        ended: None,
    });
    let ended = match kind {
        None => {
            let set = locked(&shared.routes).get(request.path()).cloned();
            let answer = set.map_or_else(|| other(request), |body| http::whole(200, &[], body.as_bytes()));
            out.write_all(&answer)?;
            Ended::Answered(200)
        }
        Some(kind) => {
            let fault = locked(&shared.faults).pop_front().or_else(|| named_fault(&body));
            let refused = match (too_long, broken.first(), missing(shared, &body)) {
                (_, _, Some(model)) => Some((404, faults::error(kind, 404, &model))),
                (Some((n_tokens, limit)), _, None) => Some((400, refusal(kind, n_tokens, limit))),
                (None, Some(broken), None) if script.is_strict => {
                    let message = broken.to_string();
                    let error = json!({ "type": "invalid_request_error", "message": message });
                    Some((400, json!({ "type": "error", "error": error })))
                }
                _ => ruled_out(shared, &body),
            };
            let mut answering = Answering { out, pause: script.pause };
            let done = match fault {
                Some(fault) if !fault.is_of_an_answer() => answering.fault(&fault, kind, &body),
                fault => match refused {
                    Some((status, refused)) => answering.whole(status, &refused.to_string()),
                    None => answering.said(shared, script, kind, &body, fault.as_ref()),
                },
            };
            done.unwrap_or(Ended::Gone)
        }
    };
    shared.end(at, ended);
    if matches!(ended, Ended::Answered(_)) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
}

/// The fault that a body asks for by its model.
fn named_fault(body: &[u8]) -> Option<Fault> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let status = body["model"].as_str()?.strip_prefix("fault-")?;
    status.parse().ok().map(Fault::Status)
}

/// What the provider says of a body that breaks a rule of its own.
fn ruled_out(shared: &Shared, body: &[u8]) -> Option<(u16, Value)> {
    let rule = locked(&shared.rule);
    let (status, message) = rule.as_ref()?(&serde_json::from_slice(body).ok()?)?;
    let error = json!({ "object": "error", "message": message, "type": "BadRequestError", "code": status });
    Some((status, if message.is_empty() { json!({}) } else { error }))
}

/// The model that a body names, if there is none of that name.
fn missing(shared: &Shared, body: &[u8]) -> Option<String> {
    let models = locked(&shared.models);
    let named = model_of(body);
    (!models.is_empty() && !models.contains(&named)).then_some(named)
}

fn model_of(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    body["model"].as_str().unwrap_or_default().to_owned()
}

/// What a body has, and what it may have, if that is less.
fn over(limit: Option<Limit>, body: &[u8]) -> Option<(usize, usize)> {
    match limit? {
        Limit::Bytes(most) => (body.len() > most).then_some((body.len() / 4, most / 4)),
        Limit::Tokens(most, counter) => {
            let n_tokens = counter.count(&String::from_utf8_lossy(body)).0 as usize;
            (n_tokens > most).then_some((n_tokens, most))
        }
    }
}

struct Answering<'a> {
    out: &'a mut TcpStream,
    pause: Duration,
}

impl Answering<'_> {
    fn whole(&mut self, status: u16, body: &str) -> io::Result<Ended> {
        let answer = http::whole(status, &[("x-request-id", "req_scripted")], body.as_bytes());
        self.out.write_all(&answer)?;
        Ok(Ended::Answered(status))
    }

    fn fault(&mut self, fault: &Fault, kind: Kind, body: &[u8]) -> io::Result<Ended> {
        match fault {
            Fault::HangUp => Ok(Ended::Broken),
            Fault::Garbage => {
                self.out.write_all(&http::whole(
                    200,
                    &[],
                    b"\xff\xfe{\"choices\": [{\"mess\x00 <html>oops",
                ))?;
                Ok(Ended::Answered(200))
            }
            Fault::NoHttp => {
                self.out.write_all(b"\x16\x03\x01 this is no answer\r\n\r\n")?;
                Ok(Ended::Broken)
            }
            Fault::Status(status) => {
                let body = faults::error(kind, *status, &model_of(body)).to_string();
                let headers =
                    [("retry-after", "7"), ("x-ratelimit-remaining", "0"), ("x-request-id", "req_fault")];
                self.out.write_all(&http::whole(*status, &headers, body.as_bytes()))?;
                Ok(Ended::Answered(*status))
            }
            Fault::Answer(status, body) => self.whole(*status, body),
            Fault::With(status, headers, body) => {
                let headers: Vec<(&str, &str)> =
                    headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                self.out.write_all(&http::whole(*status, &headers, body.as_bytes()))?;
                Ok(Ended::Answered(*status))
            }
            Fault::Page(status) => {
                let page = faults::page(*status);
                let length = page.len().to_string();
                let headers =
                    [("content-type", "text/html; charset=utf-8"), ("content-length", length.as_str())];
                self.out.write_all(&http::head(*status, &headers))?;
                self.out.write_all(page.as_bytes())?;
                Ok(Ended::Answered(*status))
            }
            Fault::Stall(_)
            | Fault::Die(_)
            | Fault::Cut(_)
            | Fault::Late(_)
            | Fault::Drip(_)
            | Fault::Say(_)
            | Fault::Stop(_) => Ok(Ended::Broken),
        }
    }

    /// What the model says, and what becomes of it on the way.
    fn said(
        &mut self,
        shared: &Shared,
        script: &Script,
        kind: Kind,
        body: &[u8],
        fault: Option<&Fault>,
    ) -> io::Result<Ended> {
        if let Some(Fault::Stall(long)) = fault
            && !self.is_waited_for(*long)
        {
            return Ok(Ended::Gone);
        }
        if let Some(Fault::Drip(pause)) = fault {
            self.pause = *pause;
        }
        let Ok(parsed) = serde_json::from_slice::<Value>(body) else {
            return self.whole(400, "{\"error\":{\"message\":\"not JSON\"}}");
        };
        let mut said = say(shared, script, kind, &parsed);
        match fault {
            Some(Fault::Say(text)) => said = Said { text: text.clone(), ..Said::default() },
            Some(Fault::Stop(stop)) => said.stop.clone_from(stop),
            _ => {}
        }
        let id = shared.next_id();
        let die = if let Some(Fault::Die(n)) = fault { Some(*n) } else { None };
        let late = if let Some(Fault::Late(n)) = fault { Some(*n) } else { None };
        let cut = if let Some(Fault::Cut(n)) = fault { Some(*n) } else { late };
        let is_stream = parsed["stream"] == true;
        let n_tokens = body.len() / 4;
        if !is_stream && late.is_some() {
            return self.whole(200, &faults::error(kind, 529, "").to_string());
        }
        if !is_stream {
            let answer = reply::whole(kind, &said, &parsed, id, n_tokens).to_string();
            if die.is_some() || !self.pause.is_zero() {
                return self.in_parts(&answer, die.is_some());
            }
            return self.whole(200, &answer);
        }
        let mut headers = reply::STREAM.to_vec();
        headers.push(("x-request-id", "req_scripted"));
        self.out.write_all(&http::head(200, &headers))?;
        for (i, event) in reply::events(kind, &said, &parsed, id, n_tokens).iter().enumerate() {
            if die == Some(i) {
                return Ok(Ended::Broken);
            }
            if cut == Some(i) {
                break;
            }
            if i > 0 && !self.pause.is_zero() && !self.is_waited_for(self.pause) {
                return Ok(Ended::Gone);
            }
            self.out.write_all(&http::chunk(event.as_bytes()))?;
        }
        if late.is_some() {
            let error = reply::late(kind, &faults::error(kind, 529, ""));
            self.out.write_all(&http::chunk(error.as_bytes()))?;
        }
        self.out.write_all(&http::chunk(b""))?;
        Ok(Ended::Answered(200))
    }

    /// A whole answer in parts, perhaps only the first of them.
    fn in_parts(&mut self, answer: &str, is_cut: bool) -> io::Result<Ended> {
        const N_PARTS: usize = 8;
        let bytes = http::whole(200, &[("x-request-id", "req_scripted")], answer.as_bytes());
        for (i, part) in bytes.chunks(bytes.len().div_ceil(N_PARTS)).enumerate() {
            if is_cut && i > N_PARTS / 2 {
                return Ok(Ended::Broken);
            }
            if i > 0 && !self.pause.is_zero() && !self.is_waited_for(self.pause) {
                return Ok(Ended::Gone);
            }
            self.out.write_all(part)?;
        }
        Ok(Ended::Answered(200))
    }

    /// Waits, and says whether the other end still waits, too.
    fn is_waited_for(&self, long: Duration) -> bool {
        let until = Instant::now() + long;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            let step = left.min(Duration::from_millis(20)).max(Duration::from_micros(100));
            if self.out.set_read_timeout(Some(step)).is_err() {
                return false;
            }
            match self.out.peek(&mut [0]) {
                Ok(0) => return false,
                // The next request is there already, which is no reason to hurry.
                Ok(_) => thread::sleep(step),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                }
                Err(_) => return false,
            }
        }
        self.out.set_read_timeout(None).is_ok()
    }
}

fn say(shared: &Shared, script: &Script, kind: Kind, body: &Value) -> Said {
    let list = body[if kind == Kind::Responses { "input" } else { "messages" }].as_array();
    let first = list.into_iter().flatten().find(|message| message["role"] == "user");
    let key = first.map(|first| words_of(&first["content"])).unwrap_or_default();
    let mut made = locked(&shared.made);
    let n_calls = made.entry(key).or_default();
    let said = (script.model)(&Asked { kind, body, n_calls: *n_calls });
    *n_calls += said.calls.len();
    said
}

/// The texts of a message alone: marks on it come and go while a conversation goes on.
fn words_of(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten();
    let texts = parts.filter_map(|part| part["text"].as_str());
    content.as_str().into_iter().chain(texts).collect()
}

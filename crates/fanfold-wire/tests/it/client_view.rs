//! A client's view of a reply: checks the rules of each API for streams, event by event.

use fanfold_wire::Format;
use fanfold_wire::reply::sse::Splitter;
use serde_json::Value;

/// A reply as its client sees it: texts and thoughts in order, calls as `name(arguments)`, the stop reason.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct ClientView {
    pub(crate) text: String,
    pub(crate) thoughts: String,
    pub(crate) calls: Vec<String>,
    pub(crate) stop: String,
    pub(crate) output: u64,
}

/// Reads a reply like a client. Returns the first violated rule.
pub(crate) fn read(format: Format, bytes: &[u8], is_stream: bool) -> Result<ClientView, String> {
    if !is_stream {
        let body: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        return Ok(match format {
            Format::Anthropic => anthropic_whole(&body),
            Format::Chat => chat_whole(&body),
            _ => responses_whole(&body),
        });
    }
    let mut splitter = Splitter::default();
    let mut events = Vec::new();
    for event in splitter.feed(bytes) {
        let data = event.data().ok_or("an event without data")?.into_owned();
        let value = if data == "[DONE]" {
            Value::Null
        } else {
            serde_json::from_str(&data).map_err(|e| format!("{e}: {data}"))?
        };
        if let Some(name) = event.name().filter(|name| *name != value["type"].as_str().unwrap_or_default()) {
            return Err(format!("{name} is not {}", value["type"]));
        }
        events.push(value);
    }
    if splitter.end().is_some() {
        return Err("half an event at the end".to_owned());
    }
    match format {
        Format::Anthropic => anthropic(&events),
        Format::Chat => chat(&events),
        _ => responses(&events),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn anthropic(events: &[Value]) -> Result<ClientView, String> {
    let mut seen = ClientView::default();
    let (mut n_blocks, mut open, mut is_ended) = (0, None, false);
    let mut arguments = String::new();
    for (i, event) in events.iter().enumerate() {
        let kind = text(&event["type"]);
        if (i == 0) != (kind == "message_start") {
            return Err(format!("{kind} as event {i}"));
        }
        if is_ended && kind != "message_stop" {
            return Err(format!("{kind} after message_delta"));
        }
        match kind {
            "content_block_start" => {
                if open.is_some() || event["index"] != n_blocks {
                    return Err(format!("block {} instead of {n_blocks}", event["index"]));
                }
                open = Some(event["content_block"].clone());
                n_blocks += 1;
                arguments.clear();
            }
            "content_block_delta" | "content_block_stop" => {
                let Some(block) = &open else { return Err(format!("{kind} without a block")) };
                if event["index"] != n_blocks - 1 {
                    return Err(format!("{kind} of block {}", event["index"]));
                }
                seen.text += text(&event["delta"]["text"]);
                seen.thoughts += text(&event["delta"]["thinking"]);
                arguments += text(&event["delta"]["partial_json"]);
                if kind == "content_block_stop" {
                    if block["type"] == "tool_use" {
                        seen.calls.push(format!("{}({arguments})", text(&block["name"])));
                    }
                    open = None;
                }
            }
            "message_delta" => {
                is_ended = true;
                seen.stop = text(&event["delta"]["stop_reason"]).to_owned();
                seen.output = event["usage"]["output_tokens"].as_u64().unwrap_or(0);
            }
            "message_stop" if i + 1 != events.len() || open.is_some() || !is_ended => {
                return Err("message_stop in the middle".to_owned());
            }
            _ => {}
        }
    }
    match events.last().map(|event| text(&event["type"])) {
        Some("message_stop") => Ok(seen),
        last => Err(format!("it ends with {last:?}")),
    }
}

fn chat(events: &[Value]) -> Result<ClientView, String> {
    let mut seen = ClientView::default();
    let mut calls: Vec<(String, String)> = Vec::new();
    let mut n_roles = 0;
    let (done, chunks) = events.split_last().ok_or("nothing")?;
    if !done.is_null() || chunks.iter().any(Value::is_null) {
        return Err("one [DONE] belongs at the end".to_owned());
    }
    for chunk in chunks {
        if chunk["id"] != chunks[0]["id"] {
            return Err(format!("{} and {}", chunk["id"], chunks[0]["id"]));
        }
        if let Some(usage) = chunk["usage"]["completion_tokens"].as_u64() {
            seen.output = usage;
            let total = chunk["usage"]["prompt_tokens"].as_u64().unwrap_or(0) + usage;
            if chunk["usage"]["total_tokens"] != total {
                return Err(format!("a total of {}", chunk["usage"]["total_tokens"]));
            }
        }
        let Some(choice) = chunk["choices"].get(0) else { continue };
        if !seen.stop.is_empty() {
            return Err("a choice after the end".to_owned());
        }
        let delta = &choice["delta"];
        n_roles += usize::from(delta.get("role").is_some());
        seen.text += text(&delta["content"]);
        seen.thoughts += text(&delta["reasoning_content"]);
        for part in delta["tool_calls"].as_array().into_iter().flatten() {
            let place = part["index"].as_u64().ok_or("a call without an index")? as usize;
            if place == calls.len() {
                if part["id"].is_null() {
                    return Err("a call begins without its id".to_owned());
                }
                calls.push((text(&part["function"]["name"]).to_owned(), String::new()));
            }
            let call = calls.get_mut(place).ok_or(format!("call {place} comes too early"))?;
            call.1 += text(&part["function"]["arguments"]);
        }
        seen.stop = text(&choice["finish_reason"]).to_owned();
    }
    if n_roles != 1 || seen.stop.is_empty() {
        return Err(format!("{n_roles} roles, stopped by `{}`", seen.stop));
    }
    seen.calls = calls.into_iter().map(|(name, arguments)| format!("{name}({arguments})")).collect();
    Ok(seen)
}

fn responses(events: &[Value]) -> Result<ClientView, String> {
    let mut seen = ClientView::default();
    let mut items: Vec<Option<Value>> = Vec::new();
    let mut n_added = 0;
    for (i, event) in events.iter().enumerate() {
        let kind = text(&event["type"]);
        if event["sequence_number"] != i {
            return Err(format!("event {i} has the number {}", event["sequence_number"]));
        }
        if (i == 0) != (kind == "response.created") {
            return Err(format!("{kind} as event {i}"));
        }
        let is_last = i + 1 == events.len();
        if is_last != matches!(kind, "response.completed" | "response.incomplete") {
            return Err(format!("{kind} as event {i} of {}", events.len()));
        }
        let place = event["output_index"].as_u64().map(|place| place as usize);
        match (kind, place) {
            ("response.output_item.added", Some(place)) => {
                if place != n_added {
                    return Err(format!("item {place} instead of {n_added}"));
                }
                n_added += 1;
                items.push(None);
            }
            ("response.output_item.done", Some(place)) => {
                let item = items.get_mut(place).ok_or("an item is done that was not added")?;
                *item = Some(event["item"].clone());
                if event["item"]["type"] == "function_call" {
                    let item = &event["item"];
                    seen.calls.push(format!("{}({})", text(&item["name"]), text(&item["arguments"])));
                }
            }
            (_, Some(place)) if items.get(place).is_none_or(Option::is_some) => {
                return Err(format!("{kind} of item {place}, which is not open"));
            }
            _ => {}
        }
        match kind {
            "response.output_text.delta" => seen.text += text(&event["delta"]),
            "response.reasoning_summary_text.delta" => seen.thoughts += text(&event["delta"]),
            "response.completed" | "response.incomplete" => {
                seen.stop = text(&event["response"]["status"]).to_owned();
                seen.output = event["response"]["usage"]["output_tokens"].as_u64().unwrap_or(0);
                let listed = event["response"]["output"].as_array().cloned().unwrap_or_default();
                let done: Option<Vec<_>> = items.iter().cloned().collect();
                if done.as_ref() != Some(&listed) {
                    return Err(format!("{listed:?} are listed, {done:?} were shown"));
                }
            }
            _ => {}
        }
    }
    Ok(seen)
}

fn anthropic_whole(body: &Value) -> ClientView {
    let blocks = body["content"].as_array().cloned().unwrap_or_default();
    let all = |key: &str| blocks.iter().map(|block| text(&block[key])).collect::<String>();
    let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
    ClientView {
        text: all("text"),
        thoughts: all("thinking"),
        calls: calls.map(|block| format!("{}({})", text(&block["name"]), block["input"])).collect(),
        stop: text(&body["stop_reason"]).to_owned(),
        output: body["usage"]["output_tokens"].as_u64().unwrap_or(0),
    }
}

fn chat_whole(body: &Value) -> ClientView {
    let choice = &body["choices"][0];
    let calls = choice["message"]["tool_calls"].as_array().cloned().unwrap_or_default();
    let call = |call: &Value| {
        format!("{}({})", text(&call["function"]["name"]), text(&call["function"]["arguments"]))
    };
    ClientView {
        text: text(&choice["message"]["content"]).to_owned(),
        thoughts: String::new(),
        calls: calls.iter().map(call).collect(),
        stop: text(&choice["finish_reason"]).to_owned(),
        output: body["usage"]["completion_tokens"].as_u64().unwrap_or(0),
    }
}

fn responses_whole(body: &Value) -> ClientView {
    let items = body["output"].as_array().cloned().unwrap_or_default();
    let items_of_type =
        |kind: &str| items.iter().filter(move |item| item["type"] == kind).cloned().collect::<Vec<_>>();
    ClientView {
        text: items_of_type("message").iter().map(|item| text(&item["content"][0]["text"])).collect(),
        thoughts: items_of_type("reasoning").iter().map(|item| text(&item["summary"][0]["text"])).collect(),
        calls: items_of_type("function_call")
            .iter()
            .map(|c| format!("{}({})", text(&c["name"]), text(&c["arguments"])))
            .collect(),
        stop: text(&body["status"]).to_owned(),
        output: body["usage"]["output_tokens"].as_u64().unwrap_or(0),
    }
}

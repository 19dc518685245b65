//! Replaces successful steps by one line per call, as assistant text. (`rules`)
//!
//! ```text
//! user    Read the configuration.
//! say     I will.
//! call    read_file {"path":"config.yaml"}
//! result  alpha: one
//!         beta: two
//!         gamma: three
//!         delta: four
//!         epsilon: five
//! say     Done.
//! ->
//! user    Read the configuration.
//! say     I will.
//!         [tool: read_file(path=config.yaml) → ok, 59 chars] [#1]
//! say     Done.
//! ```

use crate::actions::has_failed;
use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::fold::segment::{part, runs, seal};
use crate::model::location::Place;
use crate::model::tokens::Tokens;
use crate::model::transcript::{Call, CallId, Entry, Step};
use crate::model::view::Voice;
use crate::text::words::one_line;

pub(crate) const PASS: Pass = Pass { name: "call_lines", run };

fn run(draft: &mut Draft<'_>, _target: Tokens) {
    let transcript = draft.transcript;
    let mut succeeded = Vec::new();
    for id in draft.absorbable() {
        let Entry::Step(step) = transcript.entry(id) else { continue };
        if step.calls.is_empty() {
            continue;
        }
        let ids = (0..step.calls.len()).map(|call| CallId { step: id, call: call as u16 });
        let done: Vec<CallId> = ids.filter(|call| !is_failure(draft, *call)).collect();
        if done.len() == step.calls.len() {
            succeeded.push(id);
            continue;
        }
        for call in done {
            draft.fold_to(Place::Result(call), |tag| format!("{} [{tag}]", line(transcript.call(call))));
        }
    }
    if succeeded.is_empty() {
        return;
    }
    let (mut parts, mut handles) = (Vec::new(), Vec::new());
    for run in runs(&succeeded) {
        let mut lines = Vec::new();
        for &id in run {
            let handle = draft.name_entries(&[id]);
            let step = transcript.entry(id).step().expect("only steps were taken");
            lines.extend(lines_of(step, &handle.to_string(), draft.policy.has_call_lines));
            handles.push(handle);
        }
        parts.push(part(draft, run[0], lines.join("\n")));
    }
    let segment = seal(draft, succeeded, parts, Voice::Assistant, handles);
    draft.absorb_if_shorter(segment, &[], Tokens::ZERO);
}

fn lines_of(step: &Step, handle: &str, shows_calls: bool) -> Vec<String> {
    let text = step.text.as_str().trim();
    let said = (!text.is_empty()).then(|| text.to_owned());
    let last = step.calls.len() - 1;
    let calls = step.calls.iter().enumerate().map(|(i, call)| {
        let tag = if i == last { format!(" [{handle}]") } else { String::new() };
        line(call) + &tag
    });
    if !shows_calls {
        return said.into_iter().chain([format!("[{handle}]")]).collect();
    }
    said.into_iter().chain(calls).collect()
}

/// A line such as `[tool: read_file(path=config.yaml) → ok, 347 chars]`.
fn line(call: &Call) -> String {
    let n = call.result.as_ref().map_or(0, |outcome| outcome.body.as_str().chars().count());
    format!("[tool: {}({}) → ok, {n} chars]", call.tool, arguments(call, 100))
}

/// The arguments in one line of at most `max_bytes` bytes.
pub(crate) fn arguments(call: &Call, max_bytes: usize) -> String {
    let text = call.arguments.as_str();
    let shown = match serde_json::from_str::<serde_json::Value>(text) {
        Ok(serde_json::Value::Object(fields)) => {
            let field = |(key, value): (&String, &serde_json::Value)| match value.as_str() {
                Some(text) => format!("{key}={text}"),
                None => format!("{key}={value}"),
            };
            fields.iter().map(field).collect::<Vec<_>>().join(", ")
        }
        _ => text.to_owned(),
    };
    cut_line(&shown, max_bytes)
}

/// A text in one line of at most `max_bytes` bytes.
pub(crate) fn cut_line(text: &str, max_bytes: usize) -> String {
    let mut line = one_line(&text[..text.floor_char_boundary(max_bytes * 4)]).into_owned();
    if line.len() > max_bytes {
        line.truncate(line.floor_char_boundary(max_bytes - 1));
        line.push('…');
    }
    line
}

fn is_failure(draft: &mut Draft<'_>, id: CallId) -> bool {
    let (call, action) = (draft.transcript.call(id), draft.action(id));
    call.result.is_none() || has_failed(call, &action)
}

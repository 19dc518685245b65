//! A task of forty steps with the Python packages of OpenAI and Anthropic, streamed and not, in a window that is
//! too small: it ends as without the proxy, and recalls of the model are answered inside its replies.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use fanfold_core::Tokens;
use fanfold_testkit::fakes::upstream::{RecordedRequest, Script, ScriptInput, ScriptedReply, Upstream};
use fanfold_testkit::generators::bodies::BodyFormat;
use fanfold_testkit::handles_in;
use serde_json::{Value, json};

use crate::clients::{check_bodies, recall_all};
use crate::running_proxy::{RunningProxy, folder, sessions};
use crate::sdks::{PACKAGES, python, run};

const N_STEPS: usize = 40;
const WINDOW: Tokens = Tokens(8_000);
/// The number of steps after which the model recalls a fold.
const OPENS_AT: usize = 30;
/// The conversations, named by their prompts.
const TASKS: [&str; 6] = [
    "chat whole",
    "chat streamed",
    "responses whole",
    "responses streamed",
    "messages whole",
    "messages streamed",
];
/// A text in every tool result.
const MARK: &str = "of step";

/// The loop of an agent, for each conversation. Prints the last line of each.
const SCRIPT: &str = r#"
import json, sys
import anthropic, openai
port = sys.argv[1]
oa = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="dummy", max_retries=0)
an = anthropic.Anthropic(base_url=f"http://127.0.0.1:{port}", api_key="dummy", max_retries=0)
schema = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}

def result(name, arguments, n):
    assert name == "bash", name
    command = arguments["command"]
    return "\n".join(f"{command}: line {i} of step {n} says {i * 7919 * (n + 1) % 10007}" for i in range(40))

def prompt(task):
    return {"role": "user", "content": f"Look around, task: {task}."}

def chat(task, stream):
    tools = [{"type": "function", "function": {"name": "bash", "parameters": schema}}]
    messages, n = [prompt(task)], 0
    while True:
        asked = dict(model="gpt-4o", messages=messages, tools=tools)
        if stream:
            text, calls = "", {}
            for chunk in oa.chat.completions.create(**asked, stream=True):
                for choice in chunk.choices:
                    text += choice.delta.content or ""
                    for part in choice.delta.tool_calls or []:
                        call = calls.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
                        call["id"] += part.id or ""
                        call["name"] += part.function.name or ""
                        call["arguments"] += part.function.arguments or ""
            calls = [calls[i] for i in sorted(calls)]
        else:
            message = oa.chat.completions.create(**asked).choices[0].message
            text = message.content or ""
            calls = [{"id": c.id, **c.function.to_dict()} for c in message.tool_calls or []]
        if not calls:
            return n, text
        made = [{"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}} for c in calls]
        messages.append({"role": "assistant", "content": text or None, "tool_calls": made})
        for call in calls:
            n += 1
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result(call["name"], json.loads(call["arguments"]), n)})

def responses(task, stream):
    tools = [{"type": "function", "name": "bash", "parameters": schema, "strict": False}]
    items, n = [prompt(task)], 0
    while True:
        asked = dict(model="gpt-4o", input=items, tools=tools, store=False)
        if stream:
            response = [e for e in oa.responses.create(**asked, stream=True)][-1].response
        else:
            response = oa.responses.create(**asked)
        items += [item.to_dict() for item in response.output]
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return n, response.output_text
        for call in calls:
            n += 1
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": result(call.name, json.loads(call.arguments), n)})

def messages(task, stream):
    tools = [{"name": "bash", "input_schema": schema}]
    said, n = [prompt(task)], 0
    while True:
        asked = dict(model="claude-sonnet-4-5", max_tokens=500, messages=said, tools=tools)
        if stream:
            with an.messages.stream(**asked) as s:
                message = s.get_final_message()
        else:
            message = an.messages.create(**asked)
        said.append({"role": "assistant", "content": [block.to_dict() for block in message.content]})
        calls = [block for block in message.content if block.type == "tool_use"]
        if not calls:
            return n, "".join(block.text for block in message.content)
        results = []
        for call in calls:
            n += 1
            results.append({"type": "tool_result", "tool_use_id": call.id, "content": result(call.name, call.input, n)})
        said.append({"role": "user", "content": results})

for name, loop in (("chat", chat), ("responses", responses), ("messages", messages)):
    for way in ("whole", "streamed"):
        print(json.dumps([name, way, *loop(f"{name} {way}", way == "streamed")]), flush=True)
"#;

/// The recalls of a model.
#[derive(Default)]
struct RecallCounts {
    /// Tasks with a recall.
    asked: BTreeSet<&'static str>,
    /// Tasks with a successful recall.
    got: BTreeSet<&'static str>,
}

/// A model that calls a shell forty times and, where it has the tool, recalls the first fold once.
fn model(opened: Arc<Mutex<RecallCounts>>) -> Script {
    let steps = Script::steps(N_STEPS);
    Script::new(move |asked| {
        let text = asked.body.to_string();
        let Some(task) = TASKS.into_iter().find(|task| text.contains(&format!("task: {task}."))) else {
            return ScriptedReply { text: "Which task?".to_owned(), ..ScriptedReply::default() };
        };
        let mut opened = opened.lock().unwrap();
        if asked.n_calls == OPENS_AT && text.contains("fanfold_recall") {
            let handle = handles_in(&text).into_iter().next().expect("a step is folded");
            opened.asked.insert(task);
            let call = ("fanfold_recall".to_owned(), json!({ "handle": handle }));
            return ScriptedReply { calls: vec![call], ..ScriptedReply::default() };
        }
        let was_requested = opened.asked.contains(task);
        if was_requested && asked.n_calls == OPENS_AT + 1 && last(asked).contains(MARK) {
            opened.got.insert(task);
        }
        // A recall is not a step of the task.
        let n_calls = asked.n_calls - usize::from(was_requested);
        (steps.model)(&ScriptInput { kind: asked.kind, body: asked.body, n_calls })
    })
}

/// The last message of a request.
fn last(asked: &ScriptInput<'_>) -> String {
    let messages = asked.body.get("messages").or(asked.body.get("input"));
    messages
        .and_then(Value::as_array)
        .and_then(|messages| messages.last())
        .map(Value::to_string)
        .unwrap_or_default()
}

fn bodies(upstream: &Upstream, kind: BodyFormat) -> Vec<String> {
    upstream.seen().iter().filter(|seen| seen.kind == Some(kind)).map(RecordedRequest::text).collect()
}

#[test]
fn long_python_task_ends_as_without_the_proxy() {
    let python = match python() {
        Ok(python) => python,
        Err(why) => return println!("skipped: {}: {why}", PACKAGES.join(" and ")),
    };
    let direct = Upstream::start(model(Arc::default())).unwrap();
    let expected = run(&python, SCRIPT, direct.port());
    assert_eq!(expected.matches(&format!("Finished after {N_STEPS} tool results.")).count(), TASKS.len());
    let opened = Arc::new(Mutex::new(RecallCounts::default()));
    let (folder, upstream) = (folder(), Upstream::start(model(Arc::clone(&opened))).unwrap());
    let window = WINDOW.0.to_string();
    let proxy = RunningProxy::start(folder.path(), &upstream.url(), &["--window", &window]);
    assert_eq!(run(&python, SCRIPT, proxy.port), expected, "{}", proxy.stderr_text());
    drop(proxy);
    let opened = opened.lock().unwrap();
    assert_eq!(opened.got.len(), TASKS.len(), "of {:?} it recalled {:?}", opened.asked, opened.got);
    let mut all = Vec::new();
    for kind in [BodyFormat::Chat, BodyFormat::Responses, BodyFormat::Anthropic] {
        assert_eq!(direct.seen().iter().filter(|seen| seen.kind == Some(kind)).count(), 2 * (N_STEPS + 1));
        let bodies = bodies(&upstream, kind);
        assert_eq!(bodies.len(), 2 * (N_STEPS + 2), "{kind:?}: one more for each recall");
        let largest = check_bodies(kind, &bodies, WINDOW);
        println!("{kind:?}: {} requests, the largest has {largest} tokens", bodies.len());
        all.extend(bodies);
    }
    let session_list = sessions(folder.path());
    assert_eq!(session_list.len(), TASKS.len(), "each task is a session");
    for session in session_list {
        assert!(session.n_folds >= 3, "{} folds", session.n_folds);
        let n_recalled = recall_all(folder.path(), &session.row.id, &all);
        println!("{}: {} folds, {n_recalled} handles recalled", session.row.id, session.n_folds);
        assert!(n_recalled > 0, "no handle was sent");
    }
}

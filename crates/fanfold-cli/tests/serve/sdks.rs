//! The Python packages of OpenAI and Anthropic behave the same with and without the proxy.

use std::path::{Path, PathBuf};
use std::process::Command;

use fanfold_testkit::clients::programs::install_python;
use fanfold_testkit::fakes::upstream::{Script, ScriptedReply, Upstream};
use serde_json::json;

use crate::running_proxy::{RunningProxy, folder};

pub(crate) const PACKAGES: [&str; 2] = ["openai==3.49.0", "anthropic==2.8.0"];

/// Uses the packages as an agent does, and prints a line for each observation.
const SCRIPT: &str = r#"
import json, sys
import anthropic, openai
port = sys.argv[1]
def say(name, *values):
    print(json.dumps([name, *values]), flush=True)

oa = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="dummy", max_retries=0)
ask = [{"role": "user", "content": "What is in notes.md?"}]
tool = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}

whole = oa.chat.completions.create(model="m", messages=ask)
say("chat", whole.choices[0].message.content, whole.choices[0].finish_reason, whole.usage.completion_tokens)
stream = oa.chat.completions.create(model="m", messages=ask, stream=True, stream_options={"include_usage": True})
chunks = list(stream)
say("chat stream", "".join(c.choices[0].delta.content or "" for c in chunks if c.choices), chunks[-1].usage.completion_tokens)
called = oa.chat.completions.create(model="m", messages=ask, tools=[tool])
call = called.choices[0].message.tool_calls[0]
say("chat tool", call.function.name, call.function.arguments, called.choices[0].finish_reason)
result = {"role": "tool", "tool_call_id": call.id, "content": "hello"}
after = oa.chat.completions.create(model="m", messages=ask + [called.choices[0].message, result], tools=[tool])
say("chat result", after.choices[0].message.content)
streamed = [c for c in oa.chat.completions.create(model="m", messages=ask, tools=[tool], stream=True) if c.choices]
parts = [p for c in streamed for p in c.choices[0].delta.tool_calls or []]
say("chat tool stream", parts[0].function.name, "".join(p.function.arguments or "" for p in parts))

reads = {"type": "function", "name": "read", "parameters": tool["function"]["parameters"], "strict": False}
response = oa.responses.create(model="m", input="What is in notes.md?")
say("responses", response.output_text, response.status, response.usage.output_tokens)
events = list(oa.responses.create(model="m", input=ask, stream=True, store=False))
say("responses stream", [e.type for e in events], events[-1].response.output_text)
response = oa.responses.create(model="m", input=ask, tools=[reads])
call = response.output[-1]
say("responses tool", call.type, call.name, call.arguments)
output = {"type": "function_call_output", "call_id": call.call_id, "output": "hello"}
after = oa.responses.create(model="m", input=ask + [call.to_dict(), output], tools=[reads])
say("responses result", after.output_text)

say("openai models", [m.id for m in oa.models.list()])
for status in (429, 500, 529):
    try:
        oa.chat.completions.create(model=f"fault-{status}", messages=ask)
    except openai.APIStatusError as error:
        say("openai error", type(error).__name__, error.status_code, error.response.headers.get("retry-after"), error.message)
try:
    oa.chat.completions.create(model="m", messages=[])
except openai.APIStatusError as error:
    say("openai refused", type(error).__name__, error.message)
try:
    oa.files.list()
except openai.APIStatusError as error:
    say("openai elsewhere", type(error).__name__, error.status_code)

an = anthropic.Anthropic(base_url=f"http://127.0.0.1:{port}", api_key="dummy", max_retries=0)
tool = {"name": "read", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}
message = an.messages.create(model="m", max_tokens=99, messages=ask)
say("messages", message.content[0].text, message.stop_reason, message.usage.output_tokens)
with an.messages.stream(model="m", max_tokens=99, messages=ask) as stream:
    text = "".join(stream.text_stream)
    say("messages stream", text, stream.get_final_message().stop_reason)
message = an.messages.create(model="m", max_tokens=99, messages=ask, tools=[tool])
call = message.content[-1]
say("messages tool", call.name, call.input, message.stop_reason)
result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "hello"}]}
reply = {"role": "assistant", "content": [b.to_dict() for b in message.content]}
with an.messages.stream(model="m", max_tokens=99, messages=ask + [reply, result], tools=[tool]) as stream:
    say("messages result", stream.get_final_text())
with an.messages.stream(model="m", max_tokens=99, messages=ask, tools=[tool]) as stream:
    say("messages tool stream", stream.get_final_message().content[-1].input)
say("count", an.messages.count_tokens(model="m", messages=ask).input_tokens)
say("anthropic models", [m.id for m in an.models.list()])
for status in (429, 500, 529):
    try:
        an.messages.create(model=f"fault-{status}", max_tokens=9, messages=ask)
    except anthropic.APIStatusError as error:
        say("anthropic error", type(error).__name__, error.status_code, error.response.headers.get("retry-after"), error.body)
try:
    an.messages.create(model="m", max_tokens=9, messages=[])
except anthropic.APIStatusError as error:
    say("anthropic refused", type(error).__name__, error.body)
"#;

#[test]
fn python_sdks_behave_as_without_the_proxy() {
    let python = match python() {
        Ok(python) => python,
        Err(why) => return println!("skipped: {}: {why}", PACKAGES.join(" and ")),
    };
    let provider = || {
        let model = Script::new(|asked| {
            let has_tools = asked.body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
            if has_tools && !asked.body.to_string().contains("hello") {
                return ScriptedReply {
                    calls: vec![("read".to_owned(), json!({ "path": "notes.md" }))],
                    ..ScriptedReply::default()
                };
            }
            ScriptedReply {
                text: "It says hello, naïvely: 日本語 😀.".to_owned(),
                ..ScriptedReply::default()
            }
        });
        Upstream::start(model).unwrap()
    };
    let direct = provider();
    let expected = run(&python, SCRIPT, direct.port());
    let (folder, upstream) = (folder(), provider());
    // With a window in the settings, the provider is not queried.
    let proxy = RunningProxy::start(folder.path(), &upstream.url(), &["--window", "200k"]);
    let seen = run(&python, SCRIPT, proxy.port);
    assert!(expected.lines().count() >= 24, "{expected}");
    for (expected, seen) in expected.lines().zip(seen.lines()) {
        assert_eq!(seen, expected);
    }
    assert_eq!(seen.lines().count(), expected.lines().count());
    println!(
        "{}: {} observations, the same through the proxy",
        PACKAGES.join(" and "),
        expected.lines().count()
    );
    // Small requests are unchanged except for the recall tool.
    let (straight, through) = (direct.seen(), upstream.seen());
    assert_eq!(straight.len(), through.len());
    for (one, other) in straight.iter().zip(&through) {
        assert_eq!((&one.method, &one.path), (&other.method, &other.path));
        assert_eq!(one.header("x-api-key"), other.header("x-api-key"));
        assert_eq!(one.header("authorization"), other.header("authorization"));
        assert_eq!(one.header("anthropic-version"), other.header("anthropic-version"));
        assert_eq!(one.violations, other.violations);
    }
}

/// The output of a script that gets the port of its provider.
pub(crate) fn run(python: &Path, script: &str, port: u16) -> String {
    let output =
        Command::new(python).args(["-c", script, &port.to_string()]).env("NO_PROXY", "*").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// A Python with both packages, installed once below `target`.
pub(crate) fn python() -> Result<PathBuf, String> {
    install_python("sdks", &PACKAGES, &Path::new(env!("CARGO_TARGET_TMPDIR")).join(".."))
}

//! An agent loop whose requests never outgrow the model's window.
//!
//! ```text
//! cargo run -p fanfold --example agent_loop
//! ```

#![allow(clippy::print_stdout, reason = "an example prints what it does")]

use fanfold::{Error, Options, Store};

fn main() -> Result<(), Error> {
    let store = Store::in_memory();
    let options = Options { window: Some(4_000), ..Options::default() };
    let mut messages = vec![r#"{"role":"user","content":"read the logs one by one"}"#.to_owned()];
    let mut last = None;
    for i in 0..20 {
        // A real agent sends `folded.body` to its provider, and appends the reply and the results of its calls.
        let body = format!(r#"{{"model":"gpt-5","messages":[{}]}}"#, messages.join(","));
        let folded = store.request("logs", &body, &options)?;
        println!(
            "request {i:2}: {:5} of {:5} tokens, {} folds",
            folded.tokens, folded.tokens_before, folded.n_folds
        );
        last = folded.handles.last().cloned().or(last);
        messages.push(format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_{i}","type":"function","function":{{"name":"read","arguments":"{{\"path\":\"{i}.log\"}}"}}}}]}}"#
        ));
        let log: String = (0..80).map(|line| format!("{i}.log:{line} request served\\n")).collect();
        messages.push(format!(r#"{{"role":"tool","tool_call_id":"call_{i}","content":"{log}"}}"#));
    }
    if let Some(handle) = last {
        let original = store.recall("logs", &handle)?;
        println!("{handle} recalls {} lines that were folded", original.lines().count());
    }
    Ok(())
}

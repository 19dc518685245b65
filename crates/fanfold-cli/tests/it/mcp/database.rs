//! The tools with PostgreSQL: the same answers as with a file.

use serde_json::{Value, json};

use super::client::{Client, program};
use super::stored_session::FIRST_LINE;
use crate::cluster;
use crate::sandbox::{Sandbox, body, long_chat};
use crate::sessions::handles;

/// A client of the tools on each of two stores with the same session, in a database and in a file.
struct Both {
    sandbox: Sandbox,
    address: String,
    database: Client,
    file: Client,
    handles: Vec<String>,
}

impl Both {
    /// None without PostgreSQL.
    fn start() -> Option<Both> {
        let address = cluster::database()?;
        let sandbox = Sandbox::new();
        sandbox.write("chat.json", &body(&long_chat(30)));
        let start = |store: &str| {
            let ran = sandbox.run(&format!("fold chat.json --session night --window 8k --store {store}"));
            assert_eq!(ran.code, 0, "{}", ran.err);
            let mut command = program(&sandbox.path(""));
            command.args(["--store", store]);
            let mut client = Client::run(command);
            client.hello();
            (client, handles(&ran.out))
        };
        let ((database, handles), (file, _)) = (start(&address), start("s.db"));
        assert!(handles.len() > 3, "nothing was folded");
        Some(Both { sandbox, address, database, file, handles })
    }

    /// Calls a tool on both, and gives what each said.
    fn call(&mut self, tool: &str, arguments: &Value) -> [Value; 2] {
        [&mut self.database, &mut self.file].map(|client| client.call(tool, arguments.clone()).json())
    }
}

/// The answer about a session, without times.
fn fields<'v>(value: &'v Value, names: &[&str]) -> Vec<&'v Value> {
    names.iter().map(|name| &value[*name]).collect()
}

#[test]
fn tools_give_the_same_results_with_postgres() {
    let Some(mut both) = Both::start() else { return };
    let [there, here] = both.call("search", &json!({ "query": "hundredth record" }));
    let told = ["session_id", "snippet", "matched_role", "messages_after", "match_message_id"];
    assert_eq!((&there["mode"], &there["count"]), (&json!("discover"), &json!(1)), "{there}");
    assert_eq!(fields(&there["results"][0], &told), fields(&here["results"][0], &told));
    let number = &there["results"][0]["match_message_id"];
    let around = json!({ "session_id": "night", "around_message_id": number, "window": 2 });
    let [there, here] = both.call("search", &around);
    assert_eq!(there["messages"].as_array().map(Vec::len), here["messages"].as_array().map(Vec::len));
    assert_eq!(there["mode"], "scroll");
    for arguments in [json!({}), json!({ "session_id": "night" })] {
        let [there, here] = both.call("search", &arguments);
        assert_eq!(
            fields(&there, &["mode", "count", "message_count"]),
            fields(&here, &["mode", "count", "message_count"])
        );
    }
    for handle in both.handles.clone() {
        let arguments = json!({ "handle": handle });
        let there = both.database.call("recall", arguments.clone());
        assert_eq!(there.text(), both.file.call("recall", arguments).text(), "{handle}");
    }
    let found = both.database.call("recall", json!({ "handle": both.handles[0], "search": "take_0_0(" }));
    assert!(found.text().contains(FIRST_LINE), "{:?}", found.texts);
    let [there, here] = both.call("status", &json!({ "session_id": "night" }));
    let told = ["session_id", "window", "tokens", "tokens_left", "folds", "handles", "messages"];
    assert_eq!(fields(&there, &told), fields(&here, &told));
    assert!(there["folds"].as_u64().is_some_and(|n| n > 0), "{there}");
}

#[test]
fn postgres_writes_of_others_are_found() {
    let Some(mut both) = Both::start() else { return };
    let nowhere = both.database.call("recall", json!({ "handle": "000000" }));
    assert!(nowhere.error().starts_with("none of the 1 sessions has the handle 000000"));
    let walrus = [json!({ "role": "user", "content": "a walrus in the harbour" })];
    both.sandbox.write("more.json", &body(&walrus));
    let ran = both.sandbox.run(&format!("fold more.json --session more --store {}", both.address));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let found = both.database.call("search", json!({ "query": "walrus" })).json();
    assert_eq!(found["results"][0]["session_id"], "more", "{found}");
}

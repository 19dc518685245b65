//! The tools with PostgreSQL: the same answers as with a file.

use fanfold_testkit::handles_in;
use serde_json::{Value, json};

use super::client::{Client, program};
use super::stored_session::FIRST_LINE;
use crate::cluster;
use crate::sandbox::{Sandbox, body, long_chat};

/// A client of the tools on each of two stores with the same session, in a database and in a file.
struct TwoStores {
    sandbox: Sandbox,
    address: String,
    database: Client,
    file: Client,
    handles: Vec<String>,
}

impl TwoStores {
    /// Returns `None` without PostgreSQL.
    fn start() -> Option<TwoStores> {
        let address = cluster::database()?;
        let sandbox = Sandbox::new();
        sandbox.write("chat.json", &body(&long_chat(30)));
        let start = |store: &str| {
            let ran = sandbox.run(&format!("fold chat.json --session night --window 8k --store {store}"));
            assert_eq!(ran.code, 0, "{}", ran.err);
            let mut command = program(&sandbox.path(""));
            command.args(["--store", store]);
            let mut client = Client::run(command);
            client.initialize();
            (client, handles_in(&ran.out))
        };
        let ((database, handles), (file, _)) = (start(&address), start("s.db"));
        assert!(handles.len() > 3, "nothing was folded");
        Some(TwoStores { sandbox, address, database, file, handles })
    }

    /// Calls a tool on both stores and returns the two results.
    fn call(&mut self, tool: &str, arguments: &Value) -> [Value; 2] {
        [&mut self.database, &mut self.file].map(|client| client.call(tool, arguments.clone()).json())
    }
}

/// The fields of an answer that do not depend on the time.
fn fields<'v>(value: &'v Value, names: &[&str]) -> Vec<&'v Value> {
    names.iter().map(|name| &value[*name]).collect()
}

#[test]
fn tools_give_the_same_results_with_postgres() {
    let Some(mut stores) = TwoStores::start() else { return };
    let [in_database, in_file] = stores.call("search", &json!({ "query": "hundredth record" }));
    let names = ["session_id", "snippet", "matched_role", "messages_after", "match_message_id"];
    assert_eq!(
        (&in_database["mode"], &in_database["count"]),
        (&json!("discover"), &json!(1)),
        "{in_database}"
    );
    assert_eq!(fields(&in_database["results"][0], &names), fields(&in_file["results"][0], &names));
    let number = &in_database["results"][0]["match_message_id"];
    let around = json!({ "session_id": "night", "around_message_id": number, "window": 2 });
    let [in_database, in_file] = stores.call("search", &around);
    assert_eq!(
        in_database["messages"].as_array().map(Vec::len),
        in_file["messages"].as_array().map(Vec::len)
    );
    assert_eq!(in_database["mode"], "scroll");
    for arguments in [json!({}), json!({ "session_id": "night" })] {
        let [in_database, in_file] = stores.call("search", &arguments);
        assert_eq!(
            fields(&in_database, &["mode", "count", "message_count"]),
            fields(&in_file, &["mode", "count", "message_count"])
        );
    }
    for handle in stores.handles.clone() {
        let arguments = json!({ "handle": handle });
        let in_database = stores.database.call("recall", arguments.clone());
        assert_eq!(in_database.text(), stores.file.call("recall", arguments).text(), "{handle}");
    }
    let found = stores.database.call("recall", json!({ "handle": stores.handles[0], "search": "take_0_0(" }));
    assert!(found.text().contains(FIRST_LINE), "{:?}", found.texts);
    let [in_database, in_file] = stores.call("status", &json!({ "session_id": "night" }));
    let names = ["session_id", "window", "tokens", "tokens_left", "folds", "handles", "messages"];
    assert_eq!(fields(&in_database, &names), fields(&in_file, &names));
    assert!(in_database["folds"].as_u64().is_some_and(|n| n > 0), "{in_database}");
}

#[test]
fn postgres_writes_of_other_processes_are_found() {
    let Some(mut stores) = TwoStores::start() else { return };
    let nowhere = stores.database.call("recall", json!({ "handle": "000000" }));
    assert!(nowhere.error().starts_with("none of the 1 sessions has the handle 000000"));
    let walrus = [json!({ "role": "user", "content": "a walrus in the harbour" })];
    stores.sandbox.write("more.json", &body(&walrus));
    let ran = stores.sandbox.run(&format!("fold more.json --session more --store {}", stores.address));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let found = stores.database.call("search", json!({ "query": "walrus" })).json();
    assert_eq!(found["results"][0]["session_id"], "more", "{found}");
}

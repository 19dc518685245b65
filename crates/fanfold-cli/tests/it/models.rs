//! `fanfold models`: the table and queries to servers.

use expect_test::expect;
use fanfold_testkit::fakes::upstream::{Script, ScriptedReply, Upstream};
use serde_json::{Value, json};

use crate::sandbox::Sandbox;

fn upstream() -> Upstream {
    Upstream::start(Script::new(|_| ScriptedReply::default())).unwrap()
}

#[test]
fn table_lists_known_models() {
    let sandbox = Sandbox::new();
    sandbox.write(".fanfold.toml", "[[models]]\npattern = \"my-model\"\nwindow = \"64k\"\n");
    let all = sandbox.run("models");
    assert_eq!(all.code, 0, "{}", all.err);
    assert!(all.out.lines().count() > 50);
    assert!(
        all.out
            .lines()
            .nth(1)
            .is_some_and(|line| line.contains("my-model") && line.ends_with("from your settings"))
    );
    let listed: Value = serde_json::from_str(&sandbox.run("models --json").out).unwrap();
    assert_eq!(listed.as_array().map(Vec::len), Some(all.out.lines().count() - 1));
    expect![[r#"
        model    openai/gpt-5-mini
        window   272,000 tokens, from the table (`gpt-5`)
        output   128,000 tokens at most
        tokens   o200k, exact
    "#]]
    .assert_eq(&sandbox.run("models openai/gpt-5-mini").out);
    expect![[r#"
        model    my-model-2
        window   64,000 tokens, from your settings (`my-model`)
        output   8,192 tokens at most
        tokens   estimated, 1000 ‰ of o200k
    "#]]
    .assert_eq(&sandbox.run("models my-model-2").out);
    let unknown = sandbox.run("models nobodys-model");
    assert_eq!(unknown.code, 1);
    expect![[r#"
        error: the window of `nobodys-model` is not known

        hint: query its server with --url, or add it to your settings under [[models]]
    "#]]
    .assert_eq(&unknown.err);
    expect![[r#"
        error: the window of `gtp-5` is not known

        hint: did you mean `glm-5`?
    "#]]
    .assert_eq(&sandbox.run("models gtp-5").err);
}

#[test]
fn url_queries_the_server() {
    let sandbox = Sandbox::new();
    let upstream = upstream();
    let url = upstream.url();
    let ask = |line: &str| {
        let ran = sandbox.run(&format!("models {line} --url {url}/v1/"));
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.out.replace(&url, "URL")
    };
    expect![[r#"
        model    nobodys-model
        window   not in the table
        server   URL/v1/ does not report it
    "#]]
    .assert_eq(&ask("nobodys-model"));
    upstream.answer_at("/api/show", &json!({ "model_info": { "llama.context_length": 131_072 } }));
    expect![[r#"
        model    nobodys-model
        window   not in the table
        server   131,072 tokens in training, by Ollama; URL/v1/ may use fewer and does not report it
    "#]]
    .assert_eq(&ask("nobodys-model"));
    upstream.answer_at("/api/show", &json!({ "parameters": "num_ctx 8192" }));
    expect![[r#"
        model    llama3.1
        window   131,072 tokens, from the table (`llama3.`)
        output   4,096 tokens at most
        tokens   estimated, 1100 ‰ of o200k
        server   8,192 tokens in use at URL/v1/, by Ollama
    "#]]
    .assert_eq(&ask("llama3.1"));
    let found: Value = serde_json::from_str(&ask("llama3.1 --json")).unwrap();
    assert_eq!(found["server"], json!({ "window": 8192, "is_served": true, "server": "Ollama" }));
    assert_eq!(found["table"]["window"], 131_072);
}

#[test]
fn errors_name_the_server_and_never_the_key() {
    let sandbox = Sandbox::new();
    let key = ["made", "up", "key", "for", "this", "test"].join("-");
    let run = |line: &str| {
        let ran = sandbox.command().env("MY_KEY", &key).args(line.split_whitespace()).output().unwrap();
        let err = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(1), "{err}");
        assert!(!err.contains(&key), "{err}");
        err
    };
    let unreachable = run("models m --url http://127.0.0.1:9 --key-env MY_KEY");
    assert!(
        unreachable.contains("m at http://127.0.0.1:9: there is no connection")
            && unreachable.contains("hint:"),
        "{unreachable}"
    );
    expect![[r#"
        error: m at http://127.0.0.1:9: the key was not accepted: the environment variable NOT_SET is not set

        hint: check the environment variable NOT_SET: it must be a key for http://127.0.0.1:9 that may use `m`
    "#]]
    .assert_eq(&run("models m --url http://127.0.0.1:9 --key-env NOT_SET"));
    expect![[r#"
        error: `127.0.0.1:9` is not a provider URL: relative URL without a base

        hint: write it as `https://api.openai.com/v1` or `http://localhost:11434`
    "#]]
    .assert_eq(&run("models m --url 127.0.0.1:9"));
}

#[test]
fn http_proxy_is_not_used_for_local_servers() {
    let sandbox = Sandbox::new();
    let upstream = upstream();
    let run = |url: &str| {
        let line = format!("models nobodys-model --url {url}");
        let ran = sandbox.command().env("HTTP_PROXY", upstream.url()).args(line.split(' ')).output().unwrap();
        String::from_utf8(ran.stdout).unwrap()
    };
    assert!(run("http://nobody-at-all.invalid").contains("does not report it"));
    let seen = upstream.seen();
    assert!(seen.iter().any(|seen| seen.path == "http://nobody-at-all.invalid/v1/models"), "{seen:?}");
    let local = self::upstream();
    assert!(run(&local.url()).contains("does not report it"));
    assert!(local.n_seen() > 0 && upstream.n_seen() == seen.len());
}

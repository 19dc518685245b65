//! Flags before environment before files.

use expect_test::expect;
use serde_json::Value;

use crate::sandbox::{Sandbox, body, long_chat};

fn window(sandbox: &Sandbox, flags: &str, variable: Option<&str>) -> u64 {
    sandbox.write("a/b/chat.json", &body(&long_chat(2)));
    let mut command = sandbox.command();
    command
        .current_dir(sandbox.path("a/b"))
        .args(["inspect", "chat.json", "--json"])
        .args(flags.split_whitespace());
    if let Some(value) = variable {
        command.env("FANFOLD_WINDOW", value);
    }
    let output = command.output().unwrap();
    let numbers: Value = serde_json::from_slice(&output.stdout).unwrap();
    numbers["window"].as_u64().unwrap()
}

#[test]
fn the_nearest_word_counts() {
    let sandbox = Sandbox::new();
    assert_eq!(window(&sandbox, "", None), 128_000, "the model's own");
    sandbox.write(
        "config/fanfold/config.toml",
        "window = 10_000\n[[models]]\npattern = \"gpt-4o\"\nwindow = \"9k\"\n",
    );
    assert_eq!(window(&sandbox, "", None), 10_000, "the user's");
    sandbox.write("a/.fanfold.toml", "window = \"20k\"\n");
    assert_eq!(window(&sandbox, "", None), 20_000, "the project's");
    assert_eq!(window(&sandbox, "", Some("30k")), 30_000, "the environment's");
    assert_eq!(window(&sandbox, "--window 40k", Some("30k")), 40_000, "the flag's");
}

#[test]
fn models_of_ones_own_are_known() {
    let sandbox = Sandbox::new();
    sandbox.write(".fanfold.toml", "[[models]]\npattern = \"gpt-4o\"\nwindow = \"9k\"\n");
    assert_eq!(window(&sandbox, "", None), 9_000);
}

#[test]
fn the_smallest_window_of_a_chain_counts_from_the_start() {
    let sandbox = Sandbox::new();
    let models = "[[models]]\npattern = \"small\"\nwindow = \"9k\"\n[[models]]\npattern = \"large\"\nwindow = \"1m\"\n";
    sandbox.write(".fanfold.toml", models);
    // The conversation names gpt-4o, which takes 128,000.
    assert_eq!(window(&sandbox, "--fallback large", None), 128_000);
    assert_eq!(window(&sandbox, "--fallback large,small", None), 9_000);
    assert_eq!(window(&sandbox, "--model large --fallback gpt-4o", None), 128_000);
    assert_eq!(window(&sandbox, "--window 50k --fallback large", None), 50_000);
    assert_eq!(window(&sandbox, "--fallback small", Some("50k")), 9_000);
    sandbox.write(".fanfold.toml", &format!("fallback = [\"small\", \"large\"]\n{models}"));
    assert_eq!(window(&sandbox, "", None), 9_000);
    assert_eq!(window(&sandbox, "--fallback large", None), 128_000, "the flag's chain");
    // One whose window nobody knows does not count, and that is said.
    let ran = sandbox.run("inspect a/b/chat.json --json --fallback nobodys-model");
    assert_eq!(serde_json::from_str::<Value>(&ran.out).unwrap()["window"], 128_000);
    assert!(ran.err.contains("`nobodys-model`, which may take over, is not known"), "{}", ran.err);
}

#[test]
fn values_are_shown_with_their_sources() {
    let sandbox = Sandbox::new();
    sandbox.write(
        ".fanfold.toml",
        "window = \"20k\"\nlow_mark = 0.5\n[[tools]]\nname = \"todo\"\nfold = \"never\"\n",
    );
    let output = sandbox.command().args(["config", "show"]).env("FANFOLD_POLICY", "rules").output().unwrap();
    let shown =
        String::from_utf8(output.stdout).unwrap().replace(&sandbox.path("").display().to_string(), "HERE/");
    expect![[r#"
        window          20000                HERE/.fanfold.toml
        reserve         not set
        model           not set
        fallback        not set
        policy          rules                FANFOLD_POLICY
        rules           not set
        strategy        not set
        cadence         not set
        format          not set
        focus           not set
        user_text       not set
        tokenizer       not set
        color           not set
        low_mark        0.5                  HERE/.fanfold.toml
        tail            not set
        working_context not set
        need            not set
        store           not set
        profile         not set
        tools           todo                 HERE/.fanfold.toml
        models          not set
        prices          not set
        serve           not set
        memory          not set
        summary         not set
    "#]]
    .assert_eq(&shown);
}

#[test]
fn a_wrong_key_is_told_its_place_and_the_nearest_right_one() {
    let sandbox = Sandbox::new();
    sandbox.write(".fanfold.toml", "window = \"20k\"\n\n  polcy = \"rules\"\n");
    let ran = sandbox.run("config show");
    expect![[r#"
        error: HERE/.fanfold.toml:3:3: there is no setting `polcy`

        hint: did you mean `policy`?
    "#]]
    .assert_eq(&ran.err);
    sandbox.write(".fanfold.toml", "[[tools]]\nname = \"x\"\nfould = \"never\"\n");
    expect![[r#"
        error: HERE/.fanfold.toml:3:1: there is no setting `fould`

        hint: did you mean `fold`?
    "#]]
    .assert_eq(&sandbox.run("config show").err);
    sandbox.write(".fanfold.toml", "window = \"many\"\n");
    expect![[r#"
        error: HERE/.fanfold.toml:1:10: `many` is not a number of tokens: write 32000, 32_000, 32k or 1.5m

        hint: `fanfold config schema` describes every setting
    "#]]
    .assert_eq(&sandbox.run("config show").err);
    sandbox.write(".fanfold.toml", "window = \n");
    expect![[r#"
        error: HERE/.fanfold.toml:1:10: string values must be quoted, expected literal string

        hint: `fanfold config schema` describes every setting
    "#]]
    .assert_eq(&sandbox.run("config show").err);
    assert_eq!(sandbox.run("config show").code, 1);
    assert_eq!(sandbox.run("config path").code, 0, "works with a broken file");
}

#[test]
fn a_wrong_variable_is_named() {
    let sandbox = Sandbox::new();
    let output =
        sandbox.command().args(["config", "show"]).env("FANFOLD_USER_TEXT", "maybe").output().unwrap();
    expect![[r#"
        error: FANFOLD_USER_TEXT: `maybe` is none of last_resort, never

        hint: change FANFOLD_USER_TEXT or unset it
    "#]]
    .assert_eq(&String::from_utf8(output.stderr).unwrap());
}

#[test]
fn a_file_is_started_once() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run("config init").out, "HERE/.fanfold.toml\n");
    assert!(sandbox.read(".fanfold.toml").contains("# window = "));
    assert_eq!(sandbox.run("config show").code, 0);
    let ran = sandbox.run("config init");
    assert!(ran.code == 1 && ran.err.contains("is there already"), "{}", ran.err);
    assert_eq!(sandbox.run("config init --user").out, "HERE/config/fanfold/config.toml\n");
}

#[test]
fn the_schema_knows_every_key() {
    let schema: Value = serde_json::from_str(&Sandbox::new().run("config schema").out).unwrap();
    let keys = schema["properties"].as_object().unwrap();
    for key in ["window", "user_text", "tools", "models", "prices", "low_mark"] {
        assert!(keys.contains_key(key), "{key}");
    }
    assert_eq!(schema["additionalProperties"], false);
}

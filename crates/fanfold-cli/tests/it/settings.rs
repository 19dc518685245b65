//! Settings: precedence, errors, `fanfold config`.

use expect_test::expect;
use serde_json::{Value, json};

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
fn settings_follow_precedence() {
    let sandbox = Sandbox::new();
    assert_eq!(window(&sandbox, "", None), 128_000, "the model's window");
    sandbox.write(
        "config/fanfold/config.toml",
        "window = 10_000\n[[models]]\npattern = \"gpt-4o\"\nwindow = \"9k\"\n",
    );
    assert_eq!(window(&sandbox, "", None), 10_000, "the user's file");
    sandbox.write("a/.fanfold.toml", "window = \"20k\"\n");
    assert_eq!(window(&sandbox, "", None), 20_000, "the project's file");
    assert_eq!(window(&sandbox, "", Some("30k")), 30_000, "the environment");
    assert_eq!(window(&sandbox, "--window 40k", Some("30k")), 40_000, "the flag");
}

#[test]
fn models_are_added_in_settings() {
    let sandbox = Sandbox::new();
    sandbox.write(".fanfold.toml", "[[models]]\npattern = \"gpt-4o\"\nwindow = \"9k\"\n");
    assert_eq!(window(&sandbox, "", None), 9_000);
}

#[test]
fn smallest_fallback_window_applies() {
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
    assert_eq!(window(&sandbox, "--fallback large", None), 128_000, "the flag overrides the settings");
    // A model with an unknown window is ignored and reported.
    let ran = sandbox.run("inspect a/b/chat.json --json --fallback nobodys-model");
    assert_eq!(serde_json::from_str::<Value>(&ran.out).unwrap()["window"], 128_000);
    assert!(ran.err.contains("the fallback model `nobodys-model` is unknown"), "{}", ran.err);
}

#[test]
fn config_show_prints_values_and_sources() {
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
        reserve         default: a quarter of the window, at most 8192
        model           default: what the request names
        fallback        not set
        policy          rules                FANFOLD_POLICY
        engine          fanfold              default
        rules           not set
        strategy        from 60 %            default
        cadence         default: cost where the model's price is known, else window
        quality         balanced             default
        format          default: recognised
        focus           not set
        user_text       last_resort          default
        tokenizer       default: the model's own
        color           auto                 default
        low_mark        0.5                  HERE/.fanfold.toml
        tail            0                    default
        working_context false                default
        store           HERE/.local/share/fanfold/default.db default
        profile         default              default
        tools           todo (fold never)    HERE/.fanfold.toml
        models          not set
        prices          not set
        serve           127.0.0.1:7744       default
        memory          not set
        summary         not set
    "#]]
    .assert_eq(&shown);
}

/// A chat with calls of an unknown tool for tickets.
fn ticket_chat(result: &str) -> String {
    let mut messages = vec![json!({ "role": "user", "content": "Which tickets are about the till?" })];
    for i in 0..30 {
        let arguments =
            json!({ "detail": "full", "format": "text", "ticket": format!("T-{i}00") }).to_string();
        let function = json!({ "name": "fetch_ticket", "arguments": arguments });
        messages.push(json!({ "role": "assistant", "content": "Next.",
            "tool_calls": [{ "id": format!("c{i}"), "type": "function", "function": function }] }));
        // Each result is different, so that none is a repetition.
        let result = format!("{result}{}", "so ".repeat(i));
        messages.push(json!({ "role": "tool", "tool_call_id": format!("c{i}"), "content": result }));
    }
    body(&messages)
}

#[test]
fn tool_rules_change_the_view() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &ticket_chat(&"the till prints no receipt any more, and so on\n".repeat(30)));
    let fold = || sandbox.run("fold chat.json --window 6k --reserve 0 -q").out;
    assert!(!fold().contains("fetch_ticket T-"), "{}", fold());
    sandbox.write(".fanfold.toml", "[[tools]]\nname = \"fetch_ticket\"\ntarget = [\"ticket\"]\n");
    assert!(fold().contains("fetch_ticket T-") && !fold().contains("detail=full"), "{}", fold());
    let pages: String = (0..90).map(|n| format!("shop/aisle_{}/till_{n}.txt\n", n / 30)).collect();
    sandbox.write("chat.json", &ticket_chat(&pages));
    // The newest result is cut to a twentieth of the room, and condensed as the configured kind.
    let capped = "[[tools]]\nname = \"fetch_*\"\ncap = 0.05\n";
    sandbox.write(".fanfold.toml", capped);
    let as_names = fold();
    assert!(as_names.contains("condensed from"), "{as_names}");
    let as_log = format!("{capped}condense = \"log\"\n");
    sandbox.write(".fanfold.toml", &as_log);
    assert!(fold().contains("condensed from") && fold() != as_names, "{}", fold());
    sandbox.write(".fanfold.toml", &format!("{as_log}target = [\"project\", \"ticket\"]\n"));
    let shown = sandbox.run("config show").out;
    assert!(shown.contains("fetch_* (cap 0.05, condense log, target project ticket)"), "{shown}");
}

#[test]
fn config_show_reports_invalid_values() {
    let sandbox = Sandbox::new();
    for (wrong, told) in [
        ("policy = \"fanfodl\"", "there is no policy `fanfodl`\n\nhint: did you mean `fanfold`?"),
        ("strategy = \"often\"", "often"),
        ("cadence = \"dear\"", "dear"),
        ("quality = \"perfect\"", "perfect"),
        ("format = \"chatt\"", "chatt"),
        ("rules = \"none.yaml\"", "none.yaml"),
        ("tokenizer = \"none.json\"", "none.json"),
    ] {
        sandbox.write(".fanfold.toml", &format!("{wrong}\n"));
        for flags in ["", "--json"] {
            let ran = sandbox.run(&format!("config show {flags}"));
            assert!(ran.code == 1 && ran.err.contains(told), "{wrong}: {}", ran.err);
            assert!(ran.out.contains("HERE/.fanfold.toml"), "{wrong}: {}", ran.out);
        }
    }
}

#[test]
fn profile_overrides_a_store_of_lower_precedence() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(3)));
    assert_eq!(sandbox.run("fold chat.json --session s --store kept.db -q").code, 0);
    let run = |line: &str| {
        let output =
            sandbox.command().args(line.split(' ')).env("FANFOLD_STORE", "kept.db").output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    assert!(run("sessions list --json").1.contains("\"s\""));
    let (code, out, err) = run("sessions list --json --profile work");
    assert!(!out.contains("\"s\"") && err.contains("work.db"), "{code:?} {out} {err}");
    let (code, _, err) = run("sessions delete s --profile ../../kept");
    assert!(code != Some(0) && err.contains("is not a valid profile name"), "{err}");
    let (code, _, err) = run("sessions list --store kept.db --profile work");
    assert!(code == Some(2) && err.contains("cannot be used with"), "{err}");
    // The source of higher precedence wins, for a profile as for a store.
    sandbox.write("config/fanfold/config.toml", "profile = \"work\"\n");
    assert!(run("sessions list --json").1.contains("\"s\""), "the environment's store");
    sandbox.write("config/fanfold/config.toml", "store = \"kept.db\"\n");
    let output = sandbox.command().args(["config", "show"]).env("FANFOLD_PROFILE", "work").output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("fanfold/work.db") && !shown.contains("kept.db"), "{shown}");
}

#[test]
fn misspelt_variable_is_reported() {
    let sandbox = Sandbox::new();
    let output = sandbox.command().args(["config", "show"]).env("FANFOLD_WINDWO", "3").output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(err, "warning: fanfold does not read FANFOLD_WINDWO: did you mean FANFOLD_WINDOW?\n");
    assert!(output.status.success());
}

/// Every page of the guide and the readme.
fn pages() -> Vec<std::path::PathBuf> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    let files = std::fs::read_dir(root.join("docs/guide")).unwrap();
    pages.extend(
        files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|ext| ext == "md")),
    );
    pages
}

#[test]
fn settings_in_the_guide_are_valid() {
    let mut n_blocks = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for block in text.split("```toml\n").skip(1) {
            let block = block.split("```").next().unwrap();
            let sandbox = Sandbox::new();
            sandbox.write("config/fanfold/config.toml", block);
            let ran = sandbox.run("config show");
            assert_eq!(ran.code, 0, "{}:\n{block}\n{}", page.display(), ran.err);
            n_blocks += 1;
        }
    }
    assert!(n_blocks >= 7, "{n_blocks}");
}

#[test]
fn unknown_key_error_has_position_and_suggestion() {
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
    sandbox.write(".fanfold.toml", "[[tools]]\nname = \"x\"\ntargets = [\"path\"]\n");
    expect![[r#"
        error: HERE/.fanfold.toml:3:1: there is no setting `targets`

        hint: did you mean `target`?
    "#]]
    .assert_eq(&sandbox.run("config show").err);
    sandbox.write(".fanfold.toml", "[[tools]]\nname = \"x\"\ncondense = \"logs\"\n");
    let err = sandbox.run("config show").err;
    assert!(
        err.starts_with("error: HERE/.fanfold.toml:3:12: unknown variant `logs`, expected one of"),
        "{err}"
    );
    assert!(err.ends_with("\n\nhint: did you mean `log`?\n"), "{err}");
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
fn invalid_variable_is_named() {
    let sandbox = Sandbox::new();
    let output =
        sandbox.command().args(["config", "show"]).env("FANFOLD_USER_TEXT", "maybe").output().unwrap();
    expect![[r#"
        error: FANFOLD_USER_TEXT: `maybe` is not one of last_resort, never

        hint: change FANFOLD_USER_TEXT or unset it
    "#]]
    .assert_eq(&String::from_utf8(output.stderr).unwrap());
}

#[test]
fn config_init_does_not_overwrite() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run("config init").out, "HERE/.fanfold.toml\n");
    assert!(sandbox.read(".fanfold.toml").contains("# window = "));
    assert_eq!(sandbox.run("config show").code, 0);
    let ran = sandbox.run("config init");
    assert!(ran.code == 1 && ran.err.contains("exists already"), "{}", ran.err);
    assert_eq!(sandbox.run("config init --user").out, "HERE/config/fanfold/config.toml\n");
}

#[test]
fn schema_contains_every_key() {
    let schema: Value = serde_json::from_str(&Sandbox::new().run("config schema").out).unwrap();
    let keys = schema["properties"].as_object().unwrap();
    for key in ["window", "user_text", "tools", "models", "prices", "low_mark"] {
        assert!(keys.contains_key(key), "{key}");
    }
    assert_eq!(schema["additionalProperties"], false);
    let tool = &schema["$defs"]["ToolOptions"];
    let keys: Vec<&String> = tool["properties"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["name", "fold", "cap", "condense", "target"]);
    assert_eq!(tool["properties"]["target"]["items"]["type"], "string");
    let kinds = schema["$defs"]["ResultKind"]["oneOf"].as_array().unwrap();
    let kinds: Vec<&str> = kinds.iter().filter_map(|kind| kind["const"].as_str()).collect();
    assert_eq!(kinds, fanfold_core::ContentKind::ALL.map(fanfold_core::ContentKind::name));
}

/// The settings that a project's file may have: those that only decide how conversations are folded.
const FOLDING: [&str; 20] = [
    "window",
    "reserve",
    "model",
    "fallback",
    "policy",
    "engine",
    "rules",
    "strategy",
    "cadence",
    "quality",
    "format",
    "focus",
    "user_text",
    "tokenizer",
    "low_mark",
    "tail",
    "working_context",
    "tools",
    "models",
    "prices",
];

/// A part of a settings file that sets one setting, from what `config init` writes.
fn example(template: &str, name: &str) -> String {
    let lines: Vec<&str> = template.lines().filter_map(|line| line.strip_prefix("# ")).collect();
    let single = lines.iter().find(|line| line.starts_with(&format!("{name} = ")));
    if let Some(line) = single.filter(|_| !["tools", "models", "prices"].contains(&name)) {
        return format!("{line}\n");
    }
    let is_head =
        |line: &str| [format!("[{name}]"), format!("[[{name}]]")].iter().any(|head| line.starts_with(head));
    let head = lines.iter().position(|line| is_head(line)).unwrap_or_else(|| panic!("no example of {name}"));
    let body = lines[head + 1..].iter().take_while(|line| !line.starts_with('[') && line.contains(" = "));
    format!("{}\n{}", lines[head], body.map(|line| format!("{line}\n")).collect::<String>())
}

#[test]
fn a_project_decides_only_how_conversations_are_folded() {
    let sandbox = Sandbox::new();
    sandbox.run("config init --user");
    let template = sandbox.read("config/fanfold/config.toml");
    std::fs::remove_file(sandbox.path("config/fanfold/config.toml")).unwrap();
    let schema: Value = serde_json::from_str(&sandbox.run("config schema").out).unwrap();
    let names: Vec<String> = schema["properties"].as_object().unwrap().keys().cloned().collect();
    assert!(FOLDING.iter().all(|name| names.iter().any(|known| known == name)), "{names:?}");
    for name in names {
        let set = example(&template, &name);
        sandbox.write(".fanfold.toml", &set);
        let ran = sandbox.run("config show");
        let is_refused = ran.code == 1 && ran.err.contains("is not allowed in a project's file");
        assert_eq!(is_refused, !FOLDING.contains(&&*name), "{name}: {set}{}", ran.err);
        if is_refused {
            assert!(
                ran.err.contains(&name) && ran.err.contains("hint: move it to your own file"),
                "{}",
                ran.err
            );
            sandbox.write("config/fanfold/config.toml", &set);
            std::fs::remove_file(sandbox.path(".fanfold.toml")).unwrap();
            assert_eq!(sandbox.run("config show").code, 0, "{name} in the user's file");
            std::fs::remove_file(sandbox.path("config/fanfold/config.toml")).unwrap();
        }
    }
}

#[test]
fn a_cloned_repository_does_not_decide_where_conversations_are_stored() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(3)));
    for planted in
        ["store = \"planted.db\"", "store = \"postgres://x:y@127.0.0.1:9/loot\"", "profile = \"planted\""]
    {
        sandbox.write(".fanfold.toml", &format!("{planted}\n"));
        for line in ["fold chat.json --session s", "sessions list", "search words", "serve -- true", "mcp"] {
            let ran = sandbox.run(line);
            assert!(
                ran.code == 1 && ran.err.contains("is not allowed in a project's file"),
                "{line}: {}",
                ran.err
            );
        }
    }
    assert!(
        !sandbox.path("planted.db").exists() && !sandbox.path(".local/share/fanfold/planted.db").exists()
    );
}

#[cfg(unix)]
#[test]
fn a_project_file_of_another_user_is_ignored() {
    const NOBODY: u32 = 65_534;
    let sandbox = Sandbox::new();
    let file = sandbox.write(".fanfold.toml", "window = \"20k\"\n");
    assert_eq!(window(&sandbox, "", None), 20_000);
    if std::os::unix::fs::chown(&file, Some(NOBODY), None).is_err() {
        eprintln!("skipped: only root may give a file to another user");
        return;
    }
    assert_eq!(window(&sandbox, "", None), 128_000);
    let warning =
        "warning: HERE/.fanfold.toml is ignored, because it belongs to another user; copy it to use it\n";
    assert_eq!(sandbox.run("config show").err, warning);
    // The file of a parent folder applies again, as if the other one did not exist.
    std::fs::rename(&file, sandbox.path("a/.fanfold.toml")).unwrap();
    sandbox.write(".fanfold.toml", "window = \"30k\"\n");
    assert_eq!(window(&sandbox, "", None), 30_000);
    // A link of another user is no better than a file of theirs.
    std::fs::remove_file(sandbox.path("a/.fanfold.toml")).unwrap();
    sandbox.write("own.toml", "window = \"40k\"\n");
    std::os::unix::fs::symlink(sandbox.path("own.toml"), sandbox.path("a/.fanfold.toml")).unwrap();
    assert_eq!(window(&sandbox, "", None), 40_000);
    std::os::unix::fs::lchown(sandbox.path("a/.fanfold.toml"), Some(NOBODY), None).unwrap();
    assert_eq!(window(&sandbox, "", None), 30_000);
}

#[test]
fn a_password_among_the_arguments_is_warned_about() {
    let sandbox = Sandbox::new();
    let warning = "other users of this machine can read the password in --store";
    let ran = sandbox.run("sessions list --store postgres://me:s3cr3t@127.0.0.1:9/kept");
    assert!(ran.err.contains(warning) && ran.err.contains("FANFOLD_STORE"), "{}", ran.err);
    assert!(!ran.err.contains("s3cr3t"), "{}", ran.err);
    let address = "postgres://me:s3cr3t@127.0.0.1:9/kept";
    let output = sandbox.command().args(["sessions", "list"]).env("FANFOLD_STORE", address).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("127.0.0.1:9") && !err.contains("warning"), "the environment is read: {err}");
    sandbox.write("config/fanfold/config.toml", &format!("store = \"{address}\"\n"));
    let err = sandbox.run("sessions list").err;
    assert!(err.contains("127.0.0.1:9") && !err.contains("warning"), "the file is read: {err}");
}

//! The manifest of the fuzz targets, which is a workspace of its own: what it must have because the program has it.
//!
//! The target `pipe` is built from the sources of the program `fanfold`, so it needs what that needs: its dependencies, in
//! the same versions and with at least the same features, and its modules. No compiler sees the two lists together.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};
use toml::{Table, Value};

/// Compares the two lists.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let read = |path: &str| -> anyhow::Result<Table> {
        let text = fs::read_to_string(root.join(path)).with_context(|| path.to_owned())?;
        text.parse().with_context(|| path.to_owned())
    };
    compare(&read("Cargo.toml")?, &read("crates/fanfold-cli/Cargo.toml")?, &read("fuzz/Cargo.toml")?)?;
    let modules = |path: &str| -> anyhow::Result<Vec<String>> {
        let text = fs::read_to_string(root.join(path)).with_context(|| path.to_owned())?;
        Ok(modules(&text))
    };
    compare_modules(&modules("crates/fanfold-cli/src/main.rs")?, &modules("fuzz/fuzz_targets/pipe.rs")?)
}

/// The modules that a source file names.
fn modules(text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.strip_prefix("mod ")?.split_once(';'));
    names.map(|(name, _)| name.to_owned()).collect()
}

fn compare_modules(program: &[String], pipe: &[String]) -> anyhow::Result<()> {
    let missing = program.iter().find(|name| !pipe.contains(name));
    ensure!(
        missing.is_none(),
        "fuzz/fuzz_targets/pipe.rs lacks the module `{0}` of fanfold-cli\n\nhint: add `#[path = …] mod {0};`",
        missing.map_or("", String::as_str)
    );
    Ok(())
}

fn compare(workspace: &Table, program: &Table, fuzz: &Table) -> anyhow::Result<()> {
    let list =
        |table: &Table| table.get("dependencies").and_then(Value::as_table).cloned().unwrap_or_default();
    let shared = workspace.get("workspace").and_then(Value::as_table).map(list).unwrap_or_default();
    let fuzzed = list(fuzz);
    for (name, wanted) in list(program) {
        let mut wanted = Wanted::of(&wanted, shared.get(&name));
        wanted.features.extend(by_default(program, &name));
        wanted.features.sort();
        let Some(found) = fuzzed.get(&name) else {
            anyhow::bail!(
                "fuzz/Cargo.toml lacks `{name}`, which fanfold-cli uses\n\nhint: add {}",
                wanted.words()
            );
        };
        let found = Wanted::of(found, None);
        ensure!(
            found.has(&wanted),
            "fuzz/Cargo.toml has `{name}` as {}, fanfold-cli as {}\n\nhint: give the former what the latter has",
            found.words(),
            wanted.words()
        );
    }
    Ok(())
}

/// The features of a dependency that the program's own default features switch on.
fn by_default(program: &Table, name: &str) -> Vec<String> {
    let own = program.get("features").and_then(Value::as_table);
    let list = |feature: &str| -> Vec<String> {
        let list = own.and_then(|own| own.get(feature)?.as_array()).into_iter().flatten();
        list.filter_map(|feature| feature.as_str().map(str::to_owned)).collect()
    };
    let switched = list("default").into_iter().flat_map(|feature| list(&feature));
    switched.filter_map(|feature| feature.strip_prefix(name)?.strip_prefix('/').map(str::to_owned)).collect()
}

/// What is wanted of a dependency; where ours lie needs no comparing.
#[derive(Debug)]
struct Wanted {
    version: String,
    features: Vec<String>,
    has_defaults: bool,
}

impl Wanted {
    /// From a manifest, and from the workspace's where it says so.
    fn of(own: &Value, shared: Option<&Value>) -> Wanted {
        let mut features: Vec<String> = Vec::new();
        let (mut version, mut has_defaults) = (String::new(), true);
        for value in shared.into_iter().chain([own]) {
            if let Some(text) = value.as_str().or(value.get("version").and_then(Value::as_str)) {
                version = text.to_owned();
            }
            let more = value.get("features").and_then(Value::as_array).into_iter().flatten();
            features.extend(more.filter_map(|feature| feature.as_str().map(str::to_owned)));
            has_defaults &= value.get("default-features").and_then(Value::as_bool).unwrap_or(true);
        }
        features.sort();
        Wanted { version, features, has_defaults }
    }

    /// Whether it is what is wanted, or that with more features.
    fn has(&self, wanted: &Wanted) -> bool {
        self.version == wanted.version
            && self.has_defaults == wanted.has_defaults
            && wanted.features.iter().all(|feature| self.features.contains(feature))
    }

    fn words(&self) -> String {
        let Wanted { version, features, has_defaults } = self;
        format!("version \"{version}\", features {features:?}, default-features = {has_defaults}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: &str = r#"workspace.dependencies = { a = "1.0", b = { version = "2", features = ["x"] }, c = { path = "c" } }"#;
    const PROGRAM: &str = r#"features = { default = ["d"], d = ["c/z"], e = ["a/w"] }
dependencies = { a = { workspace = true }, b = { workspace = true, features = ["y"] }, c = { workspace = true } }"#;

    fn told(fuzz: &str) -> String {
        let [workspace, program, fuzz] =
            [WORKSPACE, PROGRAM, fuzz].map(|text| text.parse().expect("the example is TOML"));
        compare(&workspace, &program, &fuzz).err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn what_the_program_uses_the_fuzzer_must_have() {
        let b = r#"{ version = "2", features = ["x", "y"] }"#;
        let same = format!(
            r#"dependencies = {{ a = "1.0", b = {b}, c = {{ path = "../c", features = ["z"] }}, more = "1" }}"#
        );
        assert_eq!(told(&same), "");
        assert_eq!(told(&same.replace(r#"["z"]"#, r#"["more", "z"]"#)), "");
        assert!(told(&same.replace("a = ", "z = ")).starts_with("fuzz/Cargo.toml lacks `a`"));
        assert!(told(&same.replace("1.0", "1.1")).starts_with("fuzz/Cargo.toml has `a` as version \"1.1\""));
        assert!(told(&same.replace(r#", "y""#, "")).starts_with("fuzz/Cargo.toml has `b`"));
        assert!(told(&same.replace(r#", features = ["z"]"#, "")).starts_with("fuzz/Cargo.toml has `c`"));
    }

    #[test]
    fn the_modules_of_the_program_are_those_of_the_target() {
        let program = modules("mod one; //  a thing\nmod two; //  another\nuse one::mod_three;\n");
        assert_eq!(program, ["one", "two"]);
        assert!(
            compare_modules(&program, &modules("#[path = \"x\"]\nmod two;\nmod more;\nmod one;\n")).is_ok()
        );
        let told = compare_modules(&program, &modules("mod one;\n")).expect_err("one is missing").to_string();
        assert!(told.starts_with("fuzz/fuzz_targets/pipe.rs lacks the module `two`"), "{told}");
    }
}

//! Compares the manifest of the fuzz targets, which are a separate workspace, with that of the program.
//!
//! The target `pipe` is built from the sources of the program `fanfold`, so it needs the same modules and the same
//! dependencies with at least the same features. No compiler sees both lists.

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
    for (name, required) in list(program) {
        let mut required = Requirement::parse(&required, shared.get(&name));
        required.features.extend(enabled_by_default(program, &name));
        required.features.sort();
        let Some(found) = fuzzed.get(&name) else {
            anyhow::bail!(
                "fuzz/Cargo.toml lacks `{name}`, which fanfold-cli uses\n\nhint: add {}",
                required.describe()
            );
        };
        let found = Requirement::parse(found, None);
        ensure!(
            found.has(&required),
            "fuzz/Cargo.toml has `{name}` as {}, fanfold-cli as {}\n\nhint: copy the entry of fanfold-cli",
            found.describe(),
            required.describe()
        );
    }
    Ok(())
}

/// The features of a dependency that the default features of the program enable.
fn enabled_by_default(program: &Table, name: &str) -> Vec<String> {
    let own = program.get("features").and_then(Value::as_table);
    let list = |feature: &str| -> Vec<String> {
        let list = own.and_then(|own| own.get(feature)?.as_array()).into_iter().flatten();
        list.filter_map(|feature| feature.as_str().map(str::to_owned)).collect()
    };
    let switched = list("default").into_iter().flat_map(|feature| list(&feature));
    switched.filter_map(|feature| feature.strip_prefix(name)?.strip_prefix('/').map(str::to_owned)).collect()
}

/// The requirements on a dependency, without the path of workspace crates.
#[derive(Debug)]
struct Requirement {
    version: String,
    features: Vec<String>,
    has_defaults: bool,
}

impl Requirement {
    /// Reads an entry of a manifest, and the workspace's entry it inherits from.
    fn parse(own: &Value, shared: Option<&Value>) -> Requirement {
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
        // Crates of the workspace are found by their paths.
        if shared.is_some_and(|shared| shared.get("path").is_some()) {
            version.clear();
        }
        Requirement { version, features, has_defaults }
    }

    /// Reports if this entry has the same source and at least the features of the other.
    fn has(&self, required: &Requirement) -> bool {
        self.version == required.version
            && self.has_defaults == required.has_defaults
            && required.features.iter().all(|feature| self.features.contains(feature))
    }

    fn describe(&self) -> String {
        let Requirement { version, features, has_defaults } = self;
        format!("version \"{version}\", features {features:?}, default-features = {has_defaults}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: &str = r#"workspace.dependencies = { a = "1.0", b = { version = "2", features = ["x"] }, c = { path = "c" } }"#;
    const PROGRAM: &str = r#"features = { default = ["d"], d = ["c/z"], e = ["a/w"] }
dependencies = { a = { workspace = true }, b = { workspace = true, features = ["y"] }, c = { workspace = true } }"#;

    fn check_example(fuzz: &str) -> String {
        let [workspace, program, fuzz] =
            [WORKSPACE, PROGRAM, fuzz].map(|text| text.parse().expect("the example is TOML"));
        compare(&workspace, &program, &fuzz).err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn fuzz_manifest_needs_the_dependencies_of_the_program() {
        let b = r#"{ version = "2", features = ["x", "y"] }"#;
        let same = format!(
            r#"dependencies = {{ a = "1.0", b = {b}, c = {{ path = "../c", features = ["z"] }}, more = "1" }}"#
        );
        assert_eq!(check_example(&same), "");
        assert_eq!(check_example(&same.replace(r#"["z"]"#, r#"["more", "z"]"#)), "");
        assert!(check_example(&same.replace("a = ", "z = ")).starts_with("fuzz/Cargo.toml lacks `a`"));
        assert!(
            check_example(&same.replace("1.0", "1.1"))
                .starts_with("fuzz/Cargo.toml has `a` as version \"1.1\"")
        );
        assert!(check_example(&same.replace(r#", "y""#, "")).starts_with("fuzz/Cargo.toml has `b`"));
        assert!(
            check_example(&same.replace(r#", features = ["z"]"#, "")).starts_with("fuzz/Cargo.toml has `c`")
        );
    }

    #[test]
    fn fuzz_target_needs_the_modules_of_the_program() {
        let program = modules("mod one; //  a thing\nmod two; //  another\nuse one::mod_three;\n");
        assert_eq!(program, ["one", "two"]);
        assert!(
            compare_modules(&program, &modules("#[path = \"x\"]\nmod two;\nmod more;\nmod one;\n")).is_ok()
        );
        let error =
            compare_modules(&program, &modules("mod one;\n")).expect_err("one is missing").to_string();
        assert!(error.starts_with("fuzz/fuzz_targets/pipe.rs lacks the module `two`"), "{error}");
    }
}

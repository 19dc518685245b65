//! Settings from the environment: `FANFOLD_` and the name of a setting in capitals.

use super::file::nearest;
use super::options::{Options, SETTINGS};
use crate::failure::{Failure, Result};

/// Reads the variables. `get` looks one up.
pub(super) fn read(get: &dyn Fn(&str) -> Option<String>) -> Result<Options> {
    let mut options = Options::default();
    for (setting, field) in SETTINGS.iter().zip(options.fields()) {
        let variable = variable(setting.name);
        if let Some(text) = get(&variable).filter(|text| !text.is_empty()) {
            field.parse(&text).map_err(|error| {
                Failure::new(format!("{variable}: {error}"), format!("change {variable} or unset it"))
            })?;
        }
    }
    Ok(options)
}

/// The variable of a setting.
pub(super) fn variable(setting: &str) -> String {
    format!("FANFOLD_{}", setting.to_ascii_uppercase())
}

/// Variables that flags read themselves, with `env = "…"`.
const FLAG_VARIABLES: [&str; 6] = ["proxy", "token", "listen", "upstream", "log", "talk"];

/// Warnings about unknown variables whose names resemble a known one.
///
/// Other variables that begin with `FANFOLD_` may be the user's own, such as one that holds a key.
pub(super) fn misspelt(variables: &[String], options: &Options) -> Vec<String> {
    let settings = SETTINGS.iter().map(|setting| setting.name).chain(FLAG_VARIABLES);
    let known: Vec<String> = settings.map(variable).collect();
    let summary = &options.summary;
    let main_key = summary.main.iter().filter_map(|main| main.key_env.as_ref());
    let keys: Vec<&String> = options.memory.key_env.iter().chain(&summary.key_env).chain(main_key).collect();
    let is_unknown =
        |name: &&String| name.starts_with("FANFOLD_") && !known.contains(name) && !keys.contains(name);
    let warning = |name: &String| {
        let near = nearest(&name[8..], known.iter().map(|known| &known[8..]))?;
        Some(format!("fanfold does not read {name}: did you mean FANFOLD_{near}?"))
    };
    variables.iter().filter(is_unknown).filter_map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_variables_are_reported() {
        let warnings = |names: &[&str]| {
            let mut options = Options::default();
            options.memory.key_env = Some("FANFOLD_TAIK".to_owned());
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            misspelt(&names, &options)
        };
        let warning = "fanfold does not read FANFOLD_WINDWO: did you mean FANFOLD_WINDOW?";
        assert_eq!(warnings(&["HOME", "FANFOLD_WINDWO", "FANFOLD_WINDOW", "WINDWO"]), [warning]);
        let others = ["FANFOLD_TOKEN", "FANFOLD_LOG", "FANFOLD_TAIK", "FANFOLD_MY_OWN_THING", "FANFOLD_"];
        assert!(warnings(&others).is_empty());
    }
}

//! Settings from the environment: `FANFOLD_` and the name of a setting in capitals.

use std::str::FromStr;

use clap::ValueEnum;

use super::file::nearest;
use super::options::{MemoryOptions, Options, ServeOptions};
use super::summary::SummaryOptions;
use crate::failure::Failure;

/// Reads what is set. `get` looks a variable up.
pub(crate) fn read(get: &dyn Fn(&str) -> Option<String>) -> Result<Options, Failure> {
    let env = Env { get };
    Ok(Options {
        window: env.parsed("window")?,
        reserve: env.parsed("reserve")?,
        model: env.parsed("model")?,
        fallback: env.parsed("fallback")?,
        policy: env.parsed("policy")?,
        rules: env.parsed("rules")?,
        strategy: env.parsed("strategy")?,
        cadence: env.parsed("cadence")?,
        format: env.parsed("format")?,
        focus: env.parsed("focus")?,
        user_text: env.named("user_text")?,
        tokenizer: env.parsed("tokenizer")?,
        color: env.named("color")?,
        low_mark: env.parsed("low_mark")?,
        tail: env.parsed("tail")?,
        working_context: env.parsed("working_context")?,
        need: env.parsed("need")?,
        store: env.parsed("store")?,
        profile: env.parsed("profile")?,
        serve: ServeOptions::default(),
        memory: MemoryOptions::default(),
        summary: SummaryOptions::default(),
        tools: Vec::new(),
        models: Vec::new(),
        prices: Vec::new(),
    })
}

/// The variable of a setting.
pub(crate) fn variable(setting: &str) -> String {
    format!("FANFOLD_{}", setting.to_ascii_uppercase())
}

/// Variables that are read where a flag is: `env = "…"` there.
const OF_FLAGS: [&str; 6] = ["proxy", "token", "listen", "upstream", "log", "talk"];

/// Warnings about variables that nobody reads and that look like one that is read.
///
/// Others that begin with `FANFOLD_` may be somebody's own, such as the one that holds a key.
pub(crate) fn misspelt(variables: &[String], settings: &[&str], options: &Options) -> Vec<String> {
    let known: Vec<String> = settings.iter().chain(&OF_FLAGS).map(|setting| variable(setting)).collect();
    let summary = &options.summary;
    let of_main = summary.main.iter().filter_map(|main| main.key_env.as_ref());
    let keys: Vec<&String> = options.memory.key_env.iter().chain(&summary.key_env).chain(of_main).collect();
    let is_odd =
        |name: &&String| name.starts_with("FANFOLD_") && !known.contains(name) && !keys.contains(name);
    let told = |name: &String| {
        let near = nearest(&name[8..], known.iter().map(|known| &known[8..]))?;
        Some(format!("{name} is not read by fanfold: did you mean FANFOLD_{near}?"))
    };
    variables.iter().filter(is_odd).filter_map(told).collect()
}

struct Env<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
}

impl Env<'_> {
    fn text(&self, setting: &str) -> Option<String> {
        (self.get)(&variable(setting)).filter(|text| !text.is_empty())
    }

    fn parsed<T: FromStr>(&self, setting: &str) -> Result<Option<T>, Failure>
    where
        T::Err: std::fmt::Display,
    {
        let Some(text) = self.text(setting) else { return Ok(None) };
        text.parse().map(Some).map_err(|error| wrong(setting, &format!("{error}")))
    }

    fn named<T: ValueEnum>(&self, setting: &str) -> Result<Option<T>, Failure> {
        let Some(text) = self.text(setting) else { return Ok(None) };
        T::from_str(&text, false).map(Some).map_err(|_| {
            let names = T::value_variants().iter().filter_map(T::to_possible_value);
            let names: Vec<_> = names.map(|value| value.get_name().to_owned()).collect();
            wrong(setting, &format!("`{text}` is none of {}", names.join(", ")))
        })
    }
}

fn wrong(setting: &str, message: &str) -> Failure {
    let variable = variable(setting);
    Failure::new(format!("{variable}: {message}"), format!("change {variable} or unset it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_looks_like_a_setting_is_told() {
        let told = |names: &[&str]| {
            let mut options = Options::default();
            options.memory.key_env = Some("FANFOLD_TAIK".to_owned());
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            misspelt(&names, &["window", "tail"], &options)
        };
        let words = "FANFOLD_WINDWO is not read by fanfold: did you mean FANFOLD_WINDOW?";
        assert_eq!(told(&["HOME", "FANFOLD_WINDWO", "FANFOLD_WINDOW", "WINDWO"]), [words]);
        assert!(
            told(&["FANFOLD_TOKEN", "FANFOLD_LOG", "FANFOLD_TAIK", "FANFOLD_MY_OWN_THING", "FANFOLD_"])
                .is_empty()
        );
    }
}

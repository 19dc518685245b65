//! `fanfold config`: what is set, where it comes from, and how to set more.

use std::path::Path;

use fanfold_core::Policy;
use serde_json::{Value, json};

use crate::choose::{self, Asked};
use crate::failure::{Failure, not_written};
use crate::flags::{ConfigCommand, USUAL_LISTEN};
use crate::settings::{Options, PROJECT_FILE, Settings, Share, Shown, TEMPLATE, project_file, user_file};
use crate::terminal::{self, paint, style};
use crate::{output, store};

/// Where a value comes from that nobody set.
const DEFAULT: &str = "default";

/// Whether a command looks at the settings. The others work even if a file is broken.
pub(crate) fn needs_settings(command: &ConfigCommand) -> bool {
    matches!(command, ConfigCommand::Show { .. })
}

/// Prints what is used. A value that can't be is told behind it, so that its source stands before one's eyes.
pub(crate) fn run(command: &ConfigCommand, settings: &Settings) -> anyhow::Result<()> {
    let ConfigCommand::Show { json } = command else { return Ok(()) };
    let options = &settings.options;
    let checked = choose::terms(options, Asked::default()).and_then(|_| Ok(store::address(options)?));
    let all = with_defaults(settings);
    match json {
        true => show_json(&all)?,
        false => show(&all)?,
    }
    checked.map(|_| ())
}

/// Runs what does not look at the settings.
pub(crate) fn run_without_settings(command: &ConfigCommand, directory: &Path) -> anyhow::Result<()> {
    match command {
        ConfigCommand::Show { .. } => Ok(()),
        ConfigCommand::Schema => {
            let schema = schemars::schema_for!(Options);
            terminal::data(&format!("{:#}\n", schema.as_value()))
        }
        ConfigCommand::Init { user } => init(*user, directory),
        ConfigCommand::Path { json } => path(directory, *json),
    }
}

/// A setting, and what is used where it is not set.
struct Line {
    shown: Shown,
    usual: Usual,
}

/// What holds where nothing is set.
enum Usual {
    /// This value.
    Value(String),
    /// What depends on something else, in words.
    Depends(&'static str),
    /// Nothing.
    None,
}

fn with_defaults(settings: &Settings) -> Vec<Line> {
    let options = &settings.options;
    // A policy that is wrong has no defaults to tell.
    let policy = choose::policy(options).ok();
    settings
        .shown()
        .into_iter()
        .map(|shown| Line { usual: usual(shown.name, policy.as_ref(), options), shown })
        .collect()
}

fn usual(name: &str, policy: Option<&Policy>, options: &Options) -> Usual {
    let of_policy =
        |get: fn(&Policy) -> String| policy.map_or(Usual::None, |policy| Usual::Value(get(policy)));
    match name {
        "window" => Usual::Depends("the model's own"),
        "reserve" => Usual::Depends("a quarter of the window, at most 8192"),
        "model" => Usual::Depends("what the request names"),
        "cadence" => Usual::Depends("cost where the model's price is known, else window"),
        "format" => Usual::Depends("recognised"),
        "tokenizer" => Usual::Depends("the model's own"),
        "policy" | "strategy" | "low_mark" | "tail" | "working_context" | "need" => of_policy(match name {
            "policy" => |policy| policy.name.to_owned(),
            "strategy" => |policy| policy.strategy.to_string(),
            "low_mark" => |policy| Share(policy.low_mark).to_string(),
            "tail" => |policy| Share(policy.tail.share).to_string(),
            "working_context" => |policy| policy.working_context.to_string(),
            _ => |policy| policy.need.is_some().to_string(),
        }),
        "user_text" => Usual::Value("last_resort".to_owned()),
        "color" => Usual::Value("auto".to_owned()),
        "store" => store::address(options).map_or(Usual::None, Usual::Value),
        "profile" if options.store.is_none() => Usual::Value(store::USUAL_PROFILE.to_owned()),
        "serve" => Usual::Value(USUAL_LISTEN.to_owned()),
        _ => Usual::None,
    }
}

fn show(all: &[Line]) -> anyhow::Result<()> {
    let mut page = String::new();
    for Line { shown, usual } in all {
        let name = shown.name;
        let line = match (&shown.value, &shown.source, usual) {
            (Some(value), Some(source), _) => {
                format!("{name:<15} {value:<20} {}\n", paint(style::DIM, source))
            }
            (_, _, Usual::Value(value)) => format!("{name:<15} {value:<20} {}\n", paint(style::DIM, DEFAULT)),
            (_, _, Usual::Depends(words)) => {
                format!("{name:<15} {}\n", paint(style::DIM, format!("{DEFAULT}: {words}")))
            }
            (_, _, Usual::None) => format!("{name:<15} {}\n", paint(style::DIM, "not set")),
        };
        page.push_str(&line);
    }
    terminal::page(&page)
}

fn show_json(all: &[Line]) -> anyhow::Result<()> {
    let one = |Line { shown, usual }: &Line| {
        let told = match (&shown.value, usual) {
            (Some(value), _) => json!({ "value": value, "from": shown.source }),
            (None, Usual::Value(value)) => json!({ "value": value, "from": DEFAULT }),
            (None, Usual::Depends(words)) => json!({ "value": null, "from": DEFAULT, "is": words }),
            (None, Usual::None) => json!({ "value": null, "from": null }),
        };
        (shown.name.to_owned(), told)
    };
    let all: serde_json::Map<String, Value> = all.iter().map(one).collect();
    terminal::data(&format!("{:#}\n", Value::Object(all)))
}

fn init(user: bool, directory: &Path) -> anyhow::Result<()> {
    let path = match user {
        true => user_file().ok_or_else(|| Failure::new("there is no home directory", "set HOME"))?,
        false => directory.join(PROJECT_FILE),
    };
    if path.exists() {
        let message = format!("{} is there already", path.display());
        return Err(Failure::new(message, "edit it, or move it away first").into());
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|error| not_written(&path, &error))?;
    }
    output::write_file(&path, TEMPLATE.as_bytes())?;
    terminal::data(&format!("{}\n", path.display()))
}

fn path(directory: &Path, is_json: bool) -> anyhow::Result<()> {
    let project = project_file(directory).unwrap_or_else(|| directory.join(PROJECT_FILE));
    let mut page = String::new();
    let mut all = serde_json::Map::new();
    for (name, path) in [("project", Some(project)), ("user", user_file())] {
        let Some(path) = path else { continue };
        let is_there = path.is_file();
        all.insert(name.to_owned(), json!({ "path": path, "exists": is_there }));
        let remark = if is_there { "" } else { "  (not there)" };
        page.push_str(&format!("{name:<8} {}{}\n", path.display(), paint(style::DIM, remark)));
    }
    if is_json {
        return terminal::data(&format!("{:#}\n", Value::Object(all)));
    }
    terminal::page(&page)
}

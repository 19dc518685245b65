//! `fanfold config`: prints settings and their sources, the schema, and where the files are.

use std::path::Path;

use fanfold_core::Policy;
use serde_json::{Value, json};

use crate::choose::{self, Asked};
use crate::failure::{Failure, not_written};
use crate::flags::ConfigCommand;
use crate::settings::{
    Options, PROJECT_FILE, SettingDefault, SettingValue, Settings, project_file, template, user_file,
};
use crate::terminal::{self, paint, style};
use crate::{output, store};

/// The source of a value that is not set.
const DEFAULT: &str = "default";

/// Whether a command reads the settings. The others work even if a settings file is invalid.
pub(crate) fn needs_settings(command: &ConfigCommand) -> bool {
    matches!(command, ConfigCommand::Show { .. })
}

/// Prints the values in use, then fails if one of them is invalid, so that its source is visible above the error.
pub(crate) fn run(command: &ConfigCommand, settings: &Settings) -> anyhow::Result<()> {
    let ConfigCommand::Show { json } = command else { return Ok(()) };
    let checked = choose::terms(settings, Asked::default()).and_then(|_| Ok(store::address(settings)?));
    let all = shown_settings(settings);
    match json {
        true => show_json(&all)?,
        false => show(&all)?,
    }
    checked.map(|_| ())
}

/// Runs a command that does not read the settings.
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

/// What is printed of a setting: its value, or else its default.
struct ShownSetting {
    name: &'static str,
    value: Option<String>,
    source: Option<String>,
    /// The rule by which the default is determined, where it is not a fixed value.
    rule: Option<&'static str>,
}

impl ShownSetting {
    fn new(setting: SettingValue, policy: Option<&Policy>, options: &Options) -> ShownSetting {
        let SettingValue { name, value, source, default } = setting;
        if value.is_some() {
            return ShownSetting { name, value, source, rule: None };
        }
        let (value, rule) = match default {
            SettingDefault::Value(value) => (Some((*value).to_owned()), None),
            SettingDefault::Rule(rule) => (None, Some(*rule)),
            SettingDefault::Policy(get) => (policy.map(get), None),
            SettingDefault::Options(get) => (get(options), None),
            SettingDefault::None => (None, None),
        };
        let is_default = value.is_some() || rule.is_some();
        ShownSetting { name, value, source: is_default.then(|| DEFAULT.to_owned()), rule }
    }
}

fn shown_settings(settings: &Settings) -> Vec<ShownSetting> {
    // An invalid policy has no defaults to show.
    let policy = choose::policy(settings).ok();
    let all = settings.all().into_iter();
    all.map(|setting| ShownSetting::new(setting, policy.as_ref(), settings)).collect()
}

fn show(all: &[ShownSetting]) -> anyhow::Result<()> {
    let mut page = String::new();
    for ShownSetting { name, value, source, rule } in all {
        let source = source.as_deref().unwrap_or("not set");
        let line = match (value, rule) {
            (Some(value), _) => format!("{name:<15} {value:<20} {}\n", paint(style::DIM, source)),
            (None, Some(rule)) => format!("{name:<15} {}\n", paint(style::DIM, format!("{source}: {rule}"))),
            (None, None) => format!("{name:<15} {}\n", paint(style::DIM, source)),
        };
        page.push_str(&line);
    }
    terminal::page(&page)
}

fn show_json(all: &[ShownSetting]) -> anyhow::Result<()> {
    let one = |ShownSetting { name, value, source, rule }: &ShownSetting| {
        let mut fields = json!({ "value": value, "from": source });
        if let Some(rule) = rule {
            fields["is"] = json!(rule);
        }
        ((*name).to_owned(), fields)
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
    output::write_file(&path, template().as_bytes())?;
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

//! `fanfold config`: what is set, where it comes from, and how to set more.

use std::path::Path;

use serde_json::{Value, json};

use crate::failure::{Failure, not_written};
use crate::flags::ConfigCommand;
use crate::output;
use crate::settings::{Options, PROJECT_FILE, Settings, TEMPLATE, project_file, user_file};
use crate::terminal::{self, paint, style};

/// Whether a command looks at the settings. The others work even if a file is broken.
pub(crate) fn needs_settings(command: &ConfigCommand) -> bool {
    matches!(command, ConfigCommand::Show { .. })
}

pub(crate) fn run(command: &ConfigCommand, settings: &Settings) -> anyhow::Result<()> {
    match command {
        ConfigCommand::Show { json: true } => show_json(settings),
        ConfigCommand::Show { json: false } => show(settings),
        ConfigCommand::Schema | ConfigCommand::Init { .. } | ConfigCommand::Path => Ok(()),
    }
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
        ConfigCommand::Path => path(directory),
    }
}

fn show(settings: &Settings) -> anyhow::Result<()> {
    let mut page = String::new();
    for shown in settings.shown() {
        let line = match (&shown.value, &shown.source) {
            (Some(value), Some(source)) => {
                format!("{:<15} {value:<20} {}\n", shown.name, paint(style::DIM, source))
            }
            _ => format!("{:<15} {}\n", shown.name, paint(style::DIM, "not set")),
        };
        page.push_str(&line);
    }
    terminal::page(&page)
}

fn show_json(settings: &Settings) -> anyhow::Result<()> {
    let all: serde_json::Map<String, Value> = settings
        .shown()
        .into_iter()
        .map(|shown| (shown.name.to_owned(), json!({ "value": shown.value, "from": shown.source })))
        .collect();
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

fn path(directory: &Path) -> anyhow::Result<()> {
    let project = project_file(directory).unwrap_or_else(|| directory.join(PROJECT_FILE));
    let mut page = String::new();
    for (name, path) in [("project", Some(project)), ("user", user_file())] {
        let Some(path) = path else { continue };
        let is_there = if path.is_file() { "" } else { "  (not there)" };
        page.push_str(&format!("{name:<8} {}{}\n", path.display(), paint(style::DIM, is_there)));
    }
    terminal::page(&page)
}

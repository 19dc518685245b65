//! `fanfold config`: prints settings and their sources, the schema, and the paths of the files.

use std::path::Path;

use clap::{Args, Subcommand};
use fanfold_core::Policy;
use serde_json::{Value, json};

use crate::failure::{Failure, Result, not_written};
use crate::files::output;
use crate::settings::{
    Options, PROJECT_FILE, SettingDefault, SettingValue, Settings, project_file, template, user_file,
};
use crate::setup::terms;
use crate::store;
use crate::terminal::{self, Reporter, Text, paint, style, text};

/// Show, describe or create settings
#[derive(Debug, Args)]
#[command(after_help = "Example: fanfold config show")]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print the value and the source of each setting, and check them
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of settings files
    Schema,
    /// Create a settings file with everything commented out
    Init {
        /// Create the user's file instead of the project's
        #[arg(long)]
        user: bool,
    },
    /// Print the paths of the settings files
    Path {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// The source of a value that is not set.
const DEFAULT: &str = "default";

impl ConfigArgs {
    /// True if it reads the settings.
    pub(super) fn needs_settings(&self) -> bool {
        matches!(self.command, ConfigCommand::Show { .. })
    }
}

pub(crate) fn run(args: &ConfigArgs, settings: &Settings, _: Reporter) -> Result<()> {
    let directory = std::env::current_dir().unwrap_or_default();
    match args.command {
        ConfigCommand::Show { json } => show(settings, json),
        ConfigCommand::Schema => terminal::print_json(schemars::schema_for!(Options).as_value()),
        ConfigCommand::Init { user } => init(user, &directory),
        ConfigCommand::Path { json } => path(&directory, json),
    }
}

/// Prints the values in use, then fails if one of them is invalid, so that its source is visible above the error.
fn show(settings: &Settings, is_json: bool) -> Result<()> {
    let checked = terms::choose(settings, None).and_then(|_| store::address(settings));
    let all = shown_settings(settings);
    if is_json {
        show_json(&all)?;
    } else {
        show_page(&all)?;
    }
    checked.map(drop)
}

/// A setting as it is printed: its value, or else its default.
struct ShownSetting {
    name: &'static str,
    value: Option<String>,
    source: Option<String>,
    /// The rule for the default, unless it is a fixed value.
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
    let policy = terms::policy(settings).ok();
    let all = settings.all().into_iter();
    all.map(|setting| ShownSetting::new(setting, policy.as_ref(), settings)).collect()
}

fn show_page(all: &[ShownSetting]) -> Result<()> {
    let mut page = Text::default();
    for ShownSetting { name, value, source, rule } in all {
        let source = source.as_deref().unwrap_or("not set");
        let line = match (value, rule) {
            (Some(value), _) => text![format!("{name:<15} {value:<20} "), paint(style::DIM, source)],
            (None, Some(rule)) => {
                text![format!("{name:<15} "), paint(style::DIM, format!("{source}: {rule}"))]
            }
            (None, None) => text![format!("{name:<15} "), paint(style::DIM, source)],
        };
        page.push_line(line);
    }
    terminal::print_page(page)
}

fn show_json(all: &[ShownSetting]) -> Result<()> {
    let one = |ShownSetting { name, value, source, rule }: &ShownSetting| {
        let mut fields = json!({ "value": value, "from": source });
        if let Some(rule) = rule {
            fields["is"] = json!(rule);
        }
        ((*name).to_owned(), fields)
    };
    let all: serde_json::Map<String, Value> = all.iter().map(one).collect();
    terminal::print_json(&Value::Object(all))
}

fn init(is_user: bool, directory: &Path) -> Result<()> {
    let path = match is_user {
        true => user_file().ok_or_else(|| Failure::new("there is no home directory", "set HOME"))?,
        false => directory.join(PROJECT_FILE),
    };
    if path.exists() {
        let message = format!("{} exists already", path.display());
        return Err(Failure::new(message, "edit it, or move it away first"));
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|error| not_written(&path, &error))?;
    }
    output::write_file(&path, template(is_user).as_bytes())?;
    terminal::print_page(format!("{}\n", path.display()))
}

fn path(directory: &Path, is_json: bool) -> Result<()> {
    let project = project_file(directory, |_| ()).unwrap_or_else(|| directory.join(PROJECT_FILE));
    let mut page = Text::default();
    let mut all = serde_json::Map::new();
    for (name, path) in [("project", Some(project)), ("user", user_file())] {
        let Some(path) = path else { continue };
        let exists = path.is_file();
        all.insert(name.to_owned(), json!({ "path": path, "exists": exists }));
        let remark = if exists { "" } else { "  (does not exist)" };
        page.push_line(text![format!("{name:<8} {}", path.display()), paint(style::DIM, remark)]);
    }
    if is_json { terminal::print_json(&Value::Object(all)) } else { terminal::print_page(page) }
}

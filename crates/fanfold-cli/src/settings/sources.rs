//! Merges the sources: flags, environment, project file, user file, in this order of precedence.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use super::declaration::{Scope, SettingDefault};
use super::options::{Options, SETTINGS};
use super::{environment, file};
use crate::failure::{Failure, Result};
use crate::store;

/// The address that the proxy listens on by default.
pub(crate) const DEFAULT_LISTEN: &str = "127.0.0.1:7744";

/// Arguments of a process are visible to all users of the machine, its environment is not.
const PASSWORD_WARNING: &str = "other users of this machine can read the password in --store; \
    set FANFOLD_STORE instead, or `store` in your own file (`fanfold config path`)";

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Flag,
    Environment,
    File(PathBuf),
}

/// The merged settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    options: Options,
    /// Warnings for the user, such as misspelt variables.
    pub(crate) warnings: Vec<String>,
    sources: BTreeMap<&'static str, Source>,
}

impl Deref for Settings {
    type Target = Options;

    fn deref(&self) -> &Options {
        &self.options
    }
}

/// A setting as `config show` prints it.
pub(crate) struct SettingValue {
    pub(crate) name: &'static str,
    pub(crate) value: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) default: &'static SettingDefault,
}

/// Reads the environment and the files, and merges them below the flags.
pub(crate) fn read(flags: Options, directory: &Path) -> Result<Settings> {
    let mut settings = Settings::default();
    let mut warnings = Vec::new();
    if flags.store.as_deref().is_some_and(store::has_password) {
        warnings.push(PASSWORD_WARNING.to_owned());
    }
    settings.add(flags, &Source::Flag);
    settings.add(environment::read(&|name| std::env::var(name).ok())?, &Source::Environment);
    let project_file = file::project_file(directory, |path| {
        warnings.push(format!(
            "{} is ignored, because it belongs to another user; copy it to use it",
            path.display()
        ));
    });
    if let Some(path) = project_file {
        let options = file::read(&path)?;
        refuse_user_settings(&options, &path)?;
        settings.add(options, &Source::File(path));
    }
    if let Some(path) = file::user_file().filter(|path| path.is_file()) {
        settings.add(file::read(&path)?, &Source::File(path));
    }
    let variables: Vec<String> =
        std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    warnings.extend(environment::misspelt(&variables, &settings.options));
    settings.warnings = warnings;
    Ok(settings)
}

/// A project's file may come from someone else, so it must not decide where credentials and conversations go.
fn refuse_user_settings(options: &Options, path: &Path) -> Result<()> {
    let decides = |(name, scope)| match scope {
        Scope::Folding => None,
        Scope::User(effect) => Some((name, effect)),
    };
    let Some((name, effect)) = options.scopes().into_iter().find_map(decides) else { return Ok(()) };
    let is_table = SETTINGS.iter().all(|setting| setting.name != name);
    let label = if is_table { format!("[{name}]") } else { format!("`{name}`") };
    let message = format!("{}: {label} is not allowed in a project's file", path.display());
    let hint = format!("move it to your own file (`fanfold config path`): it decides {effect}");
    Err(Failure::new(message, hint))
}

impl Settings {
    /// Adds a source of lower precedence.
    fn add(&mut self, mut more: Options, source: &Source) {
        // A profile names a store, so it overrides a store of lower precedence.
        if self.options.profile.is_some() {
            more.store = None;
        }
        for name in self.options.merge(more) {
            self.sources.entry(name).or_insert_with(|| source.clone());
        }
    }

    /// Every setting, set or not.
    pub(crate) fn all(&self) -> Vec<SettingValue> {
        let mut options = self.options.clone();
        let fields = options.fields().into_iter();
        let single = SETTINGS.iter().zip(fields).map(|(setting, field)| SettingValue {
            name: setting.name,
            value: field.print(),
            source: self.source(setting.name),
            default: &setting.default,
        });
        let tables = self.options.labels().into_iter().map(|(name, labels)| SettingValue {
            name,
            value: (!labels.is_empty()).then(|| labels.join(", ")),
            source: self.source(name),
            default: if name == "serve" {
                &SettingDefault::Value(DEFAULT_LISTEN)
            } else {
                &SettingDefault::None
            },
        });
        single.chain(tables).collect()
    }

    fn source(&self, name: &str) -> Option<String> {
        self.sources.get(name).map(|source| match source {
            Source::Flag => "flag".to_owned(),
            Source::Environment => environment::variable(name),
            Source::File(path) => path.display().to_string(),
        })
    }
}

//! Flags before environment before files: one value for each setting, and where it came from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::options::{Chain, Color, Options, UserText};
use super::size::{Share, Size};
use super::{env, file};
use crate::failure::Failure;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A flag of the command line.
    Flag,
    /// A variable of the environment.
    Environment,
    /// A file.
    File(PathBuf),
}

/// One value for each setting that was made, and where each came from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    /// The values.
    pub(crate) options: Options,
    /// What was found and not understood, for a person.
    pub(crate) warnings: Vec<String>,
    sources: BTreeMap<&'static str, Source>,
}

/// A setting as `config show` prints it: its name, its value, where it came from.
pub(crate) struct Shown {
    pub(crate) name: &'static str,
    pub(crate) value: Option<String>,
    pub(crate) source: Option<String>,
}

/// Reads the environment and the files, and puts the flags before them.
pub(crate) fn read(flags: Options, directory: &Path) -> anyhow::Result<Settings> {
    let mut settings = Settings::default();
    settings.add(flags, &Source::Flag);
    settings.add(env::read(&|name| std::env::var(name).ok())?, &Source::Environment);
    let variables: Vec<String> =
        std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    let project = file::project_file(directory);
    let user = file::user_file().filter(|path| path.is_file());
    if let Some(path) = project {
        let options = file::read(&path)?;
        refuse_what_is_not_a_projects(&options, &path)?;
        settings.add(options, &Source::File(path));
    }
    if let Some(path) = user {
        settings.add(file::read(&path)?, &Source::File(path));
    }
    settings.warnings = env::misspelt(&variables, &SINGLE, &settings.options);
    Ok(settings)
}

/// A project's file comes with the project, so it does not decide where credentials and conversations go.
fn refuse_what_is_not_a_projects(options: &Options, path: &Path) -> Result<(), Failure> {
    let tables = [
        ("serve", !options.serve.is_empty(), "credentials go"),
        ("summary", !options.summary.is_empty(), "credentials go"),
        ("memory", !options.memory.is_empty(), "what you say goes"),
    ];
    let Some((table, _, what)) = tables.into_iter().find(|(_, is_set, _)| *is_set) else { return Ok(()) };
    let message = format!("{}: [{table}] is not a project's to set", path.display());
    let hint = format!("put it into your own file (`fanfold config path`): it decides where {what}");
    Err(Failure::new(message, hint))
}

macro_rules! each_single_setting {
    ($use:ident) => {
        $use!(
            window,
            reserve,
            model,
            fallback,
            policy,
            rules,
            strategy,
            cadence,
            format,
            focus,
            user_text,
            tokenizer,
            color,
            low_mark,
            tail,
            working_context,
            need,
            store,
            profile
        )
    };
}

macro_rules! names {
    ($($field:ident),*) => { [$(stringify!($field)),*] };
}

/// The settings that have one value, which the environment can say, too.
const SINGLE: [&str; 19] = each_single_setting!(names);

impl Settings {
    /// Takes what is not set yet. Tools, models and prices add up, earlier ones first.
    fn add(&mut self, mut more: Options, source: &Source) {
        macro_rules! take {
            ($($field:ident),*) => {$(
                if self.options.$field.is_none() && more.$field.is_some() {
                    self.options.$field = more.$field;
                    self.sources.insert(stringify!($field), source.clone());
                }
            )*};
        }
        // A profile names a store, so it hides one that was set farther away: what is asked for is never done elsewhere.
        let hides_store = self.options.profile.is_some();
        more.store = more.store.filter(|_| !hides_store);
        each_single_setting!(take);
        let lists = [
            ("tools", !more.tools.is_empty()),
            ("models", !more.models.is_empty()),
            ("prices", !more.prices.is_empty()),
            ("serve", !more.serve.is_empty()),
            ("memory", !more.memory.is_empty()),
            ("summary", !more.summary.is_empty()),
        ];
        for (name, is_set) in lists {
            if is_set {
                self.sources.entry(name).or_insert_with(|| source.clone());
            }
        }
        if self.options.serve.is_empty() {
            self.options.serve = more.serve;
        }
        if self.options.memory.is_empty() {
            self.options.memory = more.memory;
        }
        if self.options.summary.is_empty() {
            self.options.summary = more.summary;
        }
        self.options.tools.extend(more.tools);
        self.options.models.extend(more.models);
        self.options.prices.extend(more.prices);
    }

    /// Every setting, set or not.
    pub(crate) fn shown(&self) -> Vec<Shown> {
        let mut all = Vec::new();
        let options = &self.options;
        macro_rules! show {
            ($($field:ident),*) => {$(
                let value = options.$field.as_ref().map(|value| value.written());
                all.push(self.one(stringify!($field), value));
            )*};
        }
        each_single_setting!(show);
        let list = |names: Vec<&str>| (!names.is_empty()).then(|| names.join(", "));
        let tools: Vec<String> = options.tools.iter().map(ToString::to_string).collect();
        let models = options.models.iter().map(|model| &*model.pattern).collect();
        all.push(self.one("tools", list(tools.iter().map(String::as_str).collect())));
        let prices = options.prices.iter().map(|price| &*price.name).collect();
        all.push(self.one("models", list(models)));
        all.push(self.one("prices", list(prices)));
        let serve = &options.serve;
        let serve = [&serve.listen, &serve.upstream, &serve.openai, &serve.anthropic].into_iter().flatten();
        let serve = serve.chain(&options.serve.allowed).map(String::as_str).collect();
        all.push(self.one("serve", list(serve)));
        let memory = &options.memory;
        let files = memory.files.filter(|files| *files).map(|_| "files");
        let memory =
            memory.command.first().or(memory.mcp.as_ref()).or(memory.http.as_ref()).map(String::as_str);
        all.push(self.one("memory", list(memory.into_iter().chain(files).collect())));
        let main = options.summary.main.iter().map(|main| &main.model);
        let summary = options.summary.model.iter().chain(main).map(String::as_str).collect();
        all.push(self.one("summary", list(summary)));
        all
    }

    fn one(&self, name: &'static str, value: Option<String>) -> Shown {
        let source = self.sources.get(name).map(|source| match source {
            Source::Flag => "flag".to_owned(),
            Source::Environment => env::variable(name),
            Source::File(path) => path.display().to_string(),
        });
        Shown { name, value, source }
    }
}

/// A value as a person would write it.
trait Written {
    fn written(&self) -> String;
}

impl Written for String {
    fn written(&self) -> String {
        self.clone()
    }
}

impl Written for PathBuf {
    fn written(&self) -> String {
        self.display().to_string()
    }
}

impl Written for Size {
    fn written(&self) -> String {
        self.to_string()
    }
}

impl Written for Chain {
    fn written(&self) -> String {
        self.to_string()
    }
}

impl Written for Share {
    fn written(&self) -> String {
        self.to_string()
    }
}

impl Written for bool {
    fn written(&self) -> String {
        self.to_string()
    }
}

impl Written for Color {
    fn written(&self) -> String {
        value_name(self)
    }
}

impl Written for UserText {
    fn written(&self) -> String {
        value_name(self)
    }
}

fn value_name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

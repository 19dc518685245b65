//! `fanfold models`: how long a prompt a model takes, by the table and by its server.

use fanfold_provider::{Client, Endpoint, KeySource, ServerWindow, Style, WindowKind};
use fanfold_tokens::{Family, Model, Models};
use serde_json::{Value, json};

use crate::choose;
use crate::failure::Failure;
use crate::flags::ModelsArgs;
use crate::settings::{Options, nearest};
use crate::terminal::{self, paint, style};

pub(crate) fn run(args: &ModelsArgs, options: &Options) -> anyhow::Result<()> {
    let models = choose::models(options);
    let Some(name) = &args.model else {
        return if args.json {
            let all: Vec<Value> = models.all().map(|model| json_of(model, &models)).collect();
            terminal::data(&format!("{:#}\n", json!(all)))
        } else {
            terminal::page(&table(&models))
        };
    };
    let known = models.find(name);
    let told = args.url.as_deref().map(|url| ask(args, url, name)).transpose()?;
    if known.is_none() && told.is_none() {
        return Err(unknown(&models, name).into());
    }
    if args.json {
        let told = told.map(|told| {
            told.map(|window| {
                json!({
            "window": window.tokens, "is_served": window.kind == WindowKind::Served, "server": window.server })
            })
        });
        let known = known.map(|known| json_of(known, &models));
        return terminal::data(&format!("{:#}\n", json!({ "model": name, "table": known, "server": told })));
    }
    terminal::page(&one(name, known, &models, args.url.as_deref().zip(told)))
}

/// What the server at an address says of a model; none where it says nothing.
fn ask(args: &ModelsArgs, url: &str, model: &str) -> Result<Option<ServerWindow>, Failure> {
    let key = match (&args.key_env, &args.key_command) {
        (Some(name), _) => KeySource::Env(name.clone()),
        (None, Some(line)) => KeySource::Command(line.clone()),
        (None, None) => KeySource::None,
    };
    let spoken = args.style.unwrap_or_else(|| Style::from_url(url));
    let endpoint = Endpoint::new(spoken, url, model).with_key(key);
    let client = Client::new(endpoint).map_err(|error| Failure::new(error.to_string(), error.hint()))?;
    client.probe_window_blocking().map_err(|fault| Failure::new(fault.to_string(), fault.hint()))
}

fn unknown(models: &Models, name: &str) -> Failure {
    let hint = match nearest(name, models.all().map(|model| &*model.pattern)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "ask its server with --url, or add it to your settings under [[models]]".to_owned(),
    };
    Failure::new(format!("the window of `{name}` is not known"), hint)
}

fn table(models: &Models) -> String {
    let head = format!("{:<26} {:>10} {:>9}  {}", "model begins with", "window", "output", "counted");
    let mut page = paint(style::BOLD, head.trim_end()) + "\n";
    for model in models.all() {
        page.push_str(&format!(
            "{:<26} {:>10} {:>9}  {}{}\n",
            model.pattern,
            model.window.to_string(),
            model.max_output.to_string(),
            counted(model),
            if models.is_own(model) { ", yours" } else { "" },
        ));
    }
    page
}

fn one(
    name: &str,
    known: Option<&Model>,
    models: &Models,
    asked: Option<(&str, Option<ServerWindow>)>,
) -> String {
    let mut lines = vec![("model", name.to_owned())];
    match known {
        Some(known) => {
            let whose = if models.is_own(known) { "your settings" } else { "the table" };
            lines.push(("window", format!("{} tokens, by {whose} (`{}`)", known.window, known.pattern)));
            lines.push(("output", format!("{} tokens at most", known.max_output)));
            lines.push(("counted", counted(known)));
        }
        None => lines.push(("window", "not in the table".to_owned())),
    }
    if let Some((url, told)) = asked {
        let words = match told {
            Some(ServerWindow { tokens, kind: WindowKind::Served, server }) => {
                format!(
                    "{} tokens is what it is run with at {url}, by {server}",
                    fanfold_core::Tokens(tokens)
                )
            }
            Some(ServerWindow { tokens, kind: WindowKind::Trained, server }) => format!(
                "{} tokens is what it was trained with, by {server}; {url} may run it with less and does not say",
                fanfold_core::Tokens(tokens)
            ),
            None => format!("{url} does not say"),
        };
        lines.push(("server", words));
    }
    lines.iter().map(|(name, value)| format!("{name:<8} {value}\n")).collect()
}

fn counted(model: &Model) -> String {
    match model.family {
        Family::O200k => "o200k, exact".to_owned(),
        Family::Cl100k => "cl100k, exact".to_owned(),
        Family::Estimate { permille } => format!("estimated, {permille} \u{2030} of o200k"),
    }
}

fn json_of(model: &Model, models: &Models) -> Value {
    let is_exact = !matches!(model.family, Family::Estimate { .. });
    json!({ "pattern": model.pattern, "window": model.window.0, "max_output": model.max_output.0,
        "is_exact": is_exact, "is_own": models.is_own(model) })
}

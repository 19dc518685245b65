//! `fanfold models`: the context windows of models, from the table and from servers.

use clap::Args;
use fanfold_core::Tokens;
use fanfold_provider::{Endpoint, KeySource, ModelClient, ServerWindow, WindowKind};
use fanfold_tokens::{Family, Model, Models};
use fanfold_wire::Provider;
use serde_json::{Value, json};

use crate::failure::{Failure, Result};
use crate::settings::{Options, nearest};
use crate::setup::terms;
use crate::terminal::{self, Reporter, Text, paint, style, text};

const HELP: &str = "\
A local server may run a model with a smaller window than the one it was trained
with. --url queries it: vLLM, llama.cpp, Ollama, LM Studio, TGI, SGLang, LiteLLM,
and other servers that list their models with their windows.

Examples:
  fanfold models gpt-5
  fanfold models qwen3:8b --url http://localhost:11434
  fanfold models my-model --url https://host/v1 --key-env MY_KEY";

/// Show the context windows of models
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ModelsArgs {
    /// Model to look up
    model: Option<String>,
    /// Query the server at this address for the window that it runs the model with
    #[arg(long, value_name = "URL", requires = "model")]
    url: Option<String>,
    /// API style of the server: openai, anthropic [default: by its address]
    #[arg(long, value_name = "STYLE", requires = "url", value_parser = parse_style)]
    style: Option<&'static Provider>,
    /// Environment variable that holds the server's key
    #[arg(long, value_name = "NAME", requires = "url")]
    key_env: Option<String>,
    /// Command that prints the server's key
    #[arg(long, value_name = "COMMAND", requires = "url", conflicts_with = "key_env")]
    key_command: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ModelsArgs, options: &Options, _: Reporter) -> Result<()> {
    let models = terms::models(options);
    let Some(name) = &args.model else {
        return if args.json {
            terminal::print_json(&models.all().map(|model| model_json(model, &models)).collect())
        } else {
            terminal::print_page(table(&models))
        };
    };
    let known = models.find(name);
    let served = args.url.as_deref().map(|url| query(args, url, name)).transpose()?;
    if known.is_none() && served.is_none() {
        return Err(unknown(&models, name));
    }
    if args.json {
        let served = served.flatten().map(|window| {
            let is_served = window.kind == WindowKind::Served;
            json!({ "window": window.tokens, "is_served": is_served, "server": window.server })
        });
        let known = known.map(|known| model_json(known, &models));
        return terminal::print_json(&json!({ "model": name, "table": known, "server": served }));
    }
    terminal::print_page(model_page(name, known, &models, args.url.as_deref().zip(served)))
}

/// Parses an API style, which has the name of the provider that introduced it.
fn parse_style(name: &str) -> Result<&'static Provider, String> {
    let names = || Provider::all().iter().map(|provider| provider.name).collect::<Vec<_>>().join(" or ");
    Provider::find(name).ok_or_else(|| format!("the style must be {}", names()))
}

/// The window that the server at an address reports for a model, if it does.
fn query(args: &ModelsArgs, url: &str, model: &str) -> Result<Option<ServerWindow>> {
    let key = match (&args.key_env, &args.key_command) {
        (Some(name), _) => KeySource::Env(name.clone()),
        (None, Some(line)) => KeySource::Command(line.clone()),
        (None, None) => KeySource::None,
    };
    let provider = args.style.unwrap_or_else(|| Provider::from_address(url));
    let endpoint = Endpoint::new(provider, url, model).with_key(key);
    let client = ModelClient::new(endpoint).map_err(|error| Failure::new(error.to_string(), error.hint()))?;
    client.probe_window_blocking().map_err(|fault| Failure::new(fault.to_string(), fault.hint()))
}

fn unknown(models: &Models, name: &str) -> Failure {
    let hint = match nearest(name, models.all().map(|model| &*model.pattern)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "query its server with --url, or add it to your settings under [[models]]".to_owned(),
    };
    Failure::new(format!("the window of `{name}` is not known"), hint)
}

fn table(models: &Models) -> Text {
    let head = format!("{:<26} {:>10} {:>9}  {}", "model prefix", "window", "output", "tokenizer");
    let mut page = text![paint(style::BOLD, head.trim_end()), "\n"];
    for model in models.all() {
        page.push(format!(
            "{:<26} {:>10} {:>9}  {}{}\n",
            model.pattern,
            model.window.to_string(),
            model.max_output.to_string(),
            tokenizer(model),
            if models.is_own(model) { ", from your settings" } else { "" },
        ));
    }
    page
}

fn model_page(
    name: &str,
    known: Option<&Model>,
    models: &Models,
    served: Option<(&str, Option<ServerWindow>)>,
) -> String {
    let mut lines = vec![("model", name.to_owned())];
    match known {
        Some(known) => {
            let source = if models.is_own(known) { "your settings" } else { "the table" };
            lines.push(("window", format!("{} tokens, from {source} (`{}`)", known.window, known.pattern)));
            lines.push(("output", format!("{} tokens at most", known.max_output)));
            lines.push(("tokens", tokenizer(known)));
        }
        None => lines.push(("window", "not in the table".to_owned())),
    }
    if let Some((url, window)) = served {
        let text = match window {
            Some(ServerWindow { tokens, kind: WindowKind::Served, server }) => {
                format!("{} tokens in use at {url}, by {server}", Tokens(tokens))
            }
            Some(ServerWindow { tokens, kind: WindowKind::Trained, server }) => format!(
                "{} tokens in training, by {server}; {url} may use fewer and does not report it",
                Tokens(tokens)
            ),
            None => format!("{url} does not report it"),
        };
        lines.push(("server", text));
    }
    lines.iter().map(|(name, value)| format!("{name:<8} {value}\n")).collect()
}

fn tokenizer(model: &Model) -> String {
    match model.family {
        Family::O200k => "o200k, exact".to_owned(),
        Family::Cl100k => "cl100k, exact".to_owned(),
        Family::Estimate { permille } => format!("estimated, {permille} \u{2030} of o200k"),
    }
}

fn model_json(model: &Model, models: &Models) -> Value {
    let is_exact = !matches!(model.family, Family::Estimate { .. });
    json!({ "pattern": model.pattern, "window": model.window.0, "max_output": model.max_output.0,
        "is_exact": is_exact, "is_own": models.is_own(model) })
}

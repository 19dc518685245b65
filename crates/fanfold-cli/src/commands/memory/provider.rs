//! The external memory provider of the settings.

use std::time::Duration;

use fanfold_core::Tokens;
use fanfold_memory::{
    EventCallback, MemoryClient, MemoryError, MemoryFiles, MemoryKey, MemoryLimits, MemoryProvider,
    ProviderAddress, ProviderCheck, ToolSelection,
};
use serde_json::json;

use super::folder;
use crate::failure::{Failure, Result};
use crate::settings::{MemoryOptions, Options};
use crate::terminal::{self, Text, paint, style, text};

/// How many tokens of a request memory may take by default.
const DEFAULT_TOKENS: u64 = 1_500;

/// The memory that the settings configure, if any.
pub(crate) fn client(options: &Options, on_event: Option<EventCallback>) -> Result<Option<MemoryClient>> {
    let set = &options.memory;
    let provider = provider(set)?;
    let files = if set.files == Some(true) { Some(MemoryFiles::new(&folder(options)?)) } else { None };
    if provider.is_none() && files.is_none() {
        return Ok(None);
    }
    MemoryClient::start(provider, files, limits(set), on_event)
        .map(Some)
        .map_err(|error| provider_failure(set, &error))
}

/// How many tokens of a request memory may take.
pub(crate) fn max_tokens(options: &Options) -> Tokens {
    Tokens(options.memory.tokens.map_or(DEFAULT_TOKENS, |tokens| tokens.0))
}

fn limits(set: &MemoryOptions) -> MemoryLimits {
    let default = MemoryLimits::default();
    let deadline = set.deadline_ms.map_or(default.deadline, Duration::from_millis);
    MemoryLimits { deadline, ..default }
}

/// The provider in the settings.
fn provider(set: &MemoryOptions) -> Result<Option<MemoryProvider>> {
    let key = || match &set.key_env {
        None => Ok(None),
        Some(name) => match std::env::var(name).ok().filter(|key| !key.is_empty()) {
            Some(key) => Ok(Some(MemoryKey(key))),
            None => Err(Failure::new(
                format!("[memory] reads its key from {name}, which is not set"),
                format!("set {name}, or leave out `key_env`"),
            )),
        },
    };
    let address = match (set.command.split_first(), &set.mcp, &set.http) {
        (None, None, None) => return Ok(None),
        (Some((program, arguments)), None, None) => ProviderAddress::Program {
            program: program.clone(),
            arguments: arguments.to_vec(),
            environment: set.environment.clone().into_iter().collect(),
        },
        (None, Some(url), None) => ProviderAddress::Mcp { url: url.clone(), key: key()? },
        (None, None, Some(url)) => ProviderAddress::Http { url: url.clone(), key: key()? },
        _ => {
            let message = "[memory] names more than one provider";
            return Err(Failure::new(message, "keep only one of `command`, `mcp` and `http`"));
        }
    };
    let tools = ToolSelection {
        search: set.search.clone(),
        search_argument: set.search_argument.clone(),
        write: set.write.clone(),
        write_argument: set.write_argument.clone(),
        fixed_arguments: set.arguments.clone(),
    };
    Ok(Some(MemoryProvider { address, tools, offers: set.offers }))
}

fn provider_failure(set: &MemoryOptions, error: &MemoryError) -> Failure {
    let name = provider_name(set).unwrap_or_default();
    Failure::new(format!("memory provider {name}: {error}"), error.hint())
}

/// The name of the provider for messages.
fn provider_name(set: &MemoryOptions) -> Option<String> {
    let provider = provider(&MemoryOptions { key_env: None, ..set.clone() }).ok()??;
    Some(provider.address.to_string())
}

/// `fanfold memory status`: the settings, without contacting the provider.
pub(super) fn status(options: &Options, is_json: bool) -> Result<()> {
    let set = &options.memory;
    // Report invalid settings first.
    provider(set)?;
    let (name, limits, max_tokens) = (provider_name(set), limits(set), max_tokens(options).0);
    let files = set.files == Some(true);
    let deadline_ms = limits.deadline.as_millis();
    if is_json {
        let all = json!({ "provider": name, "files": files, "deadline_ms": deadline_ms as u64, "tokens": max_tokens });
        return terminal::print_own_json(all);
    }
    let mut page = match &name {
        Some(name) => text!["provider: ", paint(style::BOLD, name), "\n"],
        None => Text::from("provider: none; name one in [memory] of your settings (`fanfold config path`)\n"),
    };
    page.push(format!("files added to requests of the proxy: {}\n", if files { "yes" } else { "no" }));
    page.push(format!("a turn waits at most {deadline_ms} ms and reserves {max_tokens} tokens\n"));
    terminal::print_page(page)
}

/// `fanfold memory search`: searches the provider, as a turn would.
pub(super) fn search(options: &Options, words: &str, is_json: bool) -> Result<()> {
    let client = required_client(options)?;
    let found = client.search(words).map_err(|error| provider_failure(&options.memory, &error));
    client.stop();
    let found = found?;
    if is_json {
        return terminal::print_own_json(json!({ "text": found }));
    }
    let text = if found.is_empty() { "nothing was found".to_owned() } else { found };
    terminal::print_page(format!("{text}\n"))
}

/// `fanfold memory check`: tests the provider.
pub(super) fn check(options: &Options, words: &str, is_json: bool) -> Result<()> {
    let client = required_client(options)?;
    let checked = client.check(words).map_err(|error| provider_failure(&options.memory, &error));
    client.stop();
    let Some(checked) = checked? else { return Err(no_provider()) };
    let deadline = limits(&options.memory).deadline;
    if is_json {
        return terminal::print_own_json(check_json(&checked, deadline));
    }
    let ms = |took: Duration| format!("{} ms", took.as_millis());
    let mut page = paint(style::BOLD, &checked.name);
    page.push(format!(" started in {}\n", ms(checked.startup)));
    for call in &checked.calls {
        page.push(format!("  {call}\n"));
    }
    let (took, n_found) = checked.search;
    let fits = if took <= deadline { "within" } else { "longer than" };
    page.push(format!(
        "a search took {}, {fits} the {} that a turn waits; it returned {n_found} characters\n",
        ms(took),
        ms(deadline)
    ));
    let tools = checked.tools.iter().map(|(name, arguments)| format!("{name}({})", arguments.join(", ")));
    let tools: Vec<String> = tools.collect();
    if !tools.is_empty() {
        page.push_line(paint(style::DIM, format!("its tools: {}", tools.join(", "))));
    }
    for (name, why) in &checked.rejected_tools {
        page.push(paint(style::WARNING, "warning:"));
        page.push(format!(" {name} {} and is not used\n", why.describe()));
    }
    terminal::print_page(page)
}

fn check_json(checked: &ProviderCheck, deadline: Duration) -> serde_json::Value {
    let tools: Vec<_> = checked
        .tools
        .iter()
        .map(|(name, arguments)| json!({ "name": name, "arguments": arguments }))
        .collect();
    let refused: Vec<_> = checked
        .rejected_tools
        .iter()
        .map(|(name, why)| json!({ "name": name, "why": why.describe() }))
        .collect();
    let (took, n_found) = checked.search;
    json!({
        "name": checked.name,
        "calls": checked.calls,
        "tools": tools,
        "refused": refused,
        "started_ms": checked.startup.as_millis() as u64,
        "searched_ms": took.as_millis() as u64,
        "found": n_found,
        "is_in_time": took <= deadline,
    })
}

/// The memory, which must have a provider.
fn required_client(options: &Options) -> Result<MemoryClient> {
    match provider(&options.memory)? {
        Some(_) => client(options, None)?.ok_or_else(no_provider),
        None => Err(no_provider()),
    }
}

fn no_provider() -> Failure {
    Failure::new(
        "there is no memory provider",
        "name one in [memory] of your settings; `fanfold config path` prints their path",
    )
}

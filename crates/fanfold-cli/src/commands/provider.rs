//! The provider of memory that the settings name: looked at, asked and tried by a person, and handed to the proxy.

use std::time::Duration;

use fanfold_core::Tokens;
use fanfold_memory::{
    EventCallback, MemoryClient, MemoryError, MemoryFiles, MemoryLimits, MemoryProvider, ProviderAddress,
    ProviderCheck, ProviderKey, ToolSelection,
};
use serde_json::json;

use super::memory::folder;
use crate::failure::Failure;
use crate::settings::{MemoryOptions, Options};
use crate::terminal::{self, paint, style};

/// What memory may have of a request where nothing is said.
const TOKENS: u64 = 1_500;

/// Memory as the settings have it, for a host that gives a turn so long at most; none where they have none.
pub(crate) fn keeper(
    options: &Options,
    on_deed: Option<EventCallback>,
) -> Result<Option<MemoryClient>, Failure> {
    let set = &options.memory;
    let provider = provider(set)?;
    let files = if set.files == Some(true) { Some(MemoryFiles::new(&folder(options)?)) } else { None };
    if provider.is_none() && files.is_none() {
        return Ok(None);
    }
    MemoryClient::start(provider, files, limits(set), on_deed).map(Some).map_err(|fault| failed(set, &fault))
}

/// How many tokens of a request memory may have.
pub(crate) fn room(options: &Options) -> Tokens {
    Tokens(options.memory.tokens.map_or(TOKENS, |tokens| tokens.0))
}

fn limits(set: &MemoryOptions) -> MemoryLimits {
    let usual = MemoryLimits::default();
    let deadline = set.deadline_ms.map_or(usual.deadline, Duration::from_millis);
    MemoryLimits { deadline, ..usual }
}

/// The provider that is set, if one is.
fn provider(set: &MemoryOptions) -> Result<Option<MemoryProvider>, Failure> {
    let key = || match &set.key_env {
        None => Ok(None),
        Some(name) => match std::env::var(name).ok().filter(|key| !key.is_empty()) {
            Some(key) => Ok(Some(ProviderKey(key))),
            None => Err(Failure::new(
                format!("[memory] takes its key from {name}, which is not set"),
                format!("set {name}, or leave `key_env` out"),
            )),
        },
    };
    let place = match (set.command.split_first(), &set.mcp, &set.http) {
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
            return Err(Failure::new(message, "leave one of `command`, `mcp` and `http`"));
        }
    };
    let tools = ToolSelection {
        search: set.search.clone(),
        search_argument: set.search_argument.clone(),
        write: set.write.clone(),
        write_argument: set.write_argument.clone(),
        fixed_arguments: set.arguments.clone(),
    };
    Ok(Some(MemoryProvider { address: place, tools, offers: set.offers }))
}

fn failed(set: &MemoryOptions, fault: &MemoryError) -> Failure {
    let name = shown(set).unwrap_or_default();
    Failure::new(format!("the provider of memory ({name}): {fault}"), fault.hint())
}

/// The provider, as a person is told of it.
fn shown(set: &MemoryOptions) -> Option<String> {
    let provider = provider(&MemoryOptions { key_env: None, ..set.clone() }).ok()??;
    Some(provider.address.to_string())
}

/// `fanfold memory status`: what is set, without asking anybody.
pub(crate) fn status(options: &Options, is_json: bool) -> anyhow::Result<()> {
    let set = &options.memory;
    // What is wrong with the settings is told.
    provider(set)?;
    let (name, limits, room) = (shown(set), limits(set), room(options).0);
    let files = set.files == Some(true);
    let deadline_ms = limits.deadline.as_millis();
    if is_json {
        let told =
            json!({ "provider": name, "files": files, "deadline_ms": deadline_ms as u64, "tokens": room });
        return terminal::data(&format!("{told}\n"));
    }
    let mut page = match &name {
        Some(name) => format!("provider: {}\n", paint(style::BOLD, name)),
        None => "provider: none; name one in [memory] of your settings (`fanfold config path`)\n".to_owned(),
    };
    page.push_str(&format!("files in requests of the proxy: {}\n", if files { "yes" } else { "no" }));
    page.push_str(&format!("a turn waits {deadline_ms} ms at most, and gives it {room} tokens\n"));
    terminal::page(&page)
}

/// `fanfold memory search`: asks the provider, as a turn would.
pub(crate) fn search(options: &Options, words: &str, is_json: bool) -> anyhow::Result<()> {
    let keeper = needed(options)?;
    let found = keeper.search(words).map_err(|fault| failed(&options.memory, &fault));
    keeper.stop();
    let found = found?;
    if is_json {
        return terminal::data(&format!("{}\n", json!({ "text": found })));
    }
    let text = if found.is_empty() { "nothing was found".to_owned() } else { found };
    terminal::page(&format!("{text}\n"))
}

/// `fanfold memory check`: tries the provider.
pub(crate) fn check(options: &Options, words: &str, is_json: bool) -> anyhow::Result<()> {
    let keeper = needed(options)?;
    let checked = keeper.check(words).map_err(|fault| failed(&options.memory, &fault));
    keeper.stop();
    let Some(checked) = checked? else { return Err(none().into()) };
    let deadline = limits(&options.memory).deadline;
    if is_json {
        return terminal::data(&format!("{}\n", as_json(&checked, deadline)));
    }
    let ms = |took: Duration| format!("{} ms", took.as_millis());
    let mut page = format!("{} was there after {}\n", paint(style::BOLD, &checked.name), ms(checked.startup));
    for call in &checked.calls {
        page.push_str(&format!("  {call}\n"));
    }
    let (took, n_found) = checked.search;
    let fits = if took <= deadline { "within" } else { "longer than" };
    page.push_str(&format!(
        "a search took {}, {fits} the {} that a turn waits; it found {n_found} characters\n",
        ms(took),
        ms(deadline)
    ));
    let tools = checked.tools.iter().map(|(name, arguments)| format!("{name}({})", arguments.join(", ")));
    let tools: Vec<String> = tools.collect();
    if !tools.is_empty() {
        page.push_str(&format!("{}\n", paint(style::DIM, format!("its tools: {}", tools.join(", ")))));
    }
    for (name, why) in &checked.rejected_tools {
        page.push_str(&format!(
            "{} {name} {} and is not used\n",
            paint(style::WARNING, "warning:"),
            why.describe()
        ));
    }
    terminal::page(&page)
}

fn as_json(checked: &ProviderCheck, deadline: Duration) -> serde_json::Value {
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

/// The provider, which must be set.
fn needed(options: &Options) -> anyhow::Result<MemoryClient> {
    if shown(&options.memory).is_none() {
        provider(&options.memory)?;
        return Err(none().into());
    }
    Ok(keeper(options, None)?.ok_or_else(none)?)
}

fn none() -> Failure {
    Failure::new(
        "there is no provider of memory",
        "name one in [memory] of your settings; `fanfold config path` tells where they are",
    )
}

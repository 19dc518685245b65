//! The models that write summaries, from the settings.

use std::sync::Arc;
use std::time::Duration;

use fanfold_core::Tokens;
use fanfold_engine::{SummaryModel, SummaryModels};
use fanfold_provider::{Endpoint, KeySource, ModelClient, Timeouts};
use fanfold_wire::Provider;

use super::terms;
use crate::failure::{Failure, Result};
use crate::settings::{MainOptions, Options, Size, SummaryOptions, SummaryServer};

/// How long to wait for an answer by default, in seconds.
const DEFAULT_TIMEOUT: u64 = 120;
/// The window of an unknown model.
const DEFAULT_WINDOW: Tokens = Tokens(32_000);

/// True if summaries are enabled.
pub(crate) fn are_enabled(options: &Options) -> bool {
    options.summary.model.is_some()
}

/// Checks the settings without contacting a server.
pub(crate) fn check(options: &Options) -> Result<()> {
    let summary = &options.summary;
    let Some(model) = &summary.model else {
        if *summary == SummaryOptions::default() {
            return Ok(());
        }
        let hint = "name the `model` that writes summaries, or leave out [summary]";
        return Err(Failure::new("[summary] names no model", hint));
    };
    let first = ModelAccess::new(model, summary.server())?;
    summary.main.as_ref().map_or(Ok(()), |main| first.for_main(main).map(drop))
}

/// The models that write summaries, in fallback order. May query a server for its window.
pub(crate) fn ways(options: &Options) -> Result<SummaryModels> {
    check(options)?;
    let summary = &options.summary;
    let Some(model) = &summary.model else { return Ok(SummaryModels::default()) };
    let first = ModelAccess::new(model, summary.server())?;
    let timeout = Duration::from_secs(summary.timeout.unwrap_or(DEFAULT_TIMEOUT).max(1));
    let mut models = vec![way(options, first.clone(), summary.window, timeout)?];
    if let Some(main) = &summary.main {
        models.push(way(options, first.for_main(main)?, main.window, timeout)?);
    }
    Ok(SummaryModels { models, abort_on_failure: summary.abort_on_failure.unwrap_or_default() })
}

fn way(
    options: &Options,
    access: ModelAccess,
    window: Option<Size>,
    timeout: Duration,
) -> Result<SummaryModel> {
    let default = Timeouts::default();
    let timeouts = Timeouts { first: timeout, idle: default.idle.min(timeout), total: timeout, ..default };
    let ModelAccess { provider, url, model, key } = access;
    let endpoint = Endpoint { timeouts, ..Endpoint::new(provider, url.clone(), model.clone()).with_key(key) };
    let client = ModelClient::new(endpoint)
        .map_err(|error| Failure::new(error.to_string(), "check [summary] of your settings"))?;
    let known = window.map(|size| Tokens(size.0));
    let known = known.or_else(|| terms::models(options).find(&model).map(|found| found.window));
    let window = known
        .or_else(|| client.probe_window_blocking().ok()??.served().map(Tokens))
        .unwrap_or(DEFAULT_WINDOW);
    Ok(SummaryModel { model, server: url, window, writer: Arc::new(client) })
}

/// A model, its server and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ModelAccess {
    provider: &'static Provider,
    url: String,
    model: String,
    key: KeySource,
}

impl ModelAccess {
    fn new(model: &str, set: SummaryServer<'_>) -> Result<ModelAccess> {
        let provider = match (set.style, set.url) {
            (Some(style), _) => style.provider(),
            (None, Some(url)) => Provider::from_address(url),
            (None, None) => Provider::from_model(model),
        };
        let is_own = set.url.is_none();
        let key = key(set.key_env, set.key_command, "summary")?;
        let key = key.unwrap_or_else(|| {
            if is_own { KeySource::Env(provider.key_variable.to_owned()) } else { KeySource::None }
        });
        Ok(ModelAccess {
            provider,
            url: set.url.unwrap_or(provider.address).to_owned(),
            model: model.to_owned(),
            key,
        })
    }

    /// The main model: on the server of the summary model, unless another one is set.
    fn for_main(self, main: &MainOptions) -> Result<ModelAccess> {
        let set = main.server();
        if set.url.is_some() || set.style.is_some_and(|style| style.provider() != self.provider) {
            return ModelAccess::new(&main.model, set);
        }
        let key = key(set.key_env, set.key_command, "summary.main")?;
        Ok(ModelAccess { model: main.model.clone(), key: key.unwrap_or(self.key), ..self })
    }
}

fn key(variable: Option<&str>, command: Option<&str>, table: &str) -> Result<Option<KeySource>> {
    match (variable, command) {
        (Some(_), Some(_)) => Err(Failure::new(
            format!("[{table}] has both `key_env` and `key_command`"),
            "leave out one of them",
        )),
        (Some(name), None) => Ok(Some(KeySource::Env(name.to_owned()))),
        (None, Some(line)) => Ok(Some(KeySource::Command(line.to_owned()))),
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(set: &SummaryOptions) -> ModelAccess {
        ModelAccess::new(set.model.as_deref().unwrap_or_default(), set.server()).expect("valid options")
    }

    fn named(model: &str) -> SummaryOptions {
        SummaryOptions { model: Some(model.to_owned()), ..SummaryOptions::default() }
    }

    #[test]
    fn a_model_name_selects_provider_and_key() {
        let claude = access(&named("claude-haiku-4-5"));
        assert_eq!((claude.provider.name, &*claude.url), ("anthropic", "https://api.anthropic.com"));
        assert_eq!(claude.key, KeySource::Env("ANTHROPIC_API_KEY".to_owned()));
        let other = access(&named("gpt-5-mini"));
        assert_eq!((other.provider.name, &*other.url), ("openai", "https://api.openai.com/v1"));
        assert_eq!(other.key, KeySource::Env("OPENAI_API_KEY".to_owned()));
    }

    #[test]
    fn keys_are_not_sent_to_other_servers() {
        let local =
            SummaryOptions { url: Some("http://localhost:11434/v1".to_owned()), ..named("claude-like") };
        assert_eq!((access(&local).provider.name, access(&local).key), ("openai", KeySource::None));
        // A main model elsewhere does not get the summary model's key.
        let main =
            MainOptions { model: "m".into(), url: Some("http://other/v1".into()), ..MainOptions::default() };
        assert_eq!(access(&named("gpt-5-mini")).for_main(&main).expect("valid options").key, KeySource::None);
        let same_server = MainOptions { model: "gpt-5".into(), ..MainOptions::default() };
        let both = access(&named("gpt-5-mini")).for_main(&same_server).expect("valid options");
        assert_eq!((both.key, &*both.model), (KeySource::Env("OPENAI_API_KEY".to_owned()), "gpt-5"));
    }

    #[test]
    fn two_keys_are_refused() {
        let two = SummaryOptions {
            key_env: Some("A".into()),
            key_command: Some("b".into()),
            ..named("gpt-5-mini")
        };
        assert!(ModelAccess::new("gpt-5-mini", two.server()).is_err());
    }
}

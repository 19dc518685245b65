//! Who writes summaries, by the settings.

use std::sync::Arc;
use std::time::Duration;

use fanfold_core::Tokens;
use fanfold_engine::{Way, Ways};
use fanfold_provider::{Client, Endpoint, KeySource, Style, Timeouts};

use crate::choose;
use crate::failure::Failure;
use crate::settings::{MainOptions, Options, Size, SummaryOptions, SummaryServer, SummaryStyle};

/// OpenAI's own address, and the variable that its clients read.
const OPENAI: (&str, &str) = ("https://api.openai.com/v1", "OPENAI_API_KEY");
/// Anthropic's own address, and the variable that its clients read.
const ANTHROPIC: (&str, &str) = ("https://api.anthropic.com", "ANTHROPIC_API_KEY");

/// For how long an answer is waited for if nothing else is said, in seconds.
const USUAL_TIMEOUT: u64 = 120;
/// How much a model reads at once of which nothing is known.
const USUAL_WINDOW: Tokens = Tokens(32_000);

/// Whether summaries are switched on.
pub(crate) fn are_wanted(options: &Options) -> bool {
    options.summary.model.is_some()
}

/// Whether what is set can be used, without asking anybody.
pub(crate) fn check(options: &Options) -> Result<(), Failure> {
    let summary = &options.summary;
    let Some(model) = &summary.model else {
        let is_in_vain = *summary != SummaryOptions::default();
        let hint = "name the `model` that writes them, or leave [summary] out";
        return if is_in_vain { Err(Failure::new("[summary] names no model", hint)) } else { Ok(()) };
    };
    let first = Place::of(model, summary.server())?;
    summary.main.as_ref().map_or(Ok(()), |main| first.for_main(main).map(drop))
}

/// The models that write summaries, in the order in which they are asked. A server may be asked how much it reads.
pub(crate) fn ways(options: &Options) -> Result<Ways, Failure> {
    check(options)?;
    let summary = &options.summary;
    let Some(model) = &summary.model else { return Ok(Ways::default()) };
    let first = Place::of(model, summary.server())?;
    let timeout = Duration::from_secs(summary.timeout.unwrap_or(USUAL_TIMEOUT).max(1));
    let mut ways = vec![way(options, first.clone(), summary.window, timeout)?];
    if let Some(main) = &summary.main {
        ways.push(way(options, first.for_main(main)?, main.window, timeout)?);
    }
    Ok(Ways { ways, aborts: summary.abort_on_failure.unwrap_or_default() })
}

fn way(options: &Options, place: Place, window: Option<Size>, timeout: Duration) -> Result<Way, Failure> {
    let usual = Timeouts::default();
    let timeouts = Timeouts { first: timeout, idle: usual.idle.min(timeout), total: timeout, ..usual };
    let Place { style, url, model, key } = place;
    let endpoint = Endpoint { timeouts, ..Endpoint::new(style, url.clone(), model.clone()).with_key(key) };
    let client = Client::new(endpoint)
        .map_err(|error| Failure::new(error.to_string(), "check [summary] of your settings"))?;
    let known = window.map(|size| Tokens(size.0));
    let known = known.or_else(|| choose::models(options).find(&model).map(|found| found.window));
    let window =
        known.or_else(|| client.served_window_blocking().ok().flatten().map(Tokens)).unwrap_or(USUAL_WINDOW);
    Ok(Way { model, place: url, window, writer: Arc::new(client) })
}

/// A model, where it is, and what opens it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    style: Style,
    url: String,
    model: String,
    key: KeySource,
}

impl Place {
    fn of(model: &str, set: SummaryServer<'_>) -> Result<Place, Failure> {
        let style = style_of(set.style, set.url, model);
        let (usual_url, usual_variable) = usual(style);
        let is_own = set.url.is_none();
        let key = key(set.key_env, set.key_command, "summary")?;
        let key = key.unwrap_or_else(|| {
            if is_own { KeySource::Env(usual_variable.to_owned()) } else { KeySource::None }
        });
        Ok(Place { style, url: set.url.unwrap_or(usual_url).to_owned(), model: model.to_owned(), key })
    }

    /// The main model: on the server of the summary model, unless another one is set.
    fn for_main(self, main: &MainOptions) -> Result<Place, Failure> {
        let set = main.server();
        if set.url.is_some() || set.style.is_some_and(|style| style_of(Some(style), None, "") != self.style) {
            return Place::of(&main.model, set);
        }
        let key = key(set.key_env, set.key_command, "summary.main")?;
        Ok(Place { model: main.model.clone(), key: key.unwrap_or(self.key), ..self })
    }
}

fn usual(style: Style) -> (&'static str, &'static str) {
    match style {
        Style::OpenAi => OPENAI,
        Style::Anthropic => ANTHROPIC,
    }
}

fn style_of(set: Option<SummaryStyle>, url: Option<&str>, model: &str) -> Style {
    match (set, url) {
        (Some(SummaryStyle::OpenAi), _) => Style::OpenAi,
        (Some(SummaryStyle::Anthropic), _) => Style::Anthropic,
        (None, Some(url)) => Style::from_url(url),
        (None, None) if model.starts_with("claude") => Style::Anthropic,
        (None, None) => Style::OpenAi,
    }
}

fn key(variable: Option<&str>, command: Option<&str>, table: &str) -> Result<Option<KeySource>, Failure> {
    match (variable, command) {
        (Some(_), Some(_)) => Err(Failure::new(
            format!("[{table}] has both `key_env` and `key_command`"),
            "leave one of them out: there is one key",
        )),
        (Some(name), None) => Ok(Some(KeySource::Env(name.to_owned()))),
        (None, Some(line)) => Ok(Some(KeySource::Command(line.to_owned()))),
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(set: &SummaryOptions) -> Place {
        Place::of(set.model.as_deref().unwrap_or_default(), set.server()).expect("it is right")
    }

    fn named(model: &str) -> SummaryOptions {
        SummaryOptions { model: Some(model.to_owned()), ..SummaryOptions::default() }
    }

    #[test]
    fn a_model_alone_is_enough_at_the_usual_addresses() {
        let claude = place(&named("claude-haiku-4-5"));
        assert_eq!((claude.style, &*claude.url), (Style::Anthropic, ANTHROPIC.0));
        assert_eq!(claude.key, KeySource::Env(ANTHROPIC.1.to_owned()));
        let other = place(&named("gpt-5-mini"));
        assert_eq!((other.style, &*other.url), (Style::OpenAi, OPENAI.0));
        assert_eq!(other.key, KeySource::Env(OPENAI.1.to_owned()));
    }

    #[test]
    fn a_key_goes_nowhere_but_where_it_belongs() {
        let local =
            SummaryOptions { url: Some("http://localhost:11434/v1".to_owned()), ..named("claude-like") };
        assert_eq!((place(&local).style, place(&local).key), (Style::OpenAi, KeySource::None));
        // A main model elsewhere does not get the summary model's key.
        let main =
            MainOptions { model: "m".into(), url: Some("http://other/v1".into()), ..MainOptions::default() };
        assert_eq!(place(&named("gpt-5-mini")).for_main(&main).expect("right").key, KeySource::None);
        let beside = MainOptions { model: "gpt-5".into(), ..MainOptions::default() };
        let both = place(&named("gpt-5-mini")).for_main(&beside).expect("right");
        assert_eq!((both.key, &*both.model), (KeySource::Env(OPENAI.1.to_owned()), "gpt-5"));
    }

    #[test]
    fn one_key_is_enough() {
        let two = SummaryOptions {
            key_env: Some("A".into()),
            key_command: Some("b".into()),
            ..named("gpt-5-mini")
        };
        assert!(Place::of("gpt-5-mini", two.server()).is_err());
    }
}

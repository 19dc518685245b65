//! Chooses the terms of a fold: from the settings, then from the request, then from defaults.

use std::path::Path;

use fanfold_core::{
    Budget, Cadence, Count, EngineFactory, Policy, Prices, Quality, Strategy, Tokens, ToolFold, ToolRule,
};
use fanfold_engine::{RecordedTerms, Terms};
use fanfold_replay::{CacheMatch, Cliff, PriceChange, PriceTable};
use fanfold_tokens::{Models, counter_for, o200k};
use fanfold_wire::Format;

use super::rules_file;
use crate::failure::{Failure, Result};
use crate::settings::{
    CliffOptions, FoldTool, MatchRule, Options, PriceOptions, ToolOptions, UserText, nearest,
};

/// The window when nothing is known of the model.
const DEFAULT_WINDOW: Tokens = Tokens(128_000);

/// Chooses the terms for a conversation whose request names this model.
pub(crate) fn choose(options: &Options, request_model: Option<&str>) -> Result<Terms> {
    let mut assumed = Vec::new();
    let models = models(options);
    let model = model(options, request_model);
    let window = match (options.window, model.and_then(|model| models.find(model))) {
        (Some(window), _) => Tokens(window.0),
        (None, Some(known)) => known.window,
        (None, None) => {
            assumed.push(describe_assumed_window(model, "--window"));
            DEFAULT_WINDOW
        }
    };
    let window = smallest_window(options, &models).map_or(window, |smallest| smallest.min(window));
    for unknown in fallback_models(options).filter(|name| models.find(name).is_none()) {
        assumed.push(format!(
            "the window of the fallback model `{unknown}` is unknown and ignored ([[models]] in the settings sets it)"
        ));
    }
    let budget = match options.reserve {
        Some(reserve) => Budget::with_reserve(window, Tokens(reserve.0)),
        None => Budget::of_window(window),
    };
    let prices = model.and_then(|model| session_prices(&prices(options), model));
    Ok(Terms {
        engine: engine(options)?,
        policy: policy(&with_cadence(options, prices.is_some()))?,
        budget,
        prices,
        counter: counter(options, model, &models)?,
        format: format(options)?,
        focus: options.focus.clone().unwrap_or_default(),
        assumed,
        described: describe(options, model),
    })
}

/// Chooses the terms for a stored session. Unless a window is set or the model has changed, the session keeps the
/// window of its last request.
pub(crate) fn choose_for_session(
    options: &Options,
    request_model: Option<&str>,
    last: Option<&RecordedTerms>,
) -> Result<Terms> {
    let terms = choose(options, request_model)?;
    let is_same_model =
        |last: &&RecordedTerms| described_model(last).as_deref() == model(options, request_model);
    let last = last.filter(|_| options.window.is_none()).filter(is_same_model);
    let Some(RecordedTerms { budget, .. }) = last else { return Ok(terms) };
    let budget = match options.reserve {
        Some(reserve) => Budget::with_reserve(budget.window(), Tokens(reserve.0)),
        None => *budget,
    };
    let smallest = smallest_window(options, &models(options));
    let is_too_large = smallest.is_some_and(|smallest| smallest < budget.window());
    if is_too_large || budget == terms.budget {
        return Ok(terms);
    }
    let assumed = format!("folded for a window of {} tokens, as before (--window)", budget.window());
    Ok(Terms { budget, assumed: vec![assumed], ..terms })
}

/// The model of a session's last request.
fn described_model(last: &RecordedTerms) -> Option<String> {
    serde_json::from_str::<Options>(&last.description).ok()?.model
}

/// Says that the default window is assumed, why, and which option sets another one.
pub(crate) fn describe_assumed_window(model: Option<&str>, option: &str) -> String {
    let why = match model {
        Some(model) => format!("the window of `{model}` is not known"),
        None => "neither a window nor a model is given".to_owned(),
    };
    format!("{why}; assuming a window of {DEFAULT_WINDOW} tokens ({option})")
}

/// The model that answers: the one in the settings, unless the request names one of its fallback models.
pub(crate) fn model<'a>(options: &'a Options, request_model: Option<&'a str>) -> Option<&'a str> {
    let is_fallback = request_model.is_some_and(|model| fallback_models(options).any(|name| name == model));
    if is_fallback { request_model } else { options.model.as_deref().or(request_model) }
}

fn fallback_models(options: &Options) -> impl Iterator<Item = &str> {
    options.fallback.iter().flat_map(|chain| &chain.0).map(String::as_str)
}

/// The smallest window of the model in the settings and its fallback models, if there are fallback models.
pub(crate) fn smallest_window(options: &Options, models: &Models) -> Option<Tokens> {
    let fallbacks: Vec<&str> = fallback_models(options).collect();
    if fallbacks.is_empty() {
        return None;
    }
    // A window in the settings is that of the model in the settings.
    let main = options.model.as_deref().filter(|_| options.window.is_none());
    let names: Vec<&str> = fallbacks.into_iter().chain(main).collect();
    models.smallest_window(&names)
}

/// Serialises everything that decides about folds, except the budget. [`restore`] reads it.
fn describe(options: &Options, model: Option<&str>) -> String {
    let all = Options {
        window: None,
        reserve: None,
        color: None,
        store: None,
        profile: None,
        serve: Default::default(),
        summary: Default::default(),
        model: model.map(str::to_owned),
        ..options.clone()
    };
    serde_json::to_string(&all).unwrap_or_default()
}

/// Restores the terms of a stored session.
pub(crate) fn restore(described: &str, budget: Budget) -> Result<Terms, String> {
    let options: Options = serde_json::from_str(described).map_err(|error| error.to_string())?;
    let terms = choose(&options, None).map_err(|error| error.to_string())?;
    Ok(Terms { budget, ..terms })
}

/// The settings with the default cadence filled in: `cost` if the model has a price.
pub(crate) fn with_cadence(options: &Options, has_prices: bool) -> Options {
    let default = if has_prices { Cadence::Cost } else { Cadence::Window };
    let cadence = options.cadence.clone().unwrap_or_else(|| default.to_string());
    Options { cadence: Some(cadence), ..options.clone() }
}

/// The prices of a model, as far as a session needs them.
pub(crate) fn session_prices(table: &PriceTable, model: &str) -> Option<Prices> {
    table.find(model).map(|found| found.price.for_session())
}

/// The table of models, with those from the settings first.
pub(crate) fn models(options: &Options) -> Models {
    let own = options.models.iter().rev();
    own.fold(Models::built_in(), |models, own| models.with_override(&own.pattern, Tokens(own.window.0)))
}

/// The table of prices, with those from the settings first.
pub(crate) fn prices(options: &Options) -> PriceTable {
    options.prices.iter().rev().fold(PriceTable::built_in(), |prices, own| prices.with(&price_change(own)))
}

fn price_change(own: &PriceOptions) -> PriceChange {
    let matching = |rule: MatchRule| match rule {
        MatchRule::Prefix => CacheMatch::Prefix,
        MatchRule::Marks => CacheMatch::Marks,
        MatchRule::Ends => CacheMatch::Ends,
        MatchRule::None => CacheMatch::None,
    };
    let cliff = |own: &CliffOptions| Cliff { above: own.above.0, base: own.base.0, output: own.output.0 };
    PriceChange {
        name: own.name.clone(),
        base: own.base.map(|amount| amount.0),
        output: own.output.map(|amount| amount.0),
        write: own.write.map(|amount| amount.0),
        read: own.read.map(|amount| amount.0),
        lifetime: own.lifetime,
        matching: own.matching.map(matching),
        minimum: own.minimum.map(|size| size.0),
        step: own.step.map(|size| size.0),
        cliffs: own.cliffs.as_ref().map(|cliffs| cliffs.iter().map(cliff).collect()),
        source: None,
    }
}

/// The format in the settings.
pub(crate) fn format(options: &Options) -> Result<Option<Format>> {
    let parsed = options.format.as_deref().map(str::parse::<Format>).transpose();
    parsed.map_err(|error| Failure::new(error.to_string(), "leave out `format` to detect it"))
}

#[cfg(test)]
#[path = "../../../fanfold-engine/examples/other_engine/newest.rs"]
mod newest; // a second engine

/// The engines that `engine = "NAME"` selects. A program with an engine of its own adds it here.
const ENGINES: &[EngineFactory] = &[
    EngineFactory::FANFOLD,
    #[cfg(test)]
    newest::NEWEST,
];

/// The engine in the settings.
fn engine(options: &Options) -> Result<EngineFactory> {
    let Some(name) = options.engine.as_deref() else { return Ok(EngineFactory::FANFOLD) };
    EngineFactory::find(ENGINES, name).map_err(|error| {
        let hint = format!("the known engines are {}", error.known.join(", "));
        Failure::new(error.to_string(), hint)
    })
}

/// The policy with all settings applied.
pub(crate) fn policy(options: &Options) -> Result<Policy> {
    let mut policy = match (&options.rules, options.policy.as_deref()) {
        (Some(path), None | Some("rules")) => rules_file::read(path)?,
        (Some(_), Some(other)) => {
            let message = format!("a rules file needs the policy `rules`, but the policy is `{other}`");
            return Err(Failure::new(message, "leave out --policy or --rules"));
        }
        (None, name) => named_policy(name.unwrap_or(Policy::NAMES[0]))?,
    };
    if let Some(name) = &options.cadence {
        let cadence = name.parse::<Cadence>().map_err(|error| {
            Failure::new(error.to_string(), "set `cadence` to one of these, or leave it out")
        })?;
        policy = policy.with_cadence(cadence);
    }
    if let Some(name) = &options.strategy {
        let strategy = name.parse::<Strategy>().map_err(|error| {
            Failure::new(error.to_string(), "set `strategy` to one of these, or leave it to the policy")
        })?;
        policy = policy.with_strategy(strategy);
    }
    if let Some(name) = &options.quality {
        let quality = name.parse::<Quality>().map_err(|error| {
            Failure::new(error.to_string(), "set `quality` to one of these, or leave it out")
        })?;
        policy = policy.with_quality(quality);
    }
    if let Some(share) = options.low_mark {
        policy.low_mark = share.0;
    }
    if let Some(share) = options.tail {
        policy.tail.share = share.0;
    }
    // The first matching rule applies, so rules from the settings precede those of the policy.
    policy.tools.splice(0..0, options.tools.iter().map(tool_rule));
    policy.working_context |= options.working_context.unwrap_or_default();
    if options.user_text == Some(UserText::Never) {
        policy = policy.without_user_text();
    }
    Ok(policy)
}

fn named_policy(name: &str) -> Result<Policy> {
    Policy::named(name).ok_or_else(|| {
        let hint = match nearest(name, Policy::NAMES.into_iter()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the policies are {}", Policy::NAMES.join(", ")),
        };
        Failure::new(format!("there is no policy `{name}`"), hint)
    })
}

fn tool_rule(tool: &ToolOptions) -> ToolRule {
    let fold = match tool.fold {
        FoldTool::Auto => ToolFold::Auto,
        FoldTool::Never => ToolFold::Never,
        FoldTool::Always => ToolFold::Always,
    };
    ToolRule {
        tool: tool.name.clone(),
        fold,
        cap: tool.cap.map(|cap| cap.0),
        condense: tool.condense.map(|kind| kind.0),
        target: tool.target.clone(),
    }
}

fn counter(options: &Options, model: Option<&str>, models: &Models) -> Result<&'static dyn Count> {
    if let Some(path) = &options.tokenizer {
        return tokenizer(path);
    }
    Ok(model.map_or(o200k(), |model| leaked_counter(model, models)))
}

/// The counter of a model. Its memory is never freed, so callers with many requests must keep it.
pub(crate) fn leaked_counter(model: &str, models: &Models) -> &'static dyn Count {
    Box::leak(Box::new(counter_for(model, models)))
}

#[cfg(feature = "tokenizer-json")]
fn tokenizer(path: &Path) -> Result<&'static dyn Count> {
    let bytes = crate::files::input::read_file(path)?;
    let name = path.display().to_string();
    let tokenizer = fanfold_tokens::TokenizerJson::from_bytes(&bytes, &name).map_err(|error| {
        Failure::new(error.to_string(), "give the tokenizer.json of the model, or leave out `tokenizer`")
    })?;
    Ok(Box::leak(Box::new(tokenizer)))
}

#[cfg(not(feature = "tokenizer-json"))]
fn tokenizer(_path: &Path) -> Result<&'static dyn Count> {
    let hint = "build it with the feature `tokenizer-json`, or leave out `tokenizer`";
    Err(Failure::new("this build cannot read a tokenizer.json", hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engine_setting_selects_the_engine() {
        let engine = |name: &str| {
            let options = Options { engine: Some(name.to_owned()), ..Options::default() };
            choose(&options, None).map(|terms| terms.engine.name)
        };
        assert_eq!(choose(&Options::default(), None).unwrap().engine.name, "fanfold");
        assert_eq!((engine("fanfold").unwrap(), engine("newest").unwrap()), ("fanfold", "newest"));
        let failure = engine("oldest").unwrap_err();
        assert_eq!(failure.to_string(), "there is no engine `oldest`");
        assert_eq!(failure.hint(), Some("the known engines are fanfold, newest"));
    }
}

//! Chooses policy, budget and counter: from the settings, then from what the request names, then by default.

use std::path::Path;

use fanfold_core::{
    Budget, Cadence, Count, EngineFactory, Policy, Prices, Strategy, Tokens, ToolFold, ToolRule,
};
use fanfold_engine::{Terms, Told};
use fanfold_replay::{CacheMatch, Cliff, PriceChange, PriceTable};
use fanfold_tokens::{Models, TokenizerJson, counter_for, o200k};
use fanfold_wire::Format;

use crate::failure::{Failure, not_read};
use crate::rules_file;
use crate::settings::{CliffOptions, FoldTool, MatchRule, Options, PriceOptions, UserText, nearest};

/// The window when nothing is known of the model.
const USUAL_WINDOW: Tokens = Tokens(128_000);

/// What a request says of itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Asked<'a> {
    pub(crate) model: Option<&'a str>,
}

/// Chooses everything for a conversation.
pub(crate) fn terms(options: &Options, asked: Asked<'_>) -> anyhow::Result<Terms> {
    let mut assumed = Vec::new();
    let models = models(options);
    let model = model_of(options, asked);
    let window = match (options.window, model.and_then(|model| models.find(model))) {
        (Some(window), _) => Tokens(window.0),
        (None, Some(known)) => known.window,
        (None, None) => {
            assumed.push(assumed_window(model, "--window"));
            USUAL_WINDOW
        }
    };
    let window = smallest(options, &models).map_or(window, |smallest| smallest.min(window));
    for unknown in chain(options).filter(|name| models.find(name).is_none()) {
        let why = format!("the window of `{unknown}`, which may take over, is not known");
        assumed.push(format!("{why}, and does not count ([[models]] in the settings)"));
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
        described: described(options, model),
    })
}

/// Chooses everything for a session that is kept: where no window is set and its model is the same, it keeps the window
/// that it was told last.
pub(crate) fn kept_terms(options: &Options, asked: Asked<'_>, told: Option<&Told>) -> anyhow::Result<Terms> {
    let usual = terms(options, asked)?;
    let is_same_model = |told: &&Told| told_model(told).as_deref() == model_of(options, asked);
    let told = told.filter(|_| options.window.is_none()).filter(is_same_model);
    let Some(Told { budget, .. }) = told else { return Ok(usual) };
    let budget = match options.reserve {
        Some(reserve) => Budget::with_reserve(budget.window(), Tokens(reserve.0)),
        None => *budget,
    };
    let is_too_large = smallest(options, &models(options)).is_some_and(|smallest| smallest < budget.window());
    if is_too_large || budget == usual.budget {
        return Ok(usual);
    }
    let assumed = format!("folded for a window of {} tokens, as before (--window)", budget.window());
    Ok(Terms { budget, assumed: vec![assumed], ..usual })
}

/// The model that a session was folded for last.
fn told_model(told: &Told) -> Option<String> {
    serde_json::from_str::<Options>(&told.described).ok()?.model
}

/// Tells that the usual window is assumed, why, and where to say another one.
pub(crate) fn assumed_window(model: Option<&str>, place: &str) -> String {
    let why = match model {
        Some(model) => format!("the window of `{model}` is not known"),
        None => "no window and no model is named".to_owned(),
    };
    format!("{why}; a window of {USUAL_WINDOW} tokens is assumed ({place})")
}

/// The model that answers: the one that is set, unless the request names one that may take over from it.
pub(crate) fn model_of<'a>(options: &'a Options, asked: Asked<'a>) -> Option<&'a str> {
    let has_taken_over = asked.model.is_some_and(|asked| chain(options).any(|name| name == asked));
    if has_taken_over { asked.model } else { options.model.as_deref().or(asked.model) }
}

/// The models that may take over, in their order.
fn chain(options: &Options) -> impl Iterator<Item = &str> {
    options.fallback.iter().flat_map(|chain| &chain.0).map(String::as_str)
}

/// The smallest window among the model that is set and those that may take over; none if there are none.
pub(crate) fn smallest(options: &Options, models: &Models) -> Option<Tokens> {
    let fallbacks: Vec<&str> = chain(options).collect();
    if fallbacks.is_empty() {
        return None;
    }
    // A window that is set is that of the model that is set.
    let main = options.model.as_deref().filter(|_| options.window.is_none());
    let names: Vec<&str> = fallbacks.into_iter().chain(main).collect();
    models.smallest_window(&names)
}

/// What these settings are made of again: all that decides about folds but the budget.
fn described(options: &Options, model: Option<&str>) -> String {
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

/// The terms of settings that were described.
pub(crate) fn terms_of(described: &str, budget: Budget) -> Result<Terms, String> {
    let options: Options = serde_json::from_str(described).map_err(|error| error.to_string())?;
    let terms = terms(&options, Asked::default()).map_err(|error| error.to_string())?;
    Ok(Terms { budget, ..terms })
}

/// The settings with the cadence that holds if none is set: `cost` where there are prices.
pub(crate) fn with_cadence(options: &Options, has_prices: bool) -> Options {
    let usual = if has_prices { Cadence::Cost } else { Cadence::Window };
    let cadence = options.cadence.clone().unwrap_or_else(|| usual.to_string());
    Options { cadence: Some(cadence), ..options.clone() }
}

/// What a session needs to know of a model's price.
pub(crate) fn session_prices(table: &PriceTable, model: &str) -> Option<Prices> {
    table.find(model).map(|found| found.price.for_session())
}

/// The table of models with the user's own before the rest.
pub(crate) fn models(options: &Options) -> Models {
    let own = options.models.iter().rev();
    own.fold(Models::built_in(), |models, own| models.with_override(&own.pattern, Tokens(own.window.0)))
}

/// The table of prices with the user's own before the rest.
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

/// The format that was set.
pub(crate) fn format(options: &Options) -> anyhow::Result<Option<Format>> {
    let parsed = options.format.as_deref().map(str::parse::<Format>).transpose();
    parsed.map_err(|error| Failure::new(error.to_string(), "leave `format` out to have it recognised").into())
}

#[cfg(test)]
#[path = "../../fanfold-engine/examples/other_engine/newest.rs"]
mod newest; // a second engine

/// The engines that `engine = "NAME"` selects. A program with an engine of its own adds it here.
const ENGINES: &[EngineFactory] = &[
    EngineFactory::FANFOLD,
    #[cfg(test)]
    newest::NEWEST,
];

/// The engine that was set.
fn engine(options: &Options) -> Result<EngineFactory, Failure> {
    let Some(name) = options.engine.as_deref() else { return Ok(EngineFactory::FANFOLD) };
    EngineFactory::find(ENGINES, name).map_err(|error| {
        let hint = format!("the known engines are {}", error.known.join(", "));
        Failure::new(error.to_string(), hint)
    })
}

/// The policy with everything that was set about it.
pub(crate) fn policy(options: &Options) -> anyhow::Result<Policy> {
    let mut policy = match (&options.rules, options.policy.as_deref()) {
        (Some(path), None | Some("rules")) => rules_file::read(path)?,
        (Some(_), Some(other)) => {
            let message = format!("a rules file is for the policy `rules`, and the policy is `{other}`");
            return Err(Failure::new(message, "leave out --policy or --rules").into());
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
    if let Some(share) = options.low_mark {
        policy.low_mark = share.0;
    }
    if let Some(share) = options.tail {
        policy.tail.share = share.0;
    }
    // The first rule that matches a tool counts, so the user's come before the policy's.
    policy.tools.splice(0..0, options.tools.iter().map(tool_rule));
    policy.working_context |= options.working_context.unwrap_or_default();
    if options.user_text == Some(UserText::Never) {
        policy = policy.without_user_text();
    }
    Ok(policy)
}

fn named_policy(name: &str) -> Result<Policy, Failure> {
    Policy::named(name).ok_or_else(|| {
        let hint = match nearest(name, Policy::NAMES.into_iter()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the policies are {}", Policy::NAMES.join(", ")),
        };
        Failure::new(format!("there is no policy `{name}`"), hint)
    })
}

fn tool_rule(tool: &crate::settings::ToolOptions) -> ToolRule {
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

fn counter(options: &Options, model: Option<&str>, models: &Models) -> anyhow::Result<&'static dyn Count> {
    if let Some(path) = &options.tokenizer {
        return Ok(Box::leak(Box::new(tokenizer(path)?)));
    }
    Ok(model.map_or(o200k(), |model| counter_of(model, models)))
}

/// The counter of a model. It is never given back, so a caller with many requests keeps it.
pub(crate) fn counter_of(model: &str, models: &Models) -> &'static dyn Count {
    Box::leak(Box::new(counter_for(model, models)))
}

fn tokenizer(path: &Path) -> anyhow::Result<TokenizerJson> {
    let bytes = std::fs::read(path).map_err(|error| not_read(path, &error))?;
    let name = path.display().to_string();
    TokenizerJson::from_bytes(&bytes, &name).map_err(|error| {
        Failure::new(error.to_string(), "give the tokenizer.json of the model, or leave `tokenizer` out")
            .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_setting_selects_an_engine() {
        let engine = |name: &str| {
            let options = Options { engine: Some(name.to_owned()), ..Options::default() };
            terms(&options, Asked::default()).map(|terms| terms.engine.name)
        };
        assert_eq!(terms(&Options::default(), Asked::default()).unwrap().engine.name, "fanfold");
        assert_eq!((engine("fanfold").unwrap(), engine("newest").unwrap()), ("fanfold", "newest"));
        let failure = engine("oldest").unwrap_err().to_string();
        assert!(
            failure.contains("there is no engine `oldest`") && failure.contains("fanfold, newest"),
            "{failure}"
        );
    }
}

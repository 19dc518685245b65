//! Replays one recorded conversation through policies, reply by reply.
//!
//! Before each recorded reply, each policy makes the view that would have been sent. All policies and windows are
//! replayed together, so that each message is decoded once.

use fanfold_core::{Budget, Count, Policy, Receipt, Session, Tokens};
use fanfold_wire::Conversation;
use serde_json::value::RawValue;

use crate::content::analysis::RecordAnalysis;
use crate::content::atoms::CommonKnowledge;
use crate::content::contents::CachingCounter;
use crate::next_reply::{NextReply, pieces};
use crate::originals::OriginalCache;
use crate::policy_run::PolicyRun;
use crate::prices::{ChargedRequest, CostMeter, Price, PriceTable};
use crate::record::Record;
use crate::sums::ReplayTotals;

/// The options of a replay.
#[derive(Debug, Clone)]
pub struct ReplayOptions {
    /// The policies.
    pub policies: Vec<Policy>,
    /// The windows, in tokens.
    pub windows: Vec<u64>,
    /// Tokens of each window reserved for the answer.
    pub reserve: u64,
    /// Conversations are replayed at a window if they are at least this many times as long.
    pub min_ratio: f64,
    /// The table of prices.
    pub prices: PriceTable,
    /// The price for all conversations; `None` charges each by its own model.
    pub price: Option<Price>,
    /// The shortest conversation to replay, in tokens.
    pub min_tokens: u64,
    /// True to return the receipt of each fold.
    pub has_receipts: bool,
}

impl ReplayOptions {
    /// The price for a conversation: that of its model, or the default if the model is unknown.
    pub fn price_of(&self, record: &Record) -> Price {
        let of_model = || self.prices.find(record.model.as_deref()?);
        let found =
            || of_model().or_else(|| self.prices.find(DEFAULT_PRICE)).map(|found| found.price.clone());
        self.price.clone().or_else(found).expect("the default price is in the table")
    }
}

/// The price for conversations whose model is unknown.
pub const DEFAULT_PRICE: &str = "anthropic";

/// The result of one conversation under one policy and window.
#[derive(Debug, Clone)]
pub struct ReplayOutcome {
    /// The conversation.
    pub id: String,
    /// The collection it belongs to.
    pub source: String,
    /// The policy, by its position in the options.
    pub policy: usize,
    /// The window, in tokens.
    pub window: u64,
    /// The length of the whole conversation, in tokens.
    pub raw: u64,
    /// The totals.
    pub sums: ReplayTotals,
    /// The folds, if the options ask for receipts.
    pub folds: Vec<ReplayedFold>,
}

/// A fold and its price.
#[derive(Debug, Clone)]
pub struct ReplayedFold {
    /// The message of the reply that follows it.
    pub reply: usize,
    /// Its receipt.
    pub receipt: Receipt,
    /// The extra price of writing the messages after the fold to the cache again, in dollars.
    pub dollars: f64,
}

/// Replays one conversation under every policy, at every window that it is long enough for.
pub fn replay(
    record: &Record,
    options: &ReplayOptions,
    known: &CommonKnowledge,
    counter: &'static dyn Count,
) -> Vec<ReplayOutcome> {
    let is_long = |tokens: u64, window: u64| {
        tokens >= options.min_tokens && tokens as f64 >= options.min_ratio * window as f64
    };
    let is_short = |tokens: u64| !options.windows.iter().any(|window| is_long(tokens, *window));
    if record.tokens.is_some_and(is_short) {
        return Vec::new();
    }
    let caching = CachingCounter::new(counter);
    let mut analysis = RecordAnalysis::new(record, known, &caching);
    let price = options.price_of(record);
    let mut runs = Vec::new();
    for &window in options.windows.iter().filter(|window| is_long(analysis.total(), **window)) {
        runs.extend(start_runs(options, window, Tokens(analysis.base), &price, counter));
    }
    if runs.is_empty() {
        return Vec::new();
    }
    let mut conversation = Conversation::empty(Record::format());
    let mut n_applied = 0;
    let mut originals = OriginalCache::default();
    let lifetime = price.lifetime;
    let mut unfolded = CostMeter::new(price);
    let mut last: Option<f64> = None;
    for n in 0..analysis.replies.len() {
        let next = NextReply::new(&analysis, n);
        let new: Vec<&RawValue> = record.messages[n_applied..next.reply].iter().map(|raw| &**raw).collect();
        let mut changes = conversation.append(&new);
        changes.iter_mut().for_each(|change| change.count(&caching));
        n_applied = next.reply;
        let pieces = pieces(&analysis, &analysis.content_ids[..next.reply]);
        unfolded.charge(&ChargedRequest { pieces, mark: None, output: next.output, at: next.at });
        let idle = next.at.zip(last).map(|(now, last)| now - last);
        let is_cold = idle.zip(lifetime).is_some_and(|(idle, lifetime)| idle > lifetime as f64);
        last = next.at.or(last);
        for run in &mut runs {
            run.apply(&changes);
            if is_cold {
                run.expire_cache();
            }
            let sent = run.view(&conversation, &mut analysis, next.reply);
            run.measure(&analysis, &mut originals, &next, sent);
            run.compare(unfolded.bill());
        }
    }
    let raw = analysis.total();
    let outcome = |run: PolicyRun| {
        let ((policy, window), mut sums, folds) = run.finish();
        sums.bill_raw = unfolded.bill();
        let (id, source) = (record.id.clone(), record.source.clone());
        ReplayOutcome { id, source, policy, window, raw, sums, folds }
    };
    runs.into_iter().map(outcome).collect()
}

/// A run for each policy at one window.
fn start_runs(
    options: &ReplayOptions,
    window: u64,
    tools: Tokens,
    price: &Price,
    counter: &'static dyn Count,
) -> Vec<PolicyRun> {
    let start = |(i, policy): (usize, &Policy)| {
        let budget = Budget::with_reserve(Tokens(window), Tokens(options.reserve));
        let mut session = Session::new(policy.clone(), budget, counter).with_prices(price.for_session());
        session.set_tools(tools);
        PolicyRun::new((i, window), session, CostMeter::new(price.clone()), options.has_receipts)
    };
    options.policies.iter().enumerate().map(start).collect()
}

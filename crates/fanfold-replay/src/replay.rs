//! One recorded conversation through policies, reply by reply.
//!
//! Before each recorded reply a policy gets what had been said until then, and gives the view that would have been
//! sent. All policies and windows go side by side, so that each message is decoded once.

use fanfold_core::{Budget, Count, Policy, Receipt, Session, Tokens};
use fanfold_wire::{Conversation, Format};
use serde_json::value::RawValue;

use crate::atoms::Known;
use crate::looks::Remembering;
use crate::moment::{Moment, pieces};
use crate::prices::{Meter, Price, PriceTable, Request};
use crate::recalled::Originals;
use crate::record::Record;
use crate::run::Run;
use crate::sums::Sums;
use crate::trajectory::Trajectory;

/// How conversations are replayed.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The policies.
    pub policies: Vec<Policy>,
    /// The windows, in tokens.
    pub windows: Vec<u64>,
    /// What of each window is kept for the answer.
    pub reserve: u64,
    /// A conversation is used at a window if it is so many times as long.
    pub min_ratio: f64,
    /// The table of prices.
    pub prices: PriceTable,
    /// What all are charged at; else each by its own model.
    pub price: Option<Price>,
    /// Only conversations of so many tokens.
    pub least: u64,
    /// Whether the receipt of each fold is wanted.
    pub has_receipts: bool,
}

impl Terms {
    /// What a conversation is charged at: its model's price, or the usual one where the model is not known.
    pub fn price_of(&self, record: &Record) -> Price {
        let of_model = || self.prices.find(record.model.as_deref()?);
        let found = || of_model().or_else(|| self.prices.find(USUAL_PRICE)).map(|found| found.price.clone());
        self.price.clone().or_else(found).expect("the usual price is in the table")
    }
}

/// What a conversation is charged at if nothing is known of its model.
pub const USUAL_PRICE: &str = "anthropic";

/// One conversation under one policy and window.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The conversation.
    pub id: String,
    /// The collection that it is from.
    pub source: String,
    /// The policy, by its position in the terms.
    pub policy: usize,
    /// The window.
    pub window: u64,
    /// The conversation's whole length.
    pub raw: u64,
    /// What was counted.
    pub sums: Sums,
    /// Each fold, if that was asked for.
    pub folds: Vec<FoldMade>,
}

/// A fold, and what it cost to make it.
#[derive(Debug, Clone)]
pub struct FoldMade {
    /// Before which reply, by message.
    pub reply: usize,
    /// What it did.
    pub receipt: Receipt,
    /// What reading anew behind it cost, in dollars.
    pub dollars: f64,
}

/// Replays one conversation under every policy and window for which it is long enough.
pub fn replay(record: &Record, terms: &Terms, known: &Known, counter: &'static dyn Count) -> Vec<Outcome> {
    let is_long =
        |tokens: u64, window: u64| tokens >= terms.least && tokens as f64 >= terms.min_ratio * window as f64;
    let is_short = |tokens: u64| !terms.windows.iter().any(|window| is_long(tokens, *window));
    if record.tokens.is_some_and(is_short) {
        return Vec::new();
    }
    let remembering = Remembering::new(counter);
    let mut trajectory = Trajectory::new(record, known, &remembering);
    let price = terms.price_of(record);
    let mut runs = Vec::new();
    for &window in terms.windows.iter().filter(|window| is_long(trajectory.total(), **window)) {
        for (i, policy) in terms.policies.iter().enumerate() {
            let budget = Budget::with_reserve(Tokens(window), Tokens(terms.reserve));
            let mut session = Session::new(policy.clone(), budget, counter).with_prices(price.for_session());
            session.set_tools(Tokens(trajectory.base));
            runs.push(Run::new((i, window), session, Meter::new(price.clone()), terms.has_receipts));
        }
    }
    let mut conversation = Conversation::of_messages(Format::Chat);
    let mut n_taken = 0;
    let mut originals = Originals::default();
    let lifetime = price.lifetime;
    let mut untouched = Meter::new(price);
    let mut last: Option<f64> = None;
    for n in 0..if runs.is_empty() { 0 } else { trajectory.replies.len() } {
        let moment = Moment::new(&trajectory, n);
        let new: Vec<&RawValue> = record.messages[n_taken..moment.reply].iter().map(|raw| &**raw).collect();
        let mut changes = conversation.append(&new);
        changes.iter_mut().for_each(|change| change.count(&remembering));
        n_taken = moment.reply;
        let pieces = pieces(&trajectory, &trajectory.look_of[..moment.reply]);
        untouched.take(&Request { pieces, mark: None, output: moment.output, at: moment.at });
        let idle = moment.at.zip(last).map(|(now, last)| now - last);
        let is_cold = idle.zip(lifetime).is_some_and(|(idle, lifetime)| idle > lifetime as f64);
        last = moment.at.or(last);
        for run in &mut runs {
            run.take(&changes);
            if is_cold {
                run.cool();
            }
            let sent = run.sent(&conversation, &mut trajectory, moment.reply);
            run.measure(&trajectory, &mut originals, &moment, sent);
            run.compare(untouched.bill());
        }
    }
    let raw = trajectory.total();
    let outcome = |run: Run| {
        let ((policy, window), mut sums, folds) = run.end();
        sums.bill_raw = untouched.bill();
        let (id, source) = (record.id.clone(), record.source.clone());
        Outcome { id, source, policy, window, raw, sums, folds }
    };
    runs.into_iter().map(outcome).collect()
}

//! Adds a request to the totals and to its session.

use std::sync::Arc;
use std::time::Duration;

use fanfold_replay::Price;
use fanfold_store::SessionId;

use super::RequestMeter;
use crate::meter::cost::{BothCosts, Charge, CostAccount, SentBody, reported_cost};
use crate::meter::fold_snapshot::FoldSnapshot;
use crate::meter::status::{Book, count};
use crate::outcome::{Exit, ProxyOutcome};

impl RequestMeter {
    /// Adds the request and the new folds of a snapshot to a session.
    pub(super) fn count_session(&mut self, session: &SessionId, snapshot: Option<&FoldSnapshot>) {
        let meter = Arc::clone(&self.meter);
        let now = meter.started.elapsed();
        let mut book = meter.book();
        let entry = book.sessions.touch(session, self.format, now);
        if self.session.is_none() {
            entry.status.requests += 1;
            entry.status.in_flight += 1;
        }
        entry.status.model.clone_from(&self.model);
        self.session = Some(session.clone());
        let Some(snapshot) = snapshot else { return };
        entry.base = Some(snapshot.base.clone());
        let status = &mut entry.status;
        if !snapshot.words.is_empty() {
            status.words.clone_from(&snapshot.words);
        }
        (status.window, status.room) = (snapshot.window, snapshot.room);
        (status.came, status.sent, status.needs) = (snapshot.came, snapshot.sent, snapshot.needs);
        snapshot.pressure.name().clone_into(&mut status.pressure);
        status.turns += snapshot.n_new_turns;
        status.folds = snapshot.n_folds;
        status.folds_here += snapshot.n_new_folds;
        status.misses += snapshot.n_misses;
        status.folded_away += snapshot.folded_away;
        book.totals.folds += snapshot.n_new_folds;
        book.totals.misses += snapshot.n_misses;
        book.totals.folding.turns += snapshot.n_new_turns;
        book.folded_views.0 += snapshot.folds.iter().map(|(before, _)| before).sum::<u64>();
        book.folded_views.1 += snapshot.folds.iter().map(|(_, after)| after).sum::<u64>();
        book.totals.tokens.folded_away += snapshot.folded_away;
        book.families.entry(self.family.clone()).or_default().status.folded_away += snapshot.folded_away;
        drop(book);
        meter.counters.folds(snapshot.n_new_folds, snapshot.folded_away, snapshot.n_misses);
        meter.counters.turns(snapshot.n_new_turns, &snapshot.folds);
    }

    /// Adds the end of the request. Returns its cost.
    pub(super) fn count_end(&self, exit: Exit) -> Option<BothCosts> {
        let now = self.meter.started.elapsed();
        let price = self.meter.prices.find(&self.model).map(|found| found.price);
        let mut book = self.meter.book();
        let mut account = CostAccount::default();
        let entry = self.session.as_ref().and_then(|session| book.sessions.get(session));
        let cost = match entry {
            Some(entry) => {
                entry.status.in_flight = entry.status.in_flight.saturating_sub(1);
                entry.last = now;
                let cost = price.and_then(|price| self.cost(price, &mut entry.account, now));
                entry.has_price |= cost.is_some();
                entry.cost.add(cost.unwrap_or_default());
                cost
            }
            None => price.and_then(|price| self.cost(price, &mut account, now)),
        };
        self.count_totals(&mut book, exit, cost);
        cost
    }

    /// The cost, if it is known. A request that was refused or not answered costs nothing.
    fn cost(&self, price: &Price, account: &mut CostAccount, now: Duration) -> Option<BothCosts> {
        let is_answered = self.status.is_some_and(|status| (200..300).contains(&status));
        if !is_answered {
            return None;
        }
        let (first, later) = match self.usages.split_first() {
            Some((first, later)) => (*first, later),
            None => (None, &[][..]),
        };
        let mut cost = match (&self.snapshot, first) {
            (Some(snapshot), usage) => {
                // A body that was sent unchanged for a reason of the proxy breaks no prefix.
                let is_folded = matches!(self.outcome, ProxyOutcome::Folded | ProxyOutcome::Observed);
                let is_sent_folded = self.outcome == ProxyOutcome::Folded;
                let charge = Charge {
                    unfolded: snapshot.came,
                    folded: snapshot.sent,
                    shared: snapshot.shared.filter(|_| is_folded),
                    sent: if is_sent_folded { SentBody::Folded } else { SentBody::Unfolded },
                    usage,
                    at: now,
                };
                account.charge(price, &charge)
            }
            (None, Some(usage)) => {
                let dollars = reported_cost(price, &usage);
                BothCosts { unfolded: dollars, folded: dollars }
            }
            (None, None) => return None,
        };
        // Calls after a recall are a cost of folding.
        cost.folded += later.iter().flatten().map(|usage| reported_cost(price, usage)).sum::<f64>();
        Some(cost)
    }

    fn count_totals(&self, book: &mut Book, exit: Exit, cost: Option<BothCosts>) {
        let totals = &mut book.totals;
        let family = book.families.entry(self.family.clone()).or_default();
        totals.requests += 1;
        family.status.requests += 1;
        count(&mut totals.outcomes, self.outcome.name());
        count(&mut totals.ended, exit.name());
        if let ProxyOutcome::Unchanged(reason) = self.outcome {
            count(&mut totals.as_it_came, reason.name());
        }
        let is_folded = matches!(self.outcome, ProxyOutcome::Folded | ProxyOutcome::Observed);
        family.status.folded += u64::from(is_folded);
        if let Some(snapshot) = &self.snapshot {
            totals.tokens.came += snapshot.came;
            totals.tokens.sent += snapshot.sent;
            family.status.came += snapshot.came;
            family.status.sent += snapshot.sent;
        }
        if let Some(usage) = self.total_usage() {
            totals.tokens.input += usage.input;
            totals.tokens.read += usage.read;
            totals.tokens.written += usage.written.unwrap_or_default();
            totals.tokens.output += usage.output;
        }
        let Some(cost) = cost else {
            totals.requests_unpriced += 1;
            return;
        };
        totals.requests_priced += 1;
        book.cost.add(cost);
        family.n_priced += 1;
        family.cost.add(cost);
    }
}

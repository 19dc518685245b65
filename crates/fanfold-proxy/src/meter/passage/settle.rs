//! What a request adds to the sums and to its session.

use std::time::Duration;

use fanfold_replay::Price;

use super::Passage;
use crate::meter::Book;
use crate::meter::money::{Account, Charge, Money, Way, reported};
use crate::meter::words::{Exit, Outcome};

impl Passage {
    /// Adds it to the sums and to its session. Says what it cost.
    pub(super) fn settle(&self, exit: Exit) -> Option<Money> {
        let meter = &*self.meter;
        let now = meter.began.elapsed();
        let price = meter.prices.find(&self.model).map(|found| found.price);
        let mut book = meter.book();
        let mut unknown = Account::default();
        let known = self.session.as_ref().and_then(|session| book.sessions.get(session));
        let money = match known {
            Some(known) => {
                known.n_in_flight = known.n_in_flight.saturating_sub(1);
                known.last = now;
                let money = price.and_then(|price| self.cost(price, &mut known.account, now));
                known.has_price |= money.is_some();
                known.money.add(money.unwrap_or_default());
                money
            }
            None => price.and_then(|price| self.cost(price, &mut unknown, now)),
        };
        self.add(&mut book, exit, money);
        money
    }

    /// What it cost both ways; none if that is not known. What was refused or never answered costs nothing.
    fn cost(&self, price: &Price, account: &mut Account, now: Duration) -> Option<Money> {
        let is_answered = self.status.is_some_and(|status| (200..300).contains(&status));
        if !is_answered {
            return None;
        }
        let (first, later) = match self.rounds.split_first() {
            Some((first, later)) => (*first, later),
            None => (None, &[][..]),
        };
        let mut money = match (&self.glance, first) {
            (Some(glance), used) => {
                // What left as it came for a reason of ours breaks no prefix.
                let is_folded = matches!(self.outcome, Outcome::Folded | Outcome::Observed);
                account.charge(
                    price,
                    &Charge {
                        came: glance.came,
                        sent: glance.sent,
                        shared: glance.shared.filter(|_| is_folded),
                        went: if self.outcome == Outcome::Folded { Way::Folded } else { Way::AsItCame },
                        used,
                        at: now,
                    },
                )
            }
            (None, Some(used)) => {
                let dollars = reported(price, &used);
                Money { came: dollars, sent: dollars }
            }
            (None, None) => return None,
        };
        // Calls that go on after a recall are a cost of folding.
        money.sent += later.iter().flatten().map(|used| reported(price, used)).sum::<f64>();
        Some(money)
    }

    fn add(&self, book: &mut Book, exit: Exit, money: Option<Money>) {
        let Book { sums, families, .. } = book;
        let family = families.entry(self.family.clone()).or_default();
        sums.n_requests += 1;
        family.n_requests += 1;
        *sums.outcomes.entry(self.outcome.name()).or_default() += 1;
        *sums.exits.entry(exit.name()).or_default() += 1;
        if let Outcome::AsItCame(why) = self.outcome {
            *sums.reasons.entry(why).or_default() += 1;
        }
        family.n_folded += u64::from(matches!(self.outcome, Outcome::Folded | Outcome::Observed));
        if let Some(glance) = &self.glance {
            sums.tokens.came += glance.came;
            sums.tokens.sent += glance.sent;
            family.came += glance.came;
            family.sent += glance.sent;
        }
        if let Some(used) = self.used_in_all() {
            sums.tokens.input += used.input;
            sums.tokens.read += used.read;
            sums.tokens.written += used.written.unwrap_or_default();
            sums.tokens.output += used.output;
        }
        sums.n_unpriced += u64::from(money.is_none());
        if let Some(money) = money {
            sums.money.add(money);
            sums.n_priced += 1;
            family.money.add(money);
            family.n_priced += 1;
        }
    }
}

//! The savings of folding as text.

use std::fmt::Write as _;

use fanfold_core::thousands;

use super::{Dollars, Status};

impl Status {
    /// The savings, or those of an observing proxy that folding would have made: in all and per model family.
    pub fn report(&self) -> String {
        let totals = &self.totals;
        let is_observed = self.mode == "observe";
        let n_folded: u64 = self.models.iter().map(|model| model.folded).sum();
        let (folded, saved) = match (is_observed, n_folded) {
            (true, _) => ("would have been folded", "would have saved"),
            (false, 1) => ("was folded", "saved"),
            (false, _) => ("were folded", "saved"),
        };
        let mut page = String::new();
        if totals.requests == 0 {
            return "no requests were received\n".to_owned();
        }
        let _ = writeln!(
            page,
            "{} of {} {folded}: {} -> {} tokens in all, {} folded away in {}",
            thousands(n_folded),
            count(totals.requests, "request"),
            thousands(totals.tokens.came),
            thousands(totals.tokens.sent),
            thousands(totals.tokens.folded_away),
            count(totals.folds, "fold"),
        );
        if totals.requests_priced > 0 {
            let Dollars { came, sent, saved: difference } = totals.dollars;
            let _ = writeln!(
                page,
                "that {saved} {}: {} without folding, {} with it",
                dollars(difference),
                dollars(came),
                dollars(sent)
            );
        }
        if totals.requests_unpriced > 0 {
            let n = count(totals.requests_unpriced, "request");
            let _ = writeln!(
                page,
                "not included in these costs: {n} without an answer, a token count, or a price for the model"
            );
        }
        for model in self.models.iter().filter(|_| self.models.len() > 1) {
            let money = model.dollars.map_or("no price".to_owned(), |money| dollars(money.saved));
            let _ = writeln!(
                page,
                "  {:<24} {:>7} requests  {:>12} -> {:>12} tokens  {money:>10}",
                model.family,
                thousands(model.requests),
                thousands(model.came),
                thousands(model.sent),
            );
        }
        page
    }
}

/// A number with its noun: `1 fold`, `2 folds`.
fn count(n: u64, one: &str) -> String {
    format!("{} {one}{}", thousands(n), if n == 1 { "" } else { "s" })
}

/// An amount of money with two decimals, or four if it is small.
pub fn dollars(amount: f64) -> String {
    let sign = if amount < 0.0 { "-" } else { "" };
    let amount = amount.abs();
    match amount {
        0.0 => "$0.00".to_owned(),
        small if small < 0.00995 => format!("{sign}${small:.4}"),
        amount => format!("{sign}${amount:.2}"),
    }
}

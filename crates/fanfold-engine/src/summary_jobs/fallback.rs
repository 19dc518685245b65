//! Who is asked for a summary, and what a failure means. Values in, values out: nothing waits here.
//!
//! ```text
//! summary model --fails--> main model --fails--> the digest alone
//!      |                        |
//!      +--- credential ---------+--------------> abort: nothing changes
//! ```

use std::time::Duration;

use fanfold_provider::ErrorClass;
use fanfold_store::Millis;
use serde::{Deserialize, Serialize};

/// Answers that broke off, or are none.
const BROKEN_MS: i64 = 30_000;
/// Whatever else went wrong.
const OTHER_MS: i64 = 60_000;
/// Timeouts, by how many there were in a row.
const TIMEOUTS_MS: [i64; 3] = [60_000, 300_000, 900_000];
/// A provider that says when to come again is believed up to here.
const MOST_RESTED_MS: i64 = 3_600_000;

/// Why an attempt gave no summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Miss {
    /// The provider's fault, and when to come again if it said so.
    Fault(ErrorClass, Option<Duration>),
    /// It answered, but what it wrote is no summary.
    Flawed,
}

impl Miss {
    /// Whether somebody has to do something about a credential or an account.
    fn is_access(self) -> bool {
        matches!(self, Miss::Fault(ErrorClass::Auth | ErrorClass::Quota, _))
    }

    fn retry_after(self) -> Option<Duration> {
        match self {
            Miss::Fault(_, retry_after) => retry_after,
            Miss::Flawed => None,
        }
    }
}

/// For how long a model is not asked by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rest {
    /// Until when, in milliseconds since 1970.
    pub until: i64,
    /// How many timeouts there were in a row.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_timeouts: u32,
    /// Whether a credential is in the way, so that nobody else is asked instead.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_access: bool,
    /// What went wrong, for a person.
    pub why: String,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Rest {
    /// The rest that a miss brings, after the one before it.
    pub(crate) fn after(miss: Miss, before: Option<&Rest>, now: Millis, why: String) -> Rest {
        let is_timeout = matches!(miss, Miss::Fault(ErrorClass::Timeout, _));
        let n_timeouts =
            if is_timeout { before.map_or(0, |rest| rest.n_timeouts).saturating_add(1) } else { 0 };
        let usual = match miss {
            Miss::Fault(ErrorClass::Timeout, _) => {
                TIMEOUTS_MS[(n_timeouts as usize).clamp(1, TIMEOUTS_MS.len()) - 1]
            }
            Miss::Fault(ErrorClass::Broken | ErrorClass::Empty, _) => BROKEN_MS,
            Miss::Fault(..) | Miss::Flawed => OTHER_MS,
        };
        let told = miss.retry_after().map_or(0, |told| i64::try_from(told.as_millis()).unwrap_or(i64::MAX));
        let until = now.0.saturating_add(usual.max(told.min(MOST_RESTED_MS)));
        Rest { until, n_timeouts, is_access: miss.is_access(), why }
    }

    fn is_over(&self, now: Millis) -> bool {
        now.0 >= self.until
    }
}

/// What holds for an errand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Whether a person asked for it: then nobody rests.
    pub(crate) is_by_hand: bool,
    /// Whether any failure leaves all as it was.
    pub(crate) aborts: bool,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Move {
    /// Ask a model, by its position.
    Ask(usize),
    /// Nobody is left.
    Stop(Stop),
}

/// How it is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Nothing changes.
    Abort,
    /// The digest stands alone.
    Digest,
}

/// The models of an errand, the one that is asked first at the beginning.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    rests: Vec<bool>,
    at: usize,
    rules: Rules,
}

impl Chain {
    /// Begins with the first model that does not rest, or says which rest is in the way. There is a model.
    pub(crate) fn begin(rests: &[Option<Rest>], rules: Rules, now: Millis) -> Result<Chain, Rest> {
        let current = |rest: &&Rest| !rules.is_by_hand && !rest.is_over(now);
        let resting: Vec<Option<&Rest>> = rests.iter().map(|rest| rest.as_ref().filter(current)).collect();
        let first = resting.iter().position(Option::is_none);
        // A credential that does not work is a person's to mend, and asking another model would hide it.
        let access = resting.iter().flatten().find(|rest| rest.is_access);
        let soonest = || resting.iter().flatten().min_by_key(|rest| rest.until);
        match (first, access) {
            (Some(at), None) => {
                let rests = resting.iter().map(Option::is_some).collect();
                Ok(Chain { rests, at, rules })
            }
            (_, Some(rest)) => Err((*rest).clone()),
            (None, None) => {
                Err(soonest().map(|rest| (*rest).clone()).expect("there is a model, and it rests"))
            }
        }
    }

    /// The model that is asked now.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Takes a miss of the model that was asked, and says what to do.
    pub(crate) fn missed(&mut self, miss: Miss) -> Move {
        if miss.is_access() {
            return Move::Stop(Stop::Abort);
        }
        let next = (self.at + 1..self.rests.len()).find(|at| !self.rests[*at]);
        if let Some(next) = next {
            self.at = next;
            return Move::Ask(next);
        }
        Move::Stop(if self.rules.aborts { Stop::Abort } else { Stop::Digest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY_ITSELF: Rules = Rules { is_by_hand: false, aborts: false };
    const BY_HAND: Rules = Rules { is_by_hand: true, aborts: false };
    const NOW: Millis = Millis(1_000_000);

    fn fault(class: ErrorClass) -> Miss {
        Miss::Fault(class, None)
    }

    fn rest(miss: Miss, before: Option<&Rest>) -> Rest {
        Rest::after(miss, before, NOW, String::new())
    }

    fn seconds(rest: &Rest) -> i64 {
        (rest.until - NOW.0) / 1000
    }

    #[test]
    fn timeouts_in_a_row_rest_longer_and_longer() {
        let mut before = None;
        let mut long = Vec::new();
        for _ in 0..5 {
            let next = rest(fault(ErrorClass::Timeout), before.as_ref());
            long.push(seconds(&next));
            before = Some(next);
        }
        assert_eq!(long, [60, 300, 900, 900, 900]);
        // Something else in between begins the row anew.
        let other = rest(fault(ErrorClass::Server), before.as_ref());
        assert_eq!((seconds(&other), seconds(&rest(fault(ErrorClass::Timeout), Some(&other)))), (60, 60));
    }

    #[test]
    fn rests_by_class() {
        let all = [
            (ErrorClass::Broken, 30),
            (ErrorClass::Empty, 30),
            (ErrorClass::Auth, 60),
            (ErrorClass::Quota, 60),
            (ErrorClass::Rate, 60),
            (ErrorClass::Overflow, 60),
            (ErrorClass::Connection, 60),
            (ErrorClass::NoModel, 60),
            (ErrorClass::Refused, 60),
            (ErrorClass::Server, 60),
            (ErrorClass::Timeout, 60),
        ];
        for (class, expected) in all {
            assert_eq!(seconds(&rest(fault(class), None)), expected, "{class:?}");
        }
        assert_eq!(seconds(&rest(Miss::Flawed, None)), 60);
    }

    #[test]
    fn a_provider_that_says_when_to_come_again_is_believed() {
        let told = |s| rest(Miss::Fault(ErrorClass::Rate, Some(Duration::from_secs(s))), None);
        assert_eq!([7, 61, 600, 10_000_000].map(|s| seconds(&told(s))), [60, 61, 600, 3600]);
    }

    #[test]
    fn the_summary_model_then_the_main_model_then_the_digest() {
        let mut chain = Chain::begin(&[None, None], BY_ITSELF, NOW).unwrap();
        assert_eq!(chain.at(), 0);
        assert_eq!(chain.missed(fault(ErrorClass::NoModel)), Move::Ask(1));
        assert_eq!(chain.missed(fault(ErrorClass::Server)), Move::Stop(Stop::Digest));
    }

    #[test]
    fn any_failure_aborts_where_that_is_wanted() {
        let rules = Rules { aborts: true, ..BY_ITSELF };
        let mut chain = Chain::begin(&[None], rules, NOW).unwrap();
        assert_eq!(chain.missed(Miss::Flawed), Move::Stop(Stop::Abort));
    }

    #[test]
    fn a_credential_aborts_whoever_is_asked() {
        for class in [ErrorClass::Auth, ErrorClass::Quota] {
            let mut chain = Chain::begin(&[None, None], BY_ITSELF, NOW).unwrap();
            assert_eq!(chain.missed(fault(class)), Move::Stop(Stop::Abort));
            let mut chain = Chain::begin(&[None, None], BY_HAND, NOW).unwrap();
            assert_eq!(chain.missed(fault(ErrorClass::Broken)), Move::Ask(1));
            assert_eq!(chain.missed(fault(class)), Move::Stop(Stop::Abort));
        }
    }

    #[test]
    fn one_that_rests_is_passed_over_unless_a_person_asks() {
        let rested = Some(rest(fault(ErrorClass::Timeout), None));
        assert_eq!(Chain::begin(&[rested.clone(), None], BY_ITSELF, NOW).unwrap().at(), 1);
        assert_eq!(Chain::begin(&[rested.clone(), None], BY_HAND, NOW).unwrap().at(), 0);
        let later = Millis(NOW.0 + 60_000);
        assert_eq!(Chain::begin(&[rested.clone(), None], BY_ITSELF, later).unwrap().at(), 0);
        // The main model rests: after the summary model there is nobody.
        let mut chain = Chain::begin(&[None, rested], BY_ITSELF, NOW).unwrap();
        assert_eq!(chain.missed(fault(ErrorClass::Server)), Move::Stop(Stop::Digest));
    }

    #[test]
    fn when_all_rest_the_first_that_wakes_is_told() {
        let (long, short) = (rest(fault(ErrorClass::Server), None), rest(fault(ErrorClass::Broken), None));
        let resting = Chain::begin(&[Some(long), Some(short.clone())], BY_ITSELF, NOW).unwrap_err();
        assert_eq!(resting, short);
    }

    #[test]
    fn a_credential_that_was_refused_is_not_hidden_by_another_model() {
        let refused = rest(fault(ErrorClass::Auth), None);
        let resting = Chain::begin(&[Some(refused.clone()), None], BY_ITSELF, NOW).unwrap_err();
        assert_eq!(resting, refused);
    }
}

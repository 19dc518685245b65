//! A direct call and one through whoever stands in front, in turn, with the same body.

use std::io;
use std::time::Duration;

use fanfold_testkit::caller::{Answered, Caller};
use fanfold_testkit::upstream::{Quick, Upstream};
use serde_json::json;

use super::followed::{Followed, HEADERS, PATH};
use super::{Options, ms, percentile};

/// So many requests of one conversation; then another begins.
const N_STEPS: usize = 40;

#[derive(Default)]
struct Times {
    first: Vec<f64>,
    whole: Vec<f64>,
}

impl Times {
    fn take(&mut self, answered: &Answered) {
        self.first.push(ms(answered.first));
        self.whole.push(ms(answered.whole));
    }

    fn sort(&mut self) {
        self.first.sort_by(f64::total_cmp);
        self.whole.sort_by(f64::total_cmp);
    }
}

pub(crate) fn run(options: &Options) -> Result<String, String> {
    let n_bytes = options.get("bytes")? as usize;
    let n_requests = options.get("requests")? as usize;
    let upstream = Upstream::quick(options.port("upstream-port")?, Quick::new(20, Duration::ZERO));
    let upstream = upstream.map_err(|error| format!("the provider can't listen: {error}"))?;
    let (mut straight, mut through) = (Caller::new(upstream.port()), Caller::new(options.port("port")?));
    let (mut direct, mut proxied, mut begun) = (Times::default(), Times::default(), Times::default());
    // A step is small beside the conversation, so that its size stays near what is named.
    let step = (n_bytes / 100).clamp(400, 4_000);
    let mut n_failed = 0;
    let mut why = String::new();
    let mut seed = 0;
    while proxied.first.len() + n_failed < n_requests {
        seed += 1;
        let mut followed = Followed::new(seed, n_bytes - N_STEPS * step / 2, true);
        for i in 0..=N_STEPS.min(n_requests) {
            let body = followed.body();
            let came = [straight.post(PATH, &HEADERS, &body), through.post(PATH, &HEADERS, &body)].map(sound);
            match came {
                [Ok(one), Ok(other)] if i == 0 => {
                    drop(one);
                    begun.take(&other);
                }
                [Ok(one), Ok(other)] => {
                    direct.take(&one);
                    proxied.take(&other);
                }
                [one, other] => {
                    n_failed += 1;
                    why = one.err().or(other.err()).unwrap_or_default();
                    if n_failed > 20 {
                        return Err(format!("more than 20 requests failed, the last one: {why}"));
                    }
                }
            }
            followed.step(step);
        }
    }
    if proxied.first.is_empty() {
        return Err(format!("no request was answered: {why}"));
    }
    [&mut direct, &mut proxied, &mut begun].into_iter().for_each(Times::sort);
    let line = |times: &Times| {
        json!({ "first_p50": percentile(&times.first, 0.5), "first_p99": percentile(&times.first, 0.99),
            "whole_p50": percentile(&times.whole, 0.5), "whole_p99": percentile(&times.whole, 0.99) })
    };
    Ok(json!({ "bytes": n_bytes, "n": proxied.first.len(), "failed": n_failed, "why": why,
        "direct": line(&direct), "proxied": line(&proxied), "begun": line(&begun) })
    .to_string())
}

/// An answer that is whole and good.
pub(crate) fn sound(answered: io::Result<Answered>) -> Result<Answered, String> {
    let answered = answered.map_err(|error| error.to_string())?;
    let is_whole = answered.text().contains("message_stop") || answered.text().contains("\"stop_reason\"");
    if answered.status == 200 && is_whole {
        return Ok(answered);
    }
    let text: String = answered.text().chars().take(300).collect();
    Err(format!("status {}: {text}", answered.status))
}

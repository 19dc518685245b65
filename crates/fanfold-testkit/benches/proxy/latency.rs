//! Compares the latency of direct requests and of the same requests through a proxy.

use std::io;
use std::time::Duration;

use fanfold_testkit::clients::http::{HttpClient, HttpResponse};
use fanfold_testkit::fakes::upstream::{ConstantReply, Upstream};
use fanfold_testkit::generators::growing_conversation::{GrowingConversation, HEADERS, PATH};
use serde_json::json;

use super::{Options, ms, percentile};

/// The number of requests of each conversation.
const N_STEPS: usize = 40;

#[derive(Default)]
struct Times {
    first_byte: Vec<f64>,
    total: Vec<f64>,
}

impl Times {
    fn record(&mut self, response: &HttpResponse) {
        self.first_byte.push(ms(response.first_byte));
        self.total.push(ms(response.total));
    }

    fn sort(&mut self) {
        self.first_byte.sort_by(f64::total_cmp);
        self.total.sort_by(f64::total_cmp);
    }
}

pub(crate) fn run(options: &Options) -> Result<String, String> {
    let n_bytes = options.get("bytes")? as usize;
    let n_requests = options.get("requests")? as usize;
    let upstream =
        Upstream::start_constant(options.port("upstream-port")?, ConstantReply::new(20, Duration::ZERO));
    let upstream = upstream.map_err(|error| format!("the provider cannot listen: {error}"))?;
    let (mut direct_client, mut proxied_client) =
        (HttpClient::new(upstream.port()), HttpClient::new(options.port("port")?));
    let (mut direct, mut proxied, mut first_requests) =
        (Times::default(), Times::default(), Times::default());
    // Steps are small, so that the size of the conversation stays near the requested one.
    let step = (n_bytes / 100).clamp(400, 4_000);
    let mut n_failed = 0;
    let mut why = String::new();
    let mut seed = 0;
    while proxied.first_byte.len() + n_failed < n_requests {
        seed += 1;
        let mut conversation = GrowingConversation::new(seed, n_bytes - N_STEPS * step / 2, true);
        for i in 0..=N_STEPS.min(n_requests) {
            let body = conversation.body();
            let clients = [&mut direct_client, &mut proxied_client];
            match clients.map(|client| check_response(client.post(PATH, &HEADERS, &body))) {
                [Ok(one), Ok(other)] if i == 0 => {
                    drop(one);
                    first_requests.record(&other);
                }
                [Ok(one), Ok(other)] => {
                    direct.record(&one);
                    proxied.record(&other);
                }
                [one, other] => {
                    n_failed += 1;
                    why = one.err().or(other.err()).unwrap_or_default();
                    if n_failed > 20 {
                        return Err(format!("more than 20 requests failed, the last one: {why}"));
                    }
                }
            }
            conversation.add_step(step);
        }
    }
    if proxied.first_byte.is_empty() {
        return Err(format!("no request was answered: {why}"));
    }
    [&mut direct, &mut proxied, &mut first_requests].into_iter().for_each(Times::sort);
    let line = |times: &Times| {
        json!({ "first_p50": percentile(&times.first_byte, 0.5), "first_p99": percentile(&times.first_byte, 0.99),
            "whole_p50": percentile(&times.total, 0.5), "whole_p99": percentile(&times.total, 0.99) })
    };
    Ok(json!({ "bytes": n_bytes, "n": proxied.first_byte.len(), "failed": n_failed, "why": why,
        "direct": line(&direct), "proxied": line(&proxied), "begun": line(&first_requests) })
    .to_string())
}

/// Checks that a response is complete and has status 200.
pub(crate) fn check_response(response: io::Result<HttpResponse>) -> Result<HttpResponse, String> {
    let response = response.map_err(|error| error.to_string())?;
    let is_complete = response.text().contains("message_stop") || response.text().contains("\"stop_reason\"");
    if response.status == 200 && is_complete {
        return Ok(response);
    }
    let text: String = response.text().chars().take(300).collect();
    Err(format!("status {}: {text}", response.status))
}

//! Every timeout and its message.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use fanfold_provider::{ErrorClass, KeySource, ModelClient, Timeouts};
use fanfold_testkit::fakes::upstream::Fault;

use crate::setup::{OPENAI, PROVIDERS, endpoint, prompt, upstream};

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(300);

/// Sends a prompt with given timeouts and returns the message of the error.
fn check(url: &str, provider: &str, timeouts: Timeouts) -> String {
    let client =
        ModelClient::new(fanfold_provider::Endpoint { timeouts, ..endpoint(provider, url) }).unwrap();
    let began = Instant::now();
    let error = client.send_blocking(&prompt()).unwrap_err();
    assert_eq!(error.class, ErrorClass::Timeout, "{error}");
    assert!(began.elapsed() >= SHORT && began.elapsed() < LONG / 3, "{:?}", began.elapsed());
    error.message
}

fn long() -> Timeouts {
    Timeouts { connect: LONG, first: LONG, idle: LONG, total: LONG, window: LONG }
}

#[test]
fn first_byte() {
    for provider in PROVIDERS {
        let upstream = upstream();
        upstream.fault(Fault::Stall(LONG));
        let message = check(&upstream.url(), provider, Timeouts { first: SHORT, ..long() });
        assert_eq!(message, "no answer began within 300 ms");
    }
}

#[test]
fn between_two_chunks() {
    for provider in PROVIDERS {
        let upstream = upstream();
        upstream.fault(Fault::Drip(LONG));
        let message = check(&upstream.url(), provider, Timeouts { idle: SHORT, ..long() });
        assert_eq!(message, "the answer stalled for 300 ms");
    }
}

#[test]
fn total() {
    for provider in PROVIDERS {
        // The answer never stalls, but it does not end either.
        let upstream = upstream();
        upstream.fault(Fault::Drip(SHORT / 3));
        let message = check(&upstream.url(), provider, Timeouts { total: SHORT, ..long() });
        assert_eq!(message, "the request was not finished within 300 ms");
    }
}

#[test]
fn connecting() {
    // With a full accept queue the system does not answer connection requests.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, SHORT) {
        waiting.push(stream);
        assert!(waiting.len() < 5000, "the queue is never full here");
    }
    let message = check(&format!("http://{address}"), OPENAI, Timeouts { connect: SHORT, ..long() });
    assert_eq!(message, "no connection within 300 ms");
}

#[cfg(unix)]
#[test]
fn key_command() {
    let upstream = upstream();
    let timeouts = Timeouts { total: SHORT, ..long() };
    let key = KeySource::Command("sleep 30".to_owned());
    let endpoint = fanfold_provider::Endpoint { timeouts, key, ..endpoint(OPENAI, &upstream.url()) };
    let began = Instant::now();
    let error = ModelClient::new(endpoint).unwrap().send_blocking(&prompt()).unwrap_err();
    assert_eq!((error.class, upstream.n_seen()), (ErrorClass::Timeout, 0), "{error}");
    assert!(began.elapsed() < LONG / 3);
}

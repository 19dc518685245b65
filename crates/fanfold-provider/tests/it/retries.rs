//! Which errors are retried, how often, and after which pause.

use std::time::{Duration, Instant};

use fanfold_provider::{Endpoint, ErrorClass, ModelClient, ProviderError, Timeouts};
use fanfold_testkit::fakes::upstream::{Fault, Upstream};

use crate::setup::{OPENAI, PROVIDERS, endpoint, prompt, upstream};

fn client(provider: &str, upstream: &Upstream, n_retries: u32) -> ModelClient {
    ModelClient::new(Endpoint { n_retries, ..endpoint(provider, &upstream.url()) }).unwrap()
}

/// A status without a requested delay.
fn status(status: u16) -> Fault {
    Fault::AnswerWith(status, Vec::new(), r#"{"error":{"message":"not now"}}"#.to_owned())
}

fn failed(upstream: &Upstream, n_retries: u32) -> ProviderError {
    client(OPENAI, upstream, n_retries).send_blocking(&prompt()).unwrap_err()
}

#[test]
fn transient_errors_are_retried() {
    for provider in PROVIDERS {
        for fault in [
            status(429),
            status(500),
            status(529),
            Fault::HangUp,
            Fault::Disconnect(2),
            Fault::EndEarly(2),
            Fault::LateError(1),
            Fault::Answer(200, r#"{"choices":[{"message":{"content":"half"#.to_owned()),
        ] {
            let upstream = upstream();
            upstream.fault(fault.clone());
            let answer = client(provider, &upstream, 1).send_blocking(&prompt());
            assert!(answer.is_ok(), "{fault:?}: {answer:?}");
            assert_eq!(upstream.n_seen(), 2, "{fault:?}");
        }
    }
}

#[test]
fn the_number_of_retries_is_limited() {
    for n_retries in [0, 1, 2] {
        let upstream = upstream();
        for _ in 0..5 {
            upstream.fault(status(503));
        }
        let error = failed(&upstream, n_retries);
        assert_eq!((error.class, error.n_attempts), (ErrorClass::Server, n_retries + 1));
        assert_eq!(upstream.n_seen(), n_retries as usize + 1);
        assert_eq!(error.to_string().contains("attempts"), n_retries > 0, "{error}");
    }
}

#[test]
fn permanent_errors_are_not_retried() {
    let answer = |status: u16, body: &str| Fault::Answer(status, body.to_owned());
    let cases = [
        (Fault::Status(401), ErrorClass::Auth),
        (Fault::Status(402), ErrorClass::Quota),
        (Fault::Status(403), ErrorClass::Auth),
        (Fault::Status(404), ErrorClass::NoModel),
        (answer(400, r#"{"error":{"message":"no"}}"#), ErrorClass::Refused),
        (answer(429, r#"{"error":{"code":"insufficient_quota"}}"#), ErrorClass::Quota),
        (answer(200, ""), ErrorClass::Empty),
        (Fault::GatewayPage(200), ErrorClass::Broken),
        (
            Fault::AnswerWith(503, vec![("x-should-retry".to_owned(), "false".to_owned())], String::new()),
            ErrorClass::Server,
        ),
    ];
    for (fault, class) in cases {
        let upstream = upstream();
        upstream.fault(fault.clone());
        assert_eq!(failed(&upstream, 3).class, class, "{fault:?}");
        assert_eq!(upstream.n_seen(), 1, "{fault:?}");
    }
}

#[test]
fn requested_delays_are_respected() {
    let upstream = upstream();
    let with_delay = |name: &str, value: &str| {
        Fault::AnswerWith(429, vec![(name.to_owned(), value.to_owned())], String::new())
    };
    upstream.fault(with_delay("retry-after", "1"));
    let began = Instant::now();
    assert!(client(OPENAI, &upstream, 1).send_blocking(&prompt()).is_ok());
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    // A delay above the limit is returned as an error at once.
    for value in ["3600", "Tue, 01 Jan 2999 00:00:00 GMT"] {
        upstream.fault(with_delay("retry-after", value));
        let began = Instant::now();
        let error = failed(&upstream, 3);
        assert_eq!((error.class, error.n_attempts), (ErrorClass::Rate, 1));
        assert!(error.retry_after >= Some(Duration::from_secs(3000)), "{error:?}");
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn the_deadline_covers_all_attempts() {
    let upstream = upstream();
    for _ in 0..50 {
        upstream.fault(Fault::AnswerWith(
            503,
            vec![("retry-after-ms".to_owned(), "200".to_owned())],
            String::new(),
        ));
    }
    let total = Duration::from_millis(1500);
    let timeouts = Timeouts { total, ..endpoint(OPENAI, "").timeouts };
    let endpoint = Endpoint { n_retries: 1000, timeouts, ..endpoint(OPENAI, &upstream.url()) };
    let began = Instant::now();
    let error = ModelClient::new(endpoint).unwrap().send_blocking(&prompt()).unwrap_err();
    assert!(matches!(error.class, ErrorClass::Server | ErrorClass::Timeout), "{error}");
    assert!(began.elapsed() < total + Duration::from_secs(3), "{:?}", began.elapsed());
    assert!(error.n_attempts >= 1);
}

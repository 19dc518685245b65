//! When it is asked again, and when not.

use std::time::{Duration, Instant};

use fanfold_provider::{Client, Endpoint, ErrorClass, ProviderError as Failed, Style, Timeouts};
use fanfold_testkit::fakes::upstream::{Fault, Upstream};

use crate::setting::{STYLES, endpoint, prompt, upstream};

fn client(style: Style, upstream: &Upstream, n_retries: u32) -> Client {
    Client::new(Endpoint { n_retries, ..endpoint(style, &upstream.url()) }).unwrap()
}

/// A status without a wish to be left alone.
fn status(status: u16) -> Fault {
    Fault::AnswerWith(status, Vec::new(), r#"{"error":{"message":"not now"}}"#.to_owned())
}

fn failed(upstream: &Upstream, n_retries: u32) -> Failed {
    client(Style::OpenAi, upstream, n_retries).ask(&prompt()).unwrap_err()
}

#[test]
fn what_may_pass_is_asked_again_and_counted() {
    for style in STYLES {
        for told in [
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
            upstream.fault(told.clone());
            let answer = client(style, &upstream, 1).ask(&prompt());
            assert!(answer.is_ok(), "{told:?}: {answer:?}");
            assert_eq!(upstream.n_seen(), 2, "{told:?}");
        }
    }
}

#[test]
fn it_is_asked_so_often_and_no_more() {
    for n_retries in [0, 1, 2] {
        let upstream = upstream();
        for _ in 0..5 {
            upstream.fault(status(503));
        }
        let fault = failed(&upstream, n_retries);
        assert_eq!((fault.class, fault.n_tries), (ErrorClass::Server, n_retries + 1));
        assert_eq!(upstream.n_seen(), n_retries as usize + 1);
        assert_eq!(fault.to_string().contains("asked"), n_retries > 0, "{fault}");
    }
}

#[test]
fn what_does_not_pass_is_not_asked_again() {
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
    for (told, class) in cases {
        let upstream = upstream();
        upstream.fault(told.clone());
        assert_eq!(failed(&upstream, 3).class, class, "{told:?}");
        assert_eq!(upstream.n_seen(), 1, "{told:?}");
    }
}

#[test]
fn a_wish_to_be_left_alone_is_heard() {
    let upstream = upstream();
    let wish = |name: &str, value: &str| {
        Fault::AnswerWith(429, vec![(name.to_owned(), value.to_owned())], String::new())
    };
    upstream.fault(wish("retry-after", "1"));
    let began = Instant::now();
    assert!(client(Style::OpenAi, &upstream, 1).ask(&prompt()).is_ok());
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    // One that is longer than anybody waits is told at once.
    for value in ["3600", "Fri, 01 Jan 2999 00:00:00 GMT"] {
        upstream.fault(wish("retry-after", value));
        let began = Instant::now();
        let fault = failed(&upstream, 3);
        assert_eq!((fault.class, fault.n_tries), (ErrorClass::Rate, 1));
        assert!(fault.retry_after >= Some(Duration::from_secs(3000)), "{fault:?}");
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn the_deadline_holds_for_all_tries_together() {
    let upstream = upstream();
    for _ in 0..50 {
        upstream.fault(Fault::AnswerWith(
            503,
            vec![("retry-after-ms".to_owned(), "200".to_owned())],
            String::new(),
        ));
    }
    let total = Duration::from_millis(1500);
    let timeouts = Timeouts { total, ..endpoint(Style::OpenAi, "").timeouts };
    let endpoint = Endpoint { n_retries: 1000, timeouts, ..endpoint(Style::OpenAi, &upstream.url()) };
    let began = Instant::now();
    let fault = Client::new(endpoint).unwrap().ask(&prompt()).unwrap_err();
    assert!(matches!(fault.class, ErrorClass::Server | ErrorClass::Timeout), "{fault}");
    assert!(began.elapsed() < total + Duration::from_secs(3), "{:?}", began.elapsed());
    assert!(fault.n_tries >= 1);
}

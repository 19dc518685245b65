//! Each timeout, with the words that name it.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use fanfold_provider::{Client, ErrorClass, KeySource, Style, Timeouts};
use fanfold_testkit::fakes::upstream::Fault;

use crate::setting::{STYLES, endpoint, prompt, upstream};

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(300);

/// Asks with given clocks, and gives the words of the timeout.
fn check(url: &str, style: Style, timeouts: Timeouts) -> String {
    let client = Client::new(fanfold_provider::Endpoint { timeouts, ..endpoint(style, url) }).unwrap();
    let began = Instant::now();
    let fault = client.ask(&prompt()).unwrap_err();
    assert_eq!(fault.class, ErrorClass::Timeout, "{fault}");
    assert!(began.elapsed() >= SHORT && began.elapsed() < LONG / 3, "{:?}", began.elapsed());
    fault.message
}

fn long() -> Timeouts {
    Timeouts { connect: LONG, first: LONG, idle: LONG, total: LONG, window: LONG }
}

#[test]
fn the_first_byte() {
    for style in STYLES {
        let upstream = upstream();
        upstream.fault(Fault::Stall(LONG));
        let words = check(&upstream.url(), style, Timeouts { first: SHORT, ..long() });
        assert_eq!(words, "no answer began within 300 ms");
    }
}

#[test]
fn between_two_bytes() {
    for style in STYLES {
        let upstream = upstream();
        upstream.fault(Fault::Drip(LONG));
        let words = check(&upstream.url(), style, Timeouts { idle: SHORT, ..long() });
        assert_eq!(words, "nothing came for 300 ms in the middle of it");
    }
}

#[test]
fn all_of_it() {
    for style in STYLES {
        // It is never silent for long, and still never done.
        let upstream = upstream();
        upstream.fault(Fault::Drip(SHORT / 3));
        let words = check(&upstream.url(), style, Timeouts { total: SHORT, ..long() });
        assert_eq!(words, "it was not done within 300 ms");
    }
}

#[test]
fn the_connection() {
    // A queue that is full lets nobody in: the system does not answer.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, SHORT) {
        waiting.push(stream);
        assert!(waiting.len() < 5000, "the queue is never full here");
    }
    let words = check(&format!("http://{address}"), Style::OpenAi, Timeouts { connect: SHORT, ..long() });
    assert_eq!(words, "no connection within 300 ms");
}

#[cfg(unix)]
#[test]
fn a_key_that_does_not_come() {
    let upstream = upstream();
    let timeouts = Timeouts { total: SHORT, ..long() };
    let key = KeySource::Command("sleep 30".to_owned());
    let endpoint = fanfold_provider::Endpoint { timeouts, key, ..endpoint(Style::OpenAi, &upstream.url()) };
    let began = Instant::now();
    let fault = Client::new(endpoint).unwrap().ask(&prompt()).unwrap_err();
    assert_eq!((fault.class, upstream.n_seen()), (ErrorClass::Timeout, 0), "{fault}");
    assert!(began.elapsed() < LONG / 3);
}

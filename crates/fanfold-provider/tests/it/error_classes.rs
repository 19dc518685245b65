//! Every error class, in a real exchange.

use std::net::TcpListener;

use fanfold_provider::{ErrorClass, ProviderError};
use fanfold_testkit::fakes::upstream::{Fault, Limit};

use crate::setup::{ANTHROPIC, OPENAI, PROVIDERS, client, expect_error, prompt, send, upstream};

/// Sends a prompt to a provider with a fault, in both styles.
fn check(fault: &Fault, class: ErrorClass, status: Option<u16>) -> Vec<ProviderError> {
    let error = PROVIDERS.map(|provider| {
        let upstream = upstream();
        upstream.fault(fault.clone());
        let error = expect_error(provider, &upstream.url(), class);
        assert_eq!(error.status, status, "{fault:?}: {error}");
        assert_eq!((error.n_attempts, upstream.n_seen()), (1, 1));
        assert!(error.to_string().starts_with(&format!("m at {}: ", upstream.url())), "{error}");
        assert!(send(provider, &upstream.url()).is_ok(), "the next request succeeds");
        error
    });
    error.into()
}

#[test]
fn auth_401_and_403() {
    for status in [401, 403] {
        check(&Fault::Status(status), ErrorClass::Auth, Some(status));
    }
}

#[test]
fn quota_402_and_429_without_credit() {
    check(&Fault::Status(402), ErrorClass::Quota, Some(402));
    let body = r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","code":"insufficient_quota"}}"#;
    check(&Fault::Answer(429, body.to_owned()), ErrorClass::Quota, Some(429));
}

#[test]
fn rate_429() {
    for error in check(&Fault::Status(429), ErrorClass::Rate, Some(429)) {
        assert_eq!(error.retry_after.map(|wish| wish.as_secs()), Some(7));
        assert!(error.hint().contains("7 s"), "{}", error.hint());
    }
}

#[test]
fn overflow_reports_the_limit() {
    for provider in PROVIDERS {
        let upstream = upstream();
        upstream.set_limit(Some(Limit::Bytes(40)));
        assert_eq!(expect_error(provider, &upstream.url(), ErrorClass::Overflow).limit, Some(10));
    }
}

#[test]
fn no_model_names_the_model() {
    for provider in PROVIDERS {
        let upstream = upstream();
        upstream.set_models(&["n", "o"]);
        let error = expect_error(provider, &upstream.url(), ErrorClass::NoModel);
        assert!(error.hint().contains("`m`"), "{}", error.hint());
        assert_eq!(upstream.n_seen(), 1, "no other URL is tried");
    }
}

#[test]
fn server_500_and_529() {
    for status in [500, 503, 529] {
        check(&Fault::Status(status), ErrorClass::Server, Some(status));
    }
    check(&Fault::GatewayPage(502), ErrorClass::Server, Some(502));
}

#[test]
fn refused_by_a_filter() {
    let body = r#"{"error":{"message":"The prompt was filtered due to our content management policy.","code":"content_filter"}}"#;
    check(&Fault::Answer(400, body.to_owned()), ErrorClass::Refused, Some(400));
    for (provider, stop) in [(OPENAI, "content_filter"), (ANTHROPIC, "refusal")] {
        let upstream = upstream();
        upstream.fault(Fault::StopReason(stop.to_owned()));
        expect_error(provider, &upstream.url(), ErrorClass::Refused);
    }
}

#[test]
fn empty_200_without_body_or_text() {
    check(&Fault::Answer(200, String::new()), ErrorClass::Empty, None);
    check(&Fault::ReplyText(String::new()), ErrorClass::Empty, None);
    check(&Fault::ReplyText(" \n".to_owned()), ErrorClass::Empty, None);
}

#[test]
fn broken_pages_and_incomplete_answers() {
    check(&Fault::Garbage, ErrorClass::Broken, None);
    check(
        &Fault::Answer(200, r#"{"choices":[{"message":{"content":"half"#.to_owned()),
        ErrorClass::Broken,
        None,
    );
    for error in check(&Fault::GatewayPage(200), ErrorClass::Broken, None) {
        assert!(
            error.message.contains("200 from the gateway") && !error.message.contains("color"),
            "{error}"
        );
    }
    // The stream ends early, with and without a proper end of the body.
    for n_events in 1..4 {
        check(&Fault::EndEarly(n_events), ErrorClass::Broken, None);
        check(&Fault::Disconnect(n_events), ErrorClass::Broken, None);
    }
    check(&Fault::NotHttp, ErrorClass::Broken, None);
}

#[test]
fn errors_with_status_200() {
    for n_events in [0, 1, 3] {
        check(&Fault::LateError(n_events), ErrorClass::Server, None);
    }
    let body = r#"{"error":{"code":401,"message":"No auth credentials found"}}"#;
    check(&Fault::Answer(200, body.to_owned()), ErrorClass::Auth, Some(401));
}

#[test]
fn connection_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = expect_error(OPENAI, &url, ErrorClass::Connection);
    assert!(error.message.to_lowercase().contains("refused"), "{error}");
}

#[test]
fn connection_closed_before_an_answer() {
    check(&Fault::HangUp, ErrorClass::Connection, None);
}

#[test]
fn unknown_host_name() {
    let error = expect_error(OPENAI, "http://nobody-at-all.invalid", ErrorClass::Connection);
    assert!(error.message.contains("unknown host name"), "{error}");
}

#[test]
fn tls_to_a_plain_server() {
    let upstream = upstream();
    let url = upstream.url().replace("http:", "https:");
    let error = expect_error(OPENAI, &url, ErrorClass::Connection);
    assert!(error.message.contains("TLS"), "{error}");
}

#[test]
fn a_redirect_is_not_followed() {
    let upstream = upstream();
    let headers = vec![("location".to_owned(), "http://127.0.0.1:1/elsewhere".to_owned())];
    upstream.fault(Fault::AnswerWith(307, headers, String::new()));
    let error = client(OPENAI, &upstream.url()).send_blocking(&prompt()).unwrap_err();
    assert_eq!((error.class, error.status), (ErrorClass::Broken, Some(307)));
}

//! Each class of faults, by a real exchange.

use std::net::TcpListener;

use fanfold_provider::{ErrorClass, ProviderError as Failed, Style};
use fanfold_testkit::fakes::upstream::{Fault, Limit};

use crate::setting::{STYLES, ask, client, fault, prompt, upstream};

/// Asks a provider with a fault, in both styles.
fn check(told: &Fault, class: ErrorClass, status: Option<u16>) -> Vec<Failed> {
    let failed = STYLES.map(|style| {
        let upstream = upstream();
        upstream.fault(told.clone());
        let failed = fault(style, &upstream.url(), class);
        assert_eq!(failed.status, status, "{told:?}: {failed}");
        assert_eq!((failed.n_tries, upstream.n_seen()), (1, 1));
        assert!(failed.to_string().starts_with(&format!("m at {}: ", upstream.url())), "{failed}");
        assert!(ask(style, &upstream.url()).is_ok(), "and then all is well");
        failed
    });
    failed.into()
}

#[test]
fn auth_401_and_403() {
    for status in [401, 403] {
        check(&Fault::Status(status), ErrorClass::Auth, Some(status));
    }
}

#[test]
fn quota_402_and_a_429_that_does_not_pass() {
    check(&Fault::Status(402), ErrorClass::Quota, Some(402));
    let body = r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","code":"insufficient_quota"}}"#;
    check(&Fault::Answer(429, body.to_owned()), ErrorClass::Quota, Some(429));
}

#[test]
fn rate_429() {
    for failed in check(&Fault::Status(429), ErrorClass::Rate, Some(429)) {
        assert_eq!(failed.retry_after.map(|wish| wish.as_secs()), Some(7));
        assert!(failed.hint().contains("7 s"), "{}", failed.hint());
    }
}

#[test]
fn overflow_says_the_limit() {
    for style in STYLES {
        let upstream = upstream();
        upstream.set_limit(Some(Limit::Bytes(40)));
        assert_eq!(fault(style, &upstream.url(), ErrorClass::Overflow).limit, Some(10));
    }
}

#[test]
fn no_model_of_that_name() {
    for style in STYLES {
        let upstream = upstream();
        upstream.set_models(&["n", "o"]);
        let failed = fault(style, &upstream.url(), ErrorClass::NoModel);
        assert!(failed.hint().contains("`m`"), "{}", failed.hint());
        assert_eq!(upstream.n_seen(), 1, "the address was right, and nothing else is tried");
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
    for (style, stop) in [(Style::OpenAi, "content_filter"), (Style::Anthropic, "refusal")] {
        let upstream = upstream();
        upstream.fault(Fault::StopReason(stop.to_owned()));
        fault(style, &upstream.url(), ErrorClass::Refused);
    }
}

#[test]
fn empty_200_without_a_body_or_without_a_word() {
    check(&Fault::Answer(200, String::new()), ErrorClass::Empty, None);
    check(&Fault::ReplyText(String::new()), ErrorClass::Empty, None);
    check(&Fault::ReplyText(" \n".to_owned()), ErrorClass::Empty, None);
}

#[test]
fn broken_pages_and_halves() {
    check(&Fault::Garbage, ErrorClass::Broken, None);
    check(
        &Fault::Answer(200, r#"{"choices":[{"message":{"content":"half"#.to_owned()),
        ErrorClass::Broken,
        None,
    );
    for failed in check(&Fault::GatewayPage(200), ErrorClass::Broken, None) {
        assert!(
            failed.message.contains("200 from the gateway") && !failed.message.contains("color"),
            "{failed}"
        );
    }
    // The stream closes early: in good order, and not.
    for n_events in 1..4 {
        check(&Fault::EndEarly(n_events), ErrorClass::Broken, None);
        check(&Fault::Disconnect(n_events), ErrorClass::Broken, None);
    }
    check(&Fault::NotHttp, ErrorClass::Broken, None);
}

#[test]
fn an_error_inside_of_200() {
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
    let failed = fault(Style::OpenAi, &url, ErrorClass::Connection);
    assert!(failed.message.to_lowercase().contains("refused"), "{failed}");
}

#[test]
fn connection_hung_up() {
    check(&Fault::HangUp, ErrorClass::Connection, None);
}

#[test]
fn a_name_that_is_not_known() {
    let failed = fault(Style::OpenAi, "http://nobody-at-all.invalid", ErrorClass::Connection);
    assert!(failed.message.contains("the name is not known"), "{failed}");
}

#[test]
fn tls_where_a_plain_server_answers() {
    let upstream = upstream();
    let url = upstream.url().replace("http:", "https:");
    let failed = fault(Style::OpenAi, &url, ErrorClass::Connection);
    assert!(failed.message.contains("TLS"), "{failed}");
}

#[test]
fn a_redirect_is_not_followed() {
    let upstream = upstream();
    let headers = vec![("location".to_owned(), "http://127.0.0.1:1/elsewhere".to_owned())];
    upstream.fault(Fault::AnswerWith(307, headers, String::new()));
    let failed = client(Style::OpenAi, &upstream.url()).ask(&prompt()).unwrap_err();
    assert_eq!((failed.class, failed.status), (ErrorClass::Broken, Some(307)));
}

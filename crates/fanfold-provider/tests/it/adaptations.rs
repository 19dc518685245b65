//! Adaptations: an error that calls for other request options is followed by a changed request, once per client.

use fanfold_provider::ErrorClass;
use fanfold_testkit::fakes::upstream::Fault;

use crate::setup::{ANTHROPIC, OPENAI, client, prompt, upstream};

fn refused(message: &str) -> Fault {
    Fault::Answer(400, format!(r#"{{"error":{{"message":"{message}","type":"invalid_request_error"}}}}"#))
}

/// Sends two prompts; the first one is refused once. Returns the three request bodies.
fn check(fault: Fault) -> [String; 3] {
    let upstream = upstream();
    let client = client(OPENAI, &upstream.url());
    upstream.fault(fault);
    assert!(client.send_blocking(&prompt()).is_ok());
    assert!(client.send_blocking(&prompt()).is_ok());
    let seen = upstream.seen();
    assert_eq!(seen.len(), 3, "one request is repeated, and the next one is adapted at once");
    [0, 1, 2].map(|i| seen[i].text())
}

#[test]
fn max_completion_tokens() {
    let message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    let [first, second, third] = check(refused(message));
    assert!(first.contains("\"max_tokens\":500"), "{first}");
    assert!(
        second.contains("\"max_completion_tokens\":500") && !second.contains("\"max_tokens\""),
        "{second}"
    );
    assert_eq!(second, third);
}

#[test]
fn a_smaller_output_limit() {
    let message = "max_tokens is too large: 500. This model supports at most 100 completion tokens.";
    let [_, second, third] = check(refused(message));
    assert!(second.contains("\"max_tokens\":100"), "{second}");
    assert_eq!(second, third);
}

#[test]
fn without_usage_in_a_stream() {
    let body = r#"{"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}"#;
    let [first, second, _] = check(Fault::Answer(422, body.to_owned()));
    assert!(first.contains("stream_options") && !second.contains("stream_options"), "{second}");
}

#[test]
fn without_streaming() {
    let [_, second, _] = check(refused("Your organization must be verified to stream this model."));
    assert!(second.contains("\"stream\":false"), "{second}");
}

#[test]
fn without_a_system_prompt() {
    let [_, second, _] = check(refused("System role not supported"));
    assert!(
        !second.contains("\"system\"") && second.contains(r"You are brief.\n\nWhat is done?"),
        "{second}"
    );
}

#[test]
fn a_repeated_refusal_is_returned() {
    let upstream = upstream();
    let client = client(OPENAI, &upstream.url());
    let message = "Use 'max_completion_tokens' instead of 'max_tokens'.";
    upstream.fault(refused(message));
    upstream.fault(refused(message));
    let error = client.send_blocking(&prompt()).unwrap_err();
    assert_eq!((error.class, error.n_attempts, upstream.n_seen()), (ErrorClass::Refused, 2, 2));
}

#[test]
fn the_url_as_configured() {
    let upstream = upstream();
    let client = client(OPENAI, &format!("{}/llm", upstream.url()));
    upstream.fault(Fault::Answer(404, "404 page not found".to_owned()));
    assert!(client.send_blocking(&prompt()).is_ok());
    assert!(client.send_blocking(&prompt()).is_ok());
    let paths: Vec<String> = upstream.seen().into_iter().map(|seen| seen.path).collect();
    assert_eq!(paths, ["/llm/v1/chat/completions", "/llm/chat/completions", "/llm/chat/completions"]);
}

#[test]
fn urls_in_every_form() {
    let upstream = upstream();
    for ending in ["", "/", "/v1", "/v1/", "/v1/chat/completions", "/v1/models"] {
        assert!(client(OPENAI, &format!("{}{ending}", upstream.url())).send_blocking(&prompt()).is_ok());
    }
    for ending in ["", "/v1", "/v1/messages"] {
        assert!(client(ANTHROPIC, &format!("{}{ending}", upstream.url())).send_blocking(&prompt()).is_ok());
    }
    let paths = upstream.seen().into_iter().map(|seen| seen.path);
    assert!(paths.clone().take(6).all(|path| path == "/v1/chat/completions"));
    assert!(paths.skip(6).all(|path| path == "/v1/messages"));
}

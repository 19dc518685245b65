//! Classifies error responses by their message and status.

use std::time::Duration;

use fanfold_wire::reply::{PromptFill, Refusal, error_text, refusal, too_much_output};
use serde_json::Value;

use crate::error::phrases::{classify_message, contains_in_order};
use crate::error::{Adaptation, ErrorClass, ProviderError, retry_after};

/// An error response: a status other than 2xx, or an error in the body of a 200.
pub(crate) struct Rejection<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a [u8],
    /// The delay that the headers request.
    pub(crate) retry_after: Option<Duration>,
    /// Value of the header `x-should-retry`.
    pub(crate) should_retry: Option<bool>,
}

/// The error of a response.
pub(crate) fn error_from_response(rejection: &Rejection<'_>) -> ProviderError {
    let Rejection { status, body, .. } = *rejection;
    let message = error_text(body);
    let lower = message.to_lowercase();
    // The fill level of the window is unknown here, so only an explicit message counts as an overflow.
    let overflow = refusal(status, body, PromptFill::UNKNOWN);
    let class = match overflow {
        Some(_) => ErrorClass::Overflow,
        None => class(status, &lower),
    };
    let mut error = ProviderError::new(
        class,
        if message.is_empty() { default_message(status).to_owned() } else { message },
    );
    error.status = Some(status);
    error.limit = overflow.as_ref().and_then(Refusal::room);
    error.retry_after = rejection.retry_after.or_else(|| retry_after::delay_in_message(&lower));
    let is_transient_status =
        matches!(class, ErrorClass::Rate | ErrorClass::Server) || matches!(status, 408 | 504);
    let is_retryable = matches!(class, ErrorClass::Rate | ErrorClass::Server | ErrorClass::Timeout);
    error.is_transient = is_retryable && rejection.should_retry.unwrap_or(is_transient_status);
    error.adaptation = adaptation(status, body, &lower);
    error
}

/// The error in the body of a 200 response or inside of a stream.
pub(crate) fn error_from_body(json: &str) -> ProviderError {
    let status = status_in(json).unwrap_or(200);
    let rejection = Rejection { status, body: json.as_bytes(), retry_after: None, should_retry: None };
    let mut error = error_from_response(&rejection);
    error.status = Some(status).filter(|status| *status != 200);
    error
}

/// The status that an error object contains. Some gateways return it with HTTP status 200.
fn status_in(json: &str) -> Option<u16> {
    let value: Value = serde_json::from_str(json).ok()?;
    let error = value.get("error").unwrap_or(&value);
    let status = ["code", "status", "status_code", "http_status"].into_iter().find_map(|key| {
        let number = &error[key];
        number.as_u64().or_else(|| number.as_str()?.parse().ok())
    });
    status.and_then(|code| u16::try_from(code).ok()).filter(|code| (400..600).contains(code))
}

fn class(status: u16, message: &str) -> ErrorClass {
    let indicated = classify_message(message);
    let is_quota = indicated == Some(ErrorClass::Quota);
    match status {
        _ if is_quota => ErrorClass::Quota,
        401 => ErrorClass::Auth,
        402 => ErrorClass::Quota,
        403 => match indicated {
            Some(ErrorClass::Rate) => ErrorClass::Rate,
            Some(ErrorClass::NoModel) => ErrorClass::NoModel,
            // `invalid_request_error` is the type of many errors, so it does not indicate a content filter.
            Some(ErrorClass::Refused) if !message.contains("invalid_request_error") => ErrorClass::Refused,
            _ => ErrorClass::Auth,
        },
        404 | 405 | 410 => match indicated {
            Some(ErrorClass::Rate) => ErrorClass::Rate,
            _ => ErrorClass::NoModel,
        },
        408 | 504 | 522 | 524 => ErrorClass::Timeout,
        429 => ErrorClass::Rate,
        300..=399 => ErrorClass::Broken,
        409 | 425 => ErrorClass::Server,
        500.. => match indicated {
            Some(indicated @ (ErrorClass::Rate | ErrorClass::NoModel | ErrorClass::Timeout)) => indicated,
            _ => ErrorClass::Server,
        },
        200..=299 => indicated.unwrap_or(ErrorClass::Server),
        _ => match indicated {
            Some(
                indicated @ (ErrorClass::Rate | ErrorClass::NoModel | ErrorClass::Auth | ErrorClass::Timeout),
            ) => indicated,
            _ => ErrorClass::Refused,
        },
    }
}

fn adaptation(status: u16, body: &[u8], message: &str) -> Option<Adaptation> {
    if matches!(status, 404 | 405) {
        return (classify_message(message) != Some(ErrorClass::NoModel)).then_some(Adaptation::UrlAsWritten);
    }
    if !matches!(status, 400 | 422) {
        return None;
    }
    if contains_in_order(message, &["max_completion_tokens"])
        && message.replace("max_completion_tokens", "").contains("max_tokens")
    {
        return Some(Adaptation::CompletionTokens);
    }
    if let Some(limit) =
        too_much_output(status, body).and_then(|excess| excess.limit).filter(|limit| *limit > 0)
    {
        return Some(Adaptation::MaxOutput(limit));
    }
    // The offending field may be named outside of the message, so search the raw body.
    let raw = String::from_utf8_lossy(&body[..body.len().min(4096)]).to_lowercase();
    if raw.contains("stream_options") {
        return Some(Adaptation::NoUsage);
    }
    let not_streamed: &[&[&str]] = &[
        &["verified to stream"],
        &["stream", "is not supported"],
        &["not support stream"],
        &["streaming is not"],
    ];
    if not_streamed.iter().any(|phrase| contains_in_order(message, phrase)) {
        return Some(Adaptation::NoStream);
    }
    let no_system: &[&[&str]] = &[
        &["system role not supported"],
        &["system role is not supported"],
        &["role", "does not support", "system"],
        &["system", "messages are not supported"],
        &["developer instruction is not enabled"],
    ];
    no_system.iter().any(|phrase| contains_in_order(message, phrase)).then_some(Adaptation::NoSystem)
}

/// The message for a status without a body.
fn default_message(status: u16) -> &'static str {
    match status {
        300..=399 => {
            "the server redirects, and redirects are not followed; set the address that it redirects to"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, body: &str, class: ErrorClass) {
        let rejection = Rejection { status, body: body.as_bytes(), retry_after: None, should_retry: None };
        let error = error_from_response(&rejection);
        assert_eq!(error.class, class, "{status} {body}: {error:?}");
        assert!(error.message.chars().count() <= 220);
    }

    #[test]
    fn quota_errors_differ_from_rate_limits() {
        use ErrorClass::{Quota, Rate};
        let cases = [
            (
                429,
                r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}"#,
                Quota,
            ),
            (
                429,
                r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. Please retry in 34.07s.","status":"RESOURCE_EXHAUSTED"}}"#,
                Rate,
            ),
            (
                429,
                r#"{"error":{"message":"Rate limit reached for m in organization o on tokens per min (TPM): Limit 30000, Used 29000. Please try again in 6.5s.","type":"tokens","code":"rate_limit_exceeded"}}"#,
                Rate,
            ),
            (
                429,
                r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit"}}"#,
                Rate,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
                Quota,
            ),
            (402, r#"{"error":{"message":"Insufficient Balance","type":"unknown_error"}}"#, Quota),
            (
                402,
                r#"{"error":{"message":"This request requires more credits, or fewer max_tokens.","code":402}}"#,
                Quota,
            ),
            (402, "", Quota),
            (
                401,
                r#"{"type":"error","error":{"type":"CreditsError","message":"Insufficient balance."}}"#,
                Quota,
            ),
            (
                403,
                r#"{"code":"AllocationQuota.FreeTierOnly","message":"The free tier of the model has been exhausted."}"#,
                Quota,
            ),
            (
                400,
                r#"{"code":"Arrearage","message":"Access denied, please make sure your account is in good standing."}"#,
                Quota,
            ),
            (429, r#"{"error":{"code":"1113","message":"余额不足或无可用资源包,请充值。"}}"#, Quota),
            (
                429,
                r#"{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached"}}"#,
                Quota,
            ),
            (429, "", Rate),
            (503, r#"{"message":"Too many requests, please wait before trying again."}"#, Rate),
            (403, r#"{"message":"You have exceeded a secondary rate limit."}"#, Rate),
        ];
        for (status, body, class) in cases {
            check(status, body, class);
        }
    }

    #[test]
    fn key_and_model_errors() {
        use ErrorClass::{Auth, NoModel};
        let cases = [
            (
                401,
                r#"{"error":{"message":"Incorrect API key provided: x.","type":"invalid_request_error","code":"invalid_api_key"}}"#,
                Auth,
            ),
            (
                401,
                r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
                Auth,
            ),
            (
                403,
                r#"{"type":"error","error":{"type":"permission_error","message":"Your API key does not have permission."}}"#,
                Auth,
            ),
            (403, "<html><title>403 Forbidden</title></html>", Auth),
            (
                400,
                r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#,
                Auth,
            ),
            (401, r#"{"error":{"message":"No cookie auth credentials found","code":401}}"#, Auth),
            (
                404,
                r#"{"error":{"message":"The model `gpt-9` does not exist or you do not have access to it.","code":"model_not_found"}}"#,
                NoModel,
            ),
            (
                404,
                r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}"#,
                NoModel,
            ),
            (400, r#"{"error":{"message":"nobody/gpt-9 is not a valid model ID","code":400}}"#, NoModel),
            (
                404,
                r#"{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error"}}"#,
                NoModel,
            ),
            (400, r#"{"error":{"message":"Model Not Exist","type":"invalid_request_error"}}"#, NoModel),
            (
                400,
                r#"{"error":{"message":"The model `x` has been decommissioned","code":"model_decommissioned"}}"#,
                NoModel,
            ),
            (
                403,
                r#"{"error":{"message":"Project `p` does not have access to model `m`","code":"model_not_found"}}"#,
                NoModel,
            ),
            (404, "404 page not found", NoModel),
        ];
        for (status, body, class) in cases {
            check(status, body, class);
        }
    }

    #[test]
    fn other_errors() {
        use ErrorClass::{Broken, Overflow, Refused, Server, Timeout};
        let cases = [
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","code":"context_length_exceeded"}}"#,
                Overflow,
            ),
            (413, "", Overflow),
            (
                400,
                r#"{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","code":"content_filter"}}"#,
                Refused,
            ),
            (
                403,
                r#"{"error":{"message":"Input was flagged","code":403,"metadata":{"reasons":["violence"]}}}"#,
                Refused,
            ),
            (400, r#"{"error":{"message":"Content Exists Risk","type":"invalid_request_error"}}"#, Refused),
            (422, r#"{"detail":[{"msg":"Field required"}]}"#, Refused),
            (400, "", Refused),
            (500, r#"{"error":{"message":"The server had an error","type":"server_error"}}"#, Server),
            (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, Server),
            (503, r#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#, Server),
            (502, "<html><h1>502 Bad Gateway</h1></html>", Server),
            (504, "", Timeout),
            (524, "", Timeout),
            (308, "", Broken),
        ];
        for (status, body, class) in cases {
            check(status, body, class);
        }
    }

    #[test]
    fn errors_with_status_200() {
        let cases = [
            (r#"{"error":{"code":429,"message":"slow down"}}"#, ErrorClass::Rate, Some(429)),
            (r#"{"error":{"code":"401","message":"no"}}"#, ErrorClass::Auth, Some(401)),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                ErrorClass::Server,
                None,
            ),
            (
                r#"{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}"#,
                ErrorClass::Overflow,
                None,
            ),
            (
                r#"{"base_resp":{"status_code":1004,"status_msg":"login fail: Please carry the API secret key"}}"#,
                ErrorClass::Auth,
                None,
            ),
            (r#"{"error":"something"}"#, ErrorClass::Server, None),
        ];
        for (body, class, status) in cases {
            let error = error_from_body(body);
            assert_eq!((error.class, error.status), (class, status), "{body}");
        }
    }

    #[test]
    fn adaptations_are_recognised() {
        let lesson = |status, body: &str| {
            error_from_response(&Rejection {
                status,
                body: body.as_bytes(),
                retry_after: None,
                should_retry: None,
            })
            .adaptation
        };
        let cases = [
            (
                400,
                r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}}"#,
                Some(Adaptation::CompletionTokens),
            ),
            (
                400,
                r#"{"error":{"message":"max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for m"}}"#,
                Some(Adaptation::MaxOutput(8192)),
            ),
            (
                422,
                r#"{"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}"#,
                Some(Adaptation::NoUsage),
            ),
            (
                400,
                r#"{"error":{"message":"Your organization must be verified to stream this model."}}"#,
                Some(Adaptation::NoStream),
            ),
            (
                400,
                r#"{"error":{"message":"Unsupported value: 'messages[0].role' does not support 'system' with this model."}}"#,
                Some(Adaptation::NoSystem),
            ),
            (404, "404 page not found", Some(Adaptation::UrlAsWritten)),
            (404, r#"{"error":{"message":"model `x` does not exist"}}"#, None),
            (400, r#"{"error":{"message":"no"}}"#, None),
            (500, r#"{"error":{"message":"use max_completion_tokens, not max_tokens"}}"#, None),
        ];
        for (status, body, expected) in cases {
            assert_eq!(lesson(status, body), expected, "{body}");
        }
    }
}

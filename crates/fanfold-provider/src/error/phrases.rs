//! Phrases in error messages of providers, grouped by the class that they indicate.
//!
//! A status is ambiguous: 429 is a rate limit or an empty account, 400 a wrong model or a wrong key, 403 a content
//! filter or a quota. So the message is checked as well. A phrase matches if its parts occur in order in the lower-case
//! text.

use crate::error::ErrorClass;

/// The class that a lower-case message indicates. Quota phrases are checked first, then rate limits, then the others.
pub(crate) fn classify_message(message: &str) -> Option<ErrorClass> {
    let lists: [(&[&[&str]], ErrorClass); 7] = [
        (QUOTA, ErrorClass::Quota),
        (RATE, ErrorClass::Rate),
        (NO_MODEL, ErrorClass::NoModel),
        (AUTH, ErrorClass::Auth),
        (REFUSED, ErrorClass::Refused),
        (TIMEOUT, ErrorClass::Timeout),
        (SERVER, ErrorClass::Server),
    ];
    let found =
        lists.iter().find(|(phrases, _)| phrases.iter().any(|phrase| contains_in_order(message, phrase)));
    let class = found.map(|(_, class)| *class)?;
    // Google calls its rate limits quotas as well, and names the time of their reset.
    let is_passing = TRANSIENT.iter().any(|phrase| contains_in_order(message, phrase));
    Some(if class == ErrorClass::Quota && is_passing { ErrorClass::Rate } else { class })
}

/// Returns whether all parts of a phrase occur in a text in order.
pub(crate) fn contains_in_order(message: &str, phrase: &[&str]) -> bool {
    let mut rest = Some(message);
    for part in phrase {
        rest = rest.and_then(|rest| rest.split_once(part)).map(|(_, rest)| rest);
    }
    rest.is_some()
}

/// Phrases of limits that reset soon.
const TRANSIENT: &[&[&str]] = &[&["please retry in"], &["try again in", "s"], &["per minute"], &["per min"]];

/// The account has no credit left, so waiting does not help.
const QUOTA: &[&[&str]] = &[
    &["insufficient_quota"],
    &["insufficient quota"],
    &["exceeded your current quota"],
    &["exceeded_current_quota"],
    &["quota exhausted"],
    &["quota_exhausted"],
    &["quota has been exhausted"],
    &["free quota", "exhausted"],
    &["free allocated quota exceeded"],
    &["freetieronly"],
    &["free tier", "exhausted"],
    &["free usage limit"],
    &["billing_hard_limit"],
    &["billing hard limit"],
    &["billing_not_active"],
    &["billing_error"],
    &["billing details"],
    &["account is not active"],
    &["plan and billing"],
    &["credit balance"],
    &["insufficient balance"],
    &["insufficient_balance"],
    &["insufficient account balance"],
    &["balance is insufficient"],
    &["balance is not enough"],
    &["insufficient credit"],
    &["insufficient_credit"],
    &["not enough credit"],
    &["requires more credits"],
    &["out of credit"],
    &["no credits"],
    &["used all", "credits"],
    &["exceeded", "credits"],
    &["credits", "depleted"],
    &["credits", "exhausted"],
    &["creditserror"],
    &["purchase", "credits"],
    &["add", "credits to"],
    &["insufficient funds"],
    &["insufficient_funds"],
    &["payment required"],
    &["payment_required"],
    &["payment method"],
    &["prepayment"],
    &["spending limit"],
    &["spend limit"],
    &["spending cap"],
    &["budget has been exceeded"],
    &["budget_exceeded"],
    &["exceededbudget"],
    &["monthly limit"],
    &["monthly usage limit"],
    &["monthly quota"],
    &["usage_limit_reached"],
    &["usage limit has been reached"],
    &["hit your usage limit"],
    &["reached your", "usage limit"],
    &["reached your specified api usage limits"],
    &["arrearage"],
    &["accountoverdue"],
    &["account is in good standing"],
    &["overdue-payment"],
    &["recharge"],
    &["top up"],
    &["no resource package"],
    &["余额不足"],
    &["欠费"],
    &["额度已用尽"],
];

/// A rate limit.
const RATE: &[&[&str]] = &[
    &["rate limit"],
    &["rate_limit"],
    &["rate-limit"],
    &["ratelimit"],
    &["too many requests"],
    &["too_many_requests"],
    &["toomanyrequests"],
    &["tokens per min"],
    &["requests per min"],
    &["tokens per day"],
    &["requests per day"],
    &["(tpm)"],
    &["(rpm)"],
    &["(rpd)"],
    &["throttl"],
    &["resource_exhausted"],
    &["resource has been exhausted"],
    &["quota exceeded for", "per minute"],
    &["concurrency limit"],
    &["max organization concurrency"],
    &["increased too quickly"],
    &["too many concurrent"],
    &["limit_burst_rate"],
    &["slow_down"],
    &["速率"],
    &["请求过于频繁"],
    &["并发"],
];

/// The model does not exist or is not available to the account.
const NO_MODEL: &[&[&str]] = &[
    &["model_not_found"],
    &["model not found"],
    &["modelnotfound"],
    &["model", "does not exist"],
    &["model not exist"],
    &["model_not_exist"],
    &["not a valid model"],
    &["invalid model"],
    &["invalid_model"],
    &["unknown model"],
    &["no such model"],
    &["unsupported model"],
    &["model_not_supported"],
    &["model is not supported"],
    &["model_not_available"],
    &["model", "not found, try pulling it first"],
    &["no endpoints found"],
    &["no allowed providers"],
    &["no available channel for model"],
    &["no healthy deployments"],
    &["decommissioned"],
    &["model_deprecated"],
    &["is not found for api version"],
    &["deploymentnotfound"],
    &["no model loaded"],
    &["no models loaded"],
    &["does not have access to model"],
    &["not have access to the model"],
    &["model", "is not available"],
    &["not_found_error", "model:"],
    &["model:", "not_found_error"],
    &["not_found_error"],
    &["模型不存在"],
];

/// The key is missing, wrong or not permitted.
const AUTH: &[&[&str]] = &[
    &["invalid api key"],
    &["invalid_api_key"],
    &["invalid api-key"],
    &["invalidapikey"],
    &["incorrect api key"],
    &["invalid x-api-key"],
    &["api key not valid"],
    &["api_key_invalid"],
    &["api key is invalid"],
    &["api key expired"],
    &["api key", "revoked"],
    &["api key", "disabled"],
    &["missing api key"],
    &["missing_api_key"],
    &["no api key"],
    &["api key not found"],
    &["api key is required"],
    &["provide an api key"],
    &["provide a valid api key"],
    &["no auth credentials"],
    &["no cookie auth credentials"],
    &["authentication_error"],
    &["authenticationerror"],
    &["authentication fail"],
    &["authentication required"],
    &["invalid authentication"],
    &["invalid_authentication"],
    &["missing authentication"],
    &["missing bearer"],
    &["unauthorized"],
    &["unauthenticated"],
    &["permission_error"],
    &["permission_denied"],
    &["permissiondenied"],
    &["permission denied"],
    &["access denied"],
    &["access_denied"],
    &["accessdenied"],
    &["forbidden"],
    &["not authorized"],
    &["token expired"],
    &["token_expired"],
    &["token has expired"],
    &["expired token"],
    &["invalid token"],
    &["invalid_token"],
    &["token is invalid"],
    &["invalid bearer"],
    &["invalid access token"],
    &["invalid credential"],
    &["unrecognizedclient"],
    &["security token included in the request is invalid"],
    &["login fail"],
    &["user not found"],
    &["unsupported_country_region_territory"],
    &["令牌"],
    &["身份验证失败"],
];

/// The content is not allowed.
const REFUSED: &[&[&str]] = &[
    &["content_filter"],
    &["content filter"],
    &["content management policy"],
    &["responsibleaipolicyviolation"],
    &["content_policy"],
    &["content policy"],
    &["usage polic"],
    &["invalid_prompt"],
    &["flagged"],
    &["moderation"],
    &["prohibited_content"],
    &["prohibited content"],
    &["data_inspection_failed"],
    &["datainspectionfailed"],
    &["inappropriate content"],
    &["content exists risk"],
    &["sensitive content"],
    &["敏感"],
    &["invalid_request_error"],
];

/// A timeout behind a gateway.
const TIMEOUT: &[&[&str]] = &[
    &["timeout_error"],
    &["timed out"],
    &["gateway timeout"],
    &["gateway time-out"],
    &["request timeout"],
    &["request_timeout"],
    &["deadline_exceeded"],
    &["deadline exceeded"],
];

/// The provider failed.
const SERVER: &[&[&str]] = &[
    &["overloaded"],
    &["server_error"],
    &["server error"],
    &["api_error"],
    &["internal_error"],
    &["internal error"],
    &["internalservererror"],
    &["unavailable"],
    &["at capacity"],
    &["loading model"],
    &["model is loading"],
    &["bad gateway"],
    &["upstream error"],
    &["provider returned error"],
    &["try again later"],
];

//! Secrets with a format of their own: a prefix, an alphabet and a length.

use crate::char_class::{
    Alphabet, is_alnum, is_base64, is_base64url, is_base64url_or_dot, is_hex, is_upper_alnum, is_word_start,
    run_len,
};
use crate::heuristics::{CharStats, is_placeholder};

/// A token format that is recognised by a prefix.
pub(crate) struct TokenFormat {
    pub(crate) kind: &'static str,
    pub(crate) prefix: &'static str,
    alphabet: Alphabet,
    /// Minimum and maximum number of bytes after the prefix.
    length: (usize, usize),
}

const fn token(
    kind: &'static str,
    prefix: &'static str,
    alphabet: Alphabet,
    min: usize,
    max: usize,
) -> TokenFormat {
    TokenFormat { kind, prefix, alphabet, length: (min, max) }
}

const UNBOUNDED: usize = 4096;

/// All formats. A prefix that begins with another one comes before it.
pub(crate) const TOKEN_FORMATS: &[TokenFormat] = &[
    token("aws key id", "AKIA", is_upper_alnum, 16, 16),
    token("aws key id", "ASIA", is_upper_alnum, 16, 16),
    token("aws key id", "ABIA", is_upper_alnum, 16, 16),
    token("aws key id", "ACCA", is_upper_alnum, 16, 16),
    token("alibaba key id", "LTAI", is_alnum, 12, 26),
    token("google key", "AIza", is_base64url, 35, 35),
    token("google token", "ya29.", is_base64url, 20, UNBOUNDED),
    token("google refresh token", "1//0", is_base64url, 30, 200),
    token("google client secret", "GOCSPX-", is_base64url, 20, 40),
    token("azure client secret", "Q~", |byte| is_base64url(byte) || matches!(byte, b'.' | b'~'), 30, 40),
    token("digitalocean token", "dop_v1_", is_hex, 64, 64),
    token("digitalocean token", "doo_v1_", is_hex, 64, 64),
    token("digitalocean token", "dor_v1_", is_hex, 64, 64),
    token("model provider key", "sk-", is_base64url, 20, 300),
    token("openai session", "sess-", is_alnum, 40, 40),
    token("groq key", "gsk_", is_alnum, 40, 60),
    token("xai key", "xai-", is_alnum, 60, 100),
    token("perplexity key", "pplx-", is_alnum, 40, 60),
    token("hugging face token", "hf_", is_alnum, 30, 50),
    token("hugging face token", "api_org_", is_alnum, 30, 50),
    token("replicate token", "r8_", is_alnum, 35, 45),
    token("nvidia key", "nvapi-", is_base64url, 50, 90),
    token("tavily key", "tvly-", is_base64url, 20, 60),
    token("fireworks key", "fw_", is_alnum, 20, 40),
    token("cohere key", "co_", is_alnum, 38, 60),
    token("langsmith key", "lsv2_pt_", is_base64url, 30, 60),
    token("langsmith key", "lsv2_sk_", is_base64url, 30, 60),
    token("together key", "tgp_v1_", is_base64url, 30, 60),
    token("cerebras key", "csk-", is_alnum, 30, 60),
    token("github token", "github_pat_", |byte| is_alnum(byte) || byte == b'_', 22, 255),
    token("github token", "ghp_", is_alnum, 36, 255),
    token("github token", "gho_", is_alnum, 36, 255),
    token("github token", "ghu_", is_alnum, 36, 255),
    token("github token", "ghs_", is_alnum, 36, 255),
    token("github token", "ghr_", is_alnum, 36, 255),
    token("gitlab token", "glpat-", is_base64url_or_dot, 20, 300),
    token("gitlab token", "gldt-", is_base64url, 20, 64),
    token("gitlab token", "glptt-", is_base64url, 40, 64),
    token("gitlab token", "glrt-", is_base64url_or_dot, 20, 64),
    token("gitlab token", "glcbt-", is_base64url, 20, 64),
    token("gitlab token", "glft-", is_base64url, 20, 64),
    token("gitlab token", "glsoat-", is_base64url, 20, 64),
    token("gitlab token", "glagent-", is_base64url, 40, 64),
    token("gitlab token", "glimt-", is_base64url, 20, 64),
    token("gitlab token", "GR1348941", is_base64url, 20, 20),
    token("bitbucket password", "ATBB", is_alnum, 28, 40),
    token("bitbucket token", "ATCTT3", |byte| is_base64url(byte) || byte == b'=', 100, 300),
    token("atlassian token", "ATATT3", |byte| is_base64url(byte) || byte == b'=', 100, 300),
    token("npm token", "npm_", is_alnum, 36, 36),
    token("pypi token", "pypi-", is_base64url, 50, 300),
    token("rubygems key", "rubygems_", is_hex, 48, 48),
    token("crates token", "cio", is_alnum, 32, 32),
    token("docker token", "dckr_pat_", is_base64url, 20, 40),
    token("docker token", "dckr_oat_", is_base64url, 20, 40),
    token("nuget key", "oy2", |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(), 43, 43),
    token("clojars token", "CLOJARS_", is_hex, 60, 60),
    token("artifactory key", "AKCp", is_alnum, 60, 80),
    token("slack token", "xoxb-", is_base64url, 20, 200),
    token("slack token", "xoxp-", is_base64url, 20, 200),
    token("slack token", "xoxa-", is_base64url, 20, 200),
    token("slack token", "xoxr-", is_base64url, 20, 200),
    token("slack token", "xoxs-", is_base64url, 20, 200),
    token("slack token", "xoxc-", is_base64url, 20, 200),
    token(
        "slack token",
        "xoxd-",
        |byte| is_base64url(byte) || matches!(byte, b'%' | b'+' | b'/' | b'='),
        20,
        300,
    ),
    token("slack token", "xoxe.xox", is_base64url_or_dot, 40, 300),
    token("slack token", "xoxe-", is_base64url, 40, 300),
    token("slack token", "xapp-", is_base64url, 20, 200),
    token("stripe key", "sk_live_", is_alnum, 16, 250),
    token("stripe key", "sk_test_", is_alnum, 16, 250),
    token("stripe key", "rk_live_", is_alnum, 16, 250),
    token("stripe key", "rk_test_", is_alnum, 16, 250),
    token("webhook secret", "whsec_", is_base64, 24, 100),
    token("square token", "sq0atp-", is_base64url, 20, 60),
    token("square secret", "sq0csp-", is_base64url, 40, 60),
    token("square token", "EAAA", is_base64url, 58, 64),
    token("paypal token", "access_token$", |byte| is_alnum(byte) || byte == b'$', 40, 80),
    token("shopify token", "shpat_", is_hex, 32, 32),
    token("shopify token", "shpca_", is_hex, 32, 32),
    token("shopify token", "shppa_", is_hex, 32, 32),
    token("shopify secret", "shpss_", is_hex, 32, 32),
    token("sendgrid key", "SG.", is_base64url_or_dot, 60, 80),
    token("mailgun key", "key-", is_hex, 32, 32),
    token("brevo key", "xkeysib-", is_base64url, 60, 100),
    token("brevo key", "xsmtpsib-", is_base64url, 60, 100),
    token("resend key", "re_", |byte| is_alnum(byte) || byte == b'_', 30, 40),
    token("twilio key", "SK", |byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte), 32, 32),
    token("vault token", "hvs.", is_base64url, 24, 300),
    token("vault token", "hvb.", is_base64url, 24, 300),
    token("vault token", "hvr.", is_base64url, 24, 300),
    token("new relic key", "NRAK-", is_alnum, 27, 27),
    token("new relic key", "NRII-", is_base64url, 32, 32),
    token("new relic key", "NRJS-", is_hex, 19, 19),
    token("sentry token", "sntrys_", |byte| is_base64(byte) || is_base64url(byte), 40, 300),
    token("sentry token", "sntryu_", is_hex, 64, 64),
    token("grafana token", "glsa_", |byte| is_alnum(byte) || byte == b'_', 41, 41),
    token("grafana token", "glc_", is_base64, 32, 400),
    token("pulumi token", "pul-", is_hex, 40, 40),
    token("databricks token", "dapi", |byte| is_hex(byte) || byte == b'-', 32, 36),
    token("doppler token", "dp.pt.", is_alnum, 40, 50),
    token("doppler token", "dp.st.", is_base64url_or_dot, 40, 90),
    token("fly token", "fm2_", |byte| is_base64(byte) || is_base64url(byte), 40, UNBOUNDED),
    token("fly token", "fm1r_", |byte| is_base64(byte) || is_base64url(byte), 40, UNBOUNDED),
    token(
        "fly token",
        "FlyV1",
        |byte| is_base64(byte) || matches!(byte, b' ' | b'_' | b'-' | b','),
        40,
        UNBOUNDED,
    ),
    token("vercel token", "vcp_", is_alnum, 20, 80),
    token("vercel token", "vercel_blob_rw_", |byte| is_alnum(byte) || byte == b'_', 30, 80),
    token("netlify token", "nfp_", is_alnum, 36, 40),
    token("heroku key", "HRKU-", is_base64url, 36, 70),
    token("supabase key", "sbp_", is_hex, 40, 40),
    token("supabase key", "sb_secret_", is_base64url, 20, 60),
    token("planetscale token", "pscale_tkn_", is_base64url_or_dot, 30, 64),
    token("planetscale password", "pscale_pw_", is_base64url_or_dot, 30, 64),
    token("planetscale token", "pscale_oauth_", is_base64url_or_dot, 30, 64),
    token("neon key", "napi_", is_alnum, 40, 80),
    token("linear key", "lin_api_", is_alnum, 32, 50),
    token("linear token", "lin_oauth_", is_alnum, 32, 70),
    token("notion token", "ntn_", is_alnum, 40, 50),
    token("notion token", "secret_", is_alnum, 40, 50),
    token("figma token", "figd_", is_base64url, 30, 60),
    token("figma token", "figo_", is_base64url, 30, 60),
    token("postman key", "PMAK-", is_base64url, 50, 70),
    token("tailscale key", "tskey-", is_base64url, 20, 80),
    token("1password token", "ops_eyJ", is_base64, 100, UNBOUNDED),
    token("1password secret", "A3-", |byte| is_upper_alnum(byte) || byte == b'-', 32, 42),
    token("age key", "AGE-SECRET-KEY-1", is_upper_alnum, 58, 58),
    token("buildkite token", "bkua_", is_alnum, 40, 40),
    token("buildkite token", "bkat_", is_alnum, 30, 60),
    token("circleci token", "CCIPAT_", |byte| is_alnum(byte) || byte == b'_', 40, 80),
    token("circleci token", "CCIPRJ_", |byte| is_alnum(byte) || byte == b'_', 40, 80),
    token("hubspot token", "pat-na1-", is_base64url, 36, 36),
    token("hubspot token", "pat-eu1-", is_base64url, 36, 36),
    token("dynatrace token", "dt0c01.", is_base64url_or_dot, 80, 100),
    token("dynatrace token", "dt0s01.", is_base64url_or_dot, 80, 100),
    token("contentful token", "CFPAT-", is_base64url, 40, 50),
    token("easypost key", "EZAK", is_alnum, 54, 54),
    token("flutterwave secret", "FLWSECK", is_base64url, 12, 60),
    token("rootly token", "rootly_", is_hex, 64, 64),
    token("scalingo token", "tk-us-", is_base64url, 48, 48),
    token("snyk token", "snyk_uat.", is_base64url_or_dot, 40, 200),
    token("sourcegraph token", "sgp_", |byte| is_alnum(byte) || byte == b'_', 40, 80),
    token("prefect key", "pnu_", is_alnum, 36, 36),
    token("readme key", "rdme_", is_alnum, 70, 70),
    token("typeform token", "tfp_", is_base64url_or_dot, 40, 70),
    token("cloudflare key", "v1.0-", is_hex, 24, 200),
    token("okta token", "SSWS ", is_base64url, 40, 44),
    token("weights and biases key", "wandb_v1_", is_base64url, 40, 90),
    token("posthog key", "phx_", is_alnum, 40, 50),
    token("turso token", "libsql_", is_base64url, 30, 100),
    token("pinecone key", "pcsk_", |byte| is_alnum(byte) || byte == b'_', 50, 90),
    token("gemini key", "AQ.Ab", is_base64url, 40, 80),
    token("sonarqube token", "squ_", is_hex, 40, 40),
    token("sonarqube token", "sqp_", is_hex, 40, 40),
    token("sonarqube token", "sqa_", is_hex, 40, 40),
    token("bedrock key", "ABSK", is_base64, 100, 200),
    token("fly token", "fo1_", is_base64url, 30, 80),
    token("artifactory token", "cmVmdGtu", is_alnum, 50, 80),
    token("vercel token", "vck_", is_alnum, 20, 80),
    token("vercel token", "vca_", is_alnum, 20, 80),
    token("vercel token", "vci_", is_alnum, 20, 80),
    token("doppler token", "dp.sa.", is_alnum, 40, 50),
    token("doppler token", "dp.ct.", is_alnum, 40, 50),
    token("doppler token", "dp.scim.", is_alnum, 40, 50),
    token("doppler token", "dp.audit.", is_alnum, 40, 50),
    token("figma token", "figp_", is_base64url, 30, 60),
    token("gitlab token", "gloas-", is_hex, 64, 64),
];

/// The token of a format that begins at an offset.
pub(crate) fn token_at(text: &[u8], at: usize, format: &TokenFormat) -> Option<std::ops::Range<usize>> {
    if !text[at..].starts_with(format.prefix.as_bytes()) {
        return None;
    }
    let (from, start) = match format.prefix {
        // This marker comes after the first characters of the secret.
        "Q~" => (at + 2, at.checked_sub(4)?),
        "access_token$" => (at + format.prefix.len(), at),
        _ => (at + format.prefix.len(), at),
    };
    if !is_word_start(text, start) {
        return None;
    }
    let n = run_len(text, from, format.alphabet);
    let (min, max) = format.length;
    if n < min || n > max {
        return None;
    }
    let rest = &text[from..from + n];
    let stats = CharStats::new(rest);
    let looks_random = match format.prefix {
        // Many words begin with these prefixes, so the rest must look random.
        "sk-" | "fw_" | "re_" | "secret_" | "xai-" | "key-" | "SK" | "cio" | "oy2" | "EAAA" | "co_"
        | "A3-" | "fm2_" | "glc_" => stats.is_random(),
        // Their alphabet has few digits.
        "AKIA" | "ASIA" => true,
        "hf_" | "api_org_" => stats.is_random() || (n == 34 && stats.n_lower >= 3 && stats.n_upper >= 3),
        _ => stats.n_digits >= 1 || stats.is_random() || stats.is_mixed_case(),
    };
    // A long random token may contain a placeholder by chance, so only its first bytes are checked.
    let is_token = looks_random && !is_placeholder(&rest[..rest.len().min(24)]);
    is_token.then_some(start..from + n)
}

/// A token that contains a marker, with a number of bytes before it and a minimum number after it.
pub(crate) fn token_with_marker_at(
    text: &[u8],
    at: usize,
    (marker, before, after): (&str, usize, usize),
) -> Option<std::ops::Range<usize>> {
    let end = at + marker.len();
    if &text[at..end] != marker.as_bytes() || !is_word_start(text, at.checked_sub(before)?) {
        return None;
    }
    let start = at - before;
    let is_whole =
        text[start..at].iter().all(|byte| is_alnum(*byte)) && run_len(text, end, is_base64url) >= after;
    let stop = end + run_len(text, end, is_base64url);
    (is_whole && CharStats::new(&text[start..stop]).is_random()).then_some(start..stop)
}

/// The JSON web token that begins at an offset.
pub(crate) fn web_token_at(text: &[u8], at: usize) -> Option<std::ops::Range<usize>> {
    if !text[at..].starts_with(b"eyJ") || !is_word_start(text, at) {
        return None;
    }
    let head = run_len(text, at, is_base64url);
    let dot = at + head;
    if head < 12 || text.get(dot) != Some(&b'.') {
        return None;
    }
    let end = at + run_len(text, at, is_base64url_or_dot);
    let body = run_len(text, dot + 1, is_base64url);
    // A signed token has three parts, an encrypted one five.
    let is_signed = body >= 8 && text[dot + 1..].starts_with(b"eyJ");
    let is_encrypted = text[at..end].iter().filter(|byte| **byte == b'.').count() == 4;
    (is_signed || is_encrypted).then_some(at..end)
}

/// An Airtable token: `pat` and 14 letters or digits, a dot, 64 hexadecimal digits.
pub(crate) fn airtable_at(text: &[u8], at: usize) -> Option<std::ops::Range<usize>> {
    let is_match = text.get(at + 17) == Some(&b'.')
        && text[at..].starts_with(b"pat")
        && run_len(text, at, is_alnum) == 17
        && run_len(text, at + 18, is_hex) == 64
        && is_word_start(text, at);
    is_match.then_some(at..at + 82)
}

/// The third character of a number in base64 without padding.
const DISCORD_THIRD: &str = "AEIMQUYcgk";

/// The beginnings of Discord tokens: the first two digits of the id, from 10 to 99, in base64.
pub(crate) fn discord_triggers() -> Vec<String> {
    let first = ["MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"];
    first.iter().flat_map(|first| DISCORD_THIRD.chars().map(move |third| format!("{first}{third}"))).collect()
}

/// A Discord token: a number in base64, a dot, six characters for the time, a dot, a signature.
pub(crate) fn discord_at(text: &[u8], at: usize) -> Option<std::ops::Range<usize>> {
    // A cheap check first, since its triggers are frequent: the number has three digits for four characters.
    let is_start = matches!(text.get(at..at + 4)?, [b'M'..=b'O', b'D' | b'T' | b'j' | b'z', third, fourth]
        if DISCORD_THIRD.as_bytes().contains(third) && b"wxyz012345".contains(fourth));
    if !is_start {
        return None;
    }
    let dot = (24..=28).find(|n| text.get(at + n) == Some(&b'.'))?;
    if text.get(at + dot + 7) != Some(&b'.') || !is_word_start(text, at) || run_len(text, at, is_alnum) != dot
    {
        return None;
    }
    let n = run_len(text, at + dot + 8, is_base64url);
    let is_match = run_len(text, at + dot + 1, is_base64url) == 6 && (27..=40).contains(&n);
    is_match.then_some(at..at + dot + 8 + n)
}

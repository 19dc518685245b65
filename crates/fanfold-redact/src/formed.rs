//! Secrets with a form of their own: a beginning that nothing else has, an alphabet and a length.

use crate::letters::{Alphabet, alnum, base64, dotted, hex, is_start, run, upper, url64};
use crate::likely::{Mix, is_stand_in};

/// A kind of secret that is known by how it begins.
pub(crate) struct Formed {
    pub(crate) kind: &'static str,
    pub(crate) start: &'static str,
    rest: Alphabet,
    /// How many bytes follow at least, and how many at most.
    n: (usize, usize),
}

const fn formed(
    kind: &'static str,
    start: &'static str,
    rest: Alphabet,
    least: usize,
    most: usize,
) -> Formed {
    Formed { kind, start, rest, n: (least, most) }
}

const LONG: usize = 4096;

/// All of them. A longer beginning stands before a shorter one of it.
pub(crate) const FORMED: &[Formed] = &[
    formed("aws key id", "AKIA", upper, 16, 16),
    formed("aws key id", "ASIA", upper, 16, 16),
    formed("aws key id", "ABIA", upper, 16, 16),
    formed("aws key id", "ACCA", upper, 16, 16),
    formed("alibaba key id", "LTAI", alnum, 12, 26),
    formed("google key", "AIza", url64, 35, 35),
    formed("google token", "ya29.", url64, 20, LONG),
    formed("google refresh token", "1//0", url64, 30, 200),
    formed("google client secret", "GOCSPX-", url64, 20, 40),
    formed("azure client secret", "Q~", |byte| url64(byte) || matches!(byte, b'.' | b'~'), 30, 40),
    formed("digitalocean token", "dop_v1_", hex, 64, 64),
    formed("digitalocean token", "doo_v1_", hex, 64, 64),
    formed("digitalocean token", "dor_v1_", hex, 64, 64),
    formed("model provider key", "sk-", url64, 20, 300),
    formed("openai session", "sess-", alnum, 40, 40),
    formed("groq key", "gsk_", alnum, 40, 60),
    formed("xai key", "xai-", alnum, 60, 100),
    formed("perplexity key", "pplx-", alnum, 40, 60),
    formed("hugging face token", "hf_", alnum, 30, 50),
    formed("hugging face token", "api_org_", alnum, 30, 50),
    formed("replicate token", "r8_", alnum, 35, 45),
    formed("nvidia key", "nvapi-", url64, 50, 90),
    formed("tavily key", "tvly-", url64, 20, 60),
    formed("fireworks key", "fw_", alnum, 20, 40),
    formed("cohere key", "co_", alnum, 38, 60),
    formed("langsmith key", "lsv2_pt_", url64, 30, 60),
    formed("langsmith key", "lsv2_sk_", url64, 30, 60),
    formed("together key", "tgp_v1_", url64, 30, 60),
    formed("cerebras key", "csk-", alnum, 30, 60),
    formed("github token", "github_pat_", |byte| alnum(byte) || byte == b'_', 22, 255),
    formed("github token", "ghp_", alnum, 36, 255),
    formed("github token", "gho_", alnum, 36, 255),
    formed("github token", "ghu_", alnum, 36, 255),
    formed("github token", "ghs_", alnum, 36, 255),
    formed("github token", "ghr_", alnum, 36, 255),
    formed("gitlab token", "glpat-", dotted, 20, 300),
    formed("gitlab token", "gldt-", url64, 20, 64),
    formed("gitlab token", "glptt-", url64, 40, 64),
    formed("gitlab token", "glrt-", dotted, 20, 64),
    formed("gitlab token", "glcbt-", url64, 20, 64),
    formed("gitlab token", "glft-", url64, 20, 64),
    formed("gitlab token", "glsoat-", url64, 20, 64),
    formed("gitlab token", "glagent-", url64, 40, 64),
    formed("gitlab token", "glimt-", url64, 20, 64),
    formed("gitlab token", "GR1348941", url64, 20, 20),
    formed("bitbucket password", "ATBB", alnum, 28, 40),
    formed("bitbucket token", "ATCTT3", |byte| url64(byte) || byte == b'=', 100, 300),
    formed("atlassian token", "ATATT3", |byte| url64(byte) || byte == b'=', 100, 300),
    formed("npm token", "npm_", alnum, 36, 36),
    formed("pypi token", "pypi-", url64, 50, 300),
    formed("rubygems key", "rubygems_", hex, 48, 48),
    formed("crates token", "cio", alnum, 32, 32),
    formed("docker token", "dckr_pat_", url64, 20, 40),
    formed("docker token", "dckr_oat_", url64, 20, 40),
    formed("nuget key", "oy2", |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(), 43, 43),
    formed("clojars token", "CLOJARS_", hex, 60, 60),
    formed("artifactory key", "AKCp", alnum, 60, 80),
    formed("slack token", "xoxb-", url64, 20, 200),
    formed("slack token", "xoxp-", url64, 20, 200),
    formed("slack token", "xoxa-", url64, 20, 200),
    formed("slack token", "xoxr-", url64, 20, 200),
    formed("slack token", "xoxs-", url64, 20, 200),
    formed("slack token", "xoxc-", url64, 20, 200),
    formed("slack token", "xoxd-", |byte| url64(byte) || matches!(byte, b'%' | b'+' | b'/' | b'='), 20, 300),
    formed("slack token", "xoxe.xox", dotted, 40, 300),
    formed("slack token", "xoxe-", url64, 40, 300),
    formed("slack token", "xapp-", url64, 20, 200),
    formed("stripe key", "sk_live_", alnum, 16, 250),
    formed("stripe key", "sk_test_", alnum, 16, 250),
    formed("stripe key", "rk_live_", alnum, 16, 250),
    formed("stripe key", "rk_test_", alnum, 16, 250),
    formed("webhook secret", "whsec_", base64, 24, 100),
    formed("square token", "sq0atp-", url64, 20, 60),
    formed("square secret", "sq0csp-", url64, 40, 60),
    formed("square token", "EAAA", url64, 58, 64),
    formed("paypal token", "access_token$", |byte| alnum(byte) || byte == b'$', 40, 80),
    formed("shopify token", "shpat_", hex, 32, 32),
    formed("shopify token", "shpca_", hex, 32, 32),
    formed("shopify token", "shppa_", hex, 32, 32),
    formed("shopify secret", "shpss_", hex, 32, 32),
    formed("sendgrid key", "SG.", dotted, 60, 80),
    formed("mailgun key", "key-", hex, 32, 32),
    formed("brevo key", "xkeysib-", url64, 60, 100),
    formed("brevo key", "xsmtpsib-", url64, 60, 100),
    formed("resend key", "re_", |byte| alnum(byte) || byte == b'_', 30, 40),
    formed("twilio key", "SK", |byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte), 32, 32),
    formed("vault token", "hvs.", url64, 24, 300),
    formed("vault token", "hvb.", url64, 24, 300),
    formed("vault token", "hvr.", url64, 24, 300),
    formed("new relic key", "NRAK-", alnum, 27, 27),
    formed("new relic key", "NRII-", url64, 32, 32),
    formed("new relic key", "NRJS-", hex, 19, 19),
    formed("sentry token", "sntrys_", |byte| base64(byte) || url64(byte), 40, 300),
    formed("sentry token", "sntryu_", hex, 64, 64),
    formed("grafana token", "glsa_", |byte| alnum(byte) || byte == b'_', 41, 41),
    formed("grafana token", "glc_", base64, 32, 400),
    formed("pulumi token", "pul-", hex, 40, 40),
    formed("databricks token", "dapi", |byte| hex(byte) || byte == b'-', 32, 36),
    formed("doppler token", "dp.pt.", alnum, 40, 50),
    formed("doppler token", "dp.st.", dotted, 40, 90),
    formed("fly token", "fm2_", |byte| base64(byte) || url64(byte), 40, LONG),
    formed("fly token", "fm1r_", |byte| base64(byte) || url64(byte), 40, LONG),
    formed("fly token", "FlyV1", |byte| base64(byte) || matches!(byte, b' ' | b'_' | b'-' | b','), 40, LONG),
    formed("vercel token", "vcp_", alnum, 20, 80),
    formed("vercel token", "vercel_blob_rw_", |byte| alnum(byte) || byte == b'_', 30, 80),
    formed("netlify token", "nfp_", alnum, 36, 40),
    formed("heroku key", "HRKU-", url64, 36, 70),
    formed("supabase key", "sbp_", hex, 40, 40),
    formed("supabase key", "sb_secret_", url64, 20, 60),
    formed("planetscale token", "pscale_tkn_", dotted, 30, 64),
    formed("planetscale password", "pscale_pw_", dotted, 30, 64),
    formed("planetscale token", "pscale_oauth_", dotted, 30, 64),
    formed("neon key", "napi_", alnum, 40, 80),
    formed("linear key", "lin_api_", alnum, 32, 50),
    formed("linear token", "lin_oauth_", alnum, 32, 70),
    formed("notion token", "ntn_", alnum, 40, 50),
    formed("notion token", "secret_", alnum, 40, 50),
    formed("figma token", "figd_", url64, 30, 60),
    formed("figma token", "figo_", url64, 30, 60),
    formed("postman key", "PMAK-", url64, 50, 70),
    formed("tailscale key", "tskey-", url64, 20, 80),
    formed("1password token", "ops_eyJ", base64, 100, LONG),
    formed("1password secret", "A3-", |byte| upper(byte) || byte == b'-', 32, 42),
    formed("age key", "AGE-SECRET-KEY-1", upper, 58, 58),
    formed("buildkite token", "bkua_", alnum, 40, 40),
    formed("buildkite token", "bkat_", alnum, 30, 60),
    formed("circleci token", "CCIPAT_", |byte| alnum(byte) || byte == b'_', 40, 80),
    formed("circleci token", "CCIPRJ_", |byte| alnum(byte) || byte == b'_', 40, 80),
    formed("hubspot token", "pat-na1-", url64, 36, 36),
    formed("hubspot token", "pat-eu1-", url64, 36, 36),
    formed("dynatrace token", "dt0c01.", dotted, 80, 100),
    formed("dynatrace token", "dt0s01.", dotted, 80, 100),
    formed("contentful token", "CFPAT-", url64, 40, 50),
    formed("easypost key", "EZAK", alnum, 54, 54),
    formed("flutterwave secret", "FLWSECK", url64, 12, 60),
    formed("rootly token", "rootly_", hex, 64, 64),
    formed("scalingo token", "tk-us-", url64, 48, 48),
    formed("snyk token", "snyk_uat.", dotted, 40, 200),
    formed("sourcegraph token", "sgp_", |byte| alnum(byte) || byte == b'_', 40, 80),
    formed("prefect key", "pnu_", alnum, 36, 36),
    formed("readme key", "rdme_", alnum, 70, 70),
    formed("typeform token", "tfp_", dotted, 40, 70),
    formed("cloudflare key", "v1.0-", hex, 24, 200),
    formed("okta token", "SSWS ", url64, 40, 44),
    formed("weights and biases key", "wandb_v1_", url64, 40, 90),
    formed("posthog key", "phx_", alnum, 40, 50),
    formed("turso token", "libsql_", url64, 30, 100),
    formed("pinecone key", "pcsk_", |byte| alnum(byte) || byte == b'_', 50, 90),
    formed("gemini key", "AQ.Ab", url64, 40, 80),
    formed("sonarqube token", "squ_", hex, 40, 40),
    formed("sonarqube token", "sqp_", hex, 40, 40),
    formed("sonarqube token", "sqa_", hex, 40, 40),
    formed("bedrock key", "ABSK", base64, 100, 200),
    formed("fly token", "fo1_", url64, 30, 80),
    formed("artifactory token", "cmVmdGtu", alnum, 50, 80),
    formed("vercel token", "vck_", alnum, 20, 80),
    formed("vercel token", "vca_", alnum, 20, 80),
    formed("vercel token", "vci_", alnum, 20, 80),
    formed("doppler token", "dp.sa.", alnum, 40, 50),
    formed("doppler token", "dp.ct.", alnum, 40, 50),
    formed("doppler token", "dp.scim.", alnum, 40, 50),
    formed("doppler token", "dp.audit.", alnum, 40, 50),
    formed("figma token", "figp_", url64, 30, 60),
    formed("gitlab token", "gloas-", hex, 64, 64),
];

/// The range of a secret that begins at a place, if it is one of this kind.
pub(crate) fn formed_at(text: &[u8], at: usize, form: &Formed) -> Option<std::ops::Range<usize>> {
    if !text[at..].starts_with(form.start.as_bytes()) {
        return None;
    }
    let (from, start) = match form.start {
        // Its mark stands behind the first letters.
        "Q~" => (at + 2, at.checked_sub(4)?),
        "access_token$" => (at + form.start.len(), at),
        _ => (at + form.start.len(), at),
    };
    if !is_start(text, start) {
        return None;
    }
    let n = run(text, from, form.rest);
    let (least, most) = form.n;
    if n < least || n > most {
        return None;
    }
    let rest = &text[from..from + n];
    let mix = Mix::of(rest);
    let is_drawn = match form.start {
        // Many words begin like these; what follows must be drawn by lot.
        "sk-" | "fw_" | "hf_" | "re_" | "secret_" | "xai-" | "key-" | "SK" | "cio" | "oy2" | "EAAA"
        | "co_" | "A3-" | "fm2_" | "glc_" => mix.is_random(),
        _ => mix.n_digits >= 1 || mix.is_random(),
    };
    // A mark of a placeholder may come about by lot in a long token, but not in its first bytes.
    let is_real = is_drawn && !is_stand_in(&rest[..rest.len().min(24)]);
    is_real.then_some(start..from + n)
}

/// The range of a secret that has a mark inside: so many bytes before it and behind it.
pub(crate) fn marked_at(
    text: &[u8],
    at: usize,
    (mark, before, behind): (&str, usize, usize),
) -> Option<std::ops::Range<usize>> {
    let end = at + mark.len();
    if &text[at..end] != mark.as_bytes() || !is_start(text, at.checked_sub(before)?) {
        return None;
    }
    let start = at - before;
    let is_whole = text[start..at].iter().all(|byte| alnum(*byte)) && run(text, end, url64) >= behind;
    let stop = end + run(text, end, url64);
    (is_whole && Mix::of(&text[start..stop]).is_random()).then_some(start..stop)
}

/// The range of a JSON web token that begins at a place.
pub(crate) fn web_token_at(text: &[u8], at: usize) -> Option<std::ops::Range<usize>> {
    if !text[at..].starts_with(b"eyJ") || !is_start(text, at) {
        return None;
    }
    let head = run(text, at, url64);
    let dot = at + head;
    if head < 12 || text.get(dot) != Some(&b'.') {
        return None;
    }
    let end = at + run(text, at, dotted);
    let body = run(text, dot + 1, url64);
    // Three parts, or five if it is encrypted, of which the second may be empty.
    let is_signed = body >= 8 && text[dot + 1..].starts_with(b"eyJ");
    let is_sealed = text[at..end].iter().filter(|byte| **byte == b'.').count() == 4;
    (is_signed || is_sealed).then_some(at..end)
}

/// `pat` and 14 letters or digits, a dot, 64 hexadecimal digits.
pub(crate) fn airtable_at(text: &[u8], at: usize) -> Option<std::ops::Range<usize>> {
    let is_it = text.get(at + 17) == Some(&b'.')
        && text[at..].starts_with(b"pat")
        && run(text, at, alnum) == 17
        && run(text, at + 18, hex) == 64
        && is_start(text, at);
    is_it.then_some(at..at + 82)
}

/// A number in base64, a dot, a time of six letters, a dot, and what it is signed with.
pub(crate) fn discord_at(text: &[u8], at: usize) -> Option<std::ops::Range<usize>> {
    // Most places are passed by looking at three bytes.
    let dot = (24..=28).find(|n| text.get(at + n) == Some(&b'.'))?;
    if text.get(at + dot + 7) != Some(&b'.') || !is_start(text, at) || run(text, at, alnum) != dot {
        return None;
    }
    let n = run(text, at + dot + 8, url64);
    let is_it = run(text, at + dot + 1, url64) == 6 && (27..=40).contains(&n);
    is_it.then_some(at..at + dot + 8 + n)
}

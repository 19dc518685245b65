//! Tokens with a format of their own: a prefix, an alphabet, a length, sometimes a checksum.
//!
//! Templates are filled at run time, so that this file contains no text that a secret scanner would report.

use super::kinds::{Sample, SampleKind};
use super::rng::{CorpusRng, base62, base64, base64_url, crc32};

#[rustfmt::skip]
pub(super) fn kinds() -> Vec<SampleKind> {
    vec![
        // Clouds.
        SampleKind::token("aws-access-key-id", &["AKIA{bthirtytwo16}", "ASIA{bthirtytwo16}"]),
        SampleKind::token("aws-bedrock-key", &["ABSKQmVkcm9ja0FQSUtleS{bsf110}="]),
        SampleKind::token("google-api-key", &["AIza{url35}", "AIzaSy{url33}"]),
        SampleKind::token("gemini-auth-key", &["AQ.Ab8RN6{url44}"]),
        SampleKind::token("google-oauth-secret", &["GOCSPX-{url28}"]),
        SampleKind::token("google-oauth-token", &["ya29.a0A{url160-210}", "1//0{an1}{url60-90}"]),
        SampleKind::token("azure-client-secret", &["{an3}8Q~{azure34}", "{an3}7Q~{azure31}"]),
        SampleKind::token("azure-devops-pat", &["{an76}AZDO{an4}"]),
        SampleKind::token("digitalocean", &["dop_v1_{hex64}", "doo_v1_{hex64}", "dor_v1_{hex64}"]),
        SampleKind::token("alibaba-access-key-id", &["LTAI5t{an18}"]),
        // Models.
        SampleKind::token("openai-legacy", &["sk-{an20}T3BlbkFJ{an20}"]),
        SampleKind::token("openai-project", &["sk-proj-{url74}T3BlbkFJ{url74}", "sk-proj-{url58}T3BlbkFJ{url58}"]),
        SampleKind::token("openai-service", &["sk-svcacct-{url74}T3BlbkFJ{url74}", "sk-admin-{url58}T3BlbkFJ{url58}", "sk-None-{an20}T3BlbkFJ{an20}"]),
        SampleKind::token("anthropic-api", &["sk-ant-api03-{url93}AA", "sk-ant-admin01-{url93}AA"]),
        SampleKind::token("anthropic-oauth", &["sk-ant-oat01-{url93}AA", "sk-ant-ort01-{url93}AA", "sk-ant-sid01-{url93}AA"]),
        SampleKind::token("openrouter", &["sk-or-v1-{hex64}"]),
        SampleKind::token("deepseek", &["sk-{hex32}"]),
        SampleKind::token("groq", &["gsk_{an52}"]),
        SampleKind::token("xai", &["xai-{an80}"]),
        SampleKind::token("perplexity", &["pplx-{an48}", "pplx-{hex56}"]),
        SampleKind::token("huggingface", &["hf_{letter34}", "api_org_{letter34}"]),
        SampleKind::token("replicate", &["r8_{an37}"]),
        SampleKind::token("nvidia", &["nvapi-{url64}"]),
        SampleKind::token("cerebras", &["csk-{lowd48}"]),
        SampleKind::token("together-v1", &["tgp_v1_{url43}"]),
        SampleKind::token("fireworks", &["fw_{an24}"]),
        SampleKind::token("langsmith", &["lsv2_pt_{hex32}_{hex10}", "lsv2_sk_{hex32}_{hex10}"]),
        SampleKind::token("pinecone", &["pcsk_{an6}_{an63}"]),
        SampleKind::token("tavily", &["tvly-dev-{an32}", "tvly-{an32}"]),
        // Code forges and package registries.
        SampleKind::token_from("github-classic", github_classic),
        SampleKind::token_from("github-app", github_app),
        SampleKind::token("github-fine-grained", &["github_pat_{an22}_{an59}"]),
        SampleKind::token("gitlab-pat", &["glpat-{url20}", "glpat-{url27}.01.0{lowd8}"]),
        SampleKind::token("gitlab-other", &["gldt-{url20}", "glrt-{url20}", "glptt-{hex40}", "glcbt-64_{url20}", "gloas-{hex64}", "glagent-{url50}", "GR1348941{url20}"]),
        SampleKind::token_from("bitbucket", bitbucket),
        SampleKind::token_from("npm", npm),
        SampleKind::token_from("pypi", pypi),
        SampleKind::token("rubygems", &["rubygems_{hex48}"]),
        SampleKind::token("crates-io", &["cio{an32}"]),
        SampleKind::token("docker-hub", &["dckr_pat_{url27}", "dckr_oat_{an32}"]),
        SampleKind::token("nuget", &["oy2{lowd43}"]),
        SampleKind::token("jfrog", &["AKCp8{an68}", "cmVmdGtuOjAxO{an51}"]),
        // Chat.
        SampleKind::token("slack-bot", &["xoxb-{d12}-{d13}-{an24}", "xoxb-{d11}-{an24}"]),
        SampleKind::token("slack-user", &["xoxp-{d12}-{d12}-{d13}-{hex32}", "xoxc-{d12}-{d12}-{d13}-{hex64}"]),
        SampleKind::token("slack-app", &["xapp-1-A{upd10}-{d13}-{hex64}"]),
        SampleKind::token("slack-rotating", &["xoxe.xoxp-1-{an166}", "xoxe-1-{an147}", "xoxe.xoxb-1-{an166}"]),
        SampleKind::token_from("discord-bot", discord_bot),
        SampleKind::token("telegram-bot", &["{d10}:AA{url33}"]),
        // Payment.
        SampleKind::token("stripe-secret", &["sk_live_{an24}", "sk_live_51{an97}", "sk_test_51{an97}"]),
        SampleKind::token("stripe-restricted", &["rk_live_{an24}", "rk_live_51{an97}"]),
        SampleKind::token("stripe-webhook", &["whsec_{an32}", "whsec_{hex64}"]),
        SampleKind::token("square", &["EAAA{url60}", "sq0csp-{url43}", "sq0atp-{url22}"]),
        SampleKind::token("shopify", &["shpat_{hex32}", "shpss_{hex32}", "shpca_{hex32}", "shppa_{hex32}"]),
        // Mail.
        SampleKind::token("sendgrid", &["SG.{url22}.{url43}"]),
        SampleKind::token("mailgun", &["key-{hex32}"]),
        SampleKind::token("brevo", &["xkeysib-{hex64}-{an16}", "xsmtpsib-{hex64}-{an16}"]),
        SampleKind::token("resend", &["re_{an8}_{an24}"]),
        // Operations.
        SampleKind::token("vault", &["hvs.CAES{url90}", "hvs.{an24}", "hvb.AAAAAQ{url140}"]),
        SampleKind::token("newrelic", &["NRAK-{upd27}", "NRII-{an32}", "{hex36}NRAL"]),
        SampleKind::token_from("sentry-org", sentry_org),
        SampleKind::token("sentry-user", &["sntryu_{hex64}"]),
        SampleKind::token_from("grafana", grafana),
        SampleKind::token("terraform-cloud", &["{an14}.atlasv1.{an67}"]),
        SampleKind::token("pulumi", &["pul-{hex40}"]),
        SampleKind::token("databricks", &["dapi{hex32}", "dapi{hex32}-2"]),
        SampleKind::token("doppler", &["dp.pt.{an43}", "dp.st.dev.{an43}", "dp.st.prd.{an43}", "dp.ct.{an43}", "dp.sa.{an43}"]),
        SampleKind::token("fly", &["fm2_{bsf180}==", "fo1_{url43}"]),
        SampleKind::token("vercel", &["vcp_{an56}", "vck_{an56}"]),
        SampleKind::token("netlify", &["nfp_{an36}"]),
        SampleKind::token("heroku", &["HRKU-{url60}", "HRKU-{uuid}"]),
        SampleKind::token("supabase", &["sbp_{hex40}", "sb_secret_{url22}_{url8}"]),
        SampleKind::token("planetscale", &["pscale_tkn_{url43}", "pscale_pw_{url43}", "pscale_oauth_{url43}"]),
        SampleKind::token("linear", &["lin_api_{an40}"]),
        SampleKind::token("notion", &["ntn_{d11}{an35}", "secret_{an43}"]),
        SampleKind::token("figma", &["figd_{url40}", "figp_{url40}"]),
        SampleKind::token("airtable", &["pat{an14}.{hex64}"]),
        SampleKind::token_from("atlassian", atlassian),
        SampleKind::token("postman", &["PMAK-{hex24}-{hex34}"]),
        SampleKind::token("tailscale", &["tskey-auth-k{an10}CNTRL-{an32}", "tskey-api-k{an10}CNTRL-{an32}"]),
        SampleKind::token_from("onepassword", onepassword),
        SampleKind::token("buildkite", &["bkua_{hex40}"]),
        SampleKind::token("circleci", &["CCIPAT_{bfiftyeight22}_{hex40}", "CCIPRJ_{bfiftyeight22}_{hex40}"]),
        SampleKind::token("sonarqube", &["squ_{hex40}", "sqp_{hex40}"]),
        SampleKind::token("age", &["AGE-SECRET-KEY-1{bech58}"]),
        SampleKind::token_from("jwt-hs", jwt_hs),
        SampleKind::token_from("jwt-rs", jwt_rs),
    ]
}

/// 30 random characters and their checksum, as in tokens of GitHub and npm.
fn with_checksum(rng: &mut CorpusRng, prefix: &str) -> Sample {
    let random = rng.fill("{an30}");
    let check = base62(crc32(random.as_bytes()), 6);
    Sample::whole(format!("{prefix}_{random}{check}"))
}

fn github_classic(rng: &mut CorpusRng) -> Sample {
    let prefix = rng.pick(&["ghp", "gho"]);
    with_checksum(rng, prefix)
}

fn github_app(rng: &mut CorpusRng) -> Sample {
    let prefix = rng.pick(&["ghu", "ghs", "ghr"]);
    with_checksum(rng, prefix)
}

fn npm(rng: &mut CorpusRng) -> Sample {
    with_checksum(rng, "npm")
}

/// A macaroon, whose first bytes contain the host.
fn pypi(rng: &mut CorpusRng) -> Sample {
    let (place, marker) = if rng.one_in(4) { ("test.pkgs.dev", 13) } else { ("pkgs.dev", 8) };
    let mut bytes = vec![2, 1, marker];
    bytes.extend(place.as_bytes());
    bytes.extend([2, 36]);
    bytes.extend(rng.fill("{uuid}").as_bytes());
    bytes.extend(rng.bytes(70));
    Sample::whole(format!("pypi-{}", base64_url(&bytes)))
}

fn bitbucket(rng: &mut CorpusRng) -> Sample {
    let random = rng.fill("ATBB{an24}");
    let check = crc32(random.as_bytes());
    Sample::whole(match rng.below(3) {
        0 => rng.fill("ATCTT3xFfGN0{url160}={HEX8}"),
        _ => format!("{random}{check:08X}"),
    })
}

fn atlassian(rng: &mut CorpusRng) -> Sample {
    let random = rng.fill("ATATT3xFfGF0{url171}");
    let check = crc32(random.as_bytes());
    Sample::whole(format!("{random}={check:08X}"))
}

/// A bot id with any first digit, a time and a signature.
fn discord_bot(rng: &mut CorpusRng) -> Sample {
    let id = base64_url(format!("{}{}", 1 + rng.below(9), rng.fill("{d17}")).as_bytes());
    Sample::whole(format!("{id}.{}", rng.fill("G{url5}.{url38}")))
}

fn sentry_org(rng: &mut CorpusRng) -> Sample {
    let claims = format!(
        r#"{{"iat":17{}.{},"url":"https://sentry.io","region_url":"https://us.sentry.io","org":"acme"}}"#,
        rng.fill("{d8}"),
        rng.fill("{d6}")
    );
    Sample::whole(format!("sntrys_{}_{}", base64(claims.as_bytes()), rng.fill("{bsf43}")))
}

fn grafana(rng: &mut CorpusRng) -> Sample {
    let random = rng.fill("{an32}");
    let check = crc32(random.as_bytes());
    let cloud =
        format!(r#"{{"o":"{}","n":"ci","k":"{}","m":{{"r":"us"}}}}"#, rng.fill("{d6}"), rng.fill("{an24}"));
    Sample::whole(match rng.below(3) {
        0 => format!("glc_{}", base64(cloud.as_bytes())),
        _ => format!("glsa_{random}_{check:08x}"),
    })
}

fn onepassword(rng: &mut CorpusRng) -> Sample {
    let account = format!(
        r#"{{"signInAddress":"acme.1password.com","userAuth":{{"method":"SRPg-4096","salt":"{}"}},"email":"{}@1passwordserviceaccounts.com","srpX":"{}"}}"#,
        rng.fill("{url22}"),
        rng.fill("{lowd13}"),
        rng.fill("{hex64}")
    );
    Sample::whole(match rng.below(3) {
        0 => rng.fill("A3-{upd6}-{upd6}-{upd5}-{upd5}-{upd5}-{upd5}"),
        _ => format!("ops_{}", base64(account.as_bytes())),
    })
}

/// A JWT signed with a shared key: header, claims, 32 bytes of signature.
pub(super) fn jwt_hs(rng: &mut CorpusRng) -> Sample {
    jwt(rng, r#"{"alg":"HS256","typ":"JWT"}"#, 32)
}

/// A JWT signed with a private key, with a long signature.
fn jwt_rs(rng: &mut CorpusRng) -> Sample {
    let header = format!(r#"{{"alg":"RS256","kid":"{}","typ":"JWT"}}"#, rng.fill("{hex16}"));
    jwt(rng, &header, 256)
}

fn jwt(rng: &mut CorpusRng, header: &str, n_signature: usize) -> Sample {
    let claims = format!(
        r#"{{"sub":"{}","name":"{}","iat":17{},"exp":18{}}}"#,
        rng.fill("{d8}"),
        rng.pick(&["Ada", "Grace", "Linus"]),
        rng.fill("{d8}"),
        rng.fill("{d8}")
    );
    let signature = base64_url(&rng.bytes(n_signature));
    Sample::whole(format!("{}.{}.{signature}", base64_url(header.as_bytes()), base64_url(claims.as_bytes())))
}

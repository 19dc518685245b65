//! Secrets without a format: random characters and passwords. They are recognised by their name.

use super::kinds::{Sample, SampleKind};
use super::names;
use super::rng::CorpusRng;

#[rustfmt::skip]
pub(super) fn kinds() -> Vec<SampleKind> {
    vec![
        // Providers whose keys have no prefix.
        SampleKind::opaque("aws-secret-key", &["aws secret access key", "secret access key", "aws secret key"], &["{bsf40}"]),
        SampleKind::opaque("aws-ses-smtp-password", &["ses smtp password", "smtp password"], &["B{bsf43}"]),
        SampleKind::opaque("alibaba-secret-key", &["alibaba cloud access key secret", "access key secret"], &["{an30}"]),
        SampleKind::opaque("azure-openai-key", &["azure openai api key", "azure api key"], &["{hex32}", "{an52}JQQJ99{an26}"]),
        SampleKind::opaque("cloudflare-token", &["cloudflare api token", "cf api key"], &["{url40}", "{hex37}"]),
        SampleKind::opaque("mistral", &["mistral api key"], &["{an32}"]),
        SampleKind::opaque("cohere", &["cohere api key", "co api key"], &["{an40}"]),
        SampleKind::opaque("together", &["together api key"], &["{hex64}"]),
        SampleKind::opaque("datadog", &["dd api key", "datadog app key", "dd application key"], &["{hex32}", "{hex40}"]),
        SampleKind::opaque("pagerduty", &["pagerduty token", "pd api key", "pagerduty routing key"], &["u+{an18}", "{an20}", "{hex32}"]),
        SampleKind::opaque("twilio-auth-token", &["twilio auth token"], &["{hex32}"]),
        SampleKind::opaque("mailchimp", &["mailchimp api key"], &["{hex32}-us{d2}"]),
        SampleKind::opaque("mailgun-signing", &["mailgun api key", "mailgun signing key"], &["{hex32}-{hex8}-{hex8}", "{hex32}"]),
        SampleKind::opaque("postmark", &["postmark server token", "postmark api token"], &["{uuid}"]),
        SampleKind::opaque("paypal-secret", &["paypal client secret", "paypal secret"], &["E{url79}"]),
        SampleKind::opaque("heroku-legacy", &["heroku api key", "heroku auth token"], &["{uuid}"]),
        SampleKind::opaque("vercel-legacy", &["vercel token", "vercel api token"], &["{an24}"]),
        SampleKind::opaque("atlassian-legacy", &["jira api token", "confluence api token"], &["{an24}"]),
        SampleKind::opaque("wandb", &["wandb api key"], &["{hex40}"]),
        SampleKind::opaque("oauth-client-secret", &["client secret", "oauth client secret", "auth zero client secret"], &["{url64}", "{an40}"]),
        // No provider.
        SampleKind::opaque("random-hex", names::RANDOM, &["{hex32}", "{hex40}", "{hex64}", "{hex128}"]),
        SampleKind::opaque("random-base64", names::RANDOM, &["{bsf43}=", "{bsf22}==", "{bsf86}=="]),
        SampleKind::opaque("random-uuid", names::RANDOM, &["{uuid}"]),
        SampleKind::opaque("random-alnum", names::RANDOM, &["{an16}", "{an24}", "{an32}", "{lowd20}", "{an12}.{an24}"]),
        // Passwords.
        SampleKind::password("password-human", human),
        SampleKind::password("password-leet", leet),
        SampleKind::password("password-phrase", phrase),
        SampleKind::password("password-spaces", spaces),
        SampleKind::password("password-random", random),
        SampleKind::password("password-letters", letters),
        SampleKind::password("password-quotes", quotes),
        SampleKind::password("password-not-ascii", not_ascii),
    ]
}

const WORDS: &[&str] = &[
    "dragon", "monkey", "summer", "hunter", "winter", "falcon", "coffee", "bailey", "shadow", "guitar",
    "orange", "penguin", "rocket", "silver", "tiger", "walnut", "yellow", "zebra", "copper", "meadow",
    "lantern", "pickle",
];

/// A URL-safe password, chosen by a person or generated.
pub(super) fn url_safe(rng: &mut CorpusRng) -> String {
    match rng.below(4) {
        0 => format!("{}{}", rng.pick(WORDS), rng.fill("{d4}")),
        1 => rng.fill("{an24}"),
        2 => rng.fill("{url32}"),
        _ => rng.fill("{an8}%21{an4}%40{an3}"),
    }
}

/// `hunter2!`, `Summer2024`, `falcon_99`.
pub(super) fn human(rng: &mut CorpusRng) -> Sample {
    let word = rng.pick(WORDS);
    Sample::whole(match rng.below(4) {
        0 => format!("{word}{}!", rng.fill("{d1}")),
        1 => format!("{}{}20{}", word[..1].to_uppercase(), &word[1..], rng.fill("{d2}")),
        2 => format!("{word}_{}", rng.fill("{d2-4}")),
        _ => format!("{}{}#{}", word[..1].to_uppercase(), &word[1..], rng.fill("{d3}")),
    })
}

/// `Tr0ub4dor&3`.
fn leet(rng: &mut CorpusRng) -> Sample {
    let word = rng.pick(WORDS).replace('o', "0").replace('e', "3").replace('a', "@").replace('i', "1");
    let end = rng.pick(&["&3", "$7", "!!", "*9", "%22", "?", "^5"]);
    Sample::whole(format!("{}{}{end}{}", word[..1].to_uppercase(), &word[1..], rng.fill("{d1}")))
}

/// `copper-walnut-tiger-42`.
fn phrase(rng: &mut CorpusRng) -> Sample {
    let words = [rng.pick(WORDS), rng.pick(WORDS), rng.pick(WORDS)];
    Sample::whole(format!("{}-{}", words.join(rng.pick(&["-", ".", "_"])), rng.fill("{d2}")))
}

/// `correct horse battery staple`.
fn spaces(rng: &mut CorpusRng) -> Sample {
    let words = [rng.pick(WORDS), rng.pick(WORDS), rng.pick(WORDS), rng.pick(WORDS)];
    Sample::whole(words.join(" "))
}

/// From a password manager: all classes of characters.
fn random(rng: &mut CorpusRng) -> Sample {
    let marks = "!@#%^&*()-_=+[]{}:,.?~";
    let n = 10 + rng.below(14);
    let mut value = rng.fill("{an4}");
    for _ in 4..n {
        value += &if rng.one_in(4) { rng.chars(marks, 1) } else { rng.fill("{an1}") };
    }
    Sample::whole(value + &rng.fill("{an1}"))
}

/// From a generator without digits.
fn letters(rng: &mut CorpusRng) -> Sample {
    Sample::whole(rng.fill("{letter12-20}"))
}

/// With characters that must be escaped in most contexts.
fn quotes(rng: &mut CorpusRng) -> Sample {
    let mark = rng.pick(&["\"", "'", "\\", "\"'", "<&>", "$"]);
    Sample::whole(format!("{}{mark}{}", rng.fill("{an6}"), rng.fill("{an6}")))
}

fn not_ascii(rng: &mut CorpusRng) -> Sample {
    let word = rng.pick(&["Schlüssel", "contraseña", "пароль", "größe", "motdépasse", "łódka"]);
    Sample::whole(format!("{word}{}{}", rng.pick(&["#", "!", "-"]), rng.fill("{d4}")))
}

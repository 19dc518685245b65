//! Secrets without a format: random characters and passwords. Only a name beside them tells.

use super::kinds::{Kind, Made};
use super::names;
use super::rng::Rng;

#[rustfmt::skip]
pub(super) fn kinds() -> Vec<Kind> {
    vec![
        // Providers whose keys have no prefix.
        Kind::unmarked("aws-secret-key", &["aws secret access key", "secret access key", "aws secret key"], &["{bsf40}"]),
        Kind::unmarked("aws-ses-smtp-password", &["ses smtp password", "smtp password"], &["B{bsf43}"]),
        Kind::unmarked("alibaba-secret-key", &["alibaba cloud access key secret", "access key secret"], &["{an30}"]),
        Kind::unmarked("azure-openai-key", &["azure openai api key", "azure api key"], &["{hex32}", "{an52}JQQJ99{an26}"]),
        Kind::unmarked("cloudflare-token", &["cloudflare api token", "cf api key"], &["{url40}", "{hex37}"]),
        Kind::unmarked("mistral", &["mistral api key"], &["{an32}"]),
        Kind::unmarked("cohere", &["cohere api key", "co api key"], &["{an40}"]),
        Kind::unmarked("together", &["together api key"], &["{hex64}"]),
        Kind::unmarked("datadog", &["dd api key", "datadog app key", "dd application key"], &["{hex32}", "{hex40}"]),
        Kind::unmarked("pagerduty", &["pagerduty token", "pd api key", "pagerduty routing key"], &["u+{an18}", "{an20}", "{hex32}"]),
        Kind::unmarked("twilio-auth-token", &["twilio auth token"], &["{hex32}"]),
        Kind::unmarked("mailchimp", &["mailchimp api key"], &["{hex32}-us{d2}"]),
        Kind::unmarked("mailgun-signing", &["mailgun api key", "mailgun signing key"], &["{hex32}-{hex8}-{hex8}", "{hex32}"]),
        Kind::unmarked("postmark", &["postmark server token", "postmark api token"], &["{uuid}"]),
        Kind::unmarked("paypal-secret", &["paypal client secret", "paypal secret"], &["E{url79}"]),
        Kind::unmarked("heroku-legacy", &["heroku api key", "heroku auth token"], &["{uuid}"]),
        Kind::unmarked("vercel-legacy", &["vercel token", "vercel api token"], &["{an24}"]),
        Kind::unmarked("atlassian-legacy", &["jira api token", "confluence api token"], &["{an24}"]),
        Kind::unmarked("wandb", &["wandb api key"], &["{hex40}"]),
        Kind::unmarked("oauth-client-secret", &["client secret", "oauth client secret", "auth zero client secret"], &["{url64}", "{an40}"]),
        // No provider at all.
        Kind::unmarked("random-hex", names::RANDOM, &["{hex32}", "{hex40}", "{hex64}", "{hex128}"]),
        Kind::unmarked("random-base64", names::RANDOM, &["{bsf43}=", "{bsf22}==", "{bsf86}=="]),
        Kind::unmarked("random-uuid", names::RANDOM, &["{uuid}"]),
        Kind::unmarked("random-alnum", names::RANDOM, &["{an16}", "{an24}", "{an32}", "{lowd20}", "{an12}.{an24}"]),
        // Passwords.
        Kind::password("password-human", human),
        Kind::password("password-leet", leet),
        Kind::password("password-phrase", phrase),
        Kind::password("password-spaces", spaces),
        Kind::password("password-random", random),
        Kind::password("password-quotes", quotes),
        Kind::password("password-not-ascii", not_ascii),
    ]
}

const WORDS: &[&str] = &[
    "dragon", "monkey", "summer", "hunter", "winter", "falcon", "coffee", "bailey", "shadow", "guitar",
    "orange", "penguin", "rocket", "silver", "tiger", "walnut", "yellow", "zebra", "copper", "meadow",
    "lantern", "pickle",
];

/// A URL-safe password for the inside of an address: of a person or of a generator.
pub(super) fn url_safe(rng: &mut Rng) -> String {
    match rng.below(4) {
        0 => format!("{}{}", rng.pick(WORDS), rng.fill("{d4}")),
        1 => rng.fill("{an24}"),
        2 => rng.fill("{url32}"),
        _ => rng.fill("{an8}%21{an4}%40{an3}"),
    }
}

/// `hunter2!`, `Summer2024`, `falcon_99`.
pub(super) fn human(rng: &mut Rng) -> Made {
    let word = rng.pick(WORDS);
    Made::whole(match rng.below(4) {
        0 => format!("{word}{}!", rng.fill("{d1}")),
        1 => format!("{}{}20{}", word[..1].to_uppercase(), &word[1..], rng.fill("{d2}")),
        2 => format!("{word}_{}", rng.fill("{d2-4}")),
        _ => format!("{}{}#{}", word[..1].to_uppercase(), &word[1..], rng.fill("{d3}")),
    })
}

/// `Tr0ub4dor&3`.
fn leet(rng: &mut Rng) -> Made {
    let word = rng.pick(WORDS).replace('o', "0").replace('e', "3").replace('a', "@").replace('i', "1");
    let end = rng.pick(&["&3", "$7", "!!", "*9", "%22", "?", "^5"]);
    Made::whole(format!("{}{}{end}{}", word[..1].to_uppercase(), &word[1..], rng.fill("{d1}")))
}

/// `copper-walnut-tiger-42`.
fn phrase(rng: &mut Rng) -> Made {
    let words = [rng.pick(WORDS), rng.pick(WORDS), rng.pick(WORDS)];
    Made::whole(format!("{}-{}", words.join(rng.pick(&["-", ".", "_"])), rng.fill("{d2}")))
}

/// `correct horse battery staple`.
fn spaces(rng: &mut Rng) -> Made {
    let words = [rng.pick(WORDS), rng.pick(WORDS), rng.pick(WORDS), rng.pick(WORDS)];
    Made::whole(words.join(" "))
}

/// From a password manager: all kinds of characters.
fn random(rng: &mut Rng) -> Made {
    let marks = "!@#%^&*()-_=+[]{}:,.?~";
    let n = 10 + rng.below(14);
    let mut value = rng.fill("{an4}");
    for _ in 4..n {
        value += &if rng.one_in(4) { rng.chars(marks, 1) } else { rng.fill("{an1}") };
    }
    Made::whole(value + &rng.fill("{an1}"))
}

/// With characters that must be escaped nearly everywhere.
fn quotes(rng: &mut Rng) -> Made {
    let mark = rng.pick(&["\"", "'", "\\", "\"'", "<&>", "$"]);
    Made::whole(format!("{}{mark}{}", rng.fill("{an6}"), rng.fill("{an6}")))
}

fn not_ascii(rng: &mut Rng) -> Made {
    let word = rng.pick(&["Schlüssel", "contraseña", "пароль", "größe", "motdépasse", "łódka"]);
    Made::whole(format!("{word}{}{}", rng.pick(&["#", "!", "-"]), rng.fill("{d4}")))
}

//! Keys: sent in the right header, and masked in all output.

use fanfold_provider::{Endpoint, ErrorClass, KeySource, ModelClient};
use fanfold_testkit::Rng;
use fanfold_testkit::fakes::upstream::Fault;

use crate::setup::{OPENAI, PROVIDERS, endpoint, prompt, upstream};

/// An obviously artificial key whose format no redaction rule knows.
fn made_up(seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let letters: String = (0..24).map(|_| char::from(b'a' + (rng.below(26) as u8))).collect();
    format!("made-up-{letters}")
}

fn with_key(provider: &str, url: &str, key: KeySource) -> Endpoint {
    Endpoint { key, ..endpoint(provider, url) }
}

fn printing(key: &str) -> KeySource {
    KeySource::Command(format!("echo '{key}'"))
}

#[test]
fn each_style_has_its_own_key_header() {
    for provider in PROVIDERS {
        let upstream = upstream();
        let key = made_up(1);
        assert!(
            ModelClient::new(with_key(provider, &upstream.url(), printing(&key)))
                .unwrap()
                .send_blocking(&prompt())
                .is_ok()
        );
        let seen = upstream.seen().remove(0);
        let sent = ["authorization", "x-api-key"].map(|name| seen.header(name).map(str::to_owned));
        match provider {
            OPENAI => assert_eq!(sent, [Some(format!("Bearer {key}")), None]),
            _ => assert_eq!(sent, [None, Some(key)]),
        }
    }
}

#[test]
fn the_environment_is_read() {
    // Cargo sets this variable for every test.
    let upstream = upstream();
    let client =
        ModelClient::new(with_key(OPENAI, &upstream.url(), KeySource::Env("CARGO_PKG_NAME".to_owned())))
            .unwrap();
    assert!(client.send_blocking(&prompt()).is_ok());
    assert_eq!(upstream.seen()[0].header("authorization"), Some("Bearer fanfold-provider"));
    let missing = KeySource::Env("FANFOLD_NOT_SET_ANYWHERE".to_owned());
    let error = ModelClient::new(with_key(OPENAI, &upstream.url(), missing))
        .unwrap()
        .send_blocking(&prompt())
        .unwrap_err();
    assert_eq!((error.class, upstream.n_seen()), (ErrorClass::Auth, 1));
    assert!(error.to_string().contains("FANFOLD_NOT_SET_ANYWHERE is not set"), "{error}");
    assert!(error.hint().contains("FANFOLD_NOT_SET_ANYWHERE"), "{}", error.hint());
}

#[cfg(unix)]
#[test]
fn an_expired_key_is_read_again_once() {
    let folder = tempfile::tempdir().unwrap();
    let counter = folder.path().join("n");
    // Each run of the command prints a new key.
    let line =
        format!("echo x >> '{0}'; echo made-up-key-number-$(wc -l < '{0}' | tr -d ' ')", counter.display());
    let upstream = upstream();
    let client = ModelClient::new(with_key(OPENAI, &upstream.url(), KeySource::Command(line))).unwrap();
    upstream.fault(Fault::Status(401));
    assert!(client.send_blocking(&prompt()).is_ok());
    assert!(client.send_blocking(&prompt()).is_ok());
    let keys: Vec<String> = upstream
        .seen()
        .iter()
        .map(|seen| seen.header("authorization").unwrap_or_default().to_owned())
        .collect();
    let expected = [1, 2, 2].map(|n| format!("Bearer made-up-key-number-{n}"));
    assert_eq!(keys, expected, "a valid key is cached");
    // If the new key is refused as well, the error is returned.
    upstream.fault(Fault::Status(401));
    upstream.fault(Fault::Status(401));
    assert_eq!(client.send_blocking(&prompt()).unwrap_err().class, ErrorClass::Auth);
    assert_eq!(upstream.n_seen(), 5);
}

/// Faults that echo the key in every form that a provider might use.
fn echoing(key: &str, rng: &mut Rng) -> Fault {
    let part = &key[..key.len() - 4];
    let statuses = [400, 401, 402, 403, 404, 429, 500, 529, 200];
    let status = statuses[rng.below(statuses.len())];
    match rng.below(9) {
        0 => Fault::Answer(
            status,
            format!(r#"{{"error":{{"message":"Incorrect API key provided: {key}."}}}}"#),
        ),
        1 => Fault::Answer(status, format!(r#"{{"error":"bad token '{part}****'"}}"#)),
        2 => Fault::Answer(status, format!("<html><body>Authorization: Bearer {key}</body></html>")),
        3 => Fault::Answer(status, format!("{}{key}", "padding ".repeat(rng.below(40)))),
        4 => Fault::Answer(status, format!(r#"{{"message":"{{\"error\":{{\"message\":\"key={key}\"}}}}"}}"#)),
        5 => Fault::LateError(rng.below(4)),
        6 => Fault::Disconnect(rng.below(4)),
        7 => Fault::AnswerWith(status, vec![("x-key".to_owned(), key.to_owned())], key.to_owned()),
        _ => Fault::ReplyText(String::new()),
    }
}

#[test]
fn keys_are_masked_in_all_output() {
    let n_rounds = if std::env::var_os("FANFOLD_MANY").is_some() { 3000 } else { 60 };
    let mut n_faults = 0;
    for seed in 0..n_rounds {
        let key = made_up(seed);
        let mut rng = Rng::new(seed);
        let upstream = upstream();
        upstream.fault(echoing(&key, &mut rng));
        let provider = PROVIDERS[rng.below(2)];
        // The command contains the key, and the URL contains it as a password.
        let url = upstream.url().replace("://", &format!("://me:{key}@"));
        let client = ModelClient::new(with_key(provider, &url, printing(&key))).unwrap();
        let shown = match client.send_blocking(&prompt()) {
            Ok(answer) => format!("{answer:?} {client:?}"),
            Err(error) => {
                n_faults += 1;
                assert!(error.message.chars().count() <= 220);
                format!("{error} {error:?} {} {client:?} {:?}", error.hint(), client.endpoint())
            }
        };
        let tail = &key[key.len() - 12..];
        assert!(!shown.contains(&key[..20]) && !shown.contains(tail), "seed {seed}: {shown}");
    }
    assert!(n_faults > n_rounds / 2, "{n_faults}");
}

//! Keys are sent where they belong, and shown nowhere.

use fanfold_provider::{Client, Endpoint, ErrorClass, KeySource, Style};
use fanfold_testkit::Rng;
use fanfold_testkit::fakes::upstream::Fault;

use crate::setting::{STYLES, endpoint, prompt, upstream};

/// A key that is obviously made up, of a shape that no rule knows.
fn made_up(seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let letters: String = (0..24).map(|_| char::from(b'a' + (rng.below(26) as u8))).collect();
    format!("made-up-{letters}")
}

fn with_key(style: Style, url: &str, key: KeySource) -> Endpoint {
    Endpoint { key, ..endpoint(style, url) }
}

fn printing(key: &str) -> KeySource {
    KeySource::Command(format!("echo '{key}'"))
}

#[test]
fn each_style_sends_it_in_its_own_header() {
    for style in STYLES {
        let upstream = upstream();
        let key = made_up(1);
        assert!(
            Client::new(with_key(style, &upstream.url(), printing(&key))).unwrap().ask(&prompt()).is_ok()
        );
        let seen = upstream.seen().remove(0);
        let sent = ["authorization", "x-api-key"].map(|name| seen.header(name).map(str::to_owned));
        match style {
            Style::OpenAi => assert_eq!(sent, [Some(format!("Bearer {key}")), None]),
            Style::Anthropic => assert_eq!(sent, [None, Some(key)]),
        }
    }
}

#[test]
fn a_key_from_the_environment() {
    // A variable that cargo sets for every test.
    let upstream = upstream();
    let client =
        Client::new(with_key(Style::OpenAi, &upstream.url(), KeySource::Env("CARGO_PKG_NAME".to_owned())))
            .unwrap();
    assert!(client.ask(&prompt()).is_ok());
    assert_eq!(upstream.seen()[0].header("authorization"), Some("Bearer fanfold-provider"));
    let missing = KeySource::Env("FANFOLD_NOT_SET_ANYWHERE".to_owned());
    let fault =
        Client::new(with_key(Style::OpenAi, &upstream.url(), missing)).unwrap().ask(&prompt()).unwrap_err();
    assert_eq!((fault.class, upstream.n_seen()), (ErrorClass::Auth, 1));
    assert!(fault.to_string().contains("FANFOLD_NOT_SET_ANYWHERE is not set"), "{fault}");
    assert!(fault.hint().contains("FANFOLD_NOT_SET_ANYWHERE"), "{}", fault.hint());
}

#[cfg(unix)]
#[test]
fn a_key_that_has_run_out_is_made_again_once() {
    let folder = tempfile::tempdir().unwrap();
    let counter = folder.path().join("n");
    // Each run of the command prints another key.
    let line =
        format!("echo x >> '{0}'; echo made-up-key-number-$(wc -l < '{0}' | tr -d ' ')", counter.display());
    let upstream = upstream();
    let client = Client::new(with_key(Style::OpenAi, &upstream.url(), KeySource::Command(line))).unwrap();
    upstream.fault(Fault::Status(401));
    assert!(client.ask(&prompt()).is_ok());
    assert!(client.ask(&prompt()).is_ok());
    let keys: Vec<String> = upstream
        .seen()
        .iter()
        .map(|seen| seen.header("authorization").unwrap_or_default().to_owned())
        .collect();
    let expected = [1, 2, 2].map(|n| format!("Bearer made-up-key-number-{n}"));
    assert_eq!(keys, expected, "it is kept while it is good");
    // A new key that is refused as well is told.
    upstream.fault(Fault::Status(401));
    upstream.fault(Fault::Status(401));
    assert_eq!(client.ask(&prompt()).unwrap_err().class, ErrorClass::Auth);
    assert_eq!(upstream.n_seen(), 5);
}

/// Errors that say the key again, in every way a provider could.
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
fn a_key_stands_in_nothing_that_is_shown() {
    let n_rounds = if std::env::var_os("FANFOLD_MANY").is_some() { 3000 } else { 60 };
    let mut n_faults = 0;
    for seed in 0..n_rounds {
        let key = made_up(seed);
        let mut rng = Rng::new(seed);
        let upstream = upstream();
        upstream.fault(echoing(&key, &mut rng));
        let style = STYLES[rng.below(2)];
        // The key stands in the command, and a password in the address.
        let url = upstream.url().replace("://", &format!("://me:{key}@"));
        let client = Client::new(with_key(style, &url, printing(&key))).unwrap();
        let shown = match client.ask(&prompt()) {
            Ok(answer) => format!("{answer:?} {client:?}"),
            Err(fault) => {
                n_faults += 1;
                assert!(fault.message.chars().count() <= 220);
                format!("{fault} {fault:?} {} {client:?} {:?}", fault.hint(), client.endpoint())
            }
        };
        let tail = &key[key.len() - 12..];
        assert!(!shown.contains(&key[..20]) && !shown.contains(tail), "seed {seed}: {shown}");
    }
    assert!(n_faults > n_rounds / 2, "{n_faults}");
}

//! How much of a corpus of planted secrets is found, and that what only looks like one stays.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail, and says what it measured")]

mod corpus;

use std::collections::BTreeMap;

use corpus::{cases, innocent, longest_left};
use fanfold_redact::{find_secrets, redact, redact_within};

/// Of the planted secrets, so many are found at least.
const LEAST_FOUND: f64 = 0.98;
/// A secret is found if no more of its characters than these stand together in what is left.
const MOST_LEFT: usize = 4;

#[test]
fn planted_secrets_are_found() {
    let seed = std::env::var("FANFOLD_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let all = cases(seed, 10_000);
    let mut missed: BTreeMap<(&str, &str), (usize, String)> = BTreeMap::new();
    let mut n_missed = 0;
    for case in &all {
        // Pieces that stand beside the secret as well tell nothing.
        let beside = longest_left(case, &case.text.replacen(&case.secret, "\n", 1));
        if longest_left(case, &left(&case.text)) > beside.max(MOST_LEFT) {
            n_missed += 1;
            let entry = missed.entry((case.kind, case.setting)).or_insert((0, case.text.clone()));
            entry.0 += 1;
        }
    }
    for ((kind, setting), (n, text)) in &missed {
        println!("missed {n}: {kind} in {setting}: {}", text.chars().take(300).collect::<String>());
    }
    let recall = 1.0 - n_missed as f64 / all.len() as f64;
    println!("{} planted, {n_missed} missed: recall {recall:.4}", all.len());
    assert!(recall >= LEAST_FOUND, "recall is {recall:.4}");
}

#[test]
fn what_only_looks_like_a_secret_stays() {
    let touched: Vec<String> = innocent()
        .into_iter()
        .filter(|text| redact(text) != *text)
        .map(|text| format!("{text}\n  -> {}", redact(text)))
        .collect();
    assert!(touched.is_empty(), "{} of them changed:\n{}", touched.len(), touched.join("\n"));
}

#[test]
fn what_was_redacted_has_nothing_left_to_find() {
    for case in cases(2, 2_000) {
        let clean = redact(&case.text).into_owned();
        assert_eq!(redact(&clean), clean, "from {}", case.text);
    }
}

#[test]
fn ranges_are_in_order_and_apart() {
    let text: String = cases(3, 500).iter().map(|case| format!("{}\n", case.text)).collect();
    let found = find_secrets(&text);
    assert!(found.len() > 400);
    assert!(found.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
}

#[test]
fn a_quote_that_is_written_in_a_secret_does_not_end_it() {
    for text in [
        r#"password = "aB3\"kQ9x7Lm2pZ" # local"#,
        r#"{"db_password": "t7R\"kQ9x7Lm2pZ", "port": 5432}"#,
        r"secret_key = 'v8W\'kQ9x7Lm2pZ'",
    ] {
        assert!(!redact(text).contains("kQ9x7Lm2pZ"), "{text} -> {}", redact(text));
    }
}

#[test]
fn passwords_of_programs_and_keys_of_wallets_are_found() {
    let key = "9f3ac1e07b52d84c6e1f0a9d3b7c5e8214af6d0c9b8e7a3f5d2c1b0e4f6a8d93";
    let words = "lemon hover cradle siren tulip bench wagon fossil brisk candle rural onion";
    for (text, secret) in [
        ("docker login -u deploy -p hunterswordfish registry.internal", "hunterswordfish"),
        ("echo ok && sshpass -p 'correct-horse' ssh root@10.0.0.4", "correct-horse"),
        ("db.internal:5432:shop:deploy:kestrelpass\n", "kestrelpass"),
        ("*:5432:*:postgres:k9-Lm2:pZ", "k9-Lm2:pZ"),
        (&format!("PRIVATE_KEY=0x{key}"), key),
        (&format!("const privateKey = \"0x{key}\";"), key),
        (&format!("MNEMONIC=\"{words}\""), words),
        (&format!("seed_phrase: {words}\n"), words),
        (&format!("MNEMONIC=\"{words} {words}\""), words),
        (&format!("Seed phrase: {words}\nand so on"), words),
        (&format!("seed phrase: {words} is what it said"), words),
        ("SMS_TOKEN=483378876", "483378876"),
        ("docker login \\\n  -u deploy \\\n  -p hunterswordfish", "hunterswordfish"),
        ("config/pg:12:db.internal:5432:shop:deploy:kestrelpass", "kestrelpass"),
        ("    3\t*:*:*:postgres:kestrelpass", "kestrelpass"),
        ("it was db:6432:app:svc-reader:kestrelpass then", "kestrelpass"),
    ] {
        assert!(!redact(text).contains(secret), "{text} -> {}", redact(text));
    }
    for text in [
        "docker run -p 8080:80 nginx",
        "docker login -u deploy --password-stdin && docker run -p 8080:80 nginx",
        "echo $PASSWORD | docker login -u deploy --password-stdin; docker run -p 8080:80 nginx",
        "sshpass -e ssh -p 48022 root@10.0.0.5",
        "sshpass -p $PASSWORD ssh -p 48022 root@10.0.0.5",
        "sshpass -p [redacted: password] ssh -p 48022 root@10.0.0.5",
        "db.internal:5432:shop:deploy:",
        "ports: [\"127.0.0.1:5432:5432\"]",
        "mnemonic: the short names of all the codes that people may also write down",
        "docker login -u deploy -p $REGISTRY_PASSWORD registry.internal",
        "localhost:5432:5432 is what the ports look like",
        "image: postgres:5432:latest",
        "private_key_size = 0x1000",
        "mnemonic = \"add\"",
        "a mnemonic is a list of words that are easy to write down and to read aloud again",
        "max_token=16384",
    ] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn what_says_where_a_secret_would_stand_stays() {
    for text in [
        "API_KEY=your-api-key-4f2",
        "password: changeme_2026!",
        "auth_token = \"example-token-7Qx\"",
        "SECRET_KEY='replace-this-9!'",
        "db_password: \"placeholder_1#\"",
        "api_key=dummy-4a7b2c",
        "client_secret: sample-secret-81Z",
    ] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn a_part_of_a_text_has_no_more_of_a_secret_than_the_whole() {
    for case in cases(4, 1_000) {
        let whole = redact(&case.text);
        let beside = longest_left(&case, &whole.replace("[redacted: ", "\n"));
        for (from, to) in
            [(0, 2), (1, 2), (1, 4), (3, 4)].map(|(from, parts)| (from * case.text.len() / parts, parts))
        {
            let end = (from + case.text.len() / to + 1).min(case.text.len());
            let part = redact_within(&case.text, from..end);
            assert!(longest_left(&case, &part) <= beside.max(MOST_LEFT), "{} -> {part}", case.text);
        }
        assert_eq!(redact_within(&case.text, 0..case.text.len()), whole);
    }
    let text = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq3\nQ9x7Lm2pZt7RkQ9x7Lm2\n-----END RSA PRIVATE KEY-----\nbehind it";
    let from = text.find("Q9x7").unwrap();
    assert_eq!(
        redact_within(text, from..text.len()),
        "[redacted: private key]-----END RSA PRIVATE KEY-----\nbehind it"
    );
    assert_eq!(redact_within("äöü", 1..5), "ö");
}

/// What is left of a text beside the marks.
fn left(text: &str) -> String {
    let mut left = String::new();
    let mut end = 0;
    for secret in find_secrets(text) {
        left.push_str(&text[end..secret.range.start]);
        left.push('\n');
        end = secret.range.end;
    }
    left + &text[end..]
}

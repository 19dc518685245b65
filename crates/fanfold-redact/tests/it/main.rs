//! Measures the recall on a corpus of planted secrets, and checks that benign text is unchanged.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail, and prints its measurements")]

mod corpus;
mod decoded;
mod recall;

use corpus::{benign, cases, longest_leak};
use fanfold_redact::{find_secrets, redact, redact_within};
use recall::{COLUMNS, recall_by_setting};

/// Minimum share of planted secrets that are found.
const MIN_RECALL: f64 = 0.98;
/// Enough cases for every combination of a kind and a context.
const N_CASES: usize = 5_100;
/// A secret counts as found if at most this many consecutive characters of it remain.
const MAX_REMAINING: usize = 4;

#[test]
fn secrets_are_masked_in_every_setting() {
    let seed = std::env::var("FANFOLD_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let settings = recall_by_setting(seed, N_CASES);
    for row in &settings {
        for ((kind, context), (n, text)) in &row.missed {
            let text: String = text.chars().take(300).collect();
            println!("missed {n}: {kind} in {context}, {}: {text}", row.setting);
        }
    }
    println!("{COLUMNS}");
    settings.iter().for_each(|row| println!("{row}"));
    for row in &settings {
        assert!(row.recall() >= MIN_RECALL, "{row}");
    }
}

#[test]
fn benign_text_is_unchanged() {
    let changed: Vec<String> = benign()
        .into_iter()
        .filter(|text| redact(text) != *text)
        .map(|text| format!("{text}\n  -> {}", redact(text)))
        .collect();
    assert!(changed.is_empty(), "{} of them changed:\n{}", changed.len(), changed.join("\n"));
}

#[test]
fn redaction_is_idempotent() {
    for case in cases(2, 2_000) {
        let clean = redact(&case.text).into_owned();
        assert_eq!(redact(&clean), clean, "from {}", case.text);
    }
}

#[test]
fn ranges_are_ordered_and_disjoint() {
    let text: String = cases(3, 500).iter().map(|case| format!("{}\n", case.text)).collect();
    let found = find_secrets(&text);
    assert!(found.len() > 400);
    assert!(found.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
}

#[test]
fn an_escaped_quote_does_not_end_a_secret() {
    for text in [
        r#"password = "aB3\"kQ9x7Lm2pZ" # local"#,
        r#"{"db_password": "t7R\"kQ9x7Lm2pZ", "port": 5432}"#,
        r"secret_key = 'v8W\'kQ9x7Lm2pZ'",
    ] {
        assert!(!redact(text).contains("kQ9x7Lm2pZ"), "{text} -> {}", redact(text));
    }
}

#[test]
fn passwords_in_commands_and_wallet_keys_are_found() {
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
fn placeholders_are_unchanged() {
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
fn a_redacted_part_reveals_no_more_than_the_whole() {
    for case in cases(4, 1_000) {
        let whole = redact(&case.text);
        let baseline = longest_leak(&case, &whole.replace("[redacted: ", "\n"));
        for (from, to) in
            [(0, 2), (1, 2), (1, 4), (3, 4)].map(|(from, parts)| (from * case.text.len() / parts, parts))
        {
            let end = (from + case.text.len() / to + 1).min(case.text.len());
            let part = redact_within(&case.text, from..end);
            assert!(longest_leak(&case, &part) <= baseline.max(MAX_REMAINING), "{} -> {part}", case.text);
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

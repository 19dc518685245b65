//! Private keys: complete, truncated, and inside of a service account's file.
//!
//! The secret of a case is any line of the key except the first: a redactor that only removes the first line leaks the
//! rest.

use super::kinds::{Sample, SampleKind};
use super::rng::{CorpusRng, base64};

pub(super) fn kinds() -> Vec<SampleKind> {
    vec![
        SampleKind::block("key-rsa", |rng| whole(rng, &RSA)),
        SampleKind::block("key-ec", |rng| whole(rng, &EC)),
        SampleKind::block("key-openssh", |rng| whole(rng, &OPENSSH)),
        SampleKind::block("key-pkcs8", |rng| whole(rng, &PKCS8)),
        SampleKind::block("key-pkcs8-encrypted", |rng| whole(rng, &ENCRYPTED)),
        SampleKind::block("key-pgp", |rng| whole(rng, &PGP)),
        SampleKind::block("key-rsa-old-encrypted", |rng| whole(rng, &OLD_ENCRYPTED)),
        SampleKind::block("key-rsa-cut-off", cut_off),
        SampleKind::block("key-openssh-cut-off", openssh_cut_off),
        SampleKind::block("key-rsa-tail", tail),
        SampleKind::whole("google-service-account", service_account),
        SampleKind::whole("kubeconfig-key", kubeconfig),
        SampleKind::whole("wireguard-key", wireguard),
        SampleKind::opaque(
            "wallet-key",
            &[
                "private key",
                "eth private key",
                "deployer private key",
                "wallet private key",
                "account private key",
            ],
            &["0x{hex64}", "0x{hex64}", "0x{HEX64}"],
        ),
        SampleKind::whole("wallet-words", wallet_words),
    ]
}

/// The format of a PEM or PGP key.
struct Armor {
    /// The header without its last word, which is added at run time.
    label: &'static str,
    /// Lines between the header and the body.
    extra: &'static str,
    /// The constant beginning of the body.
    start: &'static str,
    width: usize,
    n_lines: usize,
    /// Template of the last line.
    last: &'static str,
}

const RSA: Armor = Armor {
    label: "RSA PRIVATE",
    extra: "",
    start: "MIIEpAIBAAKCAQEA",
    width: 64,
    n_lines: 25,
    last: "{bsf20}==",
};
const EC: Armor =
    Armor { label: "EC PRIVATE", extra: "", start: "MHcCAQEEI", width: 64, n_lines: 3, last: "{bsf34}==" };
const OPENSSH: Armor = Armor {
    label: "OPENSSH PRIVATE",
    extra: "",
    start: "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW",
    width: 70,
    n_lines: 6,
    last: "{bsf37}QIDBAU=",
};
const PKCS8: Armor = Armor {
    label: "PRIVATE",
    extra: "",
    start: "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
    width: 64,
    n_lines: 26,
    last: "{bsf24}",
};
const ENCRYPTED: Armor = Armor {
    label: "ENCRYPTED PRIVATE",
    extra: "",
    start: "MIIFLTBXBgkqhkiG9w0BBQ0wSjApBgkq",
    width: 64,
    n_lines: 28,
    last: "{bsf42}",
};
const PGP: Armor =
    Armor { label: "PGP PRIVATE", extra: "\n", start: "lQVYBG", width: 64, n_lines: 30, last: "{bsf40}" };
const OLD_ENCRYPTED: Armor = Armor {
    label: "RSA PRIVATE",
    extra: "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,7C51D4F0A9B3E6128D3F5A7B9C1E2F40\n\n",
    start: "",
    width: 64,
    n_lines: 25,
    last: "{bsf44}",
};

impl Armor {
    fn line(&self, which: &str) -> String {
        let block = if self.label.starts_with("PGP") { " BLOCK" } else { "" };
        format!("-----{which} {} {}{block}-----", self.label, "KEY")
    }

    fn body(&self, rng: &mut CorpusRng) -> Vec<String> {
        let line = format!("{{bsf{}}}", self.width);
        let mut lines: Vec<String> = (1..self.n_lines).map(|_| rng.fill(&line)).collect();
        lines[0].replace_range(..self.start.len(), self.start);
        lines.push(rng.fill(self.last));
        lines
    }
}

/// A random line of the body, except for the first one, which is mostly constant.
fn secret_line(rng: &mut CorpusRng, lines: &[String]) -> String {
    lines[1 + rng.below(lines.len() - 1)].clone()
}

fn whole(rng: &mut CorpusRng, armor: &Armor) -> Sample {
    let lines = armor.body(rng);
    let secret = secret_line(rng, &lines);
    let checksum = if armor.label.starts_with("PGP") { rng.fill("\n={bsf4}") } else { String::new() };
    let value = format!(
        "{}\n{}{}{checksum}\n{}",
        armor.line("BEGIN"),
        armor.extra,
        lines.join("\n"),
        armor.line("END")
    );
    Sample { value, secret }
}

/// Truncated at the end, as by `head -n 12 id_rsa` or a limit on output.
fn cut_off(rng: &mut CorpusRng) -> Sample {
    let mut lines = RSA.body(rng);
    lines.truncate(3 + rng.below(15));
    let secret = secret_line(rng, &lines);
    let half = rng.fill("{bsf10-50}");
    Sample { value: format!("{}\n{}\n{half}", RSA.line("BEGIN"), lines.join("\n")), secret }
}

fn openssh_cut_off(rng: &mut CorpusRng) -> Sample {
    let mut lines = OPENSSH.body(rng);
    lines.truncate(2 + rng.below(3));
    let secret = secret_line(rng, &lines);
    let mark = rng.pick(&["", "\n...", "\n[truncated]"]);
    Sample { value: format!("{}\n{}{mark}", OPENSSH.line("BEGIN"), lines.join("\n")), secret }
}

/// Truncated at the start, as by `tail id_rsa`.
fn tail(rng: &mut CorpusRng) -> Sample {
    let lines = RSA.body(rng).split_off(14 + rng.below(8));
    let secret = secret_line(rng, &lines);
    Sample { value: format!("{}\n{}", lines.join("\n"), RSA.line("END")), secret }
}

fn service_account(rng: &mut CorpusRng) -> Sample {
    let key = whole(rng, &PKCS8);
    let value = format!(
        r#"{{
  "type": "service_account",
  "project_id": "acme-prod",
  "private_key_id": "{}",
  "private_key": "{}\n",
  "client_email": "ci@acme-prod.iam.gserviceaccount.com",
  "token_uri": "https://oauth2.googleapis.com/token"
}}"#,
        rng.fill("{hex40}"),
        key.value.replace('\n', "\\n")
    );
    Sample { value, secret: key.secret }
}

/// A complete key in base64. All of it must be removed.
fn kubeconfig(rng: &mut CorpusRng) -> Sample {
    let secret = base64(whole(rng, &RSA).value.as_bytes());
    let value = format!("users:\n- name: admin\n  user:\n    client-key-data: {secret}");
    Sample { value, secret }
}

/// The words that restore a wallet.
fn wallet_words(rng: &mut CorpusRng) -> Sample {
    let n = [12, 12, 12, 15, 18, 24, 24][rng.below(7)];
    let words: Vec<&str> = (0..n).map(|_| rng.pick(WALLET)).collect();
    let secret = words.join(" ");
    let value = match rng.below(12) {
        0 => format!("MNEMONIC=\"{secret}\""),
        1 => format!("export WALLET_MNEMONIC='{secret}'"),
        2 => format!("mnemonic: {secret}"),
        3 => format!("accounts: {{ mnemonic: \"{secret}\" }},"),
        4 => format!("\"seedPhrase\": \"{secret}\","),
        5 => format!("const mnemonic = \"{secret}\";"),
        6 => format!("recovery_phrase = \"{secret}\""),
        7 => format!("Seed phrase: {secret}"),
        8 => format!("anvil --mnemonic \"{secret}\""),
        9 => format!("DEV_SEED_PHRASE={secret}"),
        10 => format!("wallet = Wallet.from_mnemonic(mnemonic='{secret}')"),
        _ => format!("secret recovery phrase: \"{secret}\""),
    };
    Sample { value, secret }
}

const WALLET: &[&str] = &[
    "anchor", "apple", "arrow", "basket", "beach", "blanket", "bridge", "bulb", "cactus", "canyon", "cherry",
    "clap", "copper", "cradle", "daring", "desk", "dolphin", "eagle", "echo", "ember", "fabric", "fade",
    "ferry", "fossil", "gadget", "ginger", "glove", "harbor", "hazard", "helmet", "icon", "injury", "jacket",
    "jungle", "kidney", "kiwi", "ladder", "lemon", "lumber", "magnet", "maple", "mule", "napkin", "noodle",
    "oak", "olive", "oven", "paddle", "pelican", "pond", "quarter", "rabbit", "ribbon", "sadness", "salmon",
    "siren", "tackle", "tulip", "umbrella", "vacant", "velvet", "wagon", "yard", "zoo",
];

fn wireguard(rng: &mut CorpusRng) -> Sample {
    let secret = base64(&rng.bytes(32));
    Sample { value: format!("[Interface]\nPrivateKey = {secret}\nAddress = 10.8.0.2/24"), secret }
}

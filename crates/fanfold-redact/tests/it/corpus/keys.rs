//! Private keys: whole, cut off, and inside a service account's file.
//!
//! The secret of a case is one line of the key, any of them: a redactor that takes
//! only the first line away has leaked the rest.

use super::kinds::{Kind, Made};
use super::rng::{Rng, base64};

pub(super) fn kinds() -> Vec<Kind> {
    vec![
        Kind::block("key-rsa", |rng| whole(rng, &RSA)),
        Kind::block("key-ec", |rng| whole(rng, &EC)),
        Kind::block("key-openssh", |rng| whole(rng, &OPENSSH)),
        Kind::block("key-pkcs8", |rng| whole(rng, &PKCS8)),
        Kind::block("key-pkcs8-encrypted", |rng| whole(rng, &ENCRYPTED)),
        Kind::block("key-pgp", |rng| whole(rng, &PGP)),
        Kind::block("key-rsa-old-encrypted", |rng| whole(rng, &OLD_ENCRYPTED)),
        Kind::block("key-rsa-cut-off", cut_off),
        Kind::block("key-openssh-cut-off", openssh_cut_off),
        Kind::block("key-rsa-tail", tail),
        Kind::whole("google-service-account", service_account),
        Kind::whole("kubeconfig-key", kubeconfig),
        Kind::whole("wireguard-key", wireguard),
        Kind::unmarked(
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
        Kind::whole("wallet-words", wallet_words),
    ]
}

/// How a key is armored.
struct Armor {
    /// The words of the header before the last one, which is added at run time.
    label: &'static str,
    /// Lines between the header and the body.
    extra: &'static str,
    /// How the body of each key of this kind begins.
    start: &'static str,
    width: usize,
    n_lines: usize,
    /// A template for the last line.
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

    fn body(&self, rng: &mut Rng) -> Vec<String> {
        let line = format!("{{bsf{}}}", self.width);
        let mut lines: Vec<String> = (1..self.n_lines).map(|_| rng.fill(&line)).collect();
        lines[0].replace_range(..self.start.len(), self.start);
        lines.push(rng.fill(self.last));
        lines
    }
}

/// One of the lines that hold more than what each key of the kind begins with.
fn secret_line(rng: &mut Rng, lines: &[String]) -> String {
    lines[1 + rng.below(lines.len() - 1)].clone()
}

fn whole(rng: &mut Rng, armor: &Armor) -> Made {
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
    Made { value, secret }
}

/// As `head -n 12 id_rsa` or a limit on output leaves it: no last line.
fn cut_off(rng: &mut Rng) -> Made {
    let mut lines = RSA.body(rng);
    lines.truncate(3 + rng.below(15));
    let secret = secret_line(rng, &lines);
    let half = rng.fill("{bsf10-50}");
    Made { value: format!("{}\n{}\n{half}", RSA.line("BEGIN"), lines.join("\n")), secret }
}

fn openssh_cut_off(rng: &mut Rng) -> Made {
    let mut lines = OPENSSH.body(rng);
    lines.truncate(2 + rng.below(3));
    let secret = secret_line(rng, &lines);
    let mark = rng.pick(&["", "\n...", "\n[truncated]"]);
    Made { value: format!("{}\n{}{mark}", OPENSSH.line("BEGIN"), lines.join("\n")), secret }
}

/// As `tail id_rsa` leaves it: no first line.
fn tail(rng: &mut Rng) -> Made {
    let lines = RSA.body(rng).split_off(14 + rng.below(8));
    let secret = secret_line(rng, &lines);
    Made { value: format!("{}\n{}", lines.join("\n"), RSA.line("END")), secret }
}

fn service_account(rng: &mut Rng) -> Made {
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
    Made { value, secret: key.secret }
}

/// A whole key, encoded once more. Its end must go too.
fn kubeconfig(rng: &mut Rng) -> Made {
    let secret = base64(whole(rng, &RSA).value.as_bytes());
    let value = format!("users:\n- name: admin\n  user:\n    client-key-data: {secret}");
    Made { value, secret }
}

/// The words that a wallet is made again from.
fn wallet_words(rng: &mut Rng) -> Made {
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
    Made { value, secret }
}

const WALLET: &[&str] = &[
    "anchor", "apple", "arrow", "basket", "beach", "blanket", "bridge", "bulb", "cactus", "canyon", "cherry",
    "clap", "copper", "cradle", "daring", "desk", "dolphin", "eagle", "echo", "ember", "fabric", "fade",
    "ferry", "fossil", "gadget", "ginger", "glove", "harbor", "hazard", "helmet", "icon", "injury", "jacket",
    "jungle", "kidney", "kiwi", "ladder", "lemon", "lumber", "magnet", "maple", "mule", "napkin", "noodle",
    "oak", "olive", "oven", "paddle", "pelican", "pond", "quarter", "rabbit", "ribbon", "sadness", "salmon",
    "siren", "tackle", "tulip", "umbrella", "vacant", "velvet", "wagon", "yard", "zoo",
];

fn wireguard(rng: &mut Rng) -> Made {
    let secret = base64(&rng.bytes(32));
    Made { value: format!("[Interface]\nPrivateKey = {secret}\nAddress = 10.8.0.2/24"), secret }
}

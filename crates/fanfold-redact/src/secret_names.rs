//! Names that indicate a secret.

use crate::char_class::is_alnum;

/// Trigger words that occur in names of secrets. Most of them occur in other names as well.
pub(crate) const NAME_PARTS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "passwort",
    "secret",
    "token",
    "api_key",
    "apikey",
    "api-key",
    "api key",
    "access_key",
    "accesskey",
    "access-key",
    "private_key",
    "privatekey",
    "private-key",
    "signing_key",
    "signingkey",
    "signing-key",
    "encryption_key",
    "encryptionkey",
    "auth_key",
    "authkey",
    "auth-key",
    "master_key",
    "masterkey",
    "account_key",
    "accountkey",
    "accesskey",
    "storage_key",
    "storagekey",
    "app_key",
    "appkey",
    "license_key",
    "licensekey",
    "credential",
    "_pass",
    "encryption-key",
    "encryption key",
    "app-key",
    "app key",
    "app.key",
    "application-key",
    "application key",
    "application.key",
    "routing key",
    "account key",
    "private.key",
    "private key",
    "pass=",
    "pass:",
    "pass\"",
    "pass'",
    "dbpass",
    "_auth",
    "integration_key",
    "integrationkey",
    "routing_key",
    "server_key",
    "serverkey",
    "service_key",
    "user_key",
    "_pat",
    "api.key",
    "access.key",
    "secret.key",
    "secret key",
    "key-data",
    "application_key",
    "applicationkey",
    "routing-key",
    "routingkey",
    "signing.key",
    "signing key",
    "master key",
    "access key",
    "-pass",
    "\"auth\"",
    "mnemonic",
    "seed_phrase",
    "seed phrase",
    "seed-phrase",
    "seedphrase",
    "recovery_phrase",
    "recovery phrase",
    "recovery-phrase",
    "recoveryphrase",
];

/// Endings of names of secrets, in lower case and without separators.
const NAME_SUFFIXES: &[(&str, SecretKind)] = &[
    ("password", SecretKind::Password),
    ("passwd", SecretKind::Password),
    ("passwort", SecretKind::Password),
    ("passphrase", SecretKind::Password),
    ("pwd", SecretKind::Password),
    ("pass", SecretKind::Password),
    ("secret", SecretKind::Secret),
    ("secretkeybase", SecretKind::Secret),
    ("credential", SecretKind::Secret),
    ("credentials", SecretKind::Secret),
    ("token", SecretKind::Token),
    ("keydata", SecretKind::Key),
    ("auth", SecretKind::Token),
    ("pat", SecretKind::Token),
    ("key", SecretKind::Key),
    ("mnemonic", SecretKind::SeedPhrase),
    ("seedphrase", SecretKind::SeedPhrase),
    ("recoveryphrase", SecretKind::SeedPhrase),
];

/// The kind of secret that a name indicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecretKind {
    Password,
    Secret,
    Token,
    Key,
    /// The words that restore a wallet.
    SeedPhrase,
}

impl SecretKind {
    pub(crate) fn label(self) -> &'static str {
        match self {
            SecretKind::Password => "password",
            SecretKind::Secret => "secret",
            SecretKind::Token => "token",
            SecretKind::Key => "key",
            SecretKind::SeedPhrase => "seed phrase",
        }
    }
}

/// The kind of secret that a name indicates, by its ending.
pub(crate) fn secret_kind(ident: &[u8]) -> Option<SecretKind> {
    let mut plain = String::with_capacity(ident.len());
    plain.extend(
        ident.iter().filter(|byte| is_alnum(**byte)).map(|byte| char::from(byte.to_ascii_lowercase())),
    );
    // `API_KEY_2`, `token_prod`: ignore the suffix.
    let base = plain.trim_end_matches(|last: char| last.is_ascii_digit());
    let base = ["production", "prod", "staging", "dev", "live", "base64", "b64", "value"]
        .iter()
        .find_map(|end| base.strip_suffix(end).filter(|base| !base.is_empty()))
        .unwrap_or(base);
    let (end, kind) = NAME_SUFFIXES.iter().find(|(end, _)| base.ends_with(end))?;
    let before = &base[..base.len() - end.len()];
    let is_secret_name = match *end {
        // Many other words have these endings.
        "pass" | "auth" | "pat" => before.is_empty() || starts_word(ident, end),
        "key" => {
            const KEY_QUALIFIERS: &[&str] = &[
                "api",
                "access",
                "private",
                "secret",
                "signing",
                "encryption",
                "auth",
                "master",
                "account",
                "storage",
                "app",
                "license",
                "integration",
                "routing",
                "server",
                "service",
                "user",
                "application",
            ];
            KEY_QUALIFIERS.iter().any(|word| before.ends_with(word)) && !before.ends_with("public")
        }
        _ => true,
    };
    is_secret_name.then_some(*kind)
}

/// Returns whether `word`, the ending of a name, begins after a separator or with a capital.
fn starts_word(ident: &[u8], word: &str) -> bool {
    let Some(start) = ident.len().checked_sub(word.len()) else { return false };
    let before = start.checked_sub(1).map(|i| ident[i]);
    matches!(before, Some(b'_' | b'-')) || ident[start].is_ascii_uppercase()
}

/// Returns whether a name is also printed before the names of passed tests: `PASS: test_login`.
pub(crate) fn is_test_verdict(ident: &[u8]) -> bool {
    [&b"pass"[..], b"xpass", b"kpass"].into_iter().any(|verdict| ident.eq_ignore_ascii_case(verdict))
}

//! Names of secrets, in the letter case of each language.

use super::rng::CorpusRng;

/// A name as words: `db password` is `DB_PASSWORD`, `dbPassword` or `db-password` in the text.
pub(super) struct Name(pub String);

impl Name {
    pub(super) fn screaming(&self) -> String {
        self.snake().to_uppercase()
    }

    pub(super) fn snake(&self) -> String {
        self.0.replace(' ', "_")
    }

    pub(super) fn kebab(&self) -> String {
        self.0.replace(' ', "-")
    }

    pub(super) fn dotted(&self) -> String {
        self.0.replace(' ', ".")
    }

    pub(super) fn pascal(&self) -> String {
        self.0.split(' ').map(capital).collect()
    }

    pub(super) fn camel(&self) -> String {
        let pascal = self.pascal();
        pascal[..1].to_lowercase() + &pascal[1..]
    }

    pub(super) fn header(&self) -> String {
        self.0.split(' ').map(capital).collect::<Vec<_>>().join("-")
    }

    /// Any of the cases a configuration file may use.
    pub(super) fn any(&self, rng: &mut CorpusRng) -> String {
        match rng.below(4) {
            0 => self.snake(),
            1 => self.camel(),
            2 => self.kebab(),
            _ => self.screaming(),
        }
    }
}

fn capital(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..]
}

/// Names of a secret without a known format.
pub(super) const RANDOM: &[&str] = &[
    "api key",
    "auth token",
    "access token",
    "client secret",
    "secret key",
    "signing key",
    "secret key base",
    "jwt secret",
    "session secret",
    "encryption key",
    "webhook secret",
    "refresh token",
    "private token",
    "app secret",
    "service token",
    "cookie secret",
    "hmac secret",
    "master key",
    "consumer secret",
    "bot token",
    "internal api token",
    "x api key",
    "admin token",
    "shared secret",
    "deploy token",
    "nextauth secret",
];

/// Names of a password.
pub(super) const PASSWORD: &[&str] = &[
    "password",
    "db password",
    "database password",
    "pgpassword",
    "mysql root password",
    "postgres password",
    "redis password",
    "smtp password",
    "admin password",
    "passwd",
    "user password",
    "ldap bind password",
    "db pass",
    "keystore password",
    "spring datasource password",
    "ftp password",
    "root password",
    "db pwd",
    "rabbitmq password",
    "passphrase",
];

/// Names of a URL with a password.
pub(super) const ADDRESS: &[&str] =
    &["database url", "dsn", "connection string", "db url", "db uri", "broker url", "endpoint"];

/// Names that do not indicate a secret: a known format must be found with them too.
pub(super) const NEUTRAL: &[&str] =
    &["value", "config value", "upstream", "x", "default", "arg one", "data", "id", "test input"];

/// Words after a provider's name: `openai` becomes `openai api key`.
pub(super) const AFTER_PROVIDER: &[&str] =
    &["api key", "token", "api token", "secret", "access token", "key"];

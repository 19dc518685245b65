//! Where Codex's own settings send it. It reads its address from no variable, so it is told by a flag, and requests go
//! on to where it would have sent them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Say;

/// The provider that Codex asks if its settings name none.
const OPENAI: &str = "openai";

/// What Codex's settings say of the provider that it asks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Codex {
    file: PathBuf,
    provider: String,
    /// The provider's address, if they name it.
    pub(crate) address: Option<String>,
}

impl Codex {
    /// What its settings say, if a command is Codex.
    pub(crate) fn of(command: &[OsString]) -> Option<Codex> {
        let is_codex = Path::new(command.first()?).file_stem().is_some_and(|name| name == "codex");
        if !is_codex {
            return None;
        }
        let set = std::env::var_os("CODEX_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let home = set.unwrap_or_else(|| etcetera::home_dir().unwrap_or_default().join(".codex"));
        let file = home.join("config.toml");
        // What can't be read is Codex's to complain about.
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        Some(Codex::read(file, &text))
    }

    fn read(file: PathBuf, text: &str) -> Codex {
        let settings: toml::Table = toml::from_str(text).unwrap_or_default();
        let text = |value: Option<&toml::Value>| {
            let text = value.and_then(toml::Value::as_str).map(str::trim).filter(|text| !text.is_empty());
            text.map(str::to_owned)
        };
        let provider = text(settings.get("model_provider")).unwrap_or_else(|| OPENAI.to_owned());
        let address = match provider.as_str() {
            OPENAI => text(settings.get("openai_base_url")),
            other => {
                let providers = settings.get("model_providers");
                text(providers.and_then(|providers| providers.get(other)?.get("base_url")))
            }
        };
        Codex { file, provider, address }
    }

    /// The flags by which it sends its requests to a base URL.
    pub(crate) fn flags(&self, base: &str) -> Vec<OsString> {
        let key = match self.provider.as_str() {
            OPENAI => "openai_base_url".to_owned(),
            other if self.can_be_told() => format!("model_providers.{other}.base_url"),
            _ => return Vec::new(),
        };
        vec!["-c".into(), format!("{key}=\"{base}\"").into()]
    }

    /// Tells what its settings say that does not hold: that requests go elsewhere, or do not pass here at all.
    pub(crate) fn tell(&self, goes_to: &str, say: Say) {
        let Codex { file, provider, address } = self;
        let file = file.display();
        if !self.can_be_told() {
            say.warn(&format!(
                "{file} names the provider `{provider}` and no address of it that could be changed: what Codex asks there does not \
                 pass here; give it a base_url there, or start Codex with `-c model_provider=openai`"
            ));
        } else if let Some(address) = address.as_deref().filter(|address| !is_same(address, goes_to)) {
            say.warn(&format!(
                "{file} sends Codex to {address}; its requests go to {goes_to} now; to keep it, leave out \
                 --upstream and what [serve] says, or write --upstream {address}"
            ));
        }
    }

    /// Whether a flag changes where it sends its requests.
    fn can_be_told(&self) -> bool {
        // A dot would begin another key.
        self.provider == OPENAI || (self.address.is_some() && !self.provider.contains('.'))
    }
}

/// Whether two addresses are one.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Codex {
        Codex::read(PathBuf::from("config.toml"), text)
    }

    fn told(text: &str) -> (Option<String>, Vec<OsString>) {
        let codex = read(text);
        let flags = codex.flags("http://h/v1");
        (codex.address, flags)
    }

    #[test]
    fn the_provider_that_it_would_ask_is_the_one_that_is_changed() {
        let usual = "openai_base_url=\"http://h/v1\"";
        for nothing in ["", "model = \"m\"", "not toml at all", "openai_base_url = \" \""] {
            assert_eq!(told(nothing), (None, vec!["-c".into(), usual.into()]), "{nothing}");
        }
        let own = told("openai_base_url = \"https://a/v1\"\n[model_providers.b]\nbase_url = \"https://b\"\n");
        assert_eq!(own, (Some("https://a/v1".to_owned()), vec!["-c".into(), usual.into()]));
        let other = told("model_provider = \"b\"\n[model_providers.b]\nbase_url = \"https://b\"\n");
        let flag = "model_providers.b.base_url=\"http://h/v1\"";
        assert_eq!(other, (Some("https://b".to_owned()), vec!["-c".into(), flag.into()]));
        assert_eq!(told("model_provider = \"oss\"\n"), (None, Vec::new()));
    }

    #[test]
    fn only_codex_is_told() {
        let of = |program: &str| Codex::of(&[program.into()]).is_some();
        assert!(of("/usr/bin/codex") && of("codex.exe") && !of("claude") && Codex::of(&[]).is_none());
    }
}

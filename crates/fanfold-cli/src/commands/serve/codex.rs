//! The upstream in Codex's own settings. Codex does not read its base URL from a variable, so it is set with a
//! flag, and the proxy sends requests to the address in its settings.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fanfold_wire::Provider;

use crate::terminal::Reporter;

/// The name of Codex's default provider in its settings.
const OPENAI: &str = "openai";

/// The provider in Codex's settings.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Codex {
    file: PathBuf,
    provider: String,
    /// The provider's address, if it is set.
    pub(super) address: Option<String>,
}

impl Codex {
    /// Reads the settings of Codex, if the command is Codex.
    pub(super) fn detect(command: &[OsString]) -> Option<Codex> {
        let is_codex = Path::new(command.first()?).file_stem().is_some_and(|name| name == "codex");
        if !is_codex {
            return None;
        }
        let set = std::env::var_os("CODEX_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let home = set.unwrap_or_else(|| etcetera::home_dir().unwrap_or_default().join(".codex"));
        let file = home.join("config.toml");
        // Codex itself reports an unreadable file.
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        Some(Codex::parse(file, &text))
    }

    /// The provider whose API Codex uses.
    pub(super) fn provider() -> &'static Provider {
        Provider::find(OPENAI).expect("the registry has the provider")
    }

    fn parse(file: PathBuf, text: &str) -> Codex {
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

    /// The flags that make Codex send its requests to a base URL.
    pub(super) fn flags(&self, base: &str) -> Vec<OsString> {
        let key = match self.provider.as_str() {
            OPENAI => "openai_base_url".to_owned(),
            other if self.can_override() => format!("model_providers.{other}.base_url"),
            _ => return Vec::new(),
        };
        vec!["-c".into(), format!("{key}=\"{base}\"").into()]
    }

    /// Warns if requests go to another address than in Codex's settings, or bypass the proxy.
    pub(super) fn report_conflicts(&self, upstream: &str, reporter: Reporter) {
        let Codex { file, provider, address } = self;
        let file = file.display();
        if !self.can_override() {
            reporter.warn(&format!(
                "{file} names the provider `{provider}` without a base_url that could be overridden, so its requests bypass \
                 fanfold; set its base_url there, or start Codex with `-c model_provider=openai`"
            ));
        } else if let Some(address) = address.as_deref().filter(|address| !is_same_address(address, upstream))
        {
            reporter.warn(&format!(
                "{file} sets the base URL {address}, but requests go to {upstream}; to use the former, leave out \
                 --upstream and [serve], or pass --upstream {address}"
            ));
        }
    }

    /// True if a flag can override the base URL.
    fn can_override(&self) -> bool {
        // A dot in the name would start another key.
        self.provider == OPENAI || (self.address.is_some() && !self.provider.contains('.'))
    }
}

/// True if two addresses are the same except for trailing slashes.
pub(super) fn is_same_address(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Codex {
        Codex::parse(PathBuf::from("config.toml"), text)
    }

    fn address_and_flags(text: &str) -> (Option<String>, Vec<OsString>) {
        let codex = parse(text);
        let flags = codex.flags("http://h/v1");
        (codex.address, flags)
    }

    #[test]
    fn flags_override_the_selected_provider() {
        let usual = "openai_base_url=\"http://h/v1\"";
        for nothing in ["", "model = \"m\"", "not toml at all", "openai_base_url = \" \""] {
            assert_eq!(address_and_flags(nothing), (None, vec!["-c".into(), usual.into()]), "{nothing}");
        }
        let own = address_and_flags(
            "openai_base_url = \"https://a/v1\"\n[model_providers.b]\nbase_url = \"https://b\"\n",
        );
        assert_eq!(own, (Some("https://a/v1".to_owned()), vec!["-c".into(), usual.into()]));
        let other =
            address_and_flags("model_provider = \"b\"\n[model_providers.b]\nbase_url = \"https://b\"\n");
        let flag = "model_providers.b.base_url=\"http://h/v1\"";
        assert_eq!(other, (Some("https://b".to_owned()), vec!["-c".into(), flag.into()]));
        assert_eq!(address_and_flags("model_provider = \"oss\"\n"), (None, Vec::new()));
    }

    #[test]
    fn only_codex_is_detected() {
        let is_codex = |program: &str| Codex::detect(&[program.into()]).is_some();
        assert!(is_codex("/usr/bin/codex") && is_codex("codex.exe") && !is_codex("claude"));
        assert!(Codex::detect(&[]).is_none());
    }
}

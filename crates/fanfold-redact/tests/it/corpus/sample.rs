//! A generated secret with its name, and its escaping for a context.
//!
//! The value and the secret inside of it are escaped in the same way, so that a case knows the exact characters in its
//! text.

use super::kinds::{Sample, SampleKind, Shape};
use super::names::Name;
use super::rng::CorpusRng;

/// A generated secret with its name, before it is escaped.
pub(super) struct NamedSample<'a> {
    pub kind: &'a SampleKind,
    pub name: Name,
    pub generated: Sample,
}

/// A text and the secret as it occurs there.
pub(super) struct RenderedSample {
    pub text: String,
    pub secret: String,
}

/// A value escaped for a context, with quotes if necessary.
pub(super) struct EscapedSample {
    pub value: String,
    pub secret: String,
}

impl EscapedSample {
    /// The rendered sample: `text` contains the value.
    pub(super) fn render(self, text: String) -> RenderedSample {
        RenderedSample { text, secret: self.secret }
    }
}

impl NamedSample<'_> {
    fn escaped(&self, escape: fn(&str) -> String) -> EscapedSample {
        EscapedSample { value: escape(&self.generated.value), secret: escape(&self.generated.secret) }
    }

    pub(super) fn raw(&self) -> EscapedSample {
        self.escaped(str::to_string)
    }

    /// For double quotes, as in JSON, Rust, Go, TOML.
    pub(super) fn in_double(&self) -> EscapedSample {
        self.escaped(escape_double)
    }

    /// For JSON inside of a JSON string.
    pub(super) fn in_double_twice(&self) -> EscapedSample {
        self.escaped(|text| escape_double(&escape_double(text)))
    }

    /// For single quotes in Python, JavaScript, PHP.
    pub(super) fn in_single(&self) -> EscapedSample {
        self.escaped(|text| text.replace('\\', "\\\\").replace('\'', "\\'"))
    }

    /// For a single-quoted string in SQL or YAML.
    pub(super) fn in_doubled_single(&self) -> EscapedSample {
        self.escaped(|text| text.replace('\'', "''"))
    }

    pub(super) fn in_xml(&self) -> EscapedSample {
        self.escaped(|text| {
            text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
        })
    }

    pub(super) fn in_url(&self) -> EscapedSample {
        self.escaped(percent_encode)
    }

    /// A word in a shell: bare if possible, otherwise quoted.
    pub(super) fn shell_word(&self) -> EscapedSample {
        let value = &self.generated.value;
        let is_safe = |c: char| c.is_alphanumeric() || "-_./:@%+=,".contains(c);
        if value.chars().all(is_safe) {
            return self.raw();
        }
        if !value.contains('\'') {
            return self.quoted("'", self.raw());
        }
        let escaped =
            self.escaped(|text| text.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$"));
        self.quoted("\"", escaped)
    }

    /// A plain scalar in YAML or INI: bare if possible, otherwise quoted.
    pub(super) fn scalar(&self, rng: &mut CorpusRng) -> EscapedSample {
        let value = &self.generated.value;
        let is_plain = !value.starts_with(|c: char| "[]{}&*!|>%@`'\",#?-".contains(c))
            && !value.contains(['#', '"', '\\', '\'']);
        let is_bare = is_plain && !value.contains(": ") && !value.ends_with(':') && !rng.one_in(3);
        if is_bare {
            return self.raw();
        }
        if rng.one_in(2) {
            return self.quoted("'", self.in_doubled_single());
        }
        self.quoted("\"", self.in_double())
    }

    fn quoted(&self, quote: &str, inner: EscapedSample) -> EscapedSample {
        EscapedSample { value: format!("{quote}{}{quote}", inner.value), secret: inner.secret }
    }

    /// Some lines with the secret, and with its name if its shape needs one.
    pub(super) fn lines(&self, rng: &mut CorpusRng) -> RenderedSample {
        let is_self_contained = match self.kind.shape {
            Shape::Whole | Shape::Block => true,
            Shape::Token | Shape::Address => rng.one_in(4),
            Shape::Opaque | Shape::Password => false,
        };
        if is_self_contained {
            let raw = self.raw();
            let text = raw.value.clone();
            return raw.render(text);
        }
        let (escaped, text);
        match rng.below(4) {
            0 => {
                escaped = self.shell_word();
                text = format!("{}={}", self.name.screaming(), escaped.value);
            }
            1 => {
                escaped = self.scalar(rng);
                text = format!("  {}: {}", self.name.any(rng), escaped.value);
            }
            2 => {
                escaped = self.in_double();
                text = format!("    \"{}\": \"{}\",", self.name.any(rng), escaped.value);
            }
            _ => {
                escaped = self.in_double();
                text = format!("    {} = \"{}\"", self.name.snake(), escaped.value);
            }
        }
        escaped.render(text)
    }
}

/// Escapes for double quotes.
pub(super) fn escape_double(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn percent_encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        out += &if is_plain { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    }
    out
}

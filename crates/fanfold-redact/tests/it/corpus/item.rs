//! A secret on its way into a setting: escaped as the setting wants it.
//!
//! The value and the secret inside it are escaped alike, so that a case always
//! knows the characters that really stand in its text.

use super::kinds::{Kind, Made, Shape};
use super::names::Name;
use super::rng::Rng;

/// A secret with its name, before it is written somewhere.
pub(super) struct Item<'a> {
    pub kind: &'a Kind,
    pub name: Name,
    pub made: Made,
}

/// A text and the secret as it stands there.
pub(super) struct Shown {
    pub text: String,
    pub secret: String,
}

/// A value written for a setting: escaped, with quotes where it needs them.
pub(super) struct Written {
    pub value: String,
    pub secret: String,
}

impl Written {
    /// Ends a setting: this is the text around the value.
    pub(super) fn shown(self, text: String) -> Shown {
        Shown { text, secret: self.secret }
    }
}

impl Item<'_> {
    fn written(&self, escape: fn(&str) -> String) -> Written {
        Written { value: escape(&self.made.value), secret: escape(&self.made.secret) }
    }

    pub(super) fn raw(&self) -> Written {
        self.written(str::to_string)
    }

    /// For the inside of double quotes, as in JSON, Rust, Go, TOML.
    pub(super) fn in_double(&self) -> Written {
        self.written(double)
    }

    /// For the inside of a JSON text that is itself a JSON string.
    pub(super) fn in_double_twice(&self) -> Written {
        self.written(|text| double(&double(text)))
    }

    /// For the inside of single quotes in Python, JavaScript, PHP.
    pub(super) fn in_single(&self) -> Written {
        self.written(|text| text.replace('\\', "\\\\").replace('\'', "\\'"))
    }

    /// For a single-quoted string in SQL or YAML.
    pub(super) fn in_doubled_single(&self) -> Written {
        self.written(|text| text.replace('\'', "''"))
    }

    pub(super) fn in_xml(&self) -> Written {
        self.written(|text| {
            text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
        })
    }

    pub(super) fn in_url(&self) -> Written {
        self.written(percent)
    }

    /// A word of a shell: bare where that is safe, else in quotes.
    pub(super) fn shell_word(&self) -> Written {
        let value = &self.made.value;
        let is_safe = |c: char| c.is_alphanumeric() || "-_./:@%+=,".contains(c);
        if value.chars().all(is_safe) {
            return self.raw();
        }
        if !value.contains('\'') {
            return self.surrounded("'", self.raw());
        }
        let escaped =
            self.written(|text| text.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$"));
        self.surrounded("\"", escaped)
    }

    /// A plain scalar of YAML or INI: bare where that is safe, else in quotes.
    pub(super) fn scalar(&self, rng: &mut Rng) -> Written {
        let value = &self.made.value;
        let is_plain = !value.starts_with(|c: char| "[]{}&*!|>%@`'\",#?-".contains(c))
            && !value.contains(['#', '"', '\\', '\'']);
        let is_bare = is_plain && !value.contains(": ") && !value.ends_with(':') && !rng.one_in(3);
        if is_bare {
            return self.raw();
        }
        if rng.one_in(2) {
            return self.surrounded("'", self.in_doubled_single());
        }
        self.surrounded("\"", self.in_double())
    }

    fn surrounded(&self, quote: &str, inner: Written) -> Written {
        Written { value: format!("{quote}{}{quote}", inner.value), secret: inner.secret }
    }

    /// Some lines that hold the secret, with its name where it needs one.
    pub(super) fn lines(&self, rng: &mut Rng) -> Shown {
        let tells_by_itself = match self.kind.shape {
            Shape::Whole | Shape::Block => true,
            Shape::Token | Shape::Address => rng.one_in(4),
            Shape::Unmarked | Shape::Password => false,
        };
        if tells_by_itself {
            let raw = self.raw();
            let text = raw.value.clone();
            return raw.shown(text);
        }
        let (written, text);
        match rng.below(4) {
            0 => {
                written = self.shell_word();
                text = format!("{}={}", self.name.screaming(), written.value);
            }
            1 => {
                written = self.scalar(rng);
                text = format!("  {}: {}", self.name.any(rng), written.value);
            }
            2 => {
                written = self.in_double();
                text = format!("    \"{}\": \"{}\",", self.name.any(rng), written.value);
            }
            _ => {
                written = self.in_double();
                text = format!("    {} = \"{}\"", self.name.snake(), written.value);
            }
        }
        written.shown(text)
    }
}

/// Escapes for the inside of double quotes.
pub(super) fn double(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn percent(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        out += &if is_plain { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    }
    out
}

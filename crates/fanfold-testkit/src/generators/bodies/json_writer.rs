//! Writes JSON with varied spacing, escapes and numbers, unknown fields and duplicate keys.

use crate::Rng;
use crate::generators::words::WORDS;

/// Writes JSON in a style that is drawn from the seed.
pub(super) struct JsonWriter {
    pub(super) rng: Rng,
    space: &'static str,
    is_escaping: bool,
    /// True if this body may have oddities that decoding can repair.
    pub(super) is_odd: bool,
    n_ids: usize,
}

impl JsonWriter {
    pub(super) fn new(seed: u64) -> JsonWriter {
        let mut rng = Rng::new(seed);
        let space = rng.pick(&["", " ", "\n  ", " \t"]);
        let is_escaping = rng.percent(40);
        let is_odd = rng.percent(35);
        JsonWriter { rng, space, is_escaping, is_odd, n_ids: 0 }
    }

    /// True with a probability of `share` percent in a body with oddities, else false.
    pub(super) fn odd(&mut self, share: usize) -> bool {
        self.is_odd && self.rng.percent(share)
    }

    pub(super) fn id(&mut self) -> String {
        self.n_ids += 1;
        format!("call_{}", self.n_ids)
    }

    pub(super) fn words(&mut self) -> String {
        let n = 1 + self.rng.below(9);
        (0..n).map(|_| self.rng.pick(&WORDS)).collect::<Vec<_>>().join(" ")
    }

    /// Writes a text as a JSON string.
    pub(super) fn quote(&mut self, text: &str) -> String {
        let mut out = String::from("\"");
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str(if self.rng.percent(80) { "\\n" } else { "\\u000a" }),
                '/' if self.is_escaping => out.push_str("\\/"),
                c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04X}", c as u32)),
                c if self.is_escaping && !c.is_ascii() => {
                    let mut units = [0; 2];
                    for unit in c.encode_utf16(&mut units) {
                        out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                c => out.push(c),
            }
        }
        out.push('"');
        out
    }

    /// Random words as a JSON string.
    pub(super) fn text(&mut self) -> String {
        let words = self.words();
        self.quote(&words)
    }

    /// A random value.
    pub(super) fn value(&mut self) -> String {
        self.rng
            .pick(&[
                "1e5",
                "1.10",
                "-0",
                "null",
                "true",
                "[1, 2.50,{}]",
                "{\"a\" :[ ]}",
                "\"x\\u0041\"",
                "1E+2",
            ])
            .to_owned()
    }

    /// An object with the non-empty fields. Sometimes adds unknown fields and duplicates of keys.
    pub(super) fn object(&mut self, fields: &[(&str, String)]) -> String {
        let mut members: Vec<String> = Vec::new();
        for (key, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
            if self.rng.percent(3) {
                let decoy = self.value();
                members.push(format!("\"{key}\":{decoy}"));
            }
            if self.rng.percent(6) {
                let value = self.value();
                members.push(format!("\"x_{}\":{value}", members.len()));
            }
            let space = self.space;
            members.push(format!("\"{key}\":{}{value}", if space.is_empty() { "" } else { " " }));
        }
        let space = self.space;
        format!("{{{space}{}{space}}}", members.join(&format!(",{space}")))
    }

    pub(super) fn list(&mut self, items: &[String]) -> String {
        if items.is_empty() {
            return self.rng.pick(&["[]", "[ ]"]).to_owned();
        }
        let space = self.space;
        format!("[{space}{}{space}]", items.join(&format!(",{space}")))
    }

    /// An object with a list of messages under `key` and further fields.
    pub(super) fn body(&mut self, key: &str, messages: &[String], fields: &[(&str, String)]) -> String {
        let list = self.list(messages);
        let mut all = fields.to_vec();
        let at = self.rng.below(all.len() + 1);
        all.insert(at, (key, list));
        let object = self.object(&all);
        let end = self.rng.pick(&["", "\n", " \n"]);
        format!("{object}{end}")
    }

    /// The arguments of a call as JSON text.
    pub(super) fn arguments(&mut self) -> String {
        if self.rng.percent(15) {
            return "{}".to_owned();
        }
        let path = self.text();
        let value = self.value();
        self.object(&[("path", path), ("n", value)])
    }
}

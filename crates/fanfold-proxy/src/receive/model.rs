//! The model that a body names.

use std::fmt;

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};

/// The model that a body names. Most bodies begin with it, and are read no further.
pub(crate) fn model(body: &str) -> Option<String> {
    let mut found = None;
    // Finding it ends the reading as an error does.
    let _ = serde_json::Deserializer::from_str(body).deserialize_map(Seeker { found: &mut found });
    found
}

struct Seeker<'f> {
    found: &'f mut Option<String>,
}

impl<'de> Visitor<'de> for Seeker<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            if key == "model" {
                *self.found = map.next_value().ok();
                return Err(serde::de::Error::custom("found"));
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_found_wherever_it_stands() {
        let cases = [
            (r#"{"model":"a","messages":[not read any more"#, Some("a")),
            (r#"{"messages":[{"model":"b"}],"x":{"model":"c"},"model":"a\u0062"}"#, Some("ab")),
            (r#"{"messages":[]}"#, None),
            (r#"{"model":7}"#, None),
            (r#"["model"]"#, None),
            ("", None),
        ];
        for (body, expected) in cases {
            assert_eq!(model(body).as_deref(), expected, "{body}");
        }
    }
}

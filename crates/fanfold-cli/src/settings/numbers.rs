//! Numbers in settings: sizes in tokens, shares, amounts.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A number of tokens: `32000`, `32_000`, `32k`, `1.5m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let wrong = || format!("`{text}` is not a number of tokens: write 32000, 32_000, 32k or 1.5m");
        let plain: String = text.trim().chars().filter(|c| !matches!(c, '_' | ',')).collect();
        let (digits, unit) = match plain.char_indices().last() {
            Some((at, 'k' | 'K')) => (&plain[..at], 1_000),
            Some((at, 'm' | 'M')) => (&plain[..at], 1_000_000),
            _ => (&plain[..], 1),
        };
        if let Ok(whole) = digits.parse::<u64>() {
            return whole.checked_mul(unit).map(Size).ok_or_else(wrong);
        }
        let share: f64 = digits.parse().map_err(|_| wrong())?;
        let size = share * unit as f64;
        let is_sane = unit > 1 && (0.0..1e15).contains(&size);
        if is_sane { Ok(Size(size.round() as u64)) } else { Err(wrong()) }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Size, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Size;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of tokens such as 32000 or \"32k\"")
            }

            fn visit_u64<E: de::Error>(self, n: u64) -> Result<Size, E> {
                Ok(Size(n))
            }

            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Size, E> {
                u64::try_from(n).map(Size).map_err(|_| E::custom("a number of tokens is not negative"))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
                text.parse().map_err(E::custom)
            }
        }
        from.deserialize_any(Either)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(self.0)
    }
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number of tokens: 32000, \"32k\", \"1.5m\".",
            "anyOf": [
                { "type": "integer", "minimum": 0 },
                { "type": "string", "pattern": "^[0-9][0-9_,]*(\\.[0-9]+)?[kKmM]?$" }
            ]
        })
    }
}

/// A share between 0 and 1, stored in per mille.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share(pub(crate) u32);

impl Share {
    fn new(share: f64) -> Result<Share, String> {
        if (0.0..=1.0).contains(&share) {
            return Ok(Share((share * 1000.0).round() as u32));
        }
        Err(format!("{share} is not a share: write a number between 0 and 1, such as 0.6"))
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Share, String> {
        let wrong = |_| format!("`{text}` is not a share: write a number between 0 and 1, such as 0.6");
        Share::new(text.trim().parse().map_err(wrong)?)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.0) / 1000.0)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Share, D::Error> {
        Share::new(f64::deserialize(from)?).map_err(de::Error::custom)
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(f64::from(self.0) / 1000.0)
    }
}

impl JsonSchema for Share {
    fn schema_name() -> Cow<'static, str> {
        "Share".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": 1 })
    }
}

/// A price in dollars or a multiple, not negative.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Amount(pub(crate) f64);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Amount, D::Error> {
        let amount = f64::deserialize(from)?;
        let is_amount = amount.is_finite() && amount >= 0.0;
        let invalid = || de::Error::custom(format!("{amount} is not a price: write a number from 0 on"));
        is_amount.then_some(Amount(amount)).ok_or_else(invalid)
    }
}

impl JsonSchema for Amount {
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_accept_separators_and_units() {
        let read = |text: &str| text.parse::<Size>().map(|size| size.0).ok();
        let texts = ["32000", "32_000", "32,000", "32k", "1.5m", "1M", " 8K "];
        assert_eq!(texts.map(read), [32_000, 32_000, 32_000, 32_000, 1_500_000, 1_000_000, 8_000].map(Some));
        let not = ["", "k", "-1", "1.5", "32 k k", "32g", "1e99m", "99999999999999999999", "nan", "infk"];
        assert_eq!(not.map(read), [None; 10]);
    }

    #[test]
    fn shares_are_between_zero_and_one() {
        let read = |text: &str| text.parse::<Share>().map(|share| share.0).ok();
        assert_eq!(
            ["0", "0.6", "1", "1.1", "-0.1", "x"].map(read),
            [Some(0), Some(600), Some(1000), None, None, None]
        );
    }
}

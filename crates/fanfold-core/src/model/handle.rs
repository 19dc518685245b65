//! Handles: the names of originals.
//!
//! ```text
//! #12       step 12, whole                      #12t      the text of step 12
//! #7-11     the entries from step 7 to step 11  #12r      its reasoning
//! #12.2     the result of its second call       #e7       the text of entry 7
//! #12.2a    the arguments of that call          #e7i1     the first image or file of entry 7
//! #12.2i1   the first image or file of that     291227    a content hash, from earlier versions
//!           result
//! ```

use std::fmt;
use std::str::FromStr;

/// The name of an original: an address in the transcript, or the beginning of the hash of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(Name);

/// The forms of a handle. All numbers count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Name {
    Address(Address),
    Content(ContentHash),
}

/// A part of a transcript. All numbers count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Address {
    /// A step, whole.
    Step(u32),
    /// The entries from one step to a later one, whole.
    Steps(u32, u32),
    /// The text of a step.
    StepText(u32),
    /// The reasoning of a step.
    Reasoning(u32),
    /// The result of a call of a step.
    Result(u32, u32),
    /// The arguments of a call of a step.
    Arguments(u32, u32),
    /// An image or a file of a result.
    ResultMedia(u32, u32, u32),
    /// The text of an entry.
    EntryText(u32),
    /// An image or a file of a prompt.
    EntryMedia(u32, u32),
}

/// The beginning of the hash of an original, in decimal digits.
///
/// It has six digits, or more if two originals of one session share the first six.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct ContentHash {
    /// The first `digits` digits of the hash, followed by zeros up to `LONG` digits.
    number: u64,
    digits: u8,
}

/// The whole hash of an original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hash([u8; 32]);

impl Hash {
    pub(crate) fn new(original: &[u8]) -> Hash {
        Hash(*blake3::hash(original).as_bytes())
    }

    /// The hash of a sequence of originals, computed from their hashes.
    pub(crate) fn combine(parts: impl Iterator<Item = Hash>) -> Hash {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&part.0);
        }
        Hash(*hasher.finalize().as_bytes())
    }
}

/// The text is not a handle.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a handle: a handle is the number of a step, as in #12, #7-11 or #12.2")]
pub struct HandleError(String);

impl Handle {
    /// The digits of a short content hash.
    const SHORT: u8 = 6;
    const LONG: u8 = 18;
    /// The largest number in an address. Six digits without a suffix are a content hash.
    const MAX_NUMBER: u32 = 99_999;

    /// The handle of an address; `None` if a number has more than five digits.
    pub(crate) fn from_address(address: Address) -> Option<Handle> {
        let is_valid = address.numbers().into_iter().all(|n| (1..=Self::MAX_NUMBER).contains(&n));
        let address = match address {
            Address::Steps(first, last) if first == last => Address::Step(first),
            address => address,
        };
        is_valid.then_some(Handle(Name::Address(address)))
    }

    /// The address, unless this is a content hash.
    pub(crate) fn address(self) -> Option<Address> {
        match self.0 {
            Name::Address(address) => Some(address),
            Name::Content(_) => None,
        }
    }

    /// Returns whether this names a part of a transcript by its position.
    pub fn is_address(self) -> bool {
        self.address().is_some()
    }

    /// The short content hash of an original, which names it independently of its position.
    pub fn from_content(original: &[u8]) -> Handle {
        Handle::from_hash(Hash::new(original))
    }

    /// The short content hash of an original with this hash.
    pub(crate) fn from_hash(hash: Hash) -> Handle {
        Handle(Name::Content(ContentHash::new(hash, Self::SHORT)))
    }

    /// A longer content hash of the same original, for when another original has this one.
    pub(crate) fn longer(self, hash: Hash) -> Handle {
        let digits = match self.0 {
            Name::Content(known) => known.digits + 3,
            Name::Address(_) => Self::SHORT,
        };
        Handle(Name::Content(ContentHash::new(hash, digits.min(Self::LONG))))
    }

    /// Returns whether this is a content hash of the original with this hash.
    pub(crate) fn matches(self, hash: Hash) -> bool {
        match self.0 {
            Name::Content(known) => ContentHash::new(hash, known.digits) == known,
            Name::Address(_) => false,
        }
    }
}

impl ContentHash {
    fn new(hash: Hash, digits: u8) -> ContentHash {
        let bits = u64::from_be_bytes(hash.0[..8].try_into().expect("a hash has 32 bytes"));
        let full = bits % 10_u64.pow(u32::from(Handle::LONG));
        let unused = 10_u64.pow(u32::from(Handle::LONG - digits));
        ContentHash { number: full / unused * unused, digits }
    }

    /// Parses 6 to 18 digits.
    fn parse(text: &str) -> Option<ContentHash> {
        let digits = u8::try_from(text.len()).ok()?;
        let is_number = text.bytes().all(|b| b.is_ascii_digit());
        if !is_number || !(Handle::SHORT..=Handle::LONG).contains(&digits) {
            return None;
        }
        let number: u64 = text.parse().ok()?;
        Some(ContentHash { number: number * 10_u64.pow(u32::from(Handle::LONG - digits)), digits })
    }
}

impl Address {
    fn numbers(self) -> Vec<u32> {
        match self {
            Address::Step(n) | Address::StepText(n) | Address::Reasoning(n) | Address::EntryText(n) => {
                vec![n]
            }
            Address::Steps(a, b)
            | Address::Result(a, b)
            | Address::Arguments(a, b)
            | Address::EntryMedia(a, b) => vec![a, b],
            Address::ResultMedia(step, call, media) => vec![step, call, media],
        }
    }

    /// Parses an address without `#`, such as `12`, `7-11`, `12.2a` or `e7`.
    fn parse(text: &str) -> Option<Address> {
        if let Some(entry) = text.strip_prefix(['e', 'E']) {
            return Some(match entry.split_once('i') {
                Some((entry, media)) => Address::EntryMedia(number(entry)?, number(media)?),
                None => Address::EntryText(number(entry)?),
            });
        }
        let range = text.split_once("..").or_else(|| text.split_once(['-', '–', '—']));
        if let Some((first, last)) = range {
            let end = |text: &str| number(text.trim().trim_start_matches('#'));
            let (first, last) = (end(first)?, end(last)?);
            return (first <= last).then_some(Address::Steps(first, last));
        }
        if let Some((step, call)) = text.split_once('.') {
            let step = number(step)?;
            return Some(match (call.strip_suffix('a'), call.split_once('i')) {
                (Some(call), _) => Address::Arguments(step, number(call)?),
                (None, Some((call, media))) => Address::ResultMedia(step, number(call)?, number(media)?),
                (None, None) => Address::Result(step, number(call)?),
            });
        }
        Some(match (text.strip_suffix('t'), text.strip_suffix('r')) {
            (Some(step), _) => Address::StepText(number(step)?),
            (None, Some(step)) => Address::Reasoning(number(step)?),
            (None, None) => Address::Step(number(text)?),
        })
    }
}

/// Parses a number of 1 to 5 digits, counted from 1.
fn number(text: &str) -> Option<u32> {
    let is_short = text.len() <= 5 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|number| is_short && *number > 0)
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Name::Address(address) => write!(f, "{address}"),
            Name::Content(ContentHash { number, digits }) => {
                let shown = number / 10_u64.pow(u32::from(Handle::LONG - digits));
                write!(f, "{shown:0digits$}", digits = usize::from(digits))
            }
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Step(step) => write!(f, "#{step}"),
            Address::Steps(first, last) => write!(f, "#{first}-{last}"),
            Address::StepText(step) => write!(f, "#{step}t"),
            Address::Reasoning(step) => write!(f, "#{step}r"),
            Address::Result(step, call) => write!(f, "#{step}.{call}"),
            Address::Arguments(step, call) => write!(f, "#{step}.{call}a"),
            Address::ResultMedia(step, call, media) => write!(f, "#{step}.{call}i{media}"),
            Address::EntryText(entry) => write!(f, "#e{entry}"),
            Address::EntryMedia(entry, media) => write!(f, "#e{entry}i{media}"),
        }
    }
}

impl FromStr for Handle {
    type Err = HandleError;

    fn from_str(text: &str) -> Result<Handle, HandleError> {
        let bare = text.trim().trim_start_matches('[').trim_end_matches(']').trim();
        let words = ["steps ", "step ", "Steps ", "Step "];
        let after_word = words.iter().find_map(|word| bare.strip_prefix(word)).map(str::trim_start);
        let bare = after_word.unwrap_or(bare);
        let bare = bare.strip_prefix('#').unwrap_or(bare);
        // A step has a number of at most five digits, so six digits are a content hash, even after `#`.
        let content = ContentHash::parse(bare).filter(|_| after_word.is_none());
        let found = match content {
            Some(content) => Some(Handle(Name::Content(content))),
            None => Address::parse(bare).and_then(Handle::from_address),
        };
        found.ok_or_else(|| HandleError(text.trim().chars().take(60).collect()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> String {
        text.parse::<Handle>().unwrap_or_else(|error| panic!("{text}: {error}")).to_string()
    }

    fn addresses() -> impl Strategy<Value = Address> {
        let n = || prop_oneof![1..=20_u32, 1..=Handle::MAX_NUMBER];
        prop_oneof![
            n().prop_map(Address::Step),
            (n(), n()).prop_map(|(a, b)| Address::Steps(a.min(b), a.max(b))),
            n().prop_map(Address::StepText),
            n().prop_map(Address::Reasoning),
            (n(), n()).prop_map(|(step, call)| Address::Result(step, call)),
            (n(), n()).prop_map(|(step, call)| Address::Arguments(step, call)),
            (n(), n(), n()).prop_map(|(step, call, media)| Address::ResultMedia(step, call, media)),
            n().prop_map(Address::EntryText),
            (n(), n()).prop_map(|(entry, media)| Address::EntryMedia(entry, media)),
        ]
    }

    fn handles() -> impl Strategy<Value = Handle> {
        let content = prop::collection::vec(any::<u8>(), 0..9).prop_flat_map(|bytes| {
            let hash = Hash::new(&bytes);
            let longer =
                move |times: usize| (0..times).fold(Handle::from_hash(hash), |it, _| it.longer(hash));
            (0..6_usize).prop_map(longer)
        });
        prop_oneof![
            addresses().prop_map(|address| Handle::from_address(address).expect("its numbers are small")),
            content,
        ]
    }

    proptest! {
        #[test]
        fn printed_handles_round_trip(handle in handles()) {
            let printed = handle.to_string();
            prop_assert_eq!(printed.parse::<Handle>().expect("a handle"), handle);
            prop_assert_eq!(format!(" [{printed}] ").parse::<Handle>().expect("a handle"), handle);
            let without_mark = printed.trim_start_matches('#');
            prop_assert_eq!(without_mark.parse::<Handle>().expect("a handle"), handle);
        }
    }

    #[test]
    fn handles_are_parsed_in_several_forms() {
        for text in ["#7-11", "7-11", "7–11", "[#7–11]", "#7 - #11", "7..11", "steps 7-11", "Steps #7..11"]
        {
            assert_eq!(parsed(text), "#7-11", "{text}");
        }
        for text in ["#12", "12", "[12]", "step 12", "Step #12", "[step 12]", "#12-12", "00012"] {
            assert_eq!(parsed(text), "#12", "{text}");
        }
        for (text, handle) in [
            ("12.2", "#12.2"),
            ("step 12.2", "#12.2"),
            ("12.2a", "#12.2a"),
            ("12.2i1", "#12.2i1"),
            ("12t", "#12t"),
            ("12r", "#12r"),
            ("e7", "#e7"),
            ("E7i1", "#e7i1"),
            ("291227", "291227"),
            ("#291227", "291227"),
            ("045715", "045715"),
        ] {
            assert_eq!(parsed(text), handle, "{text}");
        }
    }

    #[test]
    fn longer_content_hashes_begin_with_the_short_one() {
        let short = Handle::from_content(b"buy milk, eggs and bread");
        let long = short.longer(Hash::new(b"buy milk, eggs and bread"));
        assert_eq!(short.to_string().len(), 6);
        assert!(long.to_string().starts_with(&short.to_string()));
    }

    #[test]
    fn parse_rejects_other_texts() {
        for text in [
            "",
            "#",
            "xyz",
            "#0",
            "0",
            "12345g",
            "1234567890123456789",
            "step 123456",
            "#11-7",
            "#7-",
            "-7",
            "#12.0",
            "#12.",
            "#.2",
            "#12.2b",
            "#12.2i",
            "#e",
            "#e0",
            "#e7i0",
            "#12x",
            "12.2.3",
            "#12.2-3",
            "+7",
            "7-9-11",
            "step",
            "steps 7 to 11",
        ] {
            let error = text.parse::<Handle>().expect_err(text).to_string();
            assert!(error.starts_with(&format!("`{text}` is not a handle")), "{error}");
        }
    }
}

//! What a provider says that a request cost, in every provider's way of saying it.

use crate::format::Format;
use crate::json::Object;

/// What a provider counted for one request, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Everything that it read: what came from its cache and what went into it are part of this.
    pub input: u64,
    /// Of the input, what was read from the cache.
    pub cached: u64,
    /// Of the input, what was written to the cache.
    pub written: u64,
    /// Everything that the model wrote, thoughts included.
    pub output: u64,
}

impl Usage {
    /// The sum of two requests: what both together are billed for.
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            input: self.input + other.input,
            cached: self.cached + other.cached,
            written: self.written + other.written,
            output: self.output + other.output,
        }
    }
}

/// A usage as it is being told: a stream may say its parts in several events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Told {
    input: Option<u64>,
    cached: Option<u64>,
    written: Option<u64>,
    output: Option<u64>,
}

impl Told {
    /// Takes in the JSON of a `usage`. Counts only grow while an answer comes, so the larger one is the newer one.
    pub(super) fn read(&mut self, usage: &str) {
        let Some(usage) = Object::parse(usage) else { return };
        let details = usage.some("prompt_tokens_details").or_else(|| usage.some("input_tokens_details"));
        let details = details.and_then(Object::parse);
        let of_details = |keys: &[&str]| details.as_ref().and_then(|details| first(details, keys));
        grow(&mut self.input, first(&usage, &["prompt_tokens", "input_tokens"]));
        grow(&mut self.output, first(&usage, &["completion_tokens", "output_tokens"]));
        let cached = of_details(&["cached_tokens"]);
        let cached = cached.or_else(|| {
            first(&usage, &["cache_read_input_tokens", "prompt_cache_hit_tokens", "cached_tokens"])
        });
        grow(&mut self.cached, cached);
        let written = of_details(&["cache_write_tokens", "cache_creation_tokens"]);
        grow(&mut self.written, written.or_else(|| first(&usage, &["cache_creation_input_tokens"])));
    }

    /// What was told, if anything was.
    pub(super) fn usage(self, format: Format) -> Option<Usage> {
        let (cached, written) = (self.cached.unwrap_or(0), self.written.unwrap_or(0));
        if self == Told::default() {
            return None;
        }
        let input = self.input.unwrap_or(0);
        // Anthropic counts what the cache took part in beside the input, everybody else within it.
        let is_beside = format == Format::Anthropic;
        let input = if is_beside { input + cached + written } else { input };
        Some(Usage { input, cached, written, output: self.output.unwrap_or(0) })
    }
}

fn grow(count: &mut Option<u64>, told: Option<u64>) {
    *count = (*count).max(told);
}

fn first(object: &Object<'_>, keys: &[&str]) -> Option<u64> {
    keys.iter().find_map(|key| number(object.get(key)?))
}

/// A count, also where it is written as `12.0` or as a string.
pub(super) fn number(json: &str) -> Option<u64> {
    let digits = json.trim_matches('"');
    digits.parse().ok().or_else(|| {
        let number: f64 = digits.parse().ok()?;
        (number.is_finite() && number >= 0.0).then_some(number as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: Format, told: &[&str], expected: Option<[u64; 4]>) {
        let mut counts = Told::default();
        for usage in told {
            counts.read(usage);
        }
        let usage = counts.usage(format).map(|u| [u.input, u.cached, u.written, u.output]);
        assert_eq!(usage, expected, "{told:?}");
    }

    #[test]
    fn every_way_of_saying_it() {
        use Format::{Anthropic, Chat, Responses};
        check(
            Chat,
            &[r#"{"prompt_tokens":10,"completion_tokens":3,"total_tokens":13}"#],
            Some([10, 0, 0, 3]),
        );
        check(
            Chat,
            &[
                r#"{"prompt_tokens":10,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8,"audio_tokens":0}}"#,
            ],
            Some([10, 8, 0, 3]),
        );
        // DeepSeek; Moonshot; OpenRouter; a gateway that says it in Anthropic's words.
        check(
            Chat,
            &[
                r#"{"prompt_tokens":10,"completion_tokens":3,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":6}"#,
            ],
            Some([10, 4, 0, 3]),
        );
        check(
            Chat,
            &[r#"{"prompt_tokens":10,"completion_tokens":3,"cached_tokens":7}"#],
            Some([10, 7, 0, 3]),
        );
        check(
            Chat,
            &[
                r#"{"prompt_tokens":10,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":9}}"#,
            ],
            Some([10, 0, 9, 3]),
        );
        check(
            Chat,
            &[
                r#"{"prompt_tokens":10,"completion_tokens":3,"cache_read_input_tokens":5,"cache_creation_input_tokens":2}"#,
            ],
            Some([10, 5, 2, 3]),
        );
        check(
            Responses,
            &[
                r#"{"input_tokens":20,"input_tokens_details":{"cached_tokens":16},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":4}}"#,
            ],
            Some([20, 16, 0, 5]),
        );
        check(
            Anthropic,
            &[
                r#"{"input_tokens":4,"cache_creation_input_tokens":100,"cache_read_input_tokens":1000,"output_tokens":1}"#,
                r#"{"output_tokens":57}"#,
            ],
            Some([1104, 1000, 100, 57]),
        );
        // A gateway that knows the input only at the end.
        check(
            Anthropic,
            &[r#"{"input_tokens":0,"output_tokens":0}"#, r#"{"input_tokens":12,"output_tokens":57}"#],
            Some([12, 0, 0, 57]),
        );
    }

    #[test]
    fn what_is_missing_or_odd() {
        check(Format::Chat, &[], None);
        check(Format::Chat, &["null", "7", "{}", "{"], None);
        check(
            Format::Chat,
            &[r#"{"prompt_tokens":12.0,"completion_tokens":"3","prompt_tokens_details":null}"#],
            Some([12, 0, 0, 3]),
        );
        check(Format::Chat, &[r#"{"prompt_tokens":-1,"completion_tokens":null}"#], None);
    }
}

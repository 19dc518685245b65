//! The usage that a provider reports for a request, whatever field names the provider uses.

use crate::json::Object;

/// Token counts of one request, as its provider reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// All input, including cache reads and cache writes.
    pub input: u64,
    /// The part of the input that was read from the cache.
    pub cache_read: u64,
    /// The part of the input that was written to the cache.
    pub cache_written: u64,
    /// All output, including reasoning.
    pub output: u64,
}

impl Usage {
    /// The sum of the usage of two requests.
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_written: self.cache_written.saturating_add(other.cache_written),
            output: self.output.saturating_add(other.output),
        }
    }
}

/// The counts read so far. A stream may spread them over several events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UsageCounts {
    input: Option<u64>,
    cache_read: Option<u64>,
    cache_written: Option<u64>,
    output: Option<u64>,
}

impl UsageCounts {
    /// Reads the JSON of a `usage`. Counts never decrease during a reply, so the larger of two is the newer one.
    pub(crate) fn read(&mut self, usage: &str) {
        let Some(usage) = Object::parse(usage) else { return };
        let details = usage.some("prompt_tokens_details").or_else(|| usage.some("input_tokens_details"));
        let details = details.and_then(Object::parse);
        let in_details = |keys: &[&str]| details.as_ref().and_then(|details| first_number(details, keys));
        keep_larger(&mut self.input, first_number(&usage, &["prompt_tokens", "input_tokens"]));
        keep_larger(&mut self.output, first_number(&usage, &["completion_tokens", "output_tokens"]));
        let cache_read = in_details(&["cached_tokens"]);
        let cache_read = cache_read.or_else(|| {
            first_number(&usage, &["cache_read_input_tokens", "prompt_cache_hit_tokens", "cached_tokens"])
        });
        keep_larger(&mut self.cache_read, cache_read);
        let cache_written = in_details(&["cache_write_tokens", "cache_creation_tokens"]);
        keep_larger(
            &mut self.cache_written,
            cache_written.or_else(|| first_number(&usage, &["cache_creation_input_tokens"])),
        );
    }

    /// The usage, if any count was read. `input_excludes_cache`: set if the reported input excludes cache reads and writes
    /// (Anthropic).
    pub(crate) fn usage(self, input_excludes_cache: bool) -> Option<Usage> {
        let (cache_read, cache_written) = (self.cache_read.unwrap_or(0), self.cache_written.unwrap_or(0));
        if self == UsageCounts::default() {
            return None;
        }
        let input = self.input.unwrap_or(0);
        let input = match input_excludes_cache {
            true => input.saturating_add(cache_read).saturating_add(cache_written),
            false => input,
        };
        Some(Usage { input, cache_read, cache_written, output: self.output.unwrap_or(0) })
    }
}

fn keep_larger(count: &mut Option<u64>, new: Option<u64>) {
    *count = (*count).max(new);
}

fn first_number(object: &Object<'_>, keys: &[&str]) -> Option<u64> {
    keys.iter().find_map(|key| number(object.get(key)?))
}

/// A count, even if it is written as `12.0` or as a string.
pub(crate) fn number(json: &str) -> Option<u64> {
    let digits = json.trim_matches('"');
    digits.parse().ok().or_else(|| {
        let number: f64 = digits.parse().ok()?;
        (number.is_finite() && number >= 0.0).then_some(number as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    fn check(format: Format, usages: &[&str], expected: Option<[u64; 4]>) {
        let mut counts = UsageCounts::default();
        for usage in usages {
            counts.read(usage);
        }
        let usage = counts
            .usage(format == Format::Anthropic)
            .map(|u| [u.input, u.cache_read, u.cache_written, u.output]);
        assert_eq!(usage, expected, "{usages:?}");
    }

    #[test]
    fn usage_is_read_under_every_name() {
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
        // DeepSeek.
        check(
            Chat,
            &[
                r#"{"prompt_tokens":10,"completion_tokens":3,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":6}"#,
            ],
            Some([10, 4, 0, 3]),
        );
        // Moonshot.
        check(
            Chat,
            &[r#"{"prompt_tokens":10,"completion_tokens":3,"cached_tokens":7}"#],
            Some([10, 7, 0, 3]),
        );
        // OpenRouter.
        check(
            Chat,
            &[
                r#"{"prompt_tokens":10,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":9}}"#,
            ],
            Some([10, 0, 9, 3]),
        );
        // A gateway with Anthropic's field names.
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
    fn reads_partial_and_malformed_usage() {
        check(Format::Chat, &[], None);
        check(Format::Chat, &["null", "7", "{}", "{"], None);
        check(
            Format::Chat,
            &[r#"{"prompt_tokens":12.0,"completion_tokens":"3","prompt_tokens_details":null}"#],
            Some([12, 0, 0, 3]),
        );
        check(Format::Chat, &[r#"{"prompt_tokens":-1,"completion_tokens":null}"#], None);
    }

    #[test]
    fn sums_of_huge_counts_saturate() {
        check(
            Format::Anthropic,
            &[
                r#"{"input_tokens":18446744073709551615,"cache_read_input_tokens":1e300,"cache_creation_input_tokens":7}"#,
            ],
            Some([u64::MAX, u64::MAX, 7, 0]),
        );
        let huge = Usage { input: u64::MAX, cache_read: 1, cache_written: u64::MAX, output: 2 };
        let expected = Usage { input: u64::MAX, cache_read: 2, cache_written: u64::MAX, output: 4 };
        assert_eq!(huge.plus(huge), expected);
    }
}

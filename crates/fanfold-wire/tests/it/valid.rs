//! What each provider accepts: the checker that all test suites share, by the names of our formats.

use fanfold_testkit::bodies::Kind;
use fanfold_testkit::valid;
use fanfold_wire::Format;

/// Says why a body would be refused.
pub(crate) fn check(format: Format, body: &str) -> Result<(), String> {
    let kind = match format {
        Format::Chat => Kind::Chat,
        Format::Responses => Kind::Responses,
        Format::Anthropic => Kind::Anthropic,
        Format::ShareGpt => Kind::ShareGpt,
        Format::Hermes => Kind::Hermes,
    };
    valid::check(kind, body)
}

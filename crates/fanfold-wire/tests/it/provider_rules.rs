//! The rules of each provider: the checker shared by all test suites, by format.

use fanfold_testkit::bodies::Kind;
use fanfold_testkit::valid;
use fanfold_wire::Format;

/// The reason why a provider would reject a body.
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

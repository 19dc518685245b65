//! The rules of each provider: the checker shared by all test suites, by format.

use fanfold_testkit::contracts::message_list;
use fanfold_testkit::generators::bodies::BodyFormat;
use fanfold_wire::Format;

/// The reason why a provider would reject a body.
pub(crate) fn check(format: Format, body: &str) -> Result<(), String> {
    let kind = match format {
        Format::Chat => BodyFormat::Chat,
        Format::Responses => BodyFormat::Responses,
        Format::Anthropic => BodyFormat::Anthropic,
        Format::ShareGpt => BodyFormat::ShareGpt,
        Format::Hermes => BodyFormat::Hermes,
    };
    message_list::check(kind, body)
}

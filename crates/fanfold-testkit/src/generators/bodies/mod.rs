//! Request bodies and session files as JSON text: valid or nearly valid in all spellings of JSON, and hostile ones.

mod json_writer; //   varies the spelling of JSON
mod openai; //        chat and responses
mod other_formats; // anthropic, sharegpt, hermes
mod hostile; //       bodies with a wrong shape

pub use hostile::hostile;
pub use openai::{chat, responses};
pub use other_formats::{anthropic, hermes, sharegpt};

/// The formats of generated bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFormat {
    /// Chat Completions.
    Chat,
    /// Responses.
    Responses,
    /// Anthropic Messages.
    Anthropic,
    /// ShareGPT.
    ShareGpt,
    /// Hermes sessions.
    Hermes,
}

impl BodyFormat {
    /// All formats.
    pub const ALL: [BodyFormat; 5] = [
        BodyFormat::Chat,
        BodyFormat::Responses,
        BodyFormat::Anthropic,
        BodyFormat::ShareGpt,
        BodyFormat::Hermes,
    ];
}

/// A body with varied content: usually valid, sometimes with an oddity that decoding can repair.
pub fn rich(kind: BodyFormat, seed: u64) -> String {
    match kind {
        BodyFormat::Chat => chat(seed),
        BodyFormat::Responses => responses(seed),
        BodyFormat::Anthropic => anthropic(seed),
        BodyFormat::ShareGpt => sharegpt(seed),
        BodyFormat::Hermes => hermes(seed),
    }
}

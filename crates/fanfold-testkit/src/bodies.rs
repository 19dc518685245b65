//! Conversations as clients write them: valid or nearly so, in every spelling that JSON allows, and hostile ones.

mod pen; //       how JSON is spelled
mod openai; //    chat and responses
mod others; //    anthropic, sharegpt, hermes
mod hostile; //   what should not be sent

pub use hostile::hostile;
pub use openai::{chat, responses};
pub use others::{anthropic, hermes, sharegpt};

/// The formats that bodies are made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
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

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] = [Kind::Chat, Kind::Responses, Kind::Anthropic, Kind::ShareGpt, Kind::Hermes];
}

/// A rich body of a format: mostly valid, sometimes with an oddity that can be repaired.
pub fn rich(kind: Kind, seed: u64) -> String {
    match kind {
        Kind::Chat => chat(seed),
        Kind::Responses => responses(seed),
        Kind::Anthropic => anthropic(seed),
        Kind::ShareGpt => sharegpt(seed),
        Kind::Hermes => hermes(seed),
    }
}

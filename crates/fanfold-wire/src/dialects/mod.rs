//! Dialects: the wire formats of providers, and the file formats of other programs.
//!
//! A dialect is a folder here, its `mod` line and its row in the registry. No other module or crate matches on
//! [`Format`]: decisions that depend on the dialect are methods of [`Dialect`] and [`Api`].

mod dialect;
mod api;
mod provider;
mod format;
mod chat;
mod responses;
mod anthropic;
mod sharegpt;
mod hermes;

pub(crate) use api::{Api, EventTexts, RecallPositions, Replies, Requests, TextFragment, append_to_content};
pub(crate) use chat::StreamedCalls;
pub(crate) use dialect::{Dialect, Facts, MessageEncoder};
pub use format::{FormatError, detect};
pub(crate) use format::{allows_text_for_list, detect_in_body, detect_in_messages, list_keys};
pub use provider::{Headers, KeyHeader, PromptRequest, Provider, is_version};

macro_rules! registry {
    ($($(#[$doc:meta])* $name:ident = $module:ident,)*) => {
        /// The name of a dialect.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Format {
            $($(#[$doc])* $name,)*
        }

        impl Format {
            /// All formats, in the order used by help texts.
            pub const ALL: [Format; [$(Format::$name),*].len()] = [$(Format::$name),*];

            pub(crate) fn dialect(self) -> &'static dyn Dialect {
                match self {
                    $(Format::$name => &$module::Dialect,)*
                }
            }

            pub(crate) fn facts(self) -> &'static Facts {
                self.dialect().facts()
            }
        }
    };
}

registry! {
    /// OpenAI Chat Completions.
    Chat = chat,
    /// OpenAI Responses.
    Responses = responses,
    /// Anthropic Messages.
    Anthropic = anthropic,
    /// ShareGPT trajectories.
    ShareGpt = sharegpt,
    /// Session files of Hermes.
    Hermes = hermes,
}

//! What can be done, a file for each.

pub(crate) mod fold;
pub(crate) mod recall;
pub(crate) mod show;
pub(crate) mod inspect;
pub(crate) mod pipe;
pub(crate) mod demo;
pub(crate) mod config;
pub(crate) mod completions;

use std::path::Path;

use fanfold_core::{Fault, Refusal, View};

use crate::choose::{self, Asked};
use crate::failure::{Failure, not_decoded};
use crate::follow::{self, Followed, Wishes};
use crate::input;
use crate::settings::Options;
use crate::terminal::{self, paint, style};

/// Whether and how people are told things beside the data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Say {
    pub(crate) is_quiet: bool,
}

impl Say {
    /// A remark, left out with `--quiet`.
    fn note(self, text: &str) {
        if !self.is_quiet {
            terminal::say(text);
        }
    }

    /// Something that must be heard.
    fn warn(self, text: &str) {
        terminal::say(&format!("{} {text}\n", paint(style::WARNING, "warning:")));
    }
}

/// A conversation read from a file and followed to its end.
struct Opened {
    followed: Followed,
    /// The file's text as it came.
    text: String,
}

/// Reads a conversation and follows it.
fn open(path: &Path, options: &Options, wishes: &Wishes, say: Say) -> anyhow::Result<Opened> {
    let input = input::read(path)?;
    let format = choose::format(options)?;
    let (conversation, changes) =
        follow::decode(&input.text, format).map_err(|error| not_decoded(&input.name, &error))?;
    let terms = choose::terms(options, Asked { model: conversation.model() })?;
    for assumed in &terms.assumed {
        say.note(&format!("{} {assumed}\n", paint(style::DIM, "note:")));
    }
    let n_messages = conversation.messages().len();
    if let Some(pin) = wishes.pins.iter().find(|pin| **pin as usize >= n_messages) {
        let message = format!("there is no message {pin} to pin");
        return Err(Failure::new(
            message,
            format!("messages are counted from 0 to {}", n_messages.max(1) - 1),
        )
        .into());
    }
    let followed = Followed::body(conversation, changes, &terms, wishes);
    for repair in followed.conversation.repairs() {
        say.note(&format!("{} {repair}\n", paint(style::DIM, "note:")));
    }
    Ok(Opened { followed, text: input.text })
}

/// A view, or the promise that it would break.
enum Viewed {
    View(View),
    Fault(Fault),
}

/// The view of a conversation. An overflow is a failure.
fn view(followed: &mut Followed) -> Result<Viewed, Failure> {
    match followed.view() {
        Ok(view) => Ok(Viewed::View(view)),
        Err(Refusal::Fault(fault)) => Ok(Viewed::Fault(fault)),
        Err(Refusal::Overflow(overflow)) => Err(Failure::from(&overflow)),
    }
}

//! What can be done, a file for each.

pub(crate) mod fold;
pub(crate) mod summarise;
pub(crate) mod recall;
pub(crate) mod show;
pub(crate) mod inspect;
pub(crate) mod metrics;
pub(crate) mod stored;
mod target;
mod signals;
pub(crate) mod pipe;
pub(crate) mod serve;
pub(crate) mod replay;
pub(crate) mod sessions;
pub(crate) mod search;
pub(crate) mod mcp;
pub(crate) mod memory;
pub(crate) mod provider;
pub(crate) mod doctor;
pub(crate) mod models;
pub(crate) mod prices;
pub(crate) mod top;
pub(crate) mod demo;
pub(crate) mod config;
pub(crate) mod completions;

use std::io::IsTerminal as _;
use std::path::Path;

use fanfold_core::{Budget, Fault, Pressure, Refusal, Tokens, View};
use fanfold_engine::{Followed, Wishes, decode};
use fanfold_wire::{Conversation, Oddity, Repair};

use crate::choose::{self, Asked};
use crate::failure::{Failure, not_decoded};
use crate::progress::Progress;
use crate::settings::Options;
use crate::terminal::{self, paint, style};
use crate::{explain, input};

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

    /// Tells a person at a terminal that it is their turn.
    fn waits(self) {
        if std::io::stdin().is_terminal() {
            self.note("reading from stdin; Ctrl-D ends it\n");
        }
    }

    /// How full the room is: a remark, and from 85 % on a warning.
    fn pressure(self, level: Pressure, view: Tokens, budget: Budget) {
        let Some(words) = explain::pressure(level, view, budget) else { return };
        if level >= Pressure::Warning {
            self.warn(&words);
        } else {
            self.note(&format!("{} {words}\n", paint(style::DIM, "note:")));
        }
    }

    /// Something that must be heard.
    pub(crate) fn warn(self, text: &str) {
        terminal::say(&format!("{} {text}\n", paint(style::WARNING, "warning:")));
    }
}

/// Reads a conversation and follows it to its end.
fn open(path: &Path, options: &Options, wishes: &Wishes, say: Say) -> anyhow::Result<Followed> {
    if path == Path::new("-") {
        say.waits();
    }
    let input = input::read(path)?;
    let format = choose::format(options)?;
    let (conversation, changes) =
        decode(input.text, format).map_err(|error| not_decoded(&input.name, &error))?;
    check_roles(&input.name, &conversation)?;
    let terms = choose::terms(options, Asked { model: conversation.model() })?;
    for assumed in &terms.assumed {
        say.note(&format!("{} {assumed}\n", paint(style::DIM, "note:")));
    }
    check_pins(&wishes.pins, conversation.messages().len())?;
    let progress = Progress::new("folding", changes.len() as u64, say);
    let followed = Followed::body_watched(conversation, changes, &terms, wishes, &mut || progress.add(1));
    drop(progress);
    Ok(followed)
}

/// Whether this is a conversation at all: one message without a role is odd, all of them are something else.
fn check_roles(name: &str, conversation: &Conversation) -> Result<(), Failure> {
    let is_nobodys = |repair: &&Repair| {
        matches!(&repair.oddity, Oddity::UnknownRole(role) if role.is_empty())
            || repair.oddity == Oddity::NotAMessage
    };
    let n_nobodys = conversation.repairs().iter().filter(is_nobodys).count();
    if n_nobodys == 0 || n_nobodys < conversation.messages().len() {
        return Ok(());
    }
    let hint = "a session of Claude Code or Codex is replayed by `fanfold replay FILE` and kept by `fanfold sessions import FILE`; \
                `--format` says what else it is";
    Err(Failure::new(format!("{name}: no message in it has a role"), hint))
}

/// Whether there are messages of these numbers.
fn check_pins(pins: &[u32], n_messages: usize) -> Result<(), Failure> {
    let Some(pin) = pins.iter().find(|pin| **pin as usize >= n_messages) else { return Ok(()) };
    let message = format!("there is no message {pin} to pin");
    Err(Failure::new(message, format!("messages are counted from 0 to {}", n_messages.max(1) - 1)))
}

/// Whether a conversation leaves as it came, or folded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    AsItCame,
    Folded,
}

impl Leaves {
    /// What a view of it does. Where there is none, it is left alone.
    fn of(viewed: Result<&Viewed, &Failure>) -> Leaves {
        match viewed {
            Ok(Viewed::View(view)) if !view.is_untouched() => Leaves::Folded,
            Ok(Viewed::View(_) | Viewed::Fault(_)) | Err(_) => Leaves::AsItCame,
        }
    }
}

/// Tells what was odd on arrival, and what became of it: each kind once, with the first message that had it.
fn tell_repairs(repairs: &[Repair], leaves: Leaves, say: Say) {
    const MOST: usize = 5;
    let mut kinds: Vec<(String, &Repair, usize)> = Vec::new();
    for repair in repairs {
        let kind = repair.oddity.to_string();
        let known = kinds.iter().position(|(known, ..)| *known == kind);
        match known {
            Some(at) => kinds[at].2 += 1,
            None if kinds.len() < MOST => kinds.push((kind, repair, 0)),
            None => {}
        }
    }
    let note = paint(style::DIM, "note:");
    for (_, first, n_more) in &kinds {
        let more = match n_more {
            0 => String::new(),
            1 => " (and once more)".to_owned(),
            n_more => format!(" (and {n_more} times more)"),
        };
        let told = match leaves {
            Leaves::AsItCame => first.describe_unchanged(),
            Leaves::Folded => first.to_string(),
        };
        say.note(&format!("{note} {told}{more}\n"));
    }
    let n_told: usize = kinds.iter().map(|(.., n_more)| n_more + 1).sum();
    if repairs.len() > n_told {
        say.note(&format!("{note} and {} more oddities\n", repairs.len() - n_told));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_folded_by_the_selected_engine() {
        let words = "some words ".repeat(200);
        let messages: Vec<_> = (0..20)
            .map(|i| serde_json::json!({ "role": "user", "content": format!("message {i} {words}") }))
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("chat.json");
        std::fs::write(&file, serde_json::Value::from(messages).to_string()).unwrap();
        let window = Some("2000".parse().unwrap());
        let options = Options { engine: Some("newest".to_owned()), window, ..Options::default() };
        let mut followed = open(&file, &options, &Wishes::default(), Say { is_quiet: true }).unwrap();
        let Ok(Viewed::View(view)) = view(&mut followed) else { panic!("there is a view") };
        assert_eq!(followed.session.name(), "newest");
        assert!(followed.encode(&view).contains("earlier entries are left out"));
    }
}

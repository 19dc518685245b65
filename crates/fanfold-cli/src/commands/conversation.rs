//! Reads a conversation from a file, follows it, and views it.

use std::path::Path;

use fanfold_core::{View, ViewError, ViewFault};
use fanfold_engine::{FoldOptions, FoldedConversation, decode};
use fanfold_wire::{Conversation, Oddity, Repair};

use crate::failure::{Failure, Result, not_decoded};
use crate::files::input;
use crate::settings::Options;
use crate::setup::terms;
use crate::terminal::Reporter;
use crate::terminal::progress::Progress;

/// Reads a conversation and follows it to its end.
pub(super) fn open(
    path: &Path,
    options: &Options,
    fold_options: &FoldOptions,
    reporter: Reporter,
) -> Result<FoldedConversation> {
    let input = input::read(path, reporter)?;
    let format = terms::format(options)?;
    let (conversation, changes) =
        decode(input.text, format).map_err(|error| not_decoded(&input.name, &error))?;
    check_roles(&input.name, &conversation)?;
    let terms = terms::choose(options, conversation.model())?;
    terms.assumed.iter().for_each(|assumption| reporter.note(assumption));
    check_pins(&fold_options.pins, conversation.messages().len())?;
    let progress = Progress::new("folding", changes.len() as u64, reporter);
    Ok(FoldedConversation::from_body_with_progress(conversation, changes, &terms, fold_options, &mut || {
        progress.add(1);
    }))
}

/// Refuses a body without any roles, because it is not a conversation. A single message without a role is allowed.
pub(super) fn check_roles(name: &str, conversation: &Conversation) -> Result<()> {
    let has_no_role = |repair: &&Repair| {
        matches!(&repair.oddity, Oddity::UnknownRole(role) if role.is_empty())
            || repair.oddity == Oddity::NotAMessage
    };
    let n_without_role = conversation.repairs().iter().filter(has_no_role).count();
    if n_without_role == 0 || n_without_role < conversation.messages().len() {
        return Ok(());
    }
    let hint = "for a session of Claude Code or Codex, use `fanfold replay FILE` or `fanfold sessions import FILE`; \
                for another format, name it with `--format`";
    Err(Failure::new(format!("{name}: no message in it has a role"), hint))
}

/// Refuses to pin messages that do not exist.
pub(super) fn check_pins(pins: &[u32], n_messages: usize) -> Result<()> {
    let Some(pin) = pins.iter().find(|pin| **pin as usize >= n_messages) else { return Ok(()) };
    let message = format!("there is no message {pin} to pin");
    Err(Failure::new(message, format!("messages are counted from 0 to {}", n_messages.max(1) - 1)))
}

/// A view, or the invariant that it would violate.
pub(super) enum ViewOrFault {
    View(View),
    Fault(ViewFault),
}

/// The view of a conversation. An overflow is a failure.
pub(super) fn view(followed: &mut FoldedConversation) -> Result<ViewOrFault> {
    match followed.view() {
        Ok(view) => Ok(ViewOrFault::View(view)),
        Err(ViewError::Fault(fault)) => Ok(ViewOrFault::Fault(fault)),
        Err(ViewError::Overflow(overflow)) => Err(Failure::from(&overflow)),
    }
}

/// The state of a body when it is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyState {
    Unchanged,
    Folded,
}

impl BodyState {
    /// The state of a viewed conversation. Without a view it is unchanged.
    pub(super) fn from_view(view: Result<&ViewOrFault, &Failure>) -> BodyState {
        match view {
            Ok(ViewOrFault::View(view)) if !view.is_untouched() => BodyState::Folded,
            Ok(ViewOrFault::View(_) | ViewOrFault::Fault(_)) | Err(_) => BodyState::Unchanged,
        }
    }

    /// Describes an oddity in the input, and whether it was repaired.
    pub(crate) fn describe(self, repair: &Repair) -> String {
        match self {
            BodyState::Unchanged => repair.describe_unchanged(),
            BodyState::Folded => repair.to_string(),
        }
    }
}

/// Reports the oddities of the input: each kind once, with the first message that had it.
pub(super) fn report_repairs(repairs: &[Repair], state: BodyState, reporter: Reporter) {
    const MAX_KINDS: usize = 5;
    let mut kinds: Vec<(String, &Repair, usize)> = Vec::new();
    for repair in repairs {
        let kind = repair.oddity.to_string();
        match kinds.iter().position(|(known, ..)| *known == kind) {
            Some(at) => kinds[at].2 += 1,
            None if kinds.len() < MAX_KINDS => kinds.push((kind, repair, 0)),
            None => {}
        }
    }
    for (_, first, n_more) in &kinds {
        let more = match n_more {
            0 => String::new(),
            1 => " (and once more)".to_owned(),
            n_more => format!(" (and {n_more} times more)"),
        };
        reporter.note(&format!("{}{more}", state.describe(first)));
    }
    let n_reported: usize = kinds.iter().map(|(.., n_more)| n_more + 1).sum();
    if repairs.len() > n_reported {
        reporter.note(&format!("and {} more oddities", repairs.len() - n_reported));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_folded_by_the_selected_engine() {
        let words = "some words ".repeat(200);
        let messages: Vec<_> = (0..20)
            .map(|i| serde_json::json!({ "role": "user", "content": format!("message {i} {words}") }))
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("chat.json");
        std::fs::write(&file, serde_json::Value::from(messages).to_string()).unwrap();
        let window = Some("2000".parse().unwrap());
        let options = Options { engine: Some("newest".to_owned()), window, ..Options::default() };
        let mut followed =
            open(&file, &options, &FoldOptions::default(), Reporter { is_quiet: true }).unwrap();
        let Ok(ViewOrFault::View(view)) = view(&mut followed) else { panic!("there is a view") };
        assert_eq!(followed.session.name(), "newest");
        assert!(followed.encode(&view).contains("earlier entries are left out"));
    }
}

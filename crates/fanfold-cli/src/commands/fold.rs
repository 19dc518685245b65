//! `fanfold fold`: a conversation in, one that fits out.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fanfold_core::{Ended, Feedback, FoldRequest, Notice, Pressure};
use fanfold_engine::{Followed, Wishes};
use serde_json::json;

use super::summarise::Outcome;
use super::{Leaves, Say, Viewed, open, stored, summarise, tell_repairs, view};
use crate::failure::Failure;
use crate::flags::FoldArgs;
use crate::settings::Options;
use crate::{explain, output, picture, report_json, terminal};

pub(crate) fn run(args: &FoldArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    if let Some(session) = &args.session {
        return stored::fold(args, session, options, say);
    }
    let file = args.file.clone().unwrap_or_else(|| PathBuf::from("-"));
    check_places(args, Some(&file))?;
    let wishes = Wishes { pins: args.pin.clone(), has_course: args.dry_run };
    let mut followed = open(&file, options, &wishes, say)?;
    let summary = match args.summarise {
        true => Some(summarise::alone(&mut followed, options, say)?),
        false => None,
    };
    let by_hand = if args.now { fold_now(&mut followed) } else { None };
    let viewed = view(&mut followed);
    tell_repairs(followed.conversation.repairs(), Leaves::of(viewed.as_ref()), say);
    if args.explain {
        terminal::say(&explain::session(&*followed.session));
        let notices = followed.session.take_notices();
        let is_told = |notice: &&Notice| !matches!(notice, Notice::Pressure(_));
        notices.iter().filter(is_told).for_each(|notice| terminal::say(&explain::notice(notice)));
    }
    if let Some(path) = &args.receipt {
        write_receipts(path, &followed, summary.as_ref())?;
    }
    let body = match viewed? {
        Viewed::View(view) => {
            if args.dry_run {
                terminal::say(&picture::before_and_after(&followed, &view, terminal::width()));
            }
            let told = explain::outcome(&*followed.session, view.tokens);
            // What was asked for is answered, also where there was nothing to do.
            let why = by_hand
                .filter(|feedback| feedback.ended == Ended::Nothing)
                .and_then(|feedback| feedback.note);
            let is_asked = args.dry_run || args.explain || args.now;
            let told = Feedback { note: told.note.clone().or(why), ..told };
            if is_asked || told.ended != Ended::Nothing {
                say.note(&format!("{told}\n"));
            }
            tell_shortened(&followed, say);
            let budget = followed.session.budget();
            say.pressure(Pressure::of(view.tokens, budget), view.tokens, budget);
            // What fits leaves as it came, down to what stands around the JSON.
            match view.is_untouched() {
                true => Cow::Borrowed(followed.conversation.body()),
                false => Cow::Owned(followed.encode(&view)),
            }
        }
        Viewed::Fault(fault) => {
            say.warn(&format!(
                "{fault}: the conversation leaves as it came. This is a bug of fanfold's; please report it"
            ));
            Cow::Borrowed(followed.conversation.body())
        }
    };
    if args.json {
        let body = (!args.dry_run).then_some(&*body);
        return leave(args, &format!("{:#}\n", report_json::folded(&followed, summary.as_ref(), body)));
    }
    if args.dry_run {
        return Ok(());
    }
    leave(args, &body)
}

/// Writes what was asked for to where it was asked for. A dry run writes no file.
pub(super) fn leave(args: &FoldArgs, text: &str) -> anyhow::Result<()> {
    match args.file_to_write().filter(|_| !args.dry_run) {
        Some(path) => Ok(output::write_file(path, text.as_bytes())?),
        None => terminal::data(text),
    }
}

/// Folds by hand. None where nothing fits, which the view tells.
fn fold_now(followed: &mut Followed) -> Option<Feedback> {
    followed.session.fold(&FoldRequest { force: true, ..FoldRequest::default() }).ok()
}

/// Tells that people's words were shortened, each message counted once however often that was.
pub(super) fn tell_shortened(followed: &Followed, say: Say) {
    let receipts = followed.session.ledger().receipts();
    let shortened: BTreeSet<_> = receipts.iter().flat_map(|receipt| &receipt.user_text).collect();
    let n_user = shortened.len();
    if n_user == 0 {
        return;
    }
    let messages = terminal::count(n_user, "user message");
    let were = if n_user == 1 { "was" } else { "were" };
    let policy = followed.session.policy().filter(|policy| policy.folds_users());
    let why = match policy {
        Some(policy) => format!("folded, as the policy `{}` does with whatever is old", policy.name),
        None => "shortened, because nothing else fitted".to_owned(),
    };
    say.warn(&format!("{messages} {were} {why}; --user-text never forbids it"));
}

pub(super) fn write_receipts(
    path: &Path,
    followed: &Followed,
    summary: Option<&Outcome>,
) -> anyhow::Result<()> {
    let mut receipts = report_json::receipts(followed.session.ledger());
    if let (Some(all), Some(summary)) = (receipts.as_array_mut(), summary) {
        let at = followed.session.transcript().len();
        all.push(json!({ "at": at, "summary": report_json::summary(summary) }));
    }
    let receipts = format!("{receipts:#}\n");
    if path == Path::new("-") {
        terminal::say(&receipts);
        return Ok(());
    }
    Ok(output::write_file(path, receipts.as_bytes())?)
}

/// The original is what folds open to, so it is not overwritten by accident; nor is one file by the other.
pub(super) fn check_places(args: &FoldArgs, file: Option<&Path>) -> Result<(), Failure> {
    let receipt = args.receipt.as_deref().filter(|path| *path != Path::new("-"));
    if let Some(path) = receipt.filter(|_| args.dry_run) {
        let message = format!("--dry-run writes no file, and so no receipt to {}", path.display());
        return Err(Failure::new(message, "`--receipt -` tells it on stderr"));
    }
    let is_read = |path: &&Path| file.is_some_and(|file| output::is_input(file, path));
    let output = args.file_to_write();
    if let Some(path) = output.filter(|_| !args.force).filter(is_read) {
        let message = format!("{} is the conversation itself", path.display());
        let hint = "folds open from the original, so keep it; --force replaces it anyway";
        return Err(Failure::new(message, hint));
    }
    if let Some(path) = receipt.filter(is_read) {
        let message = format!("{} is the conversation itself", path.display());
        let hint = "folds open from the original, so keep it; write the receipt to another file";
        return Err(Failure::new(message, hint));
    }
    match receipt.zip(output).filter(|(receipt, output)| output::is_same_file(receipt, output)) {
        None => Ok(()),
        Some((path, _)) => Err(Failure::new(
            format!("{} would be the receipt and the folded conversation", path.display()),
            "write the receipt to another file; `--receipt -` tells it on stderr",
        )),
    }
}

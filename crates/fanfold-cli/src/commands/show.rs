//! `fanfold show`: a conversation as text.

use fanfold_core::{print_entries, print_view};
use fanfold_engine::{Followed, Wishes};
use serde_json::json;

use super::{Leaves, Say, Viewed, open, stored, tell_repairs, view};
use crate::flags::ShowArgs;
use crate::settings::Options;
use crate::{explain, terminal};

pub(crate) fn run(args: &ShowArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    if let Some(session) = &args.session {
        return stored::show(args, session, options, say);
    }
    let say = if args.is_folded() { say } else { Say { is_quiet: true } };
    let mut followed = open(&args.file, options, &Wishes::default(), say)?;
    print(&mut followed, args, say)
}

/// Prints a conversation, or the view of it.
pub(super) fn print(followed: &mut Followed, args: &ShowArgs, say: Say) -> anyhow::Result<()> {
    let viewed = if args.is_folded() { Some(view(followed)) } else { None };
    if let Some(viewed) = &viewed {
        tell_repairs(followed.conversation.repairs(), Leaves::of(viewed.as_ref()), say);
    }
    let session = &*followed.session;
    if args.explain {
        terminal::say(&explain::session(session));
    }
    let (tokens, text) = match viewed.transpose()? {
        Some(Viewed::View(view)) => (view.tokens, print_view(session.transcript(), &view)),
        Some(Viewed::Fault(fault)) => {
            say.warn(&format!("{fault}: the conversation would leave as it came"));
            (session.transcript().total(), print_entries(session.transcript().entries()))
        }
        None => (session.transcript().total(), print_entries(session.transcript().entries())),
    };
    if args.json {
        return terminal::data(&format!("{:#}\n", json!({ "tokens": tokens.0, "text": text })));
    }
    terminal::data(&text)
}

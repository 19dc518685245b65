//! `fanfold show`: a conversation as text.

use fanfold_core::{print_entries, print_view};
use fanfold_engine::Wishes;

use super::{Leaves, Opened, Say, Viewed, open, stored, tell_repairs, view};
use crate::flags::ShowArgs;
use crate::settings::Options;
use crate::{explain, terminal};

pub(crate) fn run(args: &ShowArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    if let Some(session) = &args.session {
        return stored::show(args, session, options, say);
    }
    let say = if args.folded { say } else { Say { is_quiet: true } };
    let Opened { mut followed, .. } = open(&args.file, options, &Wishes::default(), say)?;
    if !args.folded {
        return terminal::data(&print_entries(followed.session.transcript().entries()));
    }
    let viewed = view(&mut followed);
    tell_repairs(followed.conversation.repairs(), Leaves::of(viewed.as_ref()), say);
    if args.explain {
        terminal::say(&explain::session(&followed.session));
    }
    match viewed? {
        Viewed::View(view) => terminal::data(&print_view(followed.session.transcript(), &view)),
        Viewed::Fault(fault) => {
            say.warn(&format!("{fault}: the conversation would leave as it came"));
            terminal::data(&print_entries(followed.session.transcript().entries()))
        }
    }
}

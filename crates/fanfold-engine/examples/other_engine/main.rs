//! Folds a conversation by another engine than ours, in the host that ours runs in.
//!
//! ```text
//! cargo run -p fanfold-engine --example other_engine -- chat.json 8000 > folded.json
//! ```

mod newest; // the other engine

use std::error::Error;
use std::io::Write as _;

use fanfold_core::{Budget, Engine as _, Tokens};
use fanfold_engine::{Followed, Wishes, decode};

use newest::Newest;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(window)) = (arguments.next(), arguments.next()) else {
        return Err("give a conversation and a window: chat.json 8000".into());
    };
    let body = std::fs::read_to_string(path)?;
    let (conversation, changes) = decode(&body, None)?;
    let engine = Newest::new(Budget::of_window(Tokens(window.parse()?)), fanfold_tokens::o200k());
    let mut followed = Followed::body_by(engine, conversation, changes, &Wishes::default());
    let view = followed.plain_view()?.clone();
    let status = followed.session.status();
    eprintln!("{}: {} → {} tokens", followed.session.name(), status.transcript, status.tokens);
    let mut out = std::io::stdout().lock();
    Ok(writeln!(out, "{}", followed.encode(&view))?)
}

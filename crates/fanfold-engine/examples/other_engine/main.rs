//! Folds a conversation with another engine, in the same host as the built-in engine.
//!
//! ```text
//! cargo run -p fanfold-engine --example other_engine -- chat.json 8000 newest > folded.json
//! ```

mod newest; // the other engine

use std::error::Error;
use std::io::Write as _;

use fanfold_core::{Budget, EngineFactory, Policy, Tokens};
use fanfold_engine::{FoldOptions, FoldedConversation, Terms, decode};

/// The engines that the arguments can select.
const ENGINES: [EngineFactory; 2] = [EngineFactory::FANFOLD, newest::NEWEST];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(window)) = (arguments.next(), arguments.next()) else {
        return Err("usage: other_engine chat.json 8000 [newest|fanfold]".into());
    };
    let engine = arguments.next().unwrap_or_else(|| "newest".to_owned());
    let terms = Terms {
        engine: EngineFactory::find(&ENGINES, &engine)?,
        policy: Policy::fanfold(),
        budget: Budget::of_window(Tokens(window.parse()?)),
        prices: None,
        counter: fanfold_tokens::o200k(),
        format: None,
        focus: String::new(),
        assumed: Vec::new(),
        described: String::new(),
    };
    let body = std::fs::read_to_string(path)?;
    let (conversation, changes) = decode(&body, None)?;
    let mut followed = FoldedConversation::from_body(conversation, changes, &terms, &FoldOptions::default());
    let view = followed.view()?;
    let status = followed.session.status();
    eprintln!("{}: {} → {} tokens", followed.session.name(), status.transcript, status.tokens);
    let mut out = std::io::stdout().lock();
    Ok(writeln!(out, "{}", followed.encode(&view))?)
}

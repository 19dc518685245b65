//! The flags of `fanfold top`.

use clap::Args;

/// Where a proxy answers if nothing else is said.
const USUAL_PROXY: &str = "http://127.0.0.1:7744";

pub(super) const TOP_HELP: &str = "\
Keys: q quits, the arrows choose a session, enter shows all of it, s sorts by
activity, money saved, how full the window is, or misses.

VIEW IN WINDOW shows what was sent last against the model's window, and behind it
what is folded away; `!` stands behind it from 85 % of the room on. AWAY is what folds took out, each token once. SAVED is what
the requests would have cost as they came less what they cost; below zero where
folding cost more. MISSES are calls that were made again for a fold.

Example: fanfold top --once | head";

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Where the proxy listens
    #[arg(long, value_name = "URL", env = "FANFOLD_PROXY", default_value = USUAL_PROXY)]
    pub(crate) url: String,
    /// The proxy's token, where it wants one
    #[arg(long, value_name = "TOKEN", env = "FANFOLD_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// Print a table once and end; so it is where there is no terminal
    #[arg(long)]
    pub(crate) once: bool,
    /// Print the status once, as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

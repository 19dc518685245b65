//! Passes: each pass is one way to make a draft shorter, in its own file with an example that runs as a test.
//!
//! A pass proposes folds; only `Draft` decides what may be folded. The policy selects the passes and their order; the
//! preset `fanfold` runs them by increasing loss of information.

mod tool_rules;
mod dedupe;
mod overtaken;
mod media;
mod reasoning;
mod arguments;
mod condense;
mod middle;
mod one_line;
mod anchor;
mod digest;
pub(crate) mod newest;
pub(crate) mod last_resort;

use std::fmt;

use crate::fold::draft::Draft;
use crate::model::tokens::Tokens;

/// One way to make a draft shorter.
#[derive(Clone, Copy)]
pub struct Pass {
    /// The name in reports.
    pub name: &'static str,
    /// Proposes folds until the draft costs at most the target or nothing is left to propose.
    pub(crate) run: fn(&mut Draft<'_>, Tokens),
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

pub(crate) use anchor::PASS as ANCHOR;
pub(crate) use arguments::PASS as ARGUMENTS;
pub(crate) use condense::PASS as CONDENSE;
pub(crate) use dedupe::PASS as DEDUPE;
pub(crate) use digest::PASS as DIGEST;
pub(crate) use last_resort::drop::PASS as DROP;
pub(crate) use last_resort::squeeze::PASS as SQUEEZE;
pub(crate) use last_resort::user_text::PASS as USER_TEXT;
pub(crate) use media::PASS as MEDIA;
pub(crate) use middle::PASS as MIDDLE;
pub(crate) use newest::again::PASS as AGAIN;
pub(crate) use newest::arrival::PASS as ARRIVAL;
pub(crate) use one_line::PASS as ONE_LINE;
pub(crate) use overtaken::PASS as OVERTAKEN;
pub(crate) use reasoning::PASS as REASONING;
pub(crate) use tool_rules::PASS as TOOL_RULES;

//! The passes: each one way to make a draft shorter, in a file of its own with an example that is run.
//!
//! A pass proposes; `Draft` alone decides what may be folded. Which passes run, and in which order, is the policy's
//! word; ours goes from the cheapest loss to the dearest.

mod tool_rules;
mod dedupe;
mod overtaken;
mod media;
mod reasoning;
mod arguments;
mod condense;
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
    /// Its name in reports.
    pub name: &'static str,
    /// Proposes folds until the draft costs no more than the target, or it has no more to propose.
    pub run: fn(&mut Draft<'_>, Tokens),
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
pub(crate) use newest::again::PASS as AGAIN;
pub(crate) use newest::arrival::PASS as ARRIVAL;
pub(crate) use one_line::PASS as ONE_LINE;
pub(crate) use overtaken::PASS as OVERTAKEN;
pub(crate) use reasoning::PASS as REASONING;
pub(crate) use tool_rules::PASS as TOOL_RULES;

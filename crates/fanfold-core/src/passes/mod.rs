//! The passes: each one way to make a draft shorter, in a file of its own with an example that is run.
//!
//! A pass proposes; `Draft` alone decides what may be folded. Which passes run, and in which order, is the policy's
//! word; ours goes from the cheapest loss to the dearest.

mod dedupe;
mod overtaken;
mod media;
mod reasoning;
mod arguments;
mod condense;
mod one_line;
mod digest;
mod squeeze;
mod user_text;
mod summary;
mod late_system;
mod call_lines;
mod truncate;
mod stubs;
mod mask;
mod drop;

use std::fmt;

use crate::draft::Draft;
use crate::tokens::Tokens;

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

pub use arguments::PASS as ARGUMENTS;
pub use call_lines::PASS as CALL_LINES;
pub use condense::PASS as CONDENSE;
pub use dedupe::PASS as DEDUPE;
pub use digest::PASS as DIGEST;
pub use drop::PASS as DROP;
pub use late_system::PASS as LATE_SYSTEM;
pub use mask::PASS as MASK;
pub use media::PASS as MEDIA;
pub use one_line::PASS as ONE_LINE;
pub use overtaken::PASS as OVERTAKEN;
pub use reasoning::PASS as REASONING;
pub use squeeze::PASS as SQUEEZE;
pub use stubs::PASS as STUBS;
pub use summary::PASS as SUMMARY;
pub use truncate::PASS as TRUNCATE;
pub use user_text::PASS as USER_TEXT;

/// Every pass, in the order of loss: ours from the cheapest to the dearest, then those of the presets.
pub const ALL: &[Pass] = &[
    DEDUPE,      // results that come again later, word for word
    OVERTAKEN,   // results that a later call made stale
    MEDIA,       // old images and files
    REASONING,   // what the model thought long ago
    ARGUMENTS,   // long arguments of old calls
    CONDENSE,    // long results, by what they are
    ONE_LINE,    // old results to one informative line
    DIGEST,      // whole old steps into a segment
    SQUEEZE,     // anything long, also new: the last thing before people's words
    USER_TEXT,   // people's words: pasted blocks, then the oldest messages; told loudly
    SUMMARY,     // hermes, hamr: all old entries into one static summary
    LATE_SYSTEM, // rules: system text behind the first turn
    CALL_LINES,  // rules: succeeded steps to a line for each call
    TRUNCATE,    // rules: long outputs to 10 + 5 lines
    STUBS,       // hamr: old results to a few facts
    MASK,        // mask: old results to a placeholder
    DROP,        // window: the oldest entries out
];

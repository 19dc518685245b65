//! Sessions of one conversation, side by side: each entry is taken apart once for all of them.
//!
//! What comes out does not depend on it: an entry is known by all that is in it.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::policy::{Policy, ToolRule};
use crate::scan::{Parts, take_one_apart};
use crate::tokens::Tokens;
use crate::transcript::{Entry, EntryId};

/// What several sessions of one conversation share, see [`Session::join`](crate::Session::join).
pub struct Together {
    /// What the policies say of tools: entries are taken apart by it.
    rules: Vec<ToolRule>,
    known: Mutex<Vec<Option<Known>>>,
}

/// An entry that was taken apart.
struct Known {
    entry: Entry,
    tokens: Tokens,
    parts: Parts,
}

impl Together {
    /// For sessions under policies that say the same of tools as this one.
    pub fn under(policy: &Policy) -> Together {
        Together { rules: policy.tools.clone(), known: Mutex::default() }
    }

    pub(crate) fn is_for(&self, policy: &Policy) -> bool {
        self.rules == policy.tools
    }

    /// An entry taken apart.
    pub(crate) fn parts_of(&self, id: EntryId, (entry, tokens): (&Entry, Tokens)) -> Parts {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let n_known = known.len().max(id.index() + 1);
        known.resize_with(n_known, || None);
        let known = &mut known[id.index()];
        let is_same = |known: &&Known| known.tokens == tokens && known.entry == *entry;
        if let Some(known) = known.as_ref().filter(is_same) {
            return known.parts.clone();
        }
        let parts = take_one_apart((entry, tokens), &self.rules);
        *known = Some(Known { entry: entry.clone(), tokens, parts: parts.clone() });
        parts
    }
}

impl fmt::Debug for Together {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Together").finish_non_exhaustive()
    }
}

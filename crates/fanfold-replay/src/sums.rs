//! What is added up over the replies of a conversation, and the shares that follow.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::prices::Bill;

/// Tokens back, in steps: 2k, 4k, ... 64k and more.
pub const DISTANCES: [u64; 6] = [2_000, 4_000, 8_000, 16_000, 32_000, 64_000];

/// What is counted at replies of one kind: under pressure, or while everything would have fitted.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Part {
    /// Replies.
    pub calls: u64,
    /// Tokens sent for them.
    pub sent: u64,
    /// Atoms that they used.
    pub atoms: u64,
    /// Those that stood somewhere in the view.
    pub there: u64,
    /// Those that could be read there.
    pub read: u64,
    /// Atoms that last stood far back.
    pub old: u64,
    /// Old ones that stood somewhere in the view.
    pub old_there: u64,
    /// Old ones that could be read there.
    pub old_read: u64,
    /// Old ones that could be read there or recalled.
    pub old_recalled: u64,
    /// Old ones that only results of tools held.
    pub tool_only: u64,
    /// Of those, the ones that could be read.
    pub tool_only_read: u64,
    /// Old lines that a call repeats.
    pub lines: u64,
    /// Of those, the ones that were there.
    pub lines_there: u64,
    /// Replies that used an atom.
    pub with_atoms: u64,
    /// Replies that had all of theirs.
    pub sufficed: u64,
    /// Replies that used an old atom.
    pub with_old: u64,
    /// Of those, the ones that had all their atoms.
    pub old_sufficed: u64,
    /// The sum over replies of the share of old atoms that could be read.
    pub old_shares: f64,
}

/// What is added up over one conversation under one policy and window.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Sums {
    /// Replies.
    pub calls: u64,
    /// Messages sent.
    pub messages: u64,
    /// Tokens sent.
    pub sent: u64,
    /// The longest view.
    pub peak: u64,
    /// Views longer than the window.
    pub over: u64,
    /// Views that a provider would refuse.
    pub invalid: u64,
    /// Views that do not begin with the whole one before.
    pub rewrites: u64,
    /// Tokens billed where writing costs 1.25 and reading 0.1.
    pub billed_a: f64,
    /// Tokens billed where writing costs 1 and reading 0.1.
    pub billed_o: f64,
    /// Messages of people, at replies under pressure.
    pub users: u64,
    /// Those that were there word for word.
    pub users_there: u64,
    /// Atoms that a recall would have brought back.
    pub recalls: u64,
    /// What those recalls would have cost, in tokens.
    pub recall_tokens: u64,
    /// Folds.
    pub folds: u64,
    /// What all views were shorter than the conversation until then, added up.
    pub removed_gross: u64,
    /// What the last view was shorter than the conversation.
    pub removed_unique: u64,
    /// What all requests cost.
    pub bill: Bill,
    /// What they would have cost as they came.
    pub bill_raw: Bill,
    /// The most that all requests up to one cost, as a share of what they had cost as they came.
    pub worst: f64,
    /// What was written anew where views broke with the ones before, in tokens.
    pub break_tokens: u64,
    /// What that cost, in dollars.
    pub break_dollars: f64,
    /// Calls that an earlier call had made, word for word.
    pub repeats: u64,
    /// Those of them whose earlier result was no longer there as it came.
    pub repeats_folded: u64,
    /// Old spans that replies under pressure copied, and that somebody else had said first.
    pub copied: u64,
    /// Those that were there.
    pub copied_there: u64,
    /// Old spans of the agent's own that they repeated.
    pub coined: u64,
    /// Those that were there.
    pub coined_there: u64,
    /// Replies under pressure.
    pub pressed: Part,
    /// The others.
    pub early: Part,
    /// Atoms by how far back they last stood, and those that could be read, under pressure.
    pub by_distance: [(u64, u64); 7],
    /// Old atoms by class, and those that could be read.
    pub by_class: BTreeMap<&'static str, (u64, u64)>,
}

impl Part {
    fn add(&mut self, other: &Part) {
        self.calls += other.calls;
        self.sent += other.sent;
        self.atoms += other.atoms;
        self.there += other.there;
        self.read += other.read;
        self.old += other.old;
        self.old_there += other.old_there;
        self.old_read += other.old_read;
        self.old_recalled += other.old_recalled;
        self.tool_only += other.tool_only;
        self.tool_only_read += other.tool_only_read;
        self.lines += other.lines;
        self.lines_there += other.lines_there;
        self.with_atoms += other.with_atoms;
        self.sufficed += other.sufficed;
        self.with_old += other.with_old;
        self.old_sufficed += other.old_sufficed;
        self.old_shares += other.old_shares;
    }
}

impl Sums {
    /// Adds another conversation's.
    pub fn add(&mut self, other: &Sums) {
        self.calls += other.calls;
        self.messages += other.messages;
        self.sent += other.sent;
        self.peak = self.peak.max(other.peak);
        self.over += other.over;
        self.invalid += other.invalid;
        self.rewrites += other.rewrites;
        self.billed_a += other.billed_a;
        self.billed_o += other.billed_o;
        self.users += other.users;
        self.users_there += other.users_there;
        self.recalls += other.recalls;
        self.recall_tokens += other.recall_tokens;
        self.folds += other.folds;
        self.removed_gross += other.removed_gross;
        self.removed_unique += other.removed_unique;
        self.bill.add(&other.bill);
        self.bill_raw.add(&other.bill_raw);
        self.worst = self.worst.max(other.worst);
        self.break_tokens += other.break_tokens;
        self.break_dollars += other.break_dollars;
        self.repeats += other.repeats;
        self.repeats_folded += other.repeats_folded;
        self.copied += other.copied;
        self.copied_there += other.copied_there;
        self.coined += other.coined;
        self.coined_there += other.coined_there;
        self.pressed.add(&other.pressed);
        self.early.add(&other.early);
        for (sum, other) in self.by_distance.iter_mut().zip(&other.by_distance) {
            *sum = (sum.0 + other.0, sum.1 + other.1);
        }
        for (class, other) in &other.by_class {
            let sum = self.by_class.entry(class).or_default();
            *sum = (sum.0 + other.0, sum.1 + other.1);
        }
    }
}

/// What one reply used and what of it was there.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) atoms: u64,
    pub(crate) there: u64,
    pub(crate) read: u64,
    pub(crate) old: u64,
    pub(crate) old_there: u64,
    pub(crate) old_read: u64,
    pub(crate) old_recalled: u64,
    pub(crate) tool_only: u64,
    pub(crate) tool_only_read: u64,
    pub(crate) lines: u64,
    pub(crate) lines_there: u64,
}

impl Tally {
    /// Adds a reply to the sums of its kind.
    pub(crate) fn add_to(&self, part: &mut Part) {
        part.atoms += self.atoms;
        part.there += self.there;
        part.read += self.read;
        part.old += self.old;
        part.old_there += self.old_there;
        part.old_read += self.old_read;
        part.old_recalled += self.old_recalled;
        part.tool_only += self.tool_only;
        part.tool_only_read += self.tool_only_read;
        part.lines += self.lines;
        part.lines_there += self.lines_there;
        let has_all = self.read == self.atoms;
        part.with_atoms += u64::from(self.atoms > 0);
        part.sufficed += u64::from(self.atoms > 0 && has_all);
        part.with_old += u64::from(self.old > 0);
        part.old_sufficed += u64::from(self.old > 0 && has_all);
        part.old_shares += if self.old > 0 { self.old_read as f64 / self.old as f64 } else { 0.0 };
    }
}

/// A share, or nothing where there is nothing to share.
pub fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

//! The totals of one conversation under one policy and window.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::prices::Bill;

/// The steps of distances, in tokens.
pub const DISTANCES: [u64; 6] = [2_000, 4_000, 8_000, 16_000, 32_000, 64_000];

/// The totals of replies under pressure, when the conversation exceeds the window, or of those before.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ReplyTotals {
    /// Replies.
    pub calls: u64,
    /// Tokens of the views.
    pub sent: u64,
    /// Atoms used.
    pub atoms: u64,
    /// Atoms that the view contained.
    pub there: u64,
    /// Atoms readable in the view.
    pub read: u64,
    /// Old atoms: their last occurrence is more than a quarter of the window, or 16,000 tokens, back.
    pub old: u64,
    /// Old atoms that the view contained.
    pub old_there: u64,
    /// Old atoms readable in the view.
    pub old_read: u64,
    /// Old atoms readable in the view or after a recall.
    pub old_recalled: u64,
    /// Old atoms that only tool results contain.
    pub tool_only: u64,
    /// Readable old atoms that only tool results contain.
    pub tool_only_read: u64,
    /// Old lines repeated by a call.
    pub lines: u64,
    /// Old lines repeated by a call that were in the view.
    pub lines_there: u64,
    /// Replies that used atoms.
    pub with_atoms: u64,
    /// Replies whose atoms were all readable.
    pub sufficed: u64,
    /// Replies that used old atoms.
    pub with_old: u64,
    /// Replies with old atoms whose atoms were all readable.
    pub old_sufficed: u64,
    /// The sum over replies of the share of readable old atoms.
    pub old_shares: f64,
}

/// The totals of one conversation under one policy and window.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ReplayTotals {
    /// Replies.
    pub calls: u64,
    /// Messages sent.
    pub messages: u64,
    /// Tokens sent.
    pub sent: u64,
    /// Tokens of the longest view.
    pub peak: u64,
    /// Views longer than the window.
    pub over: u64,
    /// Views that a provider would reject.
    pub invalid: u64,
    /// Views that do not begin with the whole previous view.
    pub rewrites: u64,
    /// Tokens billed where writing costs 1.25 and reading 0.1.
    pub billed_a: f64,
    /// Tokens billed where writing costs 1 and reading 0.1.
    pub billed_o: f64,
    /// Messages by people before replies under pressure.
    pub users: u64,
    /// Messages by people that were in the view verbatim.
    pub users_there: u64,
    /// Atoms that a recall would have returned.
    pub recalls: u64,
    /// Tokens of those recalls.
    pub recall_tokens: u64,
    /// Folds.
    pub folds: u64,
    /// The conversation minus the view, in tokens, summed over all views.
    pub removed_gross: u64,
    /// The conversation minus the last view, in tokens.
    pub removed_unique: u64,
    /// The charges for all requests.
    pub bill: Bill,
    /// The charges for the same requests without folding.
    pub bill_raw: Bill,
    /// Replies that used an atom from more than 2,000 tokens back that was not readable in the view: one recall each.
    pub needed_recalls: u64,
    /// The price of those recalls, in dollars.
    pub recall_dollars: f64,
    /// The highest ratio, at any request, of the cost until then to the cost without folding.
    pub worst: f64,
    /// Tokens written to the cache again because a view broke with the previous one.
    pub break_tokens: u64,
    /// The extra price of those tokens, in dollars.
    pub break_dollars: f64,
    /// Calls that repeat an earlier call verbatim.
    pub repeats: u64,
    /// Repeated calls whose earlier result was no longer in the view.
    pub repeats_folded: u64,
    /// Old spans that replies under pressure copied from others.
    pub copied: u64,
    /// Old spans copied from others that were in the view.
    pub copied_there: u64,
    /// Old spans that they copied from the agent's own messages.
    pub coined: u64,
    /// Old spans copied from the agent itself that were in the view.
    pub coined_there: u64,
    /// Replies under pressure.
    pub pressed: ReplyTotals,
    /// The other replies.
    pub early: ReplyTotals,
    /// Atoms and readable atoms under pressure, by distance.
    pub by_distance: [(u64, u64); 7],
    /// Old atoms and readable old atoms, by class.
    pub by_class: BTreeMap<&'static str, (u64, u64)>,
}

impl ReplyTotals {
    fn add(&mut self, other: &ReplyTotals) {
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

impl ReplayTotals {
    /// Adds the totals of another conversation.
    pub fn add(&mut self, other: &ReplayTotals) {
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
        self.needed_recalls += other.needed_recalls;
        self.recall_dollars += other.recall_dollars;
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

/// The counts of one reply.
#[derive(Default)]
pub(crate) struct ReplyTally {
    pub(crate) atoms: u64,
    pub(crate) there: u64,
    pub(crate) read: u64,
    /// Atoms that were not readable and are far back.
    pub(crate) far_missing: u64,
    pub(crate) old: u64,
    pub(crate) old_there: u64,
    pub(crate) old_read: u64,
    pub(crate) old_recalled: u64,
    pub(crate) tool_only: u64,
    pub(crate) tool_only_read: u64,
    pub(crate) lines: u64,
    pub(crate) lines_there: u64,
}

impl ReplyTally {
    /// Adds the counts of this reply to the totals.
    pub(crate) fn add_to(&self, sums: &mut ReplyTotals) {
        sums.atoms += self.atoms;
        sums.there += self.there;
        sums.read += self.read;
        sums.old += self.old;
        sums.old_there += self.old_there;
        sums.old_read += self.old_read;
        sums.old_recalled += self.old_recalled;
        sums.tool_only += self.tool_only;
        sums.tool_only_read += self.tool_only_read;
        sums.lines += self.lines;
        sums.lines_there += self.lines_there;
        let has_all = self.read == self.atoms;
        sums.with_atoms += u64::from(self.atoms > 0);
        sums.sufficed += u64::from(self.atoms > 0 && has_all);
        sums.with_old += u64::from(self.old > 0);
        sums.old_sufficed += u64::from(self.old > 0 && has_all);
        sums.old_shares += if self.old > 0 { self.old_read as f64 / self.old as f64 } else { 0.0 };
    }
}

/// `part / whole`; `None` if `whole` is zero.
pub fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

//! Sizes and folds of a session after a request, and misses.
//!
//! A call is a *miss* if the model repeats it exactly while the newest result of the same call was folded. `fanfold
//! replay` counts misses the same way (`repeats_folded`).

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use fanfold_core::{
    Budget, Call, CallId, Engine, Entry, EntryId, Ledger, Place, Pressure, Receipt, Step, Transcript,
};
use fanfold_engine::{FoldedConversation, Sizes, messages_of, opening_words};

/// Length of the shown beginning of a prompt, in characters.
const MAX_CHARS: usize = 60;
/// The maximum number of folded calls kept for a session, newest first.
const MAX_CALLS: usize = 4096;

/// A session after a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoldSnapshot {
    /// Tokens before folding.
    pub came: u64,
    /// Tokens of the view.
    pub sent: u64,
    /// Length of the prefix that the view shares with the previous view; `None` if nothing was folded since.
    pub shared: Option<u64>,
    /// The context window of the model, in tokens.
    pub window: u64,
    /// The part of the window for the request, in tokens.
    pub room: u64,
    /// Folds in all.
    pub n_folds: u64,
    /// Folds since the previous snapshot.
    pub n_new_folds: u64,
    /// Tokens removed by the new folds.
    pub folded_away: u64,
    /// Tokens of the view before and after each new fold.
    pub folds: Vec<(u64, u64)>,
    /// Turns since the previous snapshot.
    pub n_new_turns: u64,
    /// The fill level of the room.
    pub pressure: Pressure,
    /// Size of the smallest possible view, if no view fits.
    pub needs: Option<u64>,
    /// The beginning of the first user prompt.
    pub words: String,
    /// Misses since the previous snapshot.
    pub n_misses: u64,
    /// The base of the next snapshot.
    pub(super) base: SnapshotBase,
}

/// The part of a snapshot that the next one continues from.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SnapshotBase {
    n_entries: usize,
    n_receipts: usize,
    /// Hashes of the calls whose newest results are folded, sorted.
    folded: Vec<u64>,
}

impl FoldSnapshot {
    /// A snapshot that continues from the previous one. Without a previous one, the last `n_new` messages are new.
    pub(super) fn new(
        followed: &FoldedConversation,
        n_new: usize,
        before: Option<&SnapshotBase>,
    ) -> FoldSnapshot {
        let first_new = followed.conversation.messages().len().saturating_sub(n_new) as u32;
        let entries = followed.session.transcript().entries();
        let is_new = |entry: &Entry| messages_of(entry).iter().any(|message| *message >= first_new);
        let n_old = || entries.iter().position(is_new).unwrap_or(entries.len());
        FoldSnapshot::from_session(&*followed.session, n_old, before)
    }

    fn from_session(
        session: &dyn Engine,
        n_old: impl FnOnce() -> usize,
        before: Option<&SnapshotBase>,
    ) -> FoldSnapshot {
        let (transcript, ledger) = (session.transcript(), session.ledger());
        let (budget, receipts, view) = (session.budget(), ledger.receipts(), session.status().tokens);
        // A session that was rewound is shorter than the previous snapshot, which is then ignored.
        let is_valid =
            |seen: &&SnapshotBase| seen.n_entries <= transcript.len() && seen.n_receipts <= receipts.len();
        let known = before.filter(is_valid);
        let (n_seen, n_known) = match known {
            Some(seen) => (seen.n_entries, seen.n_receipts),
            None => {
                let n_old = n_old();
                let n_known = receipts.iter().filter(|receipt| receipt.at <= n_old).count();
                (n_old.min(transcript.len()), n_known)
            }
        };
        let new = &receipts[n_known..];
        let kept = |receipt: &Receipt| receipt.after.0.saturating_sub(receipt.rewritten.0);
        let won = |receipt: &Receipt| receipt.before.0.saturating_sub(receipt.after.0);
        let n_misses = known.map_or(0, |seen| n_misses(transcript, seen));
        let folded = match known {
            Some(seen) if new.is_empty() && n_misses == 0 => seen.folded.clone(),
            _ => folded_calls(session),
        };
        FoldSnapshot {
            came: transcript.total().0,
            sent: view.0,
            shared: new.iter().map(kept).min(),
            window: budget.window().0,
            room: budget.room().0,
            n_folds: receipts.len() as u64,
            n_new_folds: new.len() as u64,
            folded_away: new.iter().map(won).sum(),
            folds: new.iter().map(|receipt| (receipt.before.0, receipt.after.0)).collect(),
            n_new_turns: transcript.turns().iter().filter(|turn| turn.prompts.end > n_seen).count() as u64,
            pressure: Pressure::new(view, budget),
            needs: None,
            words: if before.is_none() { first_words(transcript) } else { String::new() },
            n_misses,
            base: SnapshotBase { n_entries: transcript.len(), n_receipts: receipts.len(), folded },
        }
    }
}

impl FoldSnapshot {
    /// A snapshot of a session without a fitting view. Its base is that of the previous snapshot.
    pub(super) fn from_overflow(sizes: Sizes, budget: Budget, base: Option<SnapshotBase>) -> FoldSnapshot {
        FoldSnapshot {
            came: sizes.transcript.0,
            sent: sizes.transcript.0,
            window: budget.window().0,
            room: budget.room().0,
            n_folds: sizes.n_folds as u64,
            pressure: Pressure::Critical,
            needs: Some(sizes.view.0),
            base: base.unwrap_or_default(),
            ..FoldSnapshot::default()
        }
    }
}

/// The number of calls in new steps whose earlier results are folded.
fn n_misses(transcript: &Transcript, seen: &SnapshotBase) -> u64 {
    let new = transcript.entries()[seen.n_entries..].iter().filter_map(|entry| entry.step());
    let calls = new.flat_map(|step| &step.calls);
    calls.filter(|call| seen.folded.binary_search(&call_hash(call)).is_ok()).count() as u64
}

/// Hashes of the calls whose newest results are folded.
fn folded_calls(session: &dyn Engine) -> Vec<u64> {
    let (transcript, ledger) = (session.transcript(), session.ledger());
    let mut newest = HashSet::new();
    let mut folded = Vec::new();
    for (i, entry) in transcript.entries().iter().enumerate().rev() {
        let Some(step) = entry.step() else { continue };
        let id = EntryId::from(i);
        for (n, call) in step.calls.iter().enumerate() {
            let is_newest = call.result.is_some() && newest.insert(call_hash(call));
            if is_newest && folded.len() < MAX_CALLS && is_result_folded(ledger, step, id, n) {
                folded.push(call_hash(call));
            }
        }
    }
    folded.sort_unstable();
    folded
}

/// Returns whether the result of a call is folded.
fn is_result_folded(ledger: &Ledger, step: &Step, entry: EntryId, call: usize) -> bool {
    if ledger.is_whole(entry) {
        return false;
    }
    let call_at = |n: usize| CallId { step: entry, call: n as u16 };
    let is_folded = |place: Place| ledger.fold_at(place).is_some();
    let is_edited = is_folded(Place::Text(entry))
        || is_folded(Place::Reasoning(entry))
        || (0..step.calls.len())
            .any(|n| is_folded(Place::Arguments(call_at(n))) || is_folded(Place::Result(call_at(n))));
    // An entry that is neither whole nor edited is in a segment, with all its results.
    !is_edited || is_folded(Place::Result(call_at(call)))
}

fn call_hash(call: &Call) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&call.tool, call.arguments.as_str()).hash(&mut hasher);
    hasher.finish()
}

/// The beginning of the first user prompt on one line, without the preamble of the agent.
fn first_words(transcript: &Transcript) -> String {
    let prompts =
        transcript.entries().iter().filter(|entry| entry.is_user()).filter_map(|entry| entry.prompt());
    let mut openings = prompts.filter_map(|prompt| opening_words(prompt.body.as_str()));
    // The prompt may contain a pasted key.
    one_line(&fanfold_redact::redact(beginning(openings.next().unwrap_or_default())))
}

/// Enough of a text to redact its first words.
fn beginning(text: &str) -> &str {
    const ENOUGH: usize = 4_000;
    let end = text.char_indices().map(|(at, _)| at).find(|at| *at >= ENOUGH).unwrap_or(text.len());
    &text[..end]
}

/// The beginning of a text, on one line and without control characters.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.chars().count() > MAX_CHARS {
            let cut: String = line.chars().take(MAX_CHARS - 1).collect();
            return format!("{}…", cut.trim_end());
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfold_core::{Budget, Policy, Session, Tokens, Words, parse};

    /// A step that reads a file of forty words.
    fn read(name: &str) -> String {
        let words: Vec<String> = (0..40).map(|i| format!("{name}{i}")).collect();
        format!("call    read {name}.md\nresult  {}\n", words.join(" "))
    }

    fn session() -> Session<'static> {
        Session::new(Policy::named("mask").unwrap(), Budget::with_reserve(Tokens(400), Tokens(100)), &Words)
    }

    fn append(session: &mut Session<'static>, text: &str) {
        for entry in parse(text).unwrap() {
            session.append(entry);
        }
        session.view().unwrap();
    }

    #[test]
    fn counts_repeated_calls_only_after_a_fold() {
        let mut session = session();
        append(&mut session, &format!("user    read them\n{}{}", read("a"), read("b")));
        let first = FoldSnapshot::from_session(&session, || 0, None);
        assert_eq!((first.n_folds, first.n_misses), (0, 0));
        assert_eq!(first.words, "read them");
        // The result is still in the view, so the repetition is no miss.
        append(&mut session, &read("b"));
        let second = FoldSnapshot::from_session(&session, || 0, Some(&first.base));
        assert_eq!(second.n_misses, 0);
        for name in ["c", "d", "e", "f", "g", "h", "i"] {
            append(&mut session, &read(name));
        }
        let folded = FoldSnapshot::from_session(&session, || 0, Some(&second.base));
        assert!(folded.n_new_folds > 0 && folded.sent < folded.came, "{folded:?}");
        // Only the exact repetition of a folded call is a miss.
        append(&mut session, &format!("{}{}{}", read("x"), read("a"), "call    read a.md -n\nresult  aa\n"));
        let after = FoldSnapshot::from_session(&session, || 0, Some(&folded.base));
        assert_eq!(after.n_misses, 1, "{after:?}");
        // The result is in the view again, so the same call is no longer a miss.
        append(&mut session, &read("a"));
        let last = FoldSnapshot::from_session(&session, || 0, Some(&after.base));
        assert_eq!(last.n_misses, 0, "{last:?}");
    }

    #[test]
    fn counts_removed_tokens_once() {
        let mut session = session();
        append(&mut session, "user    read them\n");
        let mut seen = None;
        let mut away = 0;
        for n in 0..30 {
            append(&mut session, &read(&format!("f{n}")));
            let snapshot = FoldSnapshot::from_session(&session, || 0, seen.as_ref());
            away += snapshot.folded_away;
            assert_eq!(away, snapshot.came - snapshot.sent, "after {n}");
            assert_eq!(snapshot.shared.is_some(), snapshot.n_new_folds > 0);
            seen = Some(snapshot.base);
        }
        assert!(away > 500, "{away}");
    }

    #[test]
    fn folds_before_the_first_snapshot_are_not_new() {
        let mut session = session();
        append(&mut session, "user    read them\n");
        (0..30).for_each(|n| append(&mut session, &read(&format!("f{n}"))));
        let n_entries = session.transcript().len();
        let all = FoldSnapshot::from_session(&session, || 0, None);
        assert_eq!((all.n_new_folds, all.folded_away), (all.n_folds, all.came - all.sent));
        let none = FoldSnapshot::from_session(&session, || n_entries, None);
        assert_eq!((none.n_new_folds, none.folded_away, none.n_folds), (0, 0, all.n_folds));
    }

    #[test]
    fn skips_the_preamble_of_an_agent() {
        let mut session = session();
        append(
            &mut session,
            "user    <env>here</env>\nuser    # AGENTS.md instructions for x\nuser    fix it\n",
        );
        assert_eq!(first_words(session.transcript()), "fix it");
    }

    #[test]
    fn redacts_keys_in_the_first_words() {
        let key = format!("ghp_{}", "a1B2c3".repeat(6));
        let mut session = session();
        append(&mut session, &format!("user    use {key} to push\n"));
        assert_eq!(first_words(session.transcript()), "use [redacted: github token] to push");
    }

    #[test]
    fn removes_control_characters() {
        assert_eq!(one_line("fix\n\tit \u{1b}[31mnow"), "fix it [31mnow");
        let long = one_line(&"word ".repeat(100));
        assert!(long.ends_with('…') && long.chars().count() <= MAX_CHARS, "{long}");
    }
}

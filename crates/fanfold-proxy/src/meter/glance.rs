//! A fold in numbers, and the calls that were made again because of one.
//!
//! A call is a *miss* if the model makes it again, word for word, while the newest result of the same call was not in
//! what it had been sent. `fanfold replay` counts them the same way (`repeats_folded`).

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use fanfold_core::{
    Budget, Call, CallId, Engine, Entry, EntryId, Ledger, Place, Pressure, Receipt, Step, Transcript,
};
use fanfold_engine::{Followed, Sizes, messages_of, opening_words};

/// The first words of a prompt that are shown, in characters.
const MOST_WORDS: usize = 60;
/// So many folded calls are remembered of a session, the newest.
const MOST_CALLS: usize = 4096;

/// What a session looks like at a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Glance {
    /// The request as it came, in tokens.
    pub came: u64,
    /// The view, in tokens.
    pub sent: u64,
    /// How much of the view, from its beginning on, was in the view before; none if nothing was folded since.
    pub shared: Option<u64>,
    /// The model's window, in tokens.
    pub window: u64,
    /// What of it is for the request.
    pub room: u64,
    /// How many folds the session has had.
    pub n_folds: u64,
    /// How many of them are new.
    pub n_new_folds: u64,
    /// What the new ones took out, in tokens.
    pub folded_away: u64,
    /// What the view cost before each of them and after, in tokens.
    pub folds: Vec<(u64, u64)>,
    /// Turns since the last glance.
    pub n_new_turns: u64,
    /// How full the room is.
    pub pressure: Pressure,
    /// What the smallest view needs, where none fits and the request leaves as it came.
    pub needs: Option<u64>,
    /// The first words of the first prompt of a person.
    pub words: String,
    /// Calls that were made again although their results had been folded, since the last glance.
    pub n_misses: u64,
    /// What the next glance goes on from.
    pub(super) seen: Seen,
}

/// What a glance has seen.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Seen {
    n_entries: usize,
    n_receipts: usize,
    /// Calls by a hash of their words whose newest results are folded, sorted.
    folded: Vec<u64>,
}

impl Glance {
    /// Looks at a session as a request has left it, from what the last glance saw on. Of a session that was not looked
    /// at before, only the last `n_new` messages are new.
    pub(super) fn of(followed: &Followed, n_new: usize, before: Option<&Seen>) -> Glance {
        let first_new = followed.conversation.messages().len().saturating_sub(n_new) as u32;
        let entries = followed.session.transcript().entries();
        let is_new = |entry: &Entry| messages_of(entry).iter().any(|message| *message >= first_new);
        let n_old = || entries.iter().position(is_new).unwrap_or(entries.len());
        Glance::at(&*followed.session, n_old, before)
    }

    fn at(session: &dyn Engine, n_old: impl FnOnce() -> usize, before: Option<&Seen>) -> Glance {
        let (transcript, ledger) = (session.transcript(), session.ledger());
        let (budget, receipts, view) = (session.budget(), ledger.receipts(), session.status().tokens);
        // A session that went back has less than was seen: there is nothing to go on from.
        let is_on_the_way =
            |seen: &&Seen| seen.n_entries <= transcript.len() && seen.n_receipts <= receipts.len();
        let known = before.filter(is_on_the_way);
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
        Glance {
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
            pressure: Pressure::of(view, budget),
            needs: None,
            words: if before.is_none() { first_words(transcript) } else { String::new() },
            n_misses,
            seen: Seen { n_entries: transcript.len(), n_receipts: receipts.len(), folded },
        }
    }
}

impl Glance {
    /// What is known of a session of which no view fits. What it goes on from stays as it was.
    pub(super) fn of_overflow(sizes: Sizes, budget: Budget, seen: Option<Seen>) -> Glance {
        Glance {
            came: sizes.transcript.0,
            sent: sizes.transcript.0,
            window: budget.window().0,
            room: budget.room().0,
            n_folds: sizes.n_folds as u64,
            pressure: Pressure::Critical,
            needs: Some(sizes.view.0),
            seen: seen.unwrap_or_default(),
            ..Glance::default()
        }
    }
}

/// How many calls of new steps were made before and are folded.
fn n_misses(transcript: &Transcript, seen: &Seen) -> u64 {
    let new = transcript.entries()[seen.n_entries..].iter().filter_map(|entry| entry.step());
    let calls = new.flat_map(|step| &step.calls);
    calls.filter(|call| seen.folded.binary_search(&print(call)).is_ok()).count() as u64
}

/// The calls whose newest results are not in the view.
fn folded_calls(session: &dyn Engine) -> Vec<u64> {
    let (transcript, ledger) = (session.transcript(), session.ledger());
    let mut newest = HashSet::new();
    let mut folded = Vec::new();
    for (i, entry) in transcript.entries().iter().enumerate().rev() {
        let Some(step) = entry.step() else { continue };
        let id = EntryId::from(i);
        for (n, call) in step.calls.iter().enumerate() {
            let is_newest = call.result.is_some() && newest.insert(print(call));
            if is_newest && folded.len() < MOST_CALLS && is_result_folded(ledger, step, id, n) {
                folded.push(print(call));
            }
        }
    }
    folded.sort_unstable();
    folded
}

/// Whether the result of a call is not in the view as it came.
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
    // What is neither whole nor edited is in a segment, with all its results.
    !is_edited || is_folded(Place::Result(call_at(call)))
}

fn print(call: &Call) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&call.tool, call.arguments.as_str()).hash(&mut hasher);
    hasher.finish()
}

/// The first words that a person said, on one line, without what agents put before them.
fn first_words(transcript: &Transcript) -> String {
    let prompts =
        transcript.entries().iter().filter(|entry| entry.is_user()).filter_map(|entry| entry.prompt());
    let mut said = prompts.filter_map(|prompt| opening_words(prompt.body.as_str()));
    // A key that somebody pasted is not for a screen.
    one_line(&fanfold_redact::redact(beginning(said.next().unwrap_or_default())))
}

/// So much of a text that its first words are in it, secrets and all.
fn beginning(text: &str) -> &str {
    const ENOUGH: usize = 4_000;
    let end = text.char_indices().map(|(at, _)| at).find(|at| *at >= ENOUGH).unwrap_or(text.len());
    &text[..end]
}

/// The beginning of a text, on one line and without what a terminal would obey.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.chars().count() > MOST_WORDS {
            let cut: String = line.chars().take(MOST_WORDS - 1).collect();
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

    fn say(session: &mut Session<'static>, text: &str) {
        for entry in parse(text).unwrap() {
            session.append(entry);
        }
        session.view().unwrap();
    }

    #[test]
    fn a_call_made_again_for_a_fold_is_a_miss_and_any_other_is_not() {
        let mut session = session();
        say(&mut session, &format!("user    read them\n{}{}", read("a"), read("b")));
        let first = Glance::at(&session, || 0, None);
        assert_eq!((first.n_folds, first.n_misses), (0, 0));
        assert_eq!(first.words, "read them");
        // The result is still there, so asking again is no miss.
        say(&mut session, &read("b"));
        let second = Glance::at(&session, || 0, Some(&first.seen));
        assert_eq!(second.n_misses, 0);
        for name in ["c", "d", "e", "f", "g", "h", "i"] {
            say(&mut session, &read(name));
        }
        let folded = Glance::at(&session, || 0, Some(&second.seen));
        assert!(folded.n_new_folds > 0 && folded.sent < folded.came, "{folded:?}");
        // A new call is none, an old one is, a look-alike is none.
        say(&mut session, &format!("{}{}{}", read("x"), read("a"), "call    read a.md -n\nresult  aa\n"));
        let after = Glance::at(&session, || 0, Some(&folded.seen));
        assert_eq!(after.n_misses, 1, "{after:?}");
        // It has been read again, and is there: the same call is no miss any more.
        say(&mut session, &read("a"));
        let last = Glance::at(&session, || 0, Some(&after.seen));
        assert_eq!(last.n_misses, 0, "{last:?}");
    }

    #[test]
    fn what_is_folded_away_is_counted_once() {
        let mut session = session();
        say(&mut session, "user    read them\n");
        let mut seen = None;
        let mut away = 0;
        for n in 0..30 {
            say(&mut session, &read(&format!("f{n}")));
            let glance = Glance::at(&session, || 0, seen.as_ref());
            away += glance.folded_away;
            assert_eq!(away, glance.came - glance.sent, "after {n}");
            assert_eq!(glance.shared.is_some(), glance.n_new_folds > 0);
            seen = Some(glance.seen);
        }
        assert!(away > 500, "{away}");
    }

    #[test]
    fn what_was_folded_before_it_was_first_looked_at_is_not_new() {
        let mut session = session();
        say(&mut session, "user    read them\n");
        (0..30).for_each(|n| say(&mut session, &read(&format!("f{n}"))));
        let n_entries = session.transcript().len();
        let all = Glance::at(&session, || 0, None);
        assert_eq!((all.n_new_folds, all.folded_away), (all.n_folds, all.came - all.sent));
        let none = Glance::at(&session, || n_entries, None);
        assert_eq!((none.n_new_folds, none.folded_away, none.n_folds), (0, 0, all.n_folds));
    }

    #[test]
    fn what_an_agent_puts_before_the_first_words_is_left_out() {
        let mut session = session();
        say(
            &mut session,
            "user    <env>here</env>\nuser    # AGENTS.md instructions for x\nuser    fix it\n",
        );
        assert_eq!(first_words(session.transcript()), "fix it");
    }

    #[test]
    fn a_key_among_the_first_words_is_not_shown() {
        let key = format!("ghp_{}", "a1B2c3".repeat(6));
        let mut session = session();
        say(&mut session, &format!("user    use {key} to push\n"));
        assert_eq!(first_words(session.transcript()), "use [redacted: github token] to push");
    }

    #[test]
    fn words_are_one_line_that_a_terminal_does_not_obey() {
        assert_eq!(one_line("fix\n\tit \u{1b}[31mnow"), "fix it [31mnow");
        let long = one_line(&"word ".repeat(100));
        assert!(long.ends_with('…') && long.chars().count() <= MOST_WORDS, "{long}");
    }
}

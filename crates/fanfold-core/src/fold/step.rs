//! Computes the next ledger after a new entry or an event.
//!
//! `step` is pure. The same transcript, events and policy give the same ledger on every machine, so that a process can
//! rebuild the ledger of any conversation by replaying it.

use std::sync::Arc;

use crate::fold::draft::{Draft, DraftOptions};
use crate::fold::economy::account::{Backlog, is_foldable};
use crate::fold::ledger::{EntryState, Ledger};
use crate::fold::overflow::{contributors, overflow};
use crate::fold::policy::{Policy, Stage};
use crate::fold::receipt::{FoldedItem, Notice, Overflow, PassReport, Reason, Receipt};
use crate::fold::summary_placement::{Occasion, place_summary};
use crate::fold::{economy, passes};
use crate::model::budget::{Budget, Pressure};
use crate::model::event::Event;
use crate::model::parallel::ParallelMap;
use crate::model::prices::Prices;
use crate::model::tokens::{Count, Tokens};
use crate::model::transcript::{Entry, EntryId, Transcript};
use crate::select::analysis::Analysis;

/// The input of a step in addition to the ledger.
#[derive(Clone, Copy)]
pub struct StepInput<'a> {
    /// The conversation so far.
    pub transcript: &'a Transcript,
    /// The policy.
    pub policy: &'a Policy,
    /// The window and the reserve.
    pub budget: Budget,
    /// Counts the tokens of a text.
    pub counter: &'a dyn Count,
    /// Runs scans in parallel.
    pub parallel: &'a dyn ParallelMap,
    /// The prices of the provider, if they are known.
    pub prices: Option<&'a Prices>,
    /// An event outside of the conversation.
    pub event: Option<&'a Event>,
}

/// The result of a step in addition to the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StepOutcome {
    /// True if something was folded or unfolded.
    pub is_changed: bool,
    /// Notices for the user.
    pub notices: Vec<Notice>,
    /// The overflow, if no view fits.
    pub overflow: Option<Overflow>,
    /// The first entry that a fold changed in the sent part of the view.
    pub(crate) first_changed: Option<usize>,
}

impl StepOutcome {
    /// Records the first entry that a fold changed.
    fn record_change(&mut self, first: Option<usize>) {
        self.first_changed = [self.first_changed, first].into_iter().flatten().min();
    }
}

/// Computes the next ledger.
///
/// The analysis is a cache and does not affect the result.
pub fn step(mut ledger: Ledger, analysis: &mut Analysis, input: &StepInput<'_>) -> (Ledger, StepOutcome) {
    let mut outcome = StepOutcome::default();
    let room = input.budget.room();
    ledger.entry_states.resize(input.transcript.len(), EntryState::Whole);
    ledger.media_tokens = input.counter.frame().media;
    // A new summary is only recorded. It must not affect folding.
    if let Some(Event::SummaryWritten(summary)) = input.event {
        ledger.summary_history.add(summary);
        let total = ledger.total_without_summary(input.transcript);
        outcome.overflow = (total > room).then(|| overflow(&ledger, input, total));
        return (ledger, outcome);
    }
    let (n_receipts, summary_tokens) = (ledger.receipts.len(), ledger.summary_history.tokens());
    if let Some(prices) = input.prices {
        ledger.account.record_entry(input.transcript, prices);
    }
    let has_news = is_news(input.event) || input.transcript.entries().last().is_some_and(Entry::is_user);
    if has_news {
        ledger.n_weak_folds = 0;
        ledger.is_rest_reported = false;
    }
    if let Some(event) = input.event {
        let is_changed = apply_event(&mut ledger, input.transcript, event);
        if is_changed {
            ledger.account.invalidate();
        }
        outcome.is_changed |= is_changed;
    }
    if input.policy.has_caps() && input.policy.strategy.trigger(input.budget).is_some() {
        cap_newest_results(&mut ledger, analysis, input, &mut outcome);
    }
    let is_over = ledger.total_without_summary(input.transcript) > room;
    if is_over && input.policy.arrival_share < 1000 && input.policy.strategy.trigger(input.budget).is_some() {
        cut_newest_results(&mut ledger, analysis, input, &mut outcome);
    }
    let is_on = input.policy.economy.is_some() && input.policy.strategy.trigger(input.budget).is_some();
    if !is_over && let Some(prices) = input.prices.filter(|_| is_on) {
        remove_repeated_lines(&mut ledger, analysis, input, prices, &mut outcome);
    }
    if let Some(reason) = reason_to_fold(&mut ledger, input, &mut outcome.notices) {
        let stages = stages(input);
        fold(&mut ledger, analysis, input, &FoldPlan { reason, stages: &stages }, &mut outcome);
    } else if let Some(prices) = input.prices {
        fold_if_it_pays(&mut ledger, analysis, input, prices, &mut outcome);
    }
    let total = ledger.total_without_summary(input.transcript);
    ledger.account.set_sizes(total, input.transcript.total());
    if total > room {
        outcome.overflow = Some(overflow(&ledger, input, total));
    }
    let is_requested = matches!(input.event, Some(Event::FoldRequested { .. }));
    let occasion = match outcome.first_changed {
        Some(first) => Occasion::Fold(first),
        None if is_requested => Occasion::Requested,
        None => Occasion::None,
    };
    if place_summary(&mut ledger, input, occasion) {
        outcome.is_changed = true;
        // The request for a fold had an effect: it placed a summary.
        outcome.notices.retain(|notice| !matches!(notice, Notice::NothingToFold(_)));
    }
    add_summary_to_receipts(&mut ledger, n_receipts, summary_tokens);
    let pressure = Pressure::new(ledger.total(input.transcript), input.budget);
    if pressure > ledger.reported_pressure {
        ledger.reported_pressure = pressure;
        outcome.notices.push(Notice::Pressure(pressure));
    }
    (ledger, outcome)
}

/// Returns whether there is an event other than a usage report, which follows every request.
fn is_news(event: Option<&Event>) -> bool {
    event.is_some_and(|event| !matches!(event, Event::UsageReported { .. }))
}

/// Adds the cost of the summary to the receipts of this step, whose `before` and `after` are costs of whole views.
fn add_summary_to_receipts(ledger: &mut Ledger, n_receipts: usize, before: Tokens) {
    let after = ledger.summary_history.tokens();
    let mut new_receipts = ledger.receipts[n_receipts..].iter_mut().rev();
    if let Some(last) = new_receipts.next() {
        last.before += before;
        last.after += after;
    }
    for receipt in new_receipts {
        receipt.before += before;
        receipt.after += before;
    }
}

/// Folds new results that exceed the cap of their tool, before they are sent.
fn cap_newest_results(
    ledger: &mut Ledger,
    analysis: &mut Analysis,
    input: &StepInput<'_>,
    outcome: &mut StepOutcome,
) {
    let Some(newest) = input.transcript.entries().iter().rposition(|entry| entry.step().is_some()) else {
        return;
    };
    let newest = EntryId::from(newest);
    let stage = Stage::for_newest("cap", vec![passes::TOOL_RULES]);
    fold_range(
        ledger,
        analysis,
        input,
        &FoldPlan { reason: Reason::Cap, stages: &[stage] },
        Some((newest, newest)),
        outcome,
    );
}

/// Cuts the results of the newest step to their share of the room, before they are sent.
fn cut_newest_results(
    ledger: &mut Ledger,
    analysis: &mut Analysis,
    input: &StepInput<'_>,
    outcome: &mut StepOutcome,
) {
    let newest = EntryId::from(input.transcript.len().saturating_sub(1));
    let share = input.budget.room().permille(input.policy.arrival_share);
    let is_step = input.transcript.entries().last().is_some_and(|entry| entry.step().is_some());
    // The pass runs at most once per step.
    let is_whole = matches!(ledger.entry_states.last(), Some(EntryState::Whole));
    if !is_step || !is_whole || ledger.cost(input.transcript, newest) <= share {
        return;
    }
    let stage = Stage::for_newest("arrival", vec![passes::ARRIVAL]);
    fold_range(
        ledger,
        analysis,
        input,
        &FoldPlan { reason: Reason::Arrival, stages: &[stage] },
        Some((newest, newest)),
        outcome,
    );
}

/// Removes visible lines from the newest results. They were not sent yet, so the provider's cache stays valid.
fn remove_repeated_lines(
    ledger: &mut Ledger,
    analysis: &mut Analysis,
    input: &StepInput<'_>,
    prices: &Prices,
    outcome: &mut StepOutcome,
) {
    let n_entries = input.transcript.len();
    let id = EntryId::from(n_entries.saturating_sub(1));
    let Some(newest) = input.transcript.entries().last().and_then(Entry::step) else { return };
    if input.transcript.is_running(id)
        || std::mem::replace(&mut ledger.n_checked_for_repeats, n_entries) == n_entries
    {
        return;
    }
    Arc::make_mut(&mut ledger.visible_lines).add_arguments(id, newest);
    // Do not shorten the view below the minimum size of a cached prefix.
    let stays_cacheable =
        ledger.total_without_summary(input.transcript) - ledger.cost(input.transcript, id) >= prices.minimum;
    let has_repeated_lines = |call| !ledger.repeated_lines(input.transcript, call).is_empty();
    if stays_cacheable && newest.calls.iter().any(has_repeated_lines) {
        let stage = Stage::for_newest("again", vec![passes::AGAIN]);
        fold_range(
            ledger,
            analysis,
            input,
            &FoldPlan { reason: Reason::Again, stages: &[stage] },
            Some((id, id)),
            outcome,
        );
    }
    let mut visible_lines = std::mem::take(&mut ledger.visible_lines);
    Arc::make_mut(&mut visible_lines).add_results(id, newest, |place| ledger.is_unfolded(place));
    ledger.visible_lines = visible_lines;
}

/// The reason and the stages of a fold.
struct FoldPlan<'a> {
    reason: Reason,
    stages: &'a [Stage],
}

/// The stages of a fold: those of the policy, or a single one for a requested range.
fn stages(input: &StepInput<'_>) -> Vec<Stage> {
    match input.event {
        Some(Event::FoldRequested { range: Some(_) }) => {
            vec![Stage { tail: 0, ..Stage::new("asked", vec![passes::DIGEST]) }]
        }
        _ => input.policy.stages.clone(),
    }
}

/// Applies an event to the ledger. Returns whether the view changed.
fn apply_event(ledger: &mut Ledger, transcript: &Transcript, event: &Event) -> bool {
    match event {
        Event::Pinned(entry) => {
            let exists = entry.index() < transcript.len();
            return exists && unfold(ledger, transcript, &[*entry], Pin::Yes);
        }
        Event::Unpinned(entry) => {
            ledger.pinned.remove(entry);
        }
        Event::Focused(topic) => ledger.focus.clone_from(topic),
        Event::Unfolded(handle) => {
            let Some(original) = ledger.original(transcript, *handle) else { return false };
            return unfold(ledger, transcript, &original.entries(), Pin::Yes);
        }
        Event::CacheExpired => ledger.account.mark_cold(),
        Event::UsageReported { counted, reported } => {
            // The request contained the summary, which folding decisions ignore.
            let summary = ledger.summary_history.tokens();
            ledger.last_usage = Some((*counted - summary, *reported - summary));
        }
        // The last usage does not apply to another model or after a refusal.
        Event::Budget(_) | Event::Refused { .. } => ledger.last_usage = None,
        Event::FoldRequested { .. } | Event::SummaryWritten(_) => {}
    }
    false
}

/// Option of `unfold`: pin the restored entries, so that they are not folded again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pin {
    Yes,
    No,
}

/// Restores entries in the view, with all other entries of their segments. Returns whether the view changed.
pub(crate) fn unfold(ledger: &mut Ledger, transcript: &Transcript, entries: &[EntryId], pin: Pin) -> bool {
    let mut is_changed = false;
    for &entry in entries {
        let before = ledger.cost(transcript, entry);
        ledger.cut_limits.remove(&entry);
        if let EntryState::Segment(id) = ledger.entry_states[entry.index()] {
            let segment = ledger.segments[id as usize].clone();
            ledger.live_segments.retain(|live| *live != id);
            ledger.saved_tokens += segment.tokens().0 as i64;
            for &entry in &segment.entries {
                ledger.entry_states[entry.index()] = EntryState::Whole;
                ledger.saved_tokens -= transcript.tokens(entry).0 as i64;
            }
            is_changed = true;
        } else if !ledger.is_whole(entry) {
            ledger.entry_states[entry.index()] = EntryState::Whole;
            ledger.saved_tokens -= transcript.tokens(entry).0 as i64 - before.0 as i64;
            is_changed = true;
        }
        if pin == Pin::Yes {
            ledger.pinned.insert(entry);
        }
    }
    is_changed
}

fn reason_to_fold(ledger: &mut Ledger, input: &StepInput<'_>, notices: &mut Vec<Notice>) -> Option<Reason> {
    let total = ledger.total_without_summary(input.transcript);
    match input.event {
        Some(Event::FoldRequested { .. }) => return Some(Reason::Requested),
        Some(Event::Refused { .. }) => return Some(Reason::Refused),
        _ => {}
    }
    let trigger = input.policy.strategy.trigger(input.budget)?;
    // The stages have already run on this transcript.
    let is_done = !is_news(input.event) && ledger.last_fold == Some(transcript_state(input));
    if is_done {
        return None;
    }
    if total > input.budget.room() {
        return Some(Reason::Window);
    }
    if ledger.estimated_total(input.transcript) <= trigger {
        return None;
    }
    if ledger.is_resting(input.policy) {
        if !ledger.is_rest_reported {
            ledger.is_rest_reported = true;
            notices.push(Notice::Resting { in_the_way: contributors(ledger, input.transcript) });
        }
        return None;
    }
    Some(Reason::Threshold(trigger))
}

/// The number of entries and the cost of the transcript, which identify its state.
fn transcript_state(input: &StepInput<'_>) -> (usize, Tokens) {
    (input.transcript.len(), input.transcript.total())
}

/// Folds the backlog if that pays and keeps the total cost within the limit.
fn fold_if_it_pays(
    ledger: &mut Ledger,
    analysis: &mut Analysis,
    input: &StepInput<'_>,
    prices: &Prices,
    outcome: &mut StepOutcome,
) {
    let is_off = input.policy.strategy.trigger(input.budget).is_none();
    // Fold old entries at most once per step.
    let is_folded = ledger
        .receipts
        .last()
        .is_some_and(|receipt| receipt.at == input.transcript.len() && !receipt.reason.is_of_newest());
    let Some(economy) = input.policy.economy.filter(|_| !is_off && !is_folded) else { return };
    let economy = economy.limited_to(input.budget.room());
    let mut account = std::mem::take(&mut ledger.account);
    account.set_sizes(ledger.total_without_summary(input.transcript), input.transcript.total());
    account.extend_backlog(input.transcript, ledger, input.policy, &economy);
    let estimate = economy::estimate_fold(&account, &economy, prices);
    let Backlog { from, tail, .. } = account.backlog;
    let entry = |i| {
        (
            ledger.cost(input.transcript, EntryId::from(i)),
            is_foldable(input.transcript, ledger, input.policy, i),
        )
    };
    let first = match estimate.decision.is_fold() {
        true => economy::best_start(&account, &economy, prices, (from..tail).map(entry)),
        false => None,
    };
    // If this attempt fails, the next one waits until the saving has grown by a tenth.
    if estimate.decision.is_fold() {
        account.min_saving = estimate.saving.permille(1100);
    }
    ledger.account = account;
    let Some(first) = first else { return };
    // The size of the segment is known only after it is written. Keep a copy of the ledger to roll back, unless even a
    // fold that saves nothing is within the limit and losses have no price.
    let is_safe = ledger.account.is_affordable(
        ledger.account.view,
        ledger.account.cached_before(first),
        &economy,
        prices,
    );
    let before = (!is_safe || economy.loss_weight > 0).then(|| ledger.clone());
    let mut attempt = StepOutcome::default();
    let stage = economy.stage(&ledger.account, prices);
    let n_segments = ledger.segments.len();
    let use_price = economy.use_price(ledger.account.view, prices);
    let range = Some((EntryId::from(first), EntryId::from(tail - 1)));
    fold_range(
        ledger,
        analysis,
        input,
        &FoldPlan { reason: Reason::Economy(estimate), stages: &[stage] },
        range,
        &mut attempt,
    );
    let new_segments = &ledger.segments[n_segments..];
    let loss: f64 = new_segments.iter().map(|segment| use_price * f64::from(segment.expected_uses)).sum();
    let receipt = ledger.receipts.last().filter(|_| attempt.is_changed);
    let is_worth_it = receipt.is_none_or(|receipt| {
        let saved = (receipt.saved(), receipt.price.unwrap_or_default());
        economy.exceeds_loss(&ledger.account, prices, saved, loss)
    });
    match before {
        Some(before) if !is_worth_it || !ledger.account.is_within_limit(&economy, prices) => *ledger = before,
        _ => {
            outcome.is_changed |= attempt.is_changed;
            outcome.notices.extend(attempt.notices);
            outcome.record_change(attempt.first_changed);
        }
    }
}

fn fold(
    ledger: &mut Ledger,
    analysis: &mut Analysis,
    input: &StepInput<'_>,
    plan: &FoldPlan<'_>,
    outcome: &mut StepOutcome,
) {
    let range = match input.event {
        Some(Event::FoldRequested { range }) => *range,
        _ => None,
    };
    fold_range(ledger, analysis, input, plan, range, outcome);
    ledger.last_fold = Some(transcript_state(input));
}

/// Runs the stages of a plan on all entries or a range of them, and records a receipt.
fn fold_range(
    ledger: &mut Ledger,
    analysis: &mut Analysis,
    input: &StepInput<'_>,
    plan: &FoldPlan<'_>,
    range: Option<(EntryId, EntryId)>,
    outcome: &mut StepOutcome,
) {
    let reason = plan.reason;
    let before = ledger.total_without_summary(input.transcript);
    ledger.account.set_sizes(before, input.transcript.total());
    let changes = run_stages(ledger, analysis, input, plan, range);
    if changes.folded.is_empty() {
        if reason == Reason::Requested {
            outcome.notices.push(Notice::NothingToFold(explain_no_fold(ledger, input)));
        }
        ledger.n_weak_folds += u32::from(matches!(reason, Reason::Threshold(_)));
        return;
    }
    let after = ledger.total_without_summary(input.transcript);
    ledger.last_usage = None;
    let is_policy_fold = !reason.is_of_newest() && !matches!(reason, Reason::Economy(_));
    if is_policy_fold {
        ledger.count_gain(before, after);
    }
    outcome.is_changed = true;
    // A fold of new results changes no cached prefix.
    outcome.record_change((!reason.is_of_newest()).then_some(changes.first_changed));
    record_receipt(ledger, input, reason, (before, after), changes);
}

/// The changes of all stages of a fold.
struct FoldChanges {
    folded: Vec<FoldedItem>,
    first_changed: usize,
    /// The user messages that were shortened.
    user_text: Vec<EntryId>,
    /// The last stage that folded anything.
    stage: &'static str,
}

fn run_stages(
    ledger: &mut Ledger,
    analysis: &mut Analysis,
    input: &StepInput<'_>,
    plan: &FoldPlan<'_>,
    range: Option<(EntryId, EntryId)>,
) -> FoldChanges {
    let room = input.budget.room();
    let first_changed = input.transcript.len();
    let mut changes = FoldChanges { folded: Vec::new(), first_changed, user_text: Vec::new(), stage: "" };
    for stage in plan.stages {
        let is_over = ledger.total_without_summary(input.transcript) > room.permille(stage.above);
        if stage.above > 0 && !is_over {
            continue;
        }
        let goal = if range.is_some() { 0 } else { stage.goal.unwrap_or(input.policy.low_mark) };
        let options = DraftOptions {
            counter: input.counter,
            parallel: input.parallel,
            policy: input.policy,
            stage,
            room,
            range,
        };
        let mut draft = Draft::new(input.transcript, ledger, analysis, &options);
        draft.run(room.permille(goal));
        let (folded, first, user_text) = draft.finish();
        if !folded.is_empty() {
            changes.stage = stage.name;
        }
        changes.folded.extend(folded);
        changes.first_changed = changes.first_changed.min(first);
        changes.user_text.extend(user_text);
    }
    changes
}

/// Records a fold: its price, its receipt, and the lines that are still visible.
fn record_receipt(
    ledger: &mut Ledger,
    input: &StepInput<'_>,
    reason: Reason,
    (before, after): (Tokens, Tokens),
    changes: FoldChanges,
) {
    let FoldChanges { folded, first_changed, user_text, stage } = changes;
    let was_sent = !reason.is_of_newest();
    if was_sent {
        let mut visible_lines = std::mem::take(&mut ledger.visible_lines);
        Arc::make_mut(&mut visible_lines).retain(|place| ledger.is_unfolded(place));
        ledger.visible_lines = visible_lines;
        ledger.reported_pressure = Pressure::None;
    }
    let mut account = std::mem::take(&mut ledger.account);
    let price =
        input.prices.map(|prices| account.record_break(input.transcript, ledger, first_changed, prices));
    ledger.account = account;
    ledger.shortened_messages.extend(&user_text);
    let rewritten = match was_sent {
        true => ledger.cost_in(input.transcript, first_changed..usize::MAX),
        false => Tokens::ZERO,
    };
    ledger.receipts.push(Receipt {
        at: input.transcript.len(),
        reason,
        stage,
        before,
        after,
        passes: reports_by_pass(&folded),
        rewritten,
        price,
        folded,
        user_text,
    });
}

fn reports_by_pass(folded: &[FoldedItem]) -> Vec<PassReport> {
    let mut passes: Vec<PassReport> = Vec::new();
    for item in folded {
        let saved = item.before - item.after;
        match passes.iter_mut().find(|report| report.pass == item.pass) {
            Some(report) => {
                report.n_folded += 1;
                report.saved += saved;
            }
            None => passes.push(PassReport { pass: item.pass, n_folded: 1, saved }),
        }
    }
    passes
}

/// Explains to the user why a requested fold had no effect.
fn explain_no_fold(ledger: &Ledger, input: &StepInput<'_>) -> String {
    let total = ledger.total_without_summary(input.transcript);
    if input.transcript.is_empty() {
        return "the conversation is empty".to_owned();
    }
    let mark = input.budget.room().permille(input.policy.low_mark);
    let is_unlimited = matches!(input.event, Some(Event::FoldRequested { range: None }));
    if is_unlimited && total <= mark {
        let remedy = "a smaller window, a lower `low_mark` or a range of entries folds more";
        return format!("the view is within the low mark of {mark} tokens, where a fold stops; {remedy}");
    }
    format!("nothing old is left to fold: {total} tokens are user text, system text, or too new")
}

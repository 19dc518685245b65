//! One step of the left fold that makes a ledger: what was just said goes in, the next ledger comes out.
//!
//! `step` is pure. The same transcript, events and policy give the same ledger, on every machine; so a process that
//! has never seen a conversation replays it and arrives where the one that has followed it stands.

use std::sync::Arc;

use crate::fold::draft::{Draft, Terms};
use crate::fold::economy::account::{Backlog, may_go};
use crate::fold::ledger::{Ledger, Standing};
use crate::fold::overflow::{contributors, overflow};
use crate::fold::policy::{Policy, Stage};
use crate::fold::receipt::{Left, Notice, Overflow, PassReport, Reason, Receipt};
use crate::fold::summary_placement::{Occasion, settle};
use crate::fold::{economy, passes};
use crate::model::budget::{Budget, Pressure};
use crate::model::event::Event;
use crate::model::parallel::ParallelMap;
use crate::model::prices::Prices;
use crate::model::tokens::{Count, Tokens};
use crate::model::transcript::{Entry, EntryId, Transcript};
use crate::select::analysis::Analysis;

/// What a step looks at beside the ledger.
#[derive(Clone, Copy)]
pub struct Moment<'a> {
    /// All that has been said so far.
    pub transcript: &'a Transcript,
    /// What may be folded.
    pub policy: &'a Policy,
    /// How much room there is.
    pub budget: Budget,
    /// What text costs.
    pub counter: &'a dyn Count,
    /// Runs scans in parallel.
    pub parallel: &'a dyn ParallelMap,
    /// What the provider charges, if that is known.
    pub prices: Option<&'a Prices>,
    /// Something that happened beside the conversation.
    pub event: Option<&'a Event>,
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outlook {
    /// Whether anything was folded or unfolded.
    pub is_changed: bool,
    /// What a person should hear of.
    pub notices: Vec<Notice>,
    /// Why there is no view, if there is none.
    pub overflow: Option<Overflow>,
    /// The first entry from which a fold changed the view, if one did.
    pub broken_from: Option<usize>,
}

impl Outlook {
    /// Takes note of a fold.
    fn broke(&mut self, from: Option<usize>) {
        self.broken_from = [self.broken_from, from].into_iter().flatten().min();
    }
}

/// Takes the ledger one step further.
///
/// The result does not depend on the analysis, which only saves time.
pub fn step(mut ledger: Ledger, analysis: &mut Analysis, now: &Moment<'_>) -> (Ledger, Outlook) {
    let mut outlook = Outlook::default();
    let room = now.budget.room();
    ledger.standing.resize(now.transcript.len(), Standing::Whole);
    ledger.media = now.counter.frame().media;
    // A summary changes nothing but itself, so that all goes on as it would without one.
    if let Some(Event::SummaryWritten(summary)) = now.event {
        ledger.board.add(summary);
        let total = ledger.bare_total(now.transcript);
        outlook.overflow = (total > room).then(|| overflow(&ledger, now, total));
        return (ledger, outlook);
    }
    let (n_receipts, of_summary) = (ledger.receipts.len(), ledger.board.tokens());
    if let Some(prices) = now.prices {
        ledger.account.see(now.transcript, prices);
    }
    let has_news = is_news(now.event) || now.transcript.entries().last().is_some_and(Entry::is_user);
    if has_news {
        ledger.weak = 0;
        ledger.is_rest_told = false;
    }
    if let Some(event) = now.event {
        let is_changed = take_event(&mut ledger, now.transcript, event);
        if is_changed {
            ledger.account.forget();
        }
        outlook.is_changed |= is_changed;
    }
    if now.policy.has_caps() && now.policy.strategy.trigger(now.budget).is_some() {
        cap_newest(&mut ledger, analysis, now, &mut outlook);
    }
    let is_over = ledger.bare_total(now.transcript) > room;
    if is_over && now.policy.arrival < 1000 && now.policy.strategy.trigger(now.budget).is_some() {
        cut_arrival(&mut ledger, analysis, now, &mut outlook);
    }
    let is_on = now.policy.economy.is_some() && now.policy.strategy.trigger(now.budget).is_some();
    if !is_over && let Some(prices) = now.prices.filter(|_| is_on) {
        leave_out(&mut ledger, analysis, now, prices, &mut outlook);
    }
    if let Some(reason) = reason_to_fold(&mut ledger, now, &mut outlook.notices) {
        let stages = stages(now);
        fold(&mut ledger, analysis, now, &Order { reason, stages: &stages }, &mut outlook);
    } else if let Some(prices) = now.prices {
        fold_if_it_pays(&mut ledger, analysis, now, prices, &mut outlook);
    }
    let total = ledger.bare_total(now.transcript);
    ledger.account.close(total, now.transcript.total());
    if total > room {
        outlook.overflow = Some(overflow(&ledger, now, total));
    }
    let is_asked = matches!(now.event, Some(Event::FoldRequested { .. }));
    let chance = match outlook.broken_from {
        Some(from) => Occasion::Fold(from),
        None if is_asked => Occasion::Requested,
        None => Occasion::None,
    };
    if settle(&mut ledger, now, chance) {
        outlook.is_changed = true;
        // A summary that came in was something to do.
        outlook.notices.retain(|notice| !matches!(notice, Notice::NothingToFold(_)));
    }
    count_summary(&mut ledger, n_receipts, of_summary);
    let pressure = Pressure::new(ledger.total(now.transcript), now.budget);
    if pressure > ledger.told {
        ledger.told = pressure;
        outlook.notices.push(Notice::Pressure(pressure));
    }
    (ledger, outlook)
}

/// Whether something happened that a host does not tell with each request anyway.
fn is_news(event: Option<&Event>) -> bool {
    event.is_some_and(|event| !matches!(event, Event::UsageReported { .. }))
}

/// Counts the summary into the receipts of this step: before and after are what views cost.
fn count_summary(ledger: &mut Ledger, n_receipts: usize, before: Tokens) {
    let after = ledger.board.tokens();
    let mut new = ledger.receipts[n_receipts..].iter_mut().rev();
    if let Some(last) = new.next() {
        last.before += before;
        last.after += after;
    }
    for receipt in new {
        receipt.before += before;
        receipt.after += before;
    }
}

/// Folds results that are over their tool's cap before they are sent for the first time.
fn cap_newest(ledger: &mut Ledger, analysis: &mut Analysis, now: &Moment<'_>, outlook: &mut Outlook) {
    let Some(newest) = now.transcript.entries().iter().rposition(|entry| entry.step().is_some()) else {
        return;
    };
    let newest = EntryId::from(newest);
    let stage = Stage::of_newest("cap", vec![passes::TOOL_RULES]);
    fold_in(
        ledger,
        analysis,
        now,
        &Order { reason: Reason::Cap, stages: &[stage] },
        Some((newest, newest)),
        outlook,
    );
}

/// Cuts the results of the newest step to their share of the room before they are sent for the first time.
fn cut_arrival(ledger: &mut Ledger, analysis: &mut Analysis, now: &Moment<'_>, outlook: &mut Outlook) {
    let newest = EntryId::from(now.transcript.len().saturating_sub(1));
    let share = now.budget.room().permille(now.policy.arrival);
    let is_step = now.transcript.entries().last().is_some_and(|entry| entry.step().is_some());
    // What was cut once is cut no further here.
    let is_whole = matches!(ledger.standing.last(), Some(Standing::Whole));
    if !is_step || !is_whole || ledger.cost(now.transcript, newest) <= share {
        return;
    }
    let stage = Stage::of_newest("arrival", vec![passes::ARRIVAL]);
    fold_in(
        ledger,
        analysis,
        now,
        &Order { reason: Reason::Arrival, stages: &[stage] },
        Some((newest, newest)),
        outlook,
    );
}

/// Leaves out of the newest results what stands in view already: they were not sent yet, so that it costs nothing.
fn leave_out(
    ledger: &mut Ledger,
    analysis: &mut Analysis,
    now: &Moment<'_>,
    prices: &Prices,
    outlook: &mut Outlook,
) {
    let n_entries = now.transcript.len();
    let id = EntryId::from(n_entries.saturating_sub(1));
    let Some(newest) = now.transcript.entries().last().and_then(Entry::step) else { return };
    if now.transcript.is_running(id) || std::mem::replace(&mut ledger.n_shown, n_entries) == n_entries {
        return;
    }
    Arc::make_mut(&mut ledger.shown).add_arguments(id, newest);
    // A view that is too short for the cache would cost more.
    let is_cached = ledger.bare_total(now.transcript) - ledger.cost(now.transcript, id) >= prices.minimum;
    let is_there = |call| !ledger.lines_above(now.transcript, call).is_empty();
    if is_cached && newest.calls.iter().any(is_there) {
        let stage = Stage::of_newest("again", vec![passes::AGAIN]);
        fold_in(
            ledger,
            analysis,
            now,
            &Order { reason: Reason::Again, stages: &[stage] },
            Some((id, id)),
            outlook,
        );
    }
    let mut shown = std::mem::take(&mut ledger.shown);
    Arc::make_mut(&mut shown).add_results(id, newest, |place| ledger.is_as_it_came(place));
    ledger.shown = shown;
}

/// A fold to be made.
struct Order<'a> {
    reason: Reason,
    stages: &'a [Stage],
}

/// The stages of a fold: the policy's, or the one that was asked for.
fn stages(now: &Moment<'_>) -> Vec<Stage> {
    match now.event {
        Some(Event::FoldRequested { range: Some(_) }) => {
            vec![Stage { tail: 0, ..Stage::new("asked", vec![passes::DIGEST]) }]
        }
        _ => now.policy.stages.clone(),
    }
}

/// Records what an event changes. Says whether the view changed with it.
fn take_event(ledger: &mut Ledger, transcript: &Transcript, event: &Event) -> bool {
    match event {
        Event::Pinned(entry) => {
            let is_there = entry.index() < transcript.len();
            return is_there && unfold(ledger, transcript, &[*entry], Pin::Yes);
        }
        Event::Unpinned(entry) => {
            ledger.pinned.remove(entry);
        }
        Event::Focused(topic) => ledger.focus.clone_from(topic),
        Event::Unfolded(handle) => {
            let Some(original) = ledger.original(*handle).cloned() else { return false };
            return unfold(ledger, transcript, &original.entries(), Pin::Yes);
        }
        Event::CacheExpired => ledger.account.cool(),
        Event::UsageReported { counted, reported } => {
            // A model's summary is in what was sent, and nothing is decided by it.
            let summary = ledger.board.tokens();
            ledger.proven = Some((*counted - summary, *reported - summary));
        }
        // What another model counted, or one that refuses, says nothing any more.
        Event::Budget(_) | Event::Refused { .. } => ledger.proven = None,
        Event::FoldRequested { .. } | Event::SummaryWritten(_) => {}
    }
    false
}

/// Whether entries that come back stay.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pin {
    Yes,
    No,
}

/// Brings entries back into the view as they came.
pub(crate) fn unfold(ledger: &mut Ledger, transcript: &Transcript, entries: &[EntryId], pin: Pin) -> bool {
    let mut is_changed = false;
    for &entry in entries {
        let before = ledger.cost(transcript, entry);
        ledger.cuts.remove(&entry);
        if let Standing::Segment(id) = ledger.standing[entry.index()] {
            let segment = ledger.segments[id as usize].clone();
            ledger.live.retain(|live| *live != id);
            ledger.saved += segment.tokens().0 as i64;
            for &entry in &segment.entries {
                ledger.standing[entry.index()] = Standing::Whole;
                ledger.saved -= transcript.tokens(entry).0 as i64;
            }
            is_changed = true;
        } else if !ledger.is_whole(entry) {
            ledger.standing[entry.index()] = Standing::Whole;
            ledger.saved -= transcript.tokens(entry).0 as i64 - before.0 as i64;
            is_changed = true;
        }
        if pin == Pin::Yes {
            ledger.pinned.insert(entry);
        }
    }
    is_changed
}

fn reason_to_fold(ledger: &mut Ledger, now: &Moment<'_>, notices: &mut Vec<Notice>) -> Option<Reason> {
    let total = ledger.bare_total(now.transcript);
    match now.event {
        Some(Event::FoldRequested { .. }) => return Some(Reason::Asked),
        Some(Event::Refused { .. }) => return Some(Reason::Refused),
        _ => {}
    }
    let trigger = now.policy.strategy.trigger(now.budget)?;
    // What could be folded at this moment was.
    let is_done = !is_news(now.event) && ledger.folded == Some(moment_of(now));
    if is_done {
        return None;
    }
    if total > now.budget.room() {
        return Some(Reason::Window);
    }
    if ledger.likely(now.transcript) <= trigger {
        return None;
    }
    if ledger.is_resting(now.policy) {
        if !ledger.is_rest_told {
            ledger.is_rest_told = true;
            notices.push(Notice::Resting { in_the_way: contributors(ledger, now.transcript) });
        }
        return None;
    }
    Some(Reason::Threshold(trigger))
}

/// The moment as far as the transcript makes it.
fn moment_of(now: &Moment<'_>) -> (usize, Tokens) {
    (now.transcript.len(), now.transcript.total())
}

/// Folds what came since the last fold, if that pays and keeps what all requests cost under the limit.
fn fold_if_it_pays(
    ledger: &mut Ledger,
    analysis: &mut Analysis,
    now: &Moment<'_>,
    prices: &Prices,
    outlook: &mut Outlook,
) {
    let is_off = now.policy.strategy.trigger(now.budget).is_none();
    // One fold is enough for one moment.
    let is_folded = ledger
        .receipts
        .last()
        .is_some_and(|receipt| receipt.at == now.transcript.len() && !receipt.reason.is_of_newest());
    let Some(economy) = now.policy.economy.filter(|_| !is_off && !is_folded) else { return };
    let economy = economy.within(now.budget.room());
    let mut account = std::mem::take(&mut ledger.account);
    account.close(ledger.bare_total(now.transcript), now.transcript.total());
    account.grow(now.transcript, ledger, now.policy, &economy);
    let weighed = economy::weigh(&account, &economy, prices);
    let Backlog { from, tail, .. } = account.backlog;
    let entry =
        |i| (ledger.cost(now.transcript, EntryId::from(i)), may_go(now.transcript, ledger, now.policy, i));
    let first = match weighed.verdict.is_fold() {
        true => economy::start(&account, &economy, prices, (from..tail).map(entry)),
        false => None,
    };
    // What is tried in vain is not tried again before there is more.
    let wait = if weighed.verdict.is_fold() { weighed.backlog.permille(1100) } else { account.wait };
    account.wait = wait;
    ledger.account = account;
    let Some(first) = first else { return };
    // How long the segment is, is known when it is written. Where even one that removes nothing would do, there is no need
    // to be able to take it back.
    let is_safe =
        ledger.account.may_cost(ledger.account.view, ledger.account.cached_before(first), &economy, prices);
    let before = (!is_safe).then(|| ledger.clone());
    let mut tried = Outlook::default();
    let stage = economy.stage(ledger.account.backlog.may_go);
    let range = Some((EntryId::from(first), EntryId::from(tail - 1)));
    fold_in(
        ledger,
        analysis,
        now,
        &Order { reason: Reason::Economy(weighed), stages: &[stage] },
        range,
        &mut tried,
    );
    match before {
        Some(before) if !ledger.account.is_within(&economy, prices) => *ledger = before,
        _ => {
            outlook.is_changed |= tried.is_changed;
            outlook.notices.extend(tried.notices);
            outlook.broke(tried.broken_from);
        }
    }
}

fn fold(
    ledger: &mut Ledger,
    analysis: &mut Analysis,
    now: &Moment<'_>,
    order: &Order<'_>,
    outlook: &mut Outlook,
) {
    let range = match now.event {
        Some(Event::FoldRequested { range }) => *range,
        _ => None,
    };
    fold_in(ledger, analysis, now, order, range, outlook);
    ledger.folded = Some(moment_of(now));
}

fn fold_in(
    ledger: &mut Ledger,
    analysis: &mut Analysis,
    now: &Moment<'_>,
    order: &Order<'_>,
    range: Option<(EntryId, EntryId)>,
    outlook: &mut Outlook,
) {
    let reason = order.reason;
    let room = now.budget.room();
    let before = ledger.bare_total(now.transcript);
    ledger.account.close(before, now.transcript.total());
    let mut left = Vec::new();
    let mut first_changed = now.transcript.len();
    let mut user_text = Vec::new();
    let mut reached = "";
    for stage in order.stages {
        let is_over = ledger.bare_total(now.transcript) > room.permille(stage.above);
        if stage.above > 0 && !is_over {
            continue;
        }
        let goal = if range.is_some() { 0 } else { stage.goal.unwrap_or(now.policy.low_mark) };
        let terms =
            Terms { counter: now.counter, parallel: now.parallel, policy: now.policy, stage, room, range };
        let mut draft = Draft::new(now.transcript, ledger, analysis, &terms);
        draft.run(room.permille(goal));
        let (more, first, users) = draft.finish();
        if !more.is_empty() {
            reached = stage.name;
        }
        left.extend(more);
        first_changed = first_changed.min(first);
        user_text.extend(users);
    }
    if left.is_empty() {
        if reason == Reason::Asked {
            outlook.notices.push(Notice::NothingToFold(why_nothing(ledger, now)));
        }
        ledger.weak += u32::from(matches!(reason, Reason::Threshold(_)));
        return;
    }
    let after = ledger.bare_total(now.transcript);
    ledger.proven = None;
    let is_of_all = !reason.is_of_newest() && !matches!(reason, Reason::Economy(_));
    if is_of_all {
        let is_weak = (before - after).0 * 10 < before.0;
        ledger.weak = if is_weak { ledger.weak + 1 } else { 0 };
    }
    let is_sent = !reason.is_of_newest();
    if is_sent {
        let mut shown = std::mem::take(&mut ledger.shown);
        Arc::make_mut(&mut shown).retain(|place| ledger.is_as_it_came(place));
        ledger.shown = shown;
        ledger.told = Pressure::None;
    }
    outlook.is_changed = true;
    // What a cap folds was not sent yet, so it breaks nothing.
    outlook.broke(is_sent.then_some(first_changed));
    let mut account = std::mem::take(&mut ledger.account);
    let price = now.prices.map(|prices| account.broke(now.transcript, ledger, first_changed, prices));
    ledger.account = account;
    ledger.shortened.extend(&user_text);
    ledger.receipts.push(Receipt {
        at: now.transcript.len(),
        reason,
        stage: reached,
        before,
        after,
        passes: by_pass(&left),
        rewritten: if is_sent { cost_from(ledger, now.transcript, first_changed) } else { Tokens::ZERO },
        price,
        left,
        user_text,
    });
}

fn by_pass(left: &[Left]) -> Vec<PassReport> {
    let mut passes: Vec<PassReport> = Vec::new();
    for one in left {
        let won = one.before - one.after;
        match passes.iter_mut().find(|report| report.pass == one.pass) {
            Some(report) => {
                report.n_folded += 1;
                report.won += won;
            }
            None => passes.push(PassReport { pass: one.pass, n_folded: 1, won }),
        }
    }
    passes
}

/// What the view costs from an entry on.
pub(crate) fn cost_from(ledger: &Ledger, transcript: &Transcript, from: usize) -> Tokens {
    let entries: Tokens = (from..transcript.len()).map(|i| ledger.cost(transcript, EntryId::from(i))).sum();
    let parts = ledger.live_segments().flat_map(|segment| &segment.parts);
    entries + parts.filter(|part| part.at.index() >= from).map(|part| part.tokens).sum()
}

fn why_nothing(ledger: &Ledger, now: &Moment<'_>) -> String {
    let total = ledger.bare_total(now.transcript);
    if now.transcript.is_empty() {
        return "nothing has been said yet".to_owned();
    }
    let mark = now.budget.room().permille(now.policy.low_mark);
    let is_of_all = matches!(now.event, Some(Event::FoldRequested { range: None }));
    if is_of_all && total <= mark {
        let further = "a smaller window, a lower mark (low_mark) or a range of entries folds more";
        return format!("it is within the low mark of {mark} tokens, and a fold goes no further; {further}");
    }
    format!("nothing old is left to fold: {total} tokens are people's words, system text, or too new")
}

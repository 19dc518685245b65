//! One policy at one window: the views before each reply, what they contain and what they cost.

use fanfold_core::{Entry, Event, Handle, Receipt, Session, View, ViewError};
use fanfold_wire::{Change, Conversation, Memo};
use rustc_hash::FxHashMap;

use crate::content::analysis::{RecordAnalysis, ReplyAtomId};
use crate::content::atoms::AtomClass;
use crate::content::contents::ContentId;
use crate::content::readability::RewrittenText;
use crate::content::text::Needle;
use crate::next_reply::{NextReply, pieces};
use crate::originals::{HandleMap, OriginalCache};
use crate::prices::{Bill, ChargedRequest, CostMeter};
use crate::replay::ReplayedFold;
use crate::sums::{DISTANCES, ReplayTotals, ReplyTally};
use crate::validity::{is_valid, n_shared};

/// The prices of `billed_a` and `billed_o`: the unchanged prefix, and the rest at two prices.
const READ: f64 = 0.1;
const WRITE_A: f64 = 1.25;
const WRITE_O: f64 = 1.0;

/// The distance in tokens above which an atom is old in any window.
const MAX_OLD: f64 = 16_000.0;

/// The distance in tokens above which a missing atom needs a recall. Closer ones are numbers of lines that the newest
/// result left out.
const MIN_FAR: f64 = 2_000.0;

/// The prefix of the working context, which is not a segment.
const CONTEXT_PREFIX: &str = "<fanfold>\nWorking context";

/// One policy at one window.
pub(crate) struct PolicyRun {
    policy: usize,
    window: u64,
    session: Session<'static>,
    meter: CostMeter,
    has_receipts: bool,
    folds: Vec<ReplayedFold>,
    sums: ReplayTotals,
    /// The last view.
    before: Option<Vec<ContentId>>,
    handles: Vec<Handle>,
    handle_map: HandleMap,
    rewritten: RewrittenText,
    memo: Memo<ContentId>,
    /// For each message, the number of the last view that contained it.
    last_view: Vec<u32>,
    n_views: u32,
    is_shown: FxHashMap<Handle, bool>,
}

/// The view for one reply.
pub(crate) struct SentView {
    contents: Vec<ContentId>,
    handles: Vec<Handle>,
}

impl PolicyRun {
    pub(crate) fn new(
        (policy, window): (usize, u64),
        session: Session<'static>,
        meter: CostMeter,
        has_receipts: bool,
    ) -> PolicyRun {
        PolicyRun {
            policy,
            window,
            session,
            meter,
            has_receipts,
            folds: Vec::new(),
            sums: ReplayTotals::default(),
            before: None,
            handles: Vec::new(),
            handle_map: HandleMap::default(),
            rewritten: RewrittenText::default(),
            memo: Memo::default(),
            last_view: Vec::new(),
            n_views: 0,
            is_shown: FxHashMap::default(),
        }
    }

    pub(crate) fn apply(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Append(entry) => {
                    self.session.append(Entry::clone(entry));
                }
                Change::Answer(call, outcome) => {
                    self.session.set_result(*call, outcome.clone());
                }
            }
        }
    }

    /// Reports to the session that the provider's cache has expired.
    pub(crate) fn expire_cache(&mut self) {
        self.session.apply(Event::CacheExpired);
    }

    /// Compares the current charges with those of the unfolded requests.
    pub(crate) fn compare(&mut self, unfolded: Bill) {
        if unfolded.dollars > 0.0 {
            self.sums.worst = self.sums.worst.max(self.meter.bill().dollars / unfolded.dollars);
        }
    }

    /// The messages to send now. If there is no view, the conversation is sent unchanged.
    pub(crate) fn view(
        &mut self,
        conversation: &Conversation,
        analysis: &mut RecordAnalysis<'_>,
        reply: usize,
    ) -> SentView {
        let view = match view_of(&mut self.session) {
            Ok(view) => view,
            Err(_) => {
                return SentView { contents: analysis.content_ids[..reply].to_vec(), handles: Vec::new() };
            }
        };
        let RecordAnalysis { content_ids, contents, .. } = analysis;
        let sent = conversation.encode_with(
            self.session.transcript(),
            &view,
            &mut self.memo,
            |message| content_ids[message],
            |message| contents.add(message),
        );
        SentView { contents: sent, handles: view.handles }
    }

    /// Measures a view: its size, how much of what the reply used it contains, and its price.
    pub(crate) fn measure(
        &mut self,
        analysis: &RecordAnalysis<'_>,
        originals: &mut OriginalCache,
        next: &NextReply,
        sent: SentView,
    ) {
        let reply = next.reply;
        let is_pressed = analysis.raw(reply) > self.window;
        let n_sent = self.add_size(analysis, &sent.contents);
        self.charge(analysis, next, &sent.contents);
        self.mark_messages(analysis, reply, &sent.contents);
        self.handles = sent.handles;
        self.before = Some(sent.contents);
        self.count_repeats(analysis, next);
        if is_pressed {
            self.count_users(analysis, reply);
            self.count_copied(analysis, next);
        }
        let mut tally = ReplyTally::default();
        for i in 0..analysis.used[&reply].len() {
            self.count_atom(analysis, originals, (reply, i, is_pressed), &mut tally);
        }
        if tally.far_missing > 0 {
            self.sums.needed_recalls += 1;
            self.sums.recall_dollars += self.meter.price().recall_dollars(n_sent);
        }
        let part = if is_pressed { &mut self.sums.pressed } else { &mut self.sums.early };
        part.calls += 1;
        part.sent += n_sent;
        tally.add_to(part);
    }

    /// The policy and window, the totals, and the folds.
    pub(crate) fn finish(mut self) -> ((usize, u64), ReplayTotals, Vec<ReplayedFold>) {
        self.sums.folds = self.session.ledger().receipts().len() as u64;
        self.sums.bill = self.meter.bill();
        ((self.policy, self.window), self.sums, self.folds)
    }

    /// Charges the request, and the price of a break with the previous one.
    fn charge(&mut self, analysis: &RecordAnalysis<'_>, next: &NextReply, contents: &[ContentId]) {
        let is_segment = |content: &ContentId| {
            let text = &analysis.contents[*content].text;
            text.starts_with("<fanfold>") && !text.starts_with(CONTEXT_PREFIX)
        };
        // The tool schemas are a piece before the messages.
        let mark = contents.iter().rposition(is_segment).map(|last| last + 2);
        let pieces = pieces(analysis, contents);
        let request = ChargedRequest { pieces, mark, output: next.output, at: next.at };
        let charge = self.meter.charge(&request);
        let is_broken = self.before.as_ref().is_some_and(|before| n_shared(before, contents) < before.len());
        if is_broken {
            let rewritten = (charge.tokens - charge.read).saturating_sub(next.new);
            self.sums.break_tokens += rewritten;
            self.sums.break_dollars += rewritten as f64 * charge.per_rewritten;
        }
        let removed = analysis.raw(next.reply).saturating_sub(charge.tokens);
        self.sums.removed_gross += removed;
        self.sums.removed_unique = removed;
        if self.has_receipts {
            let new = self.session.ledger().receipts().iter().skip(self.folds.len());
            let fold = |receipt: &Receipt| ReplayedFold {
                reply: next.reply,
                receipt: receipt.clone(),
                dollars: receipt.rewritten.0 as f64 * charge.per_rewritten,
            };
            self.folds.extend(new.map(fold));
        }
    }

    fn count_repeats(&mut self, analysis: &RecordAnalysis<'_>, next: &NextReply) {
        for &result in &analysis.repeats[next.n] {
            self.sums.repeats += 1;
            self.sums.repeats_folded += u64::from(!self.is_in_view(result as usize));
        }
    }

    fn count_copied(&mut self, analysis: &RecordAnalysis<'_>, next: &NextReply) {
        let is_old = |distance: f64| distance > 0.25 * self.window as f64;
        for span in analysis.copied[next.n].iter().filter(|span| is_old(span.distance)) {
            let is_there = span.messages.iter().any(|message| self.is_in_view(*message as usize))
                || memchr::memmem::find(self.rewritten.text.as_bytes(), span.text.as_bytes()).is_some();
            let ReplayTotals { copied, copied_there, coined, coined_there, .. } = &mut self.sums;
            let (n, n_there) = if span.is_coined { (coined, coined_there) } else { (copied, copied_there) };
            *n += 1;
            *n_there += u64::from(is_there);
        }
    }

    /// Counts the size of a view, and whether a provider would accept it.
    fn add_size(&mut self, analysis: &RecordAnalysis<'_>, contents: &[ContentId]) -> u64 {
        let tokens = |contents: &[ContentId]| -> u64 {
            contents.iter().map(|content| analysis.contents[*content].tokens).sum()
        };
        let n_sent = analysis.base + tokens(contents);
        let sums = &mut self.sums;
        let mut n_cached = 0;
        if let Some(before) = &self.before {
            let n_shared = n_shared(before, contents);
            sums.rewrites += u64::from(n_shared < before.len());
            n_cached = analysis.base + tokens(&contents[..n_shared]);
        }
        let (cached, new) = (n_cached as f64, (n_sent - n_cached) as f64);
        sums.billed_a += READ * cached + WRITE_A * new;
        sums.billed_o += READ * cached + WRITE_O * new;
        sums.calls += 1;
        sums.messages += contents.len() as u64;
        sums.sent += n_sent;
        sums.peak = sums.peak.max(n_sent);
        sums.over += u64::from(n_sent > self.window);
        sums.invalid += u64::from(!is_valid(analysis, contents));
        n_sent
    }

    /// Marks the messages of the conversation that are in the view, and collects the rewritten texts.
    fn mark_messages(&mut self, analysis: &RecordAnalysis<'_>, reply: usize, contents: &[ContentId]) {
        self.last_view.resize(analysis.content_ids.len(), 0);
        self.n_views += 1;
        let mut new = Vec::new();
        for content in contents {
            let positions = &analysis.contents[*content].positions;
            if positions.first().is_some_and(|first| (*first as usize) < reply) {
                positions.iter().for_each(|position| self.last_view[*position as usize] = self.n_views);
            } else {
                new.push(*content);
            }
        }
        if new != self.rewritten.contents {
            self.rewritten = RewrittenText::new(analysis, new);
            self.is_shown.clear();
        }
    }

    fn is_in_view(&self, message: usize) -> bool {
        self.last_view[message] == self.n_views
    }

    fn count_users(&mut self, analysis: &RecordAnalysis<'_>, reply: usize) {
        for &user in analysis.users.iter().take_while(|user| **user < reply) {
            let is_there = self.is_in_view(user)
                || *self.rewritten.users.entry(user).or_insert_with(|| {
                    let text = analysis.text_of(user as u32).trim();
                    self.rewritten.text.contains(text)
                });
            self.sums.users += 1;
            self.sums.users_there += u64::from(is_there);
        }
    }

    fn count_atom(
        &mut self,
        analysis: &RecordAnalysis<'_>,
        originals: &mut OriginalCache,
        (reply, i, is_pressed): (usize, usize, bool),
        tally: &mut ReplyTally,
    ) {
        let used = analysis.used[&reply][i];
        let is_old = used.distance > (0.25 * self.window as f64).min(MAX_OLD);
        if used.class == AtomClass::Line {
            if is_old {
                tally.lines += 1;
                tally.lines_there += u64::from(self.has_line(analysis, reply, used.atom));
            }
            return;
        }
        let is_unchanged = self.is_unchanged(analysis, reply, used.atom);
        let is_there = is_unchanged || self.is_in_rewritten(analysis, used.atom);
        let is_read = is_unchanged
            || is_there
                && (used.class.is_self_contained() || self.rewritten.is_readable(analysis, reply, used.atom));
        tally.atoms += 1;
        tally.there += u64::from(is_there);
        tally.read += u64::from(is_read);
        tally.far_missing += u64::from(!is_read && used.distance > MIN_FAR);
        if is_pressed {
            let step = DISTANCES.iter().take_while(|from| used.distance >= **from as f64).count();
            let sum = &mut self.sums.by_distance[step];
            *sum = (sum.0 + 1, sum.1 + u64::from(is_read));
        }
        if !is_old {
            return;
        }
        let sum = self.sums.by_class.entry(used.class.name()).or_default();
        *sum = (sum.0 + 1, sum.1 + u64::from(is_read));
        tally.old += 1;
        tally.old_there += u64::from(is_there);
        tally.old_read += u64::from(is_read);
        let is_recalled = is_read || self.is_recalled(analysis, originals, used.atom);
        tally.old_recalled += u64::from(is_recalled);
        if used.is_tool_only {
            tally.tool_only += 1;
            tally.tool_only_read += u64::from(is_read);
        }
    }

    /// True if an unchanged message in the view contains an atom.
    fn is_unchanged(&self, analysis: &RecordAnalysis<'_>, reply: usize, atom: ReplyAtomId) -> bool {
        let occurrences = analysis.occurrences_before(atom, reply);
        occurrences.iter().any(|occurrence| self.is_in_view(occurrence.message as usize))
    }

    /// True if the rewritten text contains an atom on word boundaries.
    fn is_in_rewritten(&mut self, analysis: &RecordAnalysis<'_>, atom: ReplyAtomId) -> bool {
        let RewrittenText { contains, text, .. } = &mut self.rewritten;
        *contains.entry(atom).or_insert_with(|| analysis.needles[atom as usize].is_in(text))
    }

    /// True if the view contains a line, which may be part of a longer one.
    fn has_line(&mut self, analysis: &RecordAnalysis<'_>, reply: usize, line: ReplyAtomId) -> bool {
        if self.is_unchanged(analysis, reply, line) {
            return true;
        }
        let RewrittenText { contains, text, .. } = &mut self.rewritten;
        *contains.entry(line).or_insert_with(|| analysis.needles[line as usize].is_part_of(text))
    }

    /// True if a handle in the view recalls an atom without filling the window.
    fn is_recalled(
        &mut self,
        analysis: &RecordAnalysis<'_>,
        originals: &mut OriginalCache,
        atom: u32,
    ) -> bool {
        let max = (self.window / 4).max(2000);
        for at in 0..self.handles.len() {
            let handle = self.handles[at];
            // A handle counts if it appears in the view; the rewritten text is searched first.
            let is_shown = *self.is_shown.entry(handle).or_insert_with(|| {
                let needle = Needle::new(&handle.to_string());
                let mut contents = self.before.iter().flatten();
                needle.is_in(&self.rewritten.text)
                    || contents.any(|content| needle.is_in(&analysis.contents[*content].text))
            });
            if !is_shown {
                continue;
            }
            let tokens = originals.tokens_with_atom(
                (analysis, atom),
                (&self.session, &mut self.handle_map),
                handle,
                max,
            );
            if let Some(tokens) = tokens {
                self.sums.recalls += 1;
                self.sums.recall_tokens += tokens;
                return true;
            }
        }
        false
    }
}

/// The view to send.
fn view_of(session: &mut Session<'_>) -> Result<View, ViewError> {
    if session.policy().working_context {
        return session.view_with_context();
    }
    session.view().cloned()
}

//! One policy at one window: what is sent before each reply, and what it holds and costs.

use fanfold_core::{Entry, Event, Handle, Receipt, Refusal, Session, View};
use fanfold_wire::{Change, Conversation, Memo};
use rustc_hash::FxHashMap;

use crate::atoms::Class;
use crate::looks::LookId;
use crate::moment::{Moment, pieces};
use crate::prices::{Bill, Meter, Request};
use crate::readable::NewText;
use crate::recalled::{Named, Originals};
use crate::replay::FoldMade;
use crate::sent::{is_valid, n_shared};
use crate::sums::{DISTANCES, Sums, Tally};
use crate::text::Needle;
use crate::trajectory::Trajectory;

/// What a view is billed at by the yardstick: what is as before, and the two prices of the rest.
const READ: f64 = 0.1;
const WRITE_A: f64 = 1.25;
const WRITE_O: f64 = 1.0;

/// How the working context begins, which is no segment.
const CONTEXT: &str = "<fanfold>\nWorking context";

/// One policy at one window.
pub(crate) struct Run {
    policy: usize,
    window: u64,
    session: Session<'static>,
    meter: Meter,
    has_receipts: bool,
    folds: Vec<FoldMade>,
    sums: Sums,
    /// What was sent last.
    before: Option<Vec<LookId>>,
    handles: Vec<Handle>,
    named: Named,
    new: NewText,
    memo: Memo<LookId>,
    /// Which messages are in the view, by the reply for which they were marked.
    marks: Vec<u32>,
    mark: u32,
    is_named: FxHashMap<Handle, bool>,
}

/// What is sent for one reply.
pub(crate) struct Sent {
    looks: Vec<LookId>,
    handles: Vec<Handle>,
}

impl Run {
    pub(crate) fn new(
        (policy, window): (usize, u64),
        session: Session<'static>,
        meter: Meter,
        has_receipts: bool,
    ) -> Run {
        Run {
            policy,
            window,
            session,
            meter,
            has_receipts,
            folds: Vec::new(),
            sums: Sums::default(),
            before: None,
            handles: Vec::new(),
            named: Named::default(),
            new: NewText::default(),
            memo: Memo::default(),
            marks: Vec::new(),
            mark: 0,
            is_named: FxHashMap::default(),
        }
    }

    pub(crate) fn take(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Append(entry) => {
                    self.session.append(Entry::clone(entry));
                }
                Change::Answer(call, outcome) => {
                    self.session.answer(*call, outcome.clone());
                }
            }
        }
    }

    /// Takes note that the provider has forgotten what was sent.
    pub(crate) fn cool(&mut self) {
        self.session.on(Event::Cooled);
    }

    /// Compares what all requests until now cost with what they had cost as they came.
    pub(crate) fn compare(&mut self, untouched: Bill) {
        if untouched.dollars > 0.0 {
            self.sums.worst = self.sums.worst.max(self.meter.bill().dollars / untouched.dollars);
        }
    }

    /// The messages to send now. Where there is no view, the conversation goes out as it came.
    pub(crate) fn sent(
        &mut self,
        conversation: &Conversation,
        trajectory: &mut Trajectory<'_>,
        reply: usize,
    ) -> Sent {
        let view = match view_of(&mut self.session) {
            Ok(view) => view,
            Err(_) => {
                return Sent { looks: trajectory.look_of[..reply].to_vec(), handles: Vec::new() };
            }
        };
        let Trajectory { look_of, looks, .. } = trajectory;
        let sent = conversation.encode_with(
            self.session.transcript(),
            &view,
            &mut self.memo,
            |message| look_of[message],
            |message| looks.of(message),
        );
        Sent { looks: sent, handles: view.handles }
    }

    /// Counts what is sent, what of the reply it holds, and what it costs.
    pub(crate) fn measure(
        &mut self,
        trajectory: &Trajectory<'_>,
        originals: &mut Originals,
        moment: &Moment,
        sent: Sent,
    ) {
        let reply = moment.reply;
        let is_pressed = trajectory.raw(reply) > self.window;
        let n_sent = self.bill(trajectory, &sent.looks);
        self.charge(trajectory, moment, &sent.looks);
        self.mark_messages(trajectory, reply, &sent.looks);
        self.handles = sent.handles;
        self.before = Some(sent.looks);
        self.count_repeats(trajectory, moment);
        if is_pressed {
            self.count_users(trajectory, reply);
            self.count_copied(trajectory, moment);
        }
        let mut tally = Tally::default();
        for i in 0..trajectory.used[&reply].len() {
            self.count_atom(trajectory, originals, (reply, i, is_pressed), &mut tally);
        }
        let part = if is_pressed { &mut self.sums.pressed } else { &mut self.sums.early };
        part.calls += 1;
        part.sent += n_sent;
        tally.add_to(part);
    }

    /// What was counted, under which policy and window, and the folds.
    pub(crate) fn end(mut self) -> ((usize, u64), Sums, Vec<FoldMade>) {
        self.sums.folds = self.session.ledger().receipts().len() as u64;
        self.sums.bill = self.meter.bill();
        ((self.policy, self.window), self.sums, self.folds)
    }

    /// Charges the request, and says what a break with the one before has cost.
    fn charge(&mut self, trajectory: &Trajectory<'_>, moment: &Moment, looks: &[LookId]) {
        let is_note = |look: &LookId| {
            let text = &trajectory.looks[*look].text;
            text.starts_with("<fanfold>") && !text.starts_with(CONTEXT)
        };
        // The tool schemas are a piece before the messages.
        let mark = looks.iter().rposition(is_note).map(|last| last + 2);
        let pieces = pieces(trajectory, looks);
        let request = Request { pieces, mark, output: moment.output, at: moment.at };
        let charge = self.meter.take(&request);
        let is_broken = self.before.as_ref().is_some_and(|before| n_shared(before, looks) < before.len());
        if is_broken {
            let rewritten = (charge.tokens - charge.read).saturating_sub(moment.new);
            self.sums.break_tokens += rewritten;
            self.sums.break_dollars += rewritten as f64 * charge.per_rewritten;
        }
        let removed = trajectory.raw(moment.reply).saturating_sub(charge.tokens);
        self.sums.removed_gross += removed;
        self.sums.removed_unique = removed;
        if self.has_receipts {
            let made = self.session.ledger().receipts().iter().skip(self.folds.len());
            let fold = |receipt: &Receipt| FoldMade {
                reply: moment.reply,
                receipt: receipt.clone(),
                dollars: receipt.rewritten.0 as f64 * charge.per_rewritten,
            };
            self.folds.extend(made.map(fold));
        }
    }

    fn count_repeats(&mut self, trajectory: &Trajectory<'_>, moment: &Moment) {
        for &result in &trajectory.repeats[moment.n] {
            self.sums.repeats += 1;
            self.sums.repeats_folded += u64::from(!self.is_there(result as usize));
        }
    }

    fn count_copied(&mut self, trajectory: &Trajectory<'_>, moment: &Moment) {
        let is_old = |distance: f64| distance > 0.25 * self.window as f64;
        for span in trajectory.copied[moment.n].iter().filter(|span| is_old(span.distance)) {
            let is_there = span.messages.iter().any(|message| self.is_there(*message as usize))
                || memchr::memmem::find(self.new.text.as_bytes(), span.text.as_bytes()).is_some();
            let Sums { copied, copied_there, coined, coined_there, .. } = &mut self.sums;
            let (n, n_there) = if span.is_coined { (coined, coined_there) } else { (copied, copied_there) };
            *n += 1;
            *n_there += u64::from(is_there);
        }
    }

    /// Counts what it costs, and what a provider would say to it.
    fn bill(&mut self, trajectory: &Trajectory<'_>, looks: &[LookId]) -> u64 {
        let tokens =
            |looks: &[LookId]| -> u64 { looks.iter().map(|look| trajectory.looks[*look].tokens).sum() };
        let n_sent = trajectory.base + tokens(looks);
        let sums = &mut self.sums;
        let mut n_cached = 0;
        if let Some(before) = &self.before {
            let n_shared = n_shared(before, looks);
            sums.rewrites += u64::from(n_shared < before.len());
            n_cached = trajectory.base + tokens(&looks[..n_shared]);
        }
        let (cached, new) = (n_cached as f64, (n_sent - n_cached) as f64);
        sums.billed_a += READ * cached + WRITE_A * new;
        sums.billed_o += READ * cached + WRITE_O * new;
        sums.calls += 1;
        sums.messages += looks.len() as u64;
        sums.sent += n_sent;
        sums.peak = sums.peak.max(n_sent);
        sums.over += u64::from(n_sent > self.window);
        sums.invalid += u64::from(!is_valid(trajectory, looks));
        n_sent
    }

    /// Finds out which messages of the conversation are in the view, and which texts are new.
    fn mark_messages(&mut self, trajectory: &Trajectory<'_>, reply: usize, looks: &[LookId]) {
        self.marks.resize(trajectory.look_of.len(), 0);
        self.mark += 1;
        let mut new = Vec::new();
        for look in looks {
            let places = &trajectory.looks[*look].at;
            if places.first().is_some_and(|first| (*first as usize) < reply) {
                places.iter().for_each(|place| self.marks[*place as usize] = self.mark);
            } else {
                new.push(*look);
            }
        }
        if new != self.new.looks {
            self.new = NewText::new(trajectory, new);
            self.is_named.clear();
        }
    }

    fn is_there(&self, message: usize) -> bool {
        self.marks[message] == self.mark
    }

    fn count_users(&mut self, trajectory: &Trajectory<'_>, reply: usize) {
        for &user in trajectory.users.iter().take_while(|user| **user < reply) {
            let is_there = self.is_there(user)
                || *self.new.users.entry(user).or_insert_with(|| {
                    let text = trajectory.text_of(user as u32).trim();
                    self.new.text.contains(text)
                });
            self.sums.users += 1;
            self.sums.users_there += u64::from(is_there);
        }
    }

    fn count_atom(
        &mut self,
        trajectory: &Trajectory<'_>,
        originals: &mut Originals,
        (reply, i, is_pressed): (usize, usize, bool),
        tally: &mut Tally,
    ) {
        let used = trajectory.used[&reply][i];
        let needle = &trajectory.needles[used.atom as usize];
        let is_old = used.distance > 0.25 * self.window as f64;
        let seen = trajectory.occurrences_before(used.atom, reply);
        let mut is_there = seen.iter().any(|occurrence| self.is_there(occurrence.message as usize));
        if used.class == Class::Line {
            if is_old {
                let new = &mut self.new;
                is_there =
                    is_there || *new.holds.entry(used.atom).or_insert_with(|| needle.is_part_of(&new.text));
                tally.lines += 1;
                tally.lines_there += u64::from(is_there);
            }
            return;
        }
        let mut is_read = is_there;
        if !is_there {
            let new = &mut self.new;
            is_there = *new.holds.entry(used.atom).or_insert_with(|| needle.is_in(&new.text));
            is_read = is_there && (used.class.is_clear() || new.is_readable(trajectory, reply, used.atom));
        }
        tally.atoms += 1;
        tally.there += u64::from(is_there);
        tally.read += u64::from(is_read);
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
        let is_recalled = is_read || self.is_recalled(trajectory, originals, used.atom);
        tally.old_recalled += u64::from(is_recalled);
        if used.is_tool_only {
            tally.tool_only += 1;
            tally.tool_only_read += u64::from(is_read);
        }
    }

    /// Whether a handle in the view brings an atom back without filling the window.
    fn is_recalled(&mut self, trajectory: &Trajectory<'_>, originals: &mut Originals, atom: u32) -> bool {
        let most = (self.window / 4).max(2000);
        for at in 0..self.handles.len() {
            let handle = self.handles[at];
            // A handle counts if it stands in what is sent, most likely in what fanfold wrote.
            let is_named = *self.is_named.entry(handle).or_insert_with(|| {
                let needle = Needle::new(&handle.to_string());
                let mut looks = self.before.iter().flatten();
                needle.is_in(&self.new.text) || looks.any(|look| needle.is_in(&trajectory.looks[*look].text))
            });
            if !is_named {
                continue;
            }
            let cost = originals.cost_of((trajectory, atom), (&self.session, &mut self.named), handle, most);
            if let Some(cost) = cost {
                self.sums.recalls += 1;
                self.sums.recall_tokens += cost;
                return true;
            }
        }
        false
    }
}

/// The view to send, or why there is none.
fn view_of(session: &mut Session<'_>) -> Result<View, Refusal> {
    if session.policy().working_context {
        return session.view_with_context();
    }
    session.view().cloned()
}

//! One recorded conversation through policies, reply by reply.
//!
//! Before each recorded reply the policy gets what had been said until then, and gives the view that would have been
//! sent. All policies and windows go side by side, so that each message is decoded once.

use fanfold_core::{Budget, Count, Entry, Handle, Policy, Refusal, Session, Tokens, View};
use fanfold_wire::{Change, Conversation, Format};
use rustc_hash::FxHashMap;
use serde_json::value::RawValue;

use crate::atoms::{Class, Known};
use crate::readable::NewText;
use crate::recalled::{Named, Originals};
use crate::record::Record;
use crate::sent::{is_valid, n_shared};
use crate::sums::{DISTANCES, Sums};
use crate::text::Needle;
use crate::trajectory::{LookId, Trajectory};

/// How conversations are replayed.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The policies.
    pub policies: Vec<Policy>,
    /// The windows, in tokens.
    pub windows: Vec<u64>,
    /// What of each window is kept for the answer.
    pub reserve: u64,
    /// A conversation is used at a window if it is so many times as long.
    pub min_ratio: f64,
}

/// One conversation under one policy and window.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The conversation.
    pub id: String,
    /// The collection that it is from.
    pub source: String,
    /// The policy, by its position in the terms.
    pub policy: usize,
    /// The window.
    pub window: u64,
    /// The conversation's whole length.
    pub raw: u64,
    /// What was counted.
    pub sums: Sums,
}

/// What a view is billed at, beside the first: the part that is read from the cache, and the two prices of the rest.
const READ: f64 = 0.1;
const WRITE_A: f64 = 1.25;
const WRITE_O: f64 = 1.0;

/// Replays one conversation under every policy and window for which it is long enough.
pub fn replay(record: &Record, terms: &Terms, known: &Known, counter: &'static dyn Count) -> Vec<Outcome> {
    let mut trajectory = Trajectory::new(record, known, counter);
    let mut runs = Vec::new();
    for &window in &terms.windows {
        let is_long = trajectory.total() as f64 >= terms.min_ratio * window as f64;
        for (i, policy) in terms.policies.iter().enumerate().filter(|_| is_long) {
            let budget = Budget::with_reserve(Tokens(window), Tokens(terms.reserve));
            let mut session = Session::new(policy.clone(), budget, counter);
            session.set_tools(Tokens(trajectory.base));
            runs.push(Run::new(i, window, session));
        }
    }
    if runs.is_empty() {
        return Vec::new();
    }
    let mut followed = Followed::new();
    let mut originals = Originals::default();
    for reply in trajectory.replies.clone() {
        let changes = followed.grow(&record.messages[..reply], counter);
        for run in &mut runs {
            run.take(&changes);
            let sent = run.sent(&followed, &mut trajectory, reply);
            run.measure(&trajectory, &mut originals, reply, sent);
        }
    }
    let raw = trajectory.total();
    let outcome = |run: Run| Outcome {
        id: record.id.clone(),
        source: record.source.clone(),
        policy: run.policy,
        window: run.window,
        raw,
        sums: run.sums,
    };
    runs.into_iter().map(outcome).collect()
}

/// The conversation as its messages arrive.
struct Followed {
    conversation: Conversation,
    /// Where each message begins in the conversation's text, and where the last one ends.
    starts: Vec<usize>,
}

impl Followed {
    fn new() -> Followed {
        Followed { conversation: Conversation::of_messages(Format::Chat), starts: vec![0] }
    }

    /// Takes what is new, and gives back what it does to a transcript, counted.
    fn grow(&mut self, messages: &[Box<RawValue>], counter: &dyn Count) -> Vec<Change> {
        let n_held = self.starts.len() - 1;
        let new: Vec<&RawValue> = messages[n_held..].iter().map(|message| &**message).collect();
        for message in &new {
            let last = self.starts.last().copied().unwrap_or_default();
            self.starts.push(last + message.get().len());
        }
        let mut changes = self.conversation.append(&new);
        changes.iter_mut().for_each(|change| change.count(counter));
        changes
    }

    /// Which message a text is, if it is one as it came.
    fn message(&self, base: usize, text: &str) -> Option<usize> {
        let offset = (text.as_ptr() as usize).checked_sub(base)?;
        self.starts.binary_search(&offset).ok()
    }
}

/// One policy at one window.
struct Run {
    policy: usize,
    window: u64,
    session: Session<'static>,
    sums: Sums,
    /// What was sent last.
    before: Option<Vec<LookId>>,
    handles: Vec<Handle>,
    named: Named,
    new: NewText,
    /// Which messages are in the view, by the reply for which they were marked.
    marks: Vec<u32>,
    mark: u32,
    is_named: FxHashMap<Handle, bool>,
}

/// What is sent for one reply.
struct Sent {
    looks: Vec<LookId>,
    handles: Vec<Handle>,
}

impl Run {
    fn new(policy: usize, window: u64, session: Session<'static>) -> Run {
        Run {
            policy,
            window,
            session,
            sums: Sums::default(),
            before: None,
            handles: Vec::new(),
            named: Named::default(),
            new: NewText::default(),
            marks: Vec::new(),
            mark: 0,
            is_named: FxHashMap::default(),
        }
    }

    fn take(&mut self, changes: &[Change]) {
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

    /// The messages to send now. Where there is no view, the conversation goes out as it came.
    fn sent(&mut self, followed: &Followed, trajectory: &mut Trajectory<'_>, reply: usize) -> Sent {
        let view = match view_of(&mut self.session) {
            Ok(view) => view,
            Err(_) => {
                return Sent { looks: trajectory.look_of[..reply].to_vec(), handles: Vec::new() };
            }
        };
        let messages = followed.conversation.encode_messages(self.session.transcript(), &view);
        let base = followed.conversation.messages().next().map_or(0, |first| first.as_ptr() as usize);
        let look = |message: std::borrow::Cow<'_, str>| match followed.message(base, &message) {
            Some(at) => trajectory.look_of[at],
            None => trajectory.look(&message),
        };
        let looks = messages.into_iter().map(look).collect();
        Sent { looks, handles: view.handles }
    }

    fn measure(&mut self, trajectory: &Trajectory<'_>, originals: &mut Originals, reply: usize, sent: Sent) {
        let is_pressed = trajectory.raw(reply) > self.window;
        let n_sent = self.bill(trajectory, &sent.looks);
        self.mark_messages(trajectory, reply, &sent.looks);
        self.handles = sent.handles;
        self.before = Some(sent.looks);
        if is_pressed {
            self.count_users(trajectory, reply);
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

    /// Counts what it costs, and what a provider would say to it.
    fn bill(&mut self, trajectory: &Trajectory<'_>, looks: &[LookId]) -> u64 {
        let tokens = |looks: &[LookId]| -> u64 {
            looks.iter().map(|look| trajectory.looks[*look as usize].tokens).sum()
        };
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
            let places = &trajectory.looks[*look as usize].at;
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
        let most = (self.window as f64 / 4.0).max(2000.0);
        for at in 0..self.handles.len() {
            let handle = self.handles[at];
            // A handle counts if it stands in what is sent, most likely in what fanfold wrote.
            let is_named = *self.is_named.entry(handle).or_insert_with(|| {
                let needle = Needle::new(&handle.to_string());
                let mut looks = self.before.iter().flatten();
                needle.is_in(&self.new.text)
                    || looks.any(|look| needle.is_in(&trajectory.looks[*look as usize].text))
            });
            if !is_named {
                continue;
            }
            let cost = originals.cost_of((trajectory, atom), (&self.session, &mut self.named), handle);
            if let Some(cost) = cost.filter(|cost| *cost as f64 <= most) {
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

/// What one reply used and what of it was there.
#[derive(Default)]
struct Tally {
    atoms: u64,
    there: u64,
    read: u64,
    old: u64,
    old_there: u64,
    old_read: u64,
    old_recalled: u64,
    tool_only: u64,
    tool_only_read: u64,
    lines: u64,
    lines_there: u64,
}

impl Tally {
    fn add_to(&self, part: &mut crate::sums::Part) {
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

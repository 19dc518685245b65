//! Everything that is computed from a transcript and can be computed again.
//!
//! An analysis only saves time: dropping it at any point changes no byte of a view or a receipt.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::actions::tool_rule::ToolRule;
use crate::actions::{Action, parse_action_with_rules};
use crate::facts::StepFacts;
use crate::model::handle::Hash;
use crate::model::parallel::ParallelMap;
use crate::model::script::write_script;
use crate::model::transcript::{CallId, Entry, EntryId, Speaker, Transcript};
use crate::select::scan::{LocalScan, Scan, scan_entries, scan_entry};
use crate::select::scorer::{AtomValues, Lexicon};
use crate::text::condense::CachedOutlines;

/// Cached results of analysing the entries of one transcript under one set of tool rules.
#[derive(Debug, Clone, Default)]
pub struct Analysis {
    /// The hash of each entry's script.
    hashes: BTreeMap<EntryId, Hash>,
    /// Scanned entries outside of segments.
    scans: BTreeMap<EntryId, Arc<Scan>>,
    pub(crate) lexicon: Arc<Lexicon>,
    /// A buffer for the values of atoms.
    pub(crate) values: AtomValues,
    actions: BTreeMap<CallId, Arc<Action>>,
    /// The calls that edited a part of a file.
    edits: EditCalls,
    pub(crate) outlines: CachedOutlines,
    /// The facts of each step.
    facts: BTreeMap<EntryId, Arc<StepFacts>>,
}

/// The calls that edited a part of a file, among the first entries.
#[derive(Debug, Clone, Default)]
struct EditCalls {
    n_entries: usize,
    calls: Arc<Vec<CallId>>,
}

impl Analysis {
    /// The scan of an entry.
    pub(crate) fn scan(&mut self, transcript: &Transcript, rules: &[ToolRule], id: EntryId) -> Arc<Scan> {
        if let Some(scan) = self.scans.get(&id) {
            return Arc::clone(scan);
        }
        self.add_scan(id, scan_entry(transcript.entry(id), rules))
    }

    fn add_scan(&mut self, id: EntryId, scan: LocalScan) -> Arc<Scan> {
        let scan = Arc::new(scan.into_scan(Arc::make_mut(&mut self.lexicon)));
        self.scans.insert(id, Arc::clone(&scan));
        scan
    }

    /// Returns whether the scan of an entry is cached.
    pub(crate) fn has_scan(&self, id: EntryId) -> bool {
        self.scans.contains_key(&id)
    }

    /// Drops the scan of an entry that is not needed any more.
    pub(crate) fn drop_scan(&mut self, id: EntryId) {
        self.scans.remove(&id);
    }

    /// Adds the entries before `end` to the lexicon.
    pub(crate) fn index(
        &mut self,
        transcript: &Transcript,
        rules: &[ToolRule],
        parallel: &dyn ParallelMap,
        end: usize,
    ) {
        let new = self.lexicon.n_indexed()..end;
        let entries: Vec<&Entry> = new.clone().map(|i| transcript.entry(EntryId::from(i))).collect();
        for (i, scan) in new.zip(scan_entries(&entries, rules, parallel)) {
            let scan = self.add_scan(EntryId::from(i), scan);
            Arc::make_mut(&mut self.lexicon).index(transcript, &scan);
        }
    }

    /// The action of a call.
    pub(crate) fn action(&mut self, transcript: &Transcript, rules: &[ToolRule], id: CallId) -> Arc<Action> {
        let action = self.actions.entry(id);
        Arc::clone(action.or_insert_with(|| Arc::new(parse_action_with_rules(rules, transcript.call(id)))))
    }

    /// The calls that edited a part of a file, oldest first. Calls that wrote a whole file are not among them.
    pub(crate) fn edits(&mut self, transcript: &Transcript, rules: &[ToolRule]) -> Arc<Vec<CallId>> {
        for (i, entry) in transcript.entries().iter().enumerate().skip(self.edits.n_entries) {
            let n_calls = entry.step().map_or(0, |step| step.calls.len());
            for call in 0..n_calls {
                let id = CallId { step: EntryId::from(i), call: call as u16 };
                if self.action(transcript, rules, id).is_partial_edit() {
                    Arc::make_mut(&mut self.edits.calls).push(id);
                }
            }
        }
        self.edits.n_entries = transcript.len();
        Arc::clone(&self.edits.calls)
    }

    /// The facts of a step; `None` for a prompt.
    pub(crate) fn facts(
        &mut self,
        transcript: &Transcript,
        rules: &[ToolRule],
        id: EntryId,
    ) -> Option<Arc<StepFacts>> {
        if let Some(facts) = self.facts.get(&id) {
            return Some(Arc::clone(facts));
        }
        let step = transcript.entry(id).step()?;
        let next = transcript.entries().get(id.index() + 1);
        let is_answered = next.and_then(Entry::prompt).is_some_and(|next| next.speaker == Speaker::Harness);
        let facts = Arc::new(StepFacts::new(step, step.calls.is_empty() && !is_answered, rules));
        // The next entry decides whether the text is a report.
        if next.is_some() {
            self.facts.insert(id, Arc::clone(&facts));
        }
        Some(facts)
    }

    /// The hash of an entry's script.
    pub(crate) fn hash(&mut self, transcript: &Transcript, entry: EntryId) -> Hash {
        *self.hashes.entry(entry).or_insert_with(|| hash_of_entry(transcript, entry))
    }

    /// Drops everything that depends on the results of a step, because one of them is about to arrive.
    pub(crate) fn invalidate(&mut self, step: EntryId) {
        self.hashes.remove(&step);
        self.facts.remove(&step);
        self.scans.remove(&step);
        if step.index() < self.lexicon.n_indexed() {
            // Entries cannot be removed from the lexicon, and scans refer to its ids.
            self.lexicon = Arc::default();
            self.scans.clear();
        }
    }
}

/// Computes the hash of an entry's script.
pub(crate) fn hash_of_entry(transcript: &Transcript, entry: EntryId) -> Hash {
    let mut script = String::new();
    write_script(transcript.entry(entry), &mut script);
    Hash::new(script.as_bytes())
}

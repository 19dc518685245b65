//! Pairs results with calls.

use std::collections::{BTreeMap, BTreeSet};

use fanfold_core::{CallId, EntryId};

/// The calls without a result.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pairing {
    by_id: BTreeMap<String, BTreeSet<CallId>>,
    /// The waiting calls of the newest step with an original id.
    named: BTreeMap<CallId, String>,
    /// The waiting calls of the newest step without an id.
    unnamed: BTreeSet<CallId>,
}

impl Pairing {
    /// Starts a step. Later results without an id belong to its calls.
    pub(crate) fn begin(&mut self) {
        self.named.clear();
        self.unnamed.clear();
    }

    /// Adds a call that waits for its result, with its original id.
    pub(crate) fn wait(&mut self, call: CallId, id: Option<&str>) {
        let Some(id) = id else {
            self.unnamed.insert(call);
            return;
        };
        self.by_id.entry(id.to_owned()).or_default().insert(call);
        self.named.insert(call, id.to_owned());
    }

    /// Takes the call of a result: the newest step's first call with the id, or else its first without one.
    pub(crate) fn take(&mut self, id: Option<&str>) -> Option<CallId> {
        if let Some(call) = id.and_then(|id| self.newest_with_id(id)) {
            self.close(call, id);
            return Some(call);
        }
        if let Some(call) = self.unnamed.pop_first() {
            return Some(call);
        }
        let is_unnamed = id.is_none();
        let call = *self.named.keys().next().filter(|_| is_unnamed)?;
        self.close(call, id);
        Some(call)
    }

    /// Takes the newest step's first call without an id.
    pub(crate) fn take_unnamed(&mut self) -> Option<CallId> {
        self.unnamed.pop_first()
    }

    /// Returns whether a call of the newest step without an id waits.
    pub(crate) fn awaits_unnamed(&self) -> bool {
        !self.unnamed.is_empty()
    }

    fn newest_with_id(&self, id: &str) -> Option<CallId> {
        let waiting = self.by_id.get(id)?;
        let first = CallId { step: waiting.last()?.step, call: 0 };
        waiting.range(first..).next().copied()
    }

    fn close(&mut self, call: CallId, id: Option<&str>) {
        let named = self.named.remove(&call);
        let Some(id) = named.as_deref().or(id) else { return };
        let Some(waiting) = self.by_id.get_mut(id) else { return };
        waiting.remove(&call);
        if waiting.is_empty() {
            self.by_id.remove(id);
        }
    }
}

/// Ids of calls, each used once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ids {
    used: BTreeSet<String>,
}

impl Ids {
    /// The id itself if it is free, or else an id made from the position of the call.
    pub(crate) fn claim(&mut self, id: Option<&str>, step: EntryId, call: usize) -> String {
        if let Some(id) = id.filter(|id| !self.used.contains(*id)) {
            self.used.insert(id.to_owned());
            return id.to_owned();
        }
        let mut generated = format!("call_{}_{call}", step.0);
        while self.used.contains(&generated) {
            generated.push('_');
        }
        self.used.insert(generated.clone());
        generated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(step: u32, call: u16) -> CallId {
        CallId { step: EntryId(step), call }
    }

    #[test]
    fn a_repeated_id_belongs_to_the_newest_step() {
        let mut pairing = Pairing::default();
        pairing.begin();
        pairing.wait(call(0, 0), Some("call_0"));
        pairing.begin();
        pairing.wait(call(2, 0), Some("call_0"));
        pairing.wait(call(2, 1), Some("call_0"));
        assert_eq!(pairing.take(Some("call_0")), Some(call(2, 0)));
        assert_eq!(pairing.take(Some("call_0")), Some(call(2, 1)));
        assert_eq!(pairing.take(Some("call_0")), Some(call(0, 0)));
        assert_eq!(pairing.take(Some("call_0")), None);
    }

    #[test]
    fn unnamed_results_go_to_unnamed_calls() {
        let mut pairing = Pairing::default();
        pairing.begin();
        pairing.wait(call(0, 0), Some("a"));
        pairing.wait(call(0, 1), None);
        assert_eq!(pairing.take(Some("b")), Some(call(0, 1)));
        assert_eq!(pairing.take(Some("b")), None);
        assert_eq!(pairing.take(None), Some(call(0, 0)));
        assert_eq!(pairing.take(None), None);
    }

    #[test]
    fn duplicate_ids_are_replaced() {
        let mut ids = Ids::default();
        assert_eq!(ids.claim(Some("a"), EntryId(1), 0), "a");
        assert_eq!(ids.claim(Some("a"), EntryId(1), 1), "call_1_1");
        assert_eq!(ids.claim(None, EntryId(1), 1), "call_1_1_");
    }
}

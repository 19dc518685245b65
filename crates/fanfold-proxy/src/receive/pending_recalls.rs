//! Recalls that a provider waits for.
//!
//! A provider may hold the conversation itself (`previous_response_id`). The client then sends only the results of
//! its own calls; results of recalls that the model made in the same answer have to be added, or the provider
//! refuses the request.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use fanfold_wire::Incoming;
use fanfold_wire::reply::{HiddenRecalls, insert_hidden_recalls};

/// The maximum number of answers with pending recalls; the oldest are dropped.
const MAX_PENDING: usize = 256;

/// Recalls made in the same answers as calls of the client, oldest first.
#[derive(Default)]
pub(crate) struct PendingRecalls {
    /// Guards the list; held while it is scanned once.
    answers: Mutex<VecDeque<HiddenRecalls>>,
}

impl PendingRecalls {
    /// Adds the recalls of an answer. They are kept after use, because a request may be sent again.
    pub(crate) fn add(&self, recalls: HiddenRecalls) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= MAX_PENDING {
            answers.pop_front();
        }
        answers.push_back(recalls);
    }

    /// Adds the results of pending recalls to a body. Returns `None` if it continues no conversation held by the
    /// provider, or no recall is pending for it.
    pub(crate) fn insert_into(&self, body: &Incoming) -> Option<String> {
        if !body.is_continued() {
            return None;
        }
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        insert_hidden_recalls(body.text(), body.format(), answers.make_contiguous())
    }
}

#[cfg(test)]
mod tests {
    use fanfold_wire::Format;
    use fanfold_wire::reply::{RECALL_TOOL, ToolCall};

    use super::*;

    fn recalls_with(client_call: &str) -> HiddenRecalls {
        let (id, name) = (format!("recall with {client_call}"), RECALL_TOOL.to_owned());
        let call = ToolCall { id, name, arguments: "{}".to_owned() };
        HiddenRecalls {
            client_calls: vec![client_call.to_owned()],
            recalls: vec![(call, "original".to_owned())],
        }
    }

    fn body(key: &str, call: &str) -> Incoming {
        let item = format!(r#"{{"type":"function_call_output","call_id":"{call}","output":""}}"#);
        Incoming::open(format!(r#"{{{key}"input":[{item}]}}"#), Some(Format::Responses)).unwrap()
    }

    #[test]
    fn adds_results_only_to_conversations_held_by_the_provider() {
        let pending = PendingRecalls::default();
        pending.add(recalls_with("call_1"));
        for key in [r#""previous_response_id":"r","#, r#""conversation":"c","#] {
            let whole = pending.insert_into(&body(key, "call_1")).unwrap();
            assert!(whole.contains(r#""call_id":"recall with call_1","output":"original""#));
            assert_eq!(pending.insert_into(&body(key, "call_2")), None, "no recall belongs to this call");
        }
        assert_eq!(pending.insert_into(&body("", "call_1")), None, "the body has the whole conversation");
    }

    #[test]
    fn drops_the_oldest_recalls() {
        let pending = PendingRecalls::default();
        (0..=MAX_PENDING).for_each(|n| pending.add(recalls_with(&format!("call_{n}."))));
        let is_pending = |n: usize| {
            let body = body(r#""previous_response_id":"r","#, &format!("call_{n}."));
            pending.insert_into(&body).is_some()
        };
        assert!(!is_pending(0) && is_pending(1) && is_pending(MAX_PENDING));
    }
}

//! Recalls that a provider waits for. Where it holds the conversation (`previous_response_id`), a client sends the results
//! of its own calls alone; what the model recalled beside them goes with those, or the provider refuses them all.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use fanfold_wire::reply::{HiddenRecalls, insert_hidden_recalls};
use fanfold_wire::{Format, Incoming};

/// So many are held; the oldest go first.
const MOST_KEPT: usize = 256;

/// The recalls that were made beside calls of clients', newest last.
#[derive(Default)]
pub(crate) struct Waiting {
    /// Guards the list; held for a look through it.
    besides: Mutex<VecDeque<HiddenRecalls>>,
}

impl Waiting {
    /// Takes up recalls of an answer. They stay, because a request may be sent again.
    pub(crate) fn add(&self, beside: HiddenRecalls) {
        let mut besides = self.besides.lock().unwrap_or_else(PoisonError::into_inner);
        if besides.len() >= MOST_KEPT {
            besides.pop_front();
        }
        besides.push_back(beside);
    }

    /// A body that goes on with what the provider holds, with the results that it waits for; none if it waits for none.
    pub(crate) fn put_into(&self, body: &Bytes, format: Format) -> Option<Bytes> {
        if !format.can_continue() {
            return None;
        }
        let text = std::str::from_utf8(body).ok()?;
        let mut besides = self.besides.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = insert_hidden_recalls(text, format, besides.make_contiguous())?;
        drop(besides);
        let is_continued = Incoming::open(text, Some(format)).is_ok_and(|incoming| incoming.is_continued());
        is_continued.then(|| whole.into())
    }
}

#[cfg(test)]
mod tests {
    use fanfold_wire::reply::{ToolCall, RECALL_TOOL};

    use super::*;

    fn beside(theirs: &str) -> HiddenRecalls {
        let (id, name) = (format!("ours of {theirs}"), RECALL_TOOL.to_owned());
        let call = ToolCall { id, name, arguments: "{}".to_owned() };
        HiddenRecalls { client_calls: vec![theirs.to_owned()], recalls: vec![(call, "said".to_owned())] }
    }

    fn body(key: &str, call: &str) -> Bytes {
        format!(r#"{{{key}"input":[{{"type":"function_call_output","call_id":"{call}","output":""}}]}}"#)
            .into()
    }

    #[test]
    fn only_what_goes_on_with_what_a_provider_holds_gets_them() {
        let waiting = Waiting::default();
        waiting.add(beside("call_1"));
        let put = |body: Bytes| waiting.put_into(&body, Format::Responses);
        for key in [r#""previous_response_id":"r","#, r#""conversation":"c","#] {
            let whole = put(body(key, "call_1")).unwrap();
            assert!(
                String::from_utf8_lossy(&whole).contains(r#""call_id":"ours of call_1","output":"said""#)
            );
            assert_eq!(put(body(key, "call_2")), None, "those are others");
        }
        assert_eq!(put(body("", "call_1")), None, "it has what the provider has");
        assert_eq!(waiting.put_into(&body("", "call_1"), Format::Chat), None);
    }

    #[test]
    fn the_oldest_go_first() {
        let waiting = Waiting::default();
        (0..=MOST_KEPT).for_each(|n| waiting.add(beside(&format!("call_{n}."))));
        let put = |n: usize| {
            let body = body(r#""previous_response_id":"r","#, &format!("call_{n}."));
            waiting.put_into(&body, Format::Responses).is_some()
        };
        assert!(!put(0) && put(1) && put(MOST_KEPT));
    }
}

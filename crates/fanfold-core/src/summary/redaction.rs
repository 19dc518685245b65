//! Redacts secrets in the originals before anything is derived from them.
//!
//! A rule recognises a secret by its context, such as the first line of a key or the name before a token. Chosen
//! lines and shortened texts lose this context, so whole texts are redacted first.

use std::borrow::Cow;

use crate::model::transcript::{Body, Entry, EntryId, Transcript};

/// Redacts a text. Returns it unchanged if it contains no secrets.
pub type RedactFn = for<'a> fn(&'a str) -> Cow<'a, str>;

/// Redacts nothing.
pub(crate) fn keep_text(text: &str) -> Cow<'_, str> {
    Cow::Borrowed(text)
}

/// A redacted copy of a transcript with the original costs, and the entries that changed.
pub(crate) fn redact_transcript(transcript: &Transcript, redact: RedactFn) -> (Transcript, Vec<EntryId>) {
    let mut out = transcript.clone();
    let ids = (0..transcript.len()).map(EntryId::from);
    let changed = ids.filter(|id| out.change(*id, |entry| redact_entry(entry, redact))).collect();
    (out, changed)
}

fn redact_entry(entry: &mut Entry, redact: RedactFn) -> bool {
    let mut is_changed = false;
    each_body(entry, |body| is_changed |= body.change(redact));
    is_changed
}

fn each_body(entry: &mut Entry, mut found: impl FnMut(&mut Body)) {
    match entry {
        Entry::Prompt(prompt) => found(&mut prompt.body),
        Entry::Step(step) => {
            found(&mut step.text);
            found(&mut step.reasoning);
            for call in &mut step.calls {
                found(&mut call.arguments);
                if let Some(outcome) = &mut call.result {
                    found(&mut outcome.body);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tokens::Words;
    use crate::notation::parse;

    fn without_secret(text: &str) -> Cow<'_, str> {
        if text.contains("swordfish") { text.replace("swordfish", "[gone]").into() } else { keep_text(text) }
    }

    #[test]
    fn redacts_every_text_in_a_copy() {
        let conversation = "user    swordfish is it\nsay     I know swordfish\ncall    read swordfish.md\nresult  swordfish\nuser    ok\n";
        let mut transcript = Transcript::new();
        for entry in parse(conversation).expect("the notation is right") {
            transcript.append(entry, &Words);
        }
        let before = transcript.clone();
        let (out, changed) = redact_transcript(&transcript, without_secret);
        assert_eq!(transcript.entries(), before.entries());
        assert_eq!((out.len(), out.total()), (transcript.len(), transcript.total()));
        assert!(!format!("{:?}", out.entries()).contains("swordfish"), "{:?}", out.entries());
        assert_eq!(changed.first(), Some(&EntryId(0)));
        assert!(!changed.contains(&EntryId::from(transcript.len() - 1)));
    }
}

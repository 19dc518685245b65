//! What must not leave, taken out of the originals before anything is made of them.
//!
//! A rule that knows a secret knows it by what stands around it: the first line of a key, the name before a token. Lines that are
//! chosen and words that are cut have lost that, so what is veiled is each whole piece, and all the rest sees only what is left.

use std::borrow::Cow;

use crate::model::transcript::{Body, Entry, EntryId, Transcript};

/// Gives a text without what must not leave; the text itself where there is nothing of the kind.
pub type Veil = for<'a> fn(&'a str) -> Cow<'a, str>;

/// For texts that may leave as they are.
pub(crate) fn nothing(text: &str) -> Cow<'_, str> {
    Cow::Borrowed(text)
}

/// A transcript behind a veil, and the entries in which something was taken out. What they cost is what the originals cost.
pub(crate) fn veiled(transcript: &Transcript, veil: Veil) -> (Transcript, Vec<EntryId>) {
    let mut out = transcript.clone();
    let ids = (0..transcript.len()).map(EntryId::from);
    let changed = ids.filter(|id| out.change(*id, |entry| veil_entry(entry, veil))).collect();
    (out, changed)
}

fn veil_entry(entry: &mut Entry, veil: Veil) -> bool {
    let mut is_changed = false;
    each_body(entry, |body| is_changed |= body.change(veil));
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
        if text.contains("swordfish") { text.replace("swordfish", "[gone]").into() } else { nothing(text) }
    }

    #[test]
    fn every_text_of_an_entry_is_veiled_and_the_original_stays() {
        let said = "user    swordfish is it\nsay     I know swordfish\ncall    read swordfish.md\nresult  swordfish\nuser    ok\n";
        let mut transcript = Transcript::new();
        for entry in parse(said).expect("the notation is right") {
            transcript.append(entry, &Words);
        }
        let before = transcript.clone();
        let (out, changed) = veiled(&transcript, without_secret);
        assert_eq!(transcript.entries(), before.entries());
        assert_eq!((out.len(), out.total()), (transcript.len(), transcript.total()));
        assert!(!format!("{:?}", out.entries()).contains("swordfish"), "{:?}", out.entries());
        assert_eq!(changed.first(), Some(&EntryId(0)));
        assert!(!changed.contains(&EntryId::from(transcript.len() - 1)));
    }
}

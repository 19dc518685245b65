//! Properties of all dialects, on generated bodies. A failure prints its seed.

use std::sync::Arc;

use fanfold_core::{Body, CallId, Edit, Entry, EntryId, Item, Place, Transcript, View, Voice, Words};
use fanfold_testkit::Rng;
use fanfold_testkit::generators::bodies::{BodyFormat, hostile, rich};
use fanfold_wire::{Change, Conversation, Format, Incoming};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::provider_rules;

const N_CASES: u64 = 2_000;

fn format(kind: BodyFormat) -> Format {
    match kind {
        BodyFormat::Chat => Format::Chat,
        BodyFormat::Responses => Format::Responses,
        BodyFormat::Anthropic => Format::Anthropic,
        BodyFormat::ShareGpt => Format::ShareGpt,
        BodyFormat::Hermes => Format::Hermes,
    }
}

pub(crate) fn transcript_of(changes: Vec<Change>) -> Transcript {
    let mut transcript = Transcript::new();
    for change in changes {
        if let Change::Answer(call, _) = &change {
            assert!(transcript.call(*call).result.is_none(), "{call:?} is answered twice");
        }
        change.apply(&mut transcript, &Words);
    }
    transcript
}

pub(crate) fn whole(transcript: &Transcript) -> View {
    View { items: (0..transcript.len()).map(|i| Item::Whole(EntryId::from(i))).collect(), ..View::default() }
}

/// Replaces the body of a conversation, if the new one extends it.
pub(crate) fn continue_with(conversation: &mut Conversation, body: &str) -> Option<Vec<Change>> {
    let incoming = Incoming::open(body, Some(conversation.format())).unwrap();
    conversation.continue_from(incoming).ok()
}

fn open(kind: BodyFormat, body: &str) -> (Conversation, Transcript) {
    let (conversation, changes) = Conversation::decode(body, Some(format(kind))).unwrap();
    (conversation, transcript_of(changes))
}

/// Runs a check on rich bodies of every format.
fn for_rich(check: impl Fn(BodyFormat, &str, &mut Rng)) {
    for kind in BodyFormat::ALL {
        for seed in 0..N_CASES {
            let body = rich(kind, seed);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                check(kind, &body, &mut Rng::new(!seed));
            }));
            assert!(result.is_ok(), "{kind:?}, seed {seed}:\n{body}");
        }
    }
}

/// Every location of a transcript that a pass may fold.
fn places(transcript: &Transcript) -> Vec<Place> {
    let mut places = Vec::new();
    for (i, entry) in transcript.entries().iter().enumerate() {
        let id = EntryId::from(i);
        match entry {
            Entry::Prompt(prompt) if prompt.body.as_str().contains("\"compaction\"") => {}
            Entry::Prompt(prompt) => {
                if entry.prompt().is_some_and(|p| p.origin.message != u32::MAX) && !prompt.body.is_empty() {
                    places.push(Place::Text(id));
                    places.extend((0..prompt.media.len()).map(|n| Place::PromptMedia(id, n as u16)));
                }
            }
            Entry::Step(step) => {
                places.extend((!step.text.as_str().trim().is_empty()).then_some(Place::Text(id)));
                places.extend((!step.reasoning.is_empty()).then_some(Place::Reasoning(id)));
                for (n, call) in step.calls.iter().enumerate() {
                    let call_id = CallId { step: id, call: n as u16 };
                    places.extend((!call.arguments.is_empty()).then_some(Place::Arguments(call_id)));
                    let Some(outcome) = &call.result else { continue };
                    places.push(Place::Result(call_id));
                    places.extend((0..outcome.media.len()).map(|n| Place::ResultMedia(call_id, n as u16)));
                }
            }
        }
    }
    places
}

fn stub(place: Place) -> Arc<str> {
    match place {
        Place::Reasoning(_) => "".into(),
        Place::Arguments(_) => r#"{"folded": "args"}"#.into(),
        Place::Text(_) | Place::Result(_) => "[stub ü]".into(),
        Place::PromptMedia(..) | Place::ResultMedia(..) => "[media]".into(),
    }
}

/// A random view with folds.
fn any_view(transcript: &Transcript, rng: &mut Rng) -> View {
    let all = places(transcript);
    let mut items = Vec::new();
    for (i, entry) in transcript.entries().iter().enumerate() {
        let id = EntryId::from(i);
        let is_foldable = !entry.is_user() && !entry.is_system() && !transcript.is_running(id);
        match rng.below(5) {
            0 if is_foldable => {}
            1 if is_foldable => {
                let voice = if rng.percent(80) { Voice::Fanfold } else { Voice::Assistant };
                items.push(Item::Note { text: "a note".into(), voice });
            }
            2 | 3 => {
                let mut edits = Vec::new();
                for place in all.iter().filter(|place| place.entry() == id) {
                    let is_media_gone = matches!(place, Place::ResultMedia(call, _)
                        if edits.iter().any(|edit: &Edit| edit.place == Place::Result(*call)));
                    if rng.percent(40) && !is_media_gone {
                        edits.push(Edit { place: *place, stub: stub(*place) });
                    }
                }
                items.push(if edits.is_empty() { Item::Whole(id) } else { Item::Edited(id, edits) });
            }
            _ => items.push(Item::Whole(id)),
        }
        // A note may follow any new entry.
        if !entry.is_system() && !transcript.is_running(id) && rng.percent(15) {
            items.push(Item::Note { text: "a note".into(), voice: Voice::Fanfold });
        }
    }
    if rng.percent(70) {
        items.push(Item::Note { text: "go on".into(), voice: Voice::Fanfold });
    }
    View { items, ..View::default() }
}

#[test]
fn unchanged_views_are_sent_byte_for_byte() {
    let check = |kind: BodyFormat, body: &str| {
        let (conversation, transcript) = open(kind, body);
        assert_eq!(conversation.encode(&transcript, &whole(&transcript)), body);
        let messages = conversation.encode_messages(&transcript, &whole(&transcript));
        assert!(conversation.messages().eq(messages.iter().map(|message| &**message)));
    };
    for_rich(|kind, body, _| check(kind, body));
    let mut n_decoded = 0;
    for kind in BodyFormat::ALL {
        for seed in 0..N_CASES {
            let body = hostile(kind, seed);
            if Conversation::decode(&body, Some(format(kind))).is_ok() {
                n_decoded += 1;
                check(kind, &body);
            }
        }
    }
    assert!(n_decoded > 9_000, "{n_decoded}");
}

#[test]
fn formats_of_generated_bodies_are_detected() {
    for_rich(|kind, body, _| {
        let found = fanfold_wire::detect(body).unwrap();
        let is_bare = body.starts_with('[') || !body.contains("\"messages\"");
        assert!(found == format(kind) || is_bare, "{found}");
    });
}

#[test]
fn folded_bodies_are_valid() {
    for_rich(|kind, body, rng| {
        let (conversation, transcript) = open(kind, body);
        let view = any_view(&transcript, rng);
        let is_untouched = view == whole(&transcript);
        if is_untouched {
            return;
        }
        let encoded = conversation.encode(&transcript, &view);
        if let Err(why) = provider_rules::check(format(kind), &encoded) {
            panic!("{why}\n{encoded}");
        }
        let again = Conversation::decode(&encoded, Some(format(kind))).unwrap();
        let transcript = transcript_of(again.1);
        assert_eq!(again.0.encode(&transcript, &whole(&transcript)), encoded);
    });
}

#[test]
fn hostile_bodies_do_not_panic() {
    for kind in BodyFormat::ALL {
        for seed in 0..N_CASES {
            let body = hostile(kind, seed);
            let Ok((conversation, changes)) = Conversation::decode(&body, Some(format(kind))) else {
                continue;
            };
            let transcript = transcript_of(changes);
            for repair in conversation.repairs() {
                assert!(!repair.to_string().is_empty());
            }
            let mut view = whole(&transcript);
            view.items.push(Item::Note { text: "a note".into(), voice: Voice::Fanfold });
            let encoded = conversation.encode(&transcript, &view);
            for strange in transcript.entries().iter().filter_map(|entry| entry.prompt()) {
                let raw = strange.body.as_str();
                let is_kept_whole = conversation.messages().any(|message| message == raw);
                assert!(
                    !is_kept_whole || encoded.contains(raw),
                    "{kind:?}, seed {seed}: {raw} is lost in\n{encoded}"
                );
            }
            let view = any_view(&transcript, &mut Rng::new(seed));
            let encoded = conversation.encode(&transcript, &view);
            let is_json = serde_json::from_str::<&RawValue>(&encoded).is_ok();
            let is_lines = encoded.lines().all(|line| serde_json::from_str::<&RawValue>(line).is_ok());
            assert!(is_json || is_lines, "{kind:?}, seed {seed}:\n{body}\n{encoded}");
        }
    }
}

/// The texts of a transcript. None of them may be lost.
fn texts(transcript: &Transcript) -> Vec<String> {
    let mut texts = Vec::new();
    let mut push = |body: &Body| {
        let has_text = !body.as_str().trim().is_empty();
        texts.extend(has_text.then(|| body.as_str().to_owned()));
    };
    for entry in transcript.entries() {
        match entry {
            Entry::Prompt(prompt) => push(&prompt.body),
            Entry::Step(step) => {
                push(&step.text);
                for call in &step.calls {
                    push(&call.arguments);
                    call.result.iter().for_each(|outcome| push(&outcome.body));
                }
            }
        }
    }
    texts.sort();
    texts
}

#[test]
fn notes_keep_all_other_texts() {
    for_rich(|kind, body, _| {
        let (conversation, transcript) = open(kind, body);
        let mut view = whole(&transcript);
        view.items.push(Item::Note { text: "a note of fanfold".into(), voice: Voice::Fanfold });
        let encoded = conversation.encode(&transcript, &view);
        let (_, changes) = Conversation::decode(&encoded, Some(format(kind))).unwrap();
        let after = texts(&transcript_of(changes)).join("\n");
        for text in texts(&transcript) {
            for line in text.lines() {
                assert!(after.contains(line.trim()), "{line:?} is lost in\n{encoded}");
            }
        }
        assert!(after.contains("a note of fanfold"));
        for unknown in ["hologram", "web_search_call", "compaction", "x_0", "x_1"] {
            let n = |text: &str| text.matches(unknown).count();
            let is_merged_away = kind == BodyFormat::Anthropic && unknown.starts_with("x_");
            let is_repaired_away = !conversation.repairs().is_empty() && unknown.starts_with("x_");
            let is_thought_alone = body.contains("\"summary\":[]");
            let is_excused = is_merged_away || is_repaired_away || is_thought_alone;
            assert!(is_excused || n(&encoded) == n(body), "{unknown} is lost in\n{encoded}");
        }
    });
}

#[test]
fn an_edit_changes_one_location() {
    for_rich(|kind, body, rng| {
        let (conversation, transcript) = open(kind, body);
        let places = places(&transcript);
        let is_odd =
            !conversation.repairs().is_empty() || body.contains("\"text\":\" \"") || body.contains("null");
        let has_open_call = |entry: &Entry| {
            entry.step().is_some_and(|step| step.calls.iter().any(|call| call.result.is_none()))
        };
        let has_lone_thought = body.contains("\"summary\":[]");
        // Providers reject an empty list of parts, so an edited message gets an empty text.
        let has_no_parts = ["\"content\":[]", "\"content\": []"].iter().any(|none| body.contains(none));
        let is_odd = is_odd || has_lone_thought || has_no_parts;
        let is_odd = is_odd || transcript.entries().iter().any(has_open_call);
        if places.is_empty() || is_odd || body.contains("cache_control") {
            return;
        }
        let place = places[rng.below(places.len())];
        let mut view = whole(&transcript);
        view.items[place.entry().index()] =
            Item::Edited(place.entry(), vec![Edit { place, stub: stub(place) }]);
        let after = conversation.encode_messages(&transcript, &view);
        let before: Vec<_> = conversation.messages().collect();
        let is_thought = matches!(place, Place::Reasoning(_));
        // Passes never fold entries that are always sent.
        let is_sealed = is_thought && body_at(&transcript, place).is_some_and(|body| !body.is_plain());
        if is_sealed {
            return;
        }
        let differing: Vec<_> = before.iter().zip(&after).filter(|(old, new)| *old != *new).collect();
        let n_added = after.len().abs_diff(before.len());
        let is_several_items = kind == BodyFormat::Responses && matches!(place, Place::Text(_));
        if n_added > 0 && (is_several_items || is_thought) {
            return;
        }
        assert_eq!(differing.len(), 1, "{place:?}");
        let (old, new) = differing[0];
        let (old, new): (Value, Value) =
            (serde_json::from_str(old).unwrap(), serde_json::from_str(new).unwrap());
        let n_leaves = n_differences(&old, &new);
        assert!(n_leaves >= 1, "{place:?} changed nothing");
        let is_lone_text = old.is_string();
        if is_lone_text {
            return;
        }
        let (same_start, same_end) = common_ends(differing[0].0, differing[0].1);
        let n_changed = differing[0].0.len().saturating_sub(same_start + same_end);
        let text = body_at(&transcript, place).filter(|body| &**body.original() == body.as_str());
        let n_text = text.filter(|text| !text.as_str().contains('\n')).map(|text| text.as_str().len());
        if let Some(n_text) = n_text.filter(|_| !is_thought) {
            assert!(n_changed <= 8 * n_text + 2, "{place:?} changed {n_changed} bytes of {old}");
        }
    });
}

fn n_differences(old: &Value, new: &Value) -> usize {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let n_new = new.keys().filter(|key| !old.contains_key(*key)).count();
            let of_old =
                old.iter().map(|(key, value)| new.get(key).map_or(1, |new| n_differences(value, new)));
            n_new + of_old.sum::<usize>()
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            old.iter().zip(new).map(|(old, new)| n_differences(old, new)).sum()
        }
        (old, new) => usize::from(old != new),
    }
}

fn common_ends(old: &str, new: &str) -> (usize, usize) {
    let start = old.bytes().zip(new.bytes()).take_while(|(old, new)| old == new).count();
    let end = old.bytes().rev().zip(new.bytes().rev()).take_while(|(old, new)| old == new).count();
    (start, end)
}

/// The body at a location of a transcript.
fn body_at(transcript: &Transcript, place: Place) -> Option<&Body> {
    let entry = transcript.entries().get(place.entry().index())?;
    match place {
        Place::Text(_) => entry.prompt().map(|p| &p.body).or(entry.step().map(|s| &s.text)),
        Place::Reasoning(_) => Some(&entry.step()?.reasoning),
        Place::Arguments(id) => Some(&entry.step()?.calls.get(usize::from(id.call))?.arguments),
        Place::Result(id) => Some(&entry.step()?.calls.get(usize::from(id.call))?.result.as_ref()?.body),
        Place::PromptMedia(..) | Place::ResultMedia(..) => None,
    }
}

/// The text at a location of a transcript.
fn text_at(transcript: &Transcript, place: Place) -> Option<String> {
    body_at(transcript, place).map(|body| body.as_str().trim().to_owned())
}

#[test]
fn an_edited_location_decodes_as_its_stub() {
    for_rich(|kind, body, rng| {
        let (conversation, transcript) = open(kind, body);
        let places = places(&transcript);
        // Edited messages lose their blank texts.
        let is_odd = !conversation.repairs().is_empty() || body.contains("\"text\":\" \"");
        if places.is_empty() || is_odd || body.contains("cache_control") {
            return;
        }
        let place = places[rng.below(places.len())];
        let is_media = matches!(place, Place::PromptMedia(..) | Place::ResultMedia(..));
        if is_media || matches!(place, Place::Reasoning(_)) {
            return;
        }
        let mut view = whole(&transcript);
        view.items[place.entry().index()] =
            Item::Edited(place.entry(), vec![Edit { place, stub: stub(place) }]);
        let encoded = conversation.encode(&transcript, &view);
        let (_, changes) = Conversation::decode(&encoded, Some(format(kind))).unwrap();
        let after = transcript_of(changes);
        if after.len() != transcript.len() {
            return;
        }
        for other in &places {
            let (before, now) = (text_at(&transcript, *other), text_at(&after, *other));
            if *other == place {
                let is_stub =
                    now.as_deref().is_some_and(|now| now.contains("stub ü") || now.contains("args"));
                assert!(is_stub, "{place:?} has the text {now:?} in\n{encoded}");
            } else if kind == BodyFormat::Responses && matches!(other, Place::Reasoning(_)) {
                // If a stub replaces several messages, their thoughts go with them.
            } else {
                assert_eq!(before, now, "{place:?} changed {other:?} in\n{encoded}");
            }
        }
    });
}

#[test]
fn appending_messages_equals_decoding_the_body() {
    for_rich(|kind, body, _| {
        if kind == BodyFormat::Responses || kind == BodyFormat::Hermes {
            return;
        }
        let (conversation, all) = open(kind, body);
        let mut slow = Conversation::empty(format(kind));
        let mut changes = Vec::new();
        for message in conversation.messages() {
            let raw: &RawValue = serde_json::from_str(message).unwrap();
            changes.extend(slow.append(&[raw]));
        }
        let n_outside =
            all.entries().iter().filter(|e| e.prompt().is_some_and(|p| p.origin.message == u32::MAX)).count();
        let bit_by_bit = transcript_of(changes);
        if n_outside == 0 {
            assert_eq!(bit_by_bit.entries(), all.entries());
        }
        assert_eq!(bit_by_bit.len() + n_outside, all.len());
        let raws: Vec<&RawValue> =
            conversation.messages().map(|m| serde_json::from_str(m).unwrap()).collect();
        assert_eq!(slow.common_prefix(&raws), raws.len());
        let encoded = slow.encode(&bit_by_bit, &whole(&bit_by_bit));
        let list: Vec<&RawValue> = serde_json::from_str(&encoded).unwrap();
        assert!(list.iter().map(|raw| raw.get()).eq(conversation.messages()));
    });
}

#[test]
fn a_longer_body_continues_a_shorter_one() {
    let short = r#"{"model":"a","messages":[{"role":"user","content":"hi"}]}"#;
    let long =
        r#"{"messages":[{"role":"user","content":"hi"}, {"role":"assistant","content":"ho"}],"model":"b"}"#;
    let (mut conversation, changes) = Conversation::decode(short, None).unwrap();
    let mut transcript = transcript_of(changes);
    let more = continue_with(&mut conversation, long).expect("the new body is longer");
    assert_eq!(more.len(), 1);
    more.into_iter().for_each(|change| change.apply(&mut transcript, &Words));
    assert_eq!(conversation.encode(&transcript, &whole(&transcript)), long);
    assert_eq!(conversation.model(), Some("b"));
    assert!(continue_with(&mut conversation, short).is_none(), "the new body is shorter");
    let other = long.replace("hi", "HI");
    assert!(continue_with(&mut conversation, &other).is_none(), "the new body is another conversation");
    assert_eq!(conversation.messages().len(), 2);
}

//! Damaged copies of a store: pages, truncations, headers, bytes.

use std::collections::BTreeSet;

use fanfold_testkit::Rng;

use super::{Damage, PAGE, Store};
use crate::attack::Trial;
use crate::attack::http::find;

/// Overwrites each page; a short run takes some of the first pages, where the roots are, and some others.
pub(super) fn pages(trial: &Trial, store: &Store, fill: fn(&mut Rng) -> u8, rng: &mut Rng) -> Vec<Damage> {
    const N_ROOTS: usize = 30;
    let n_pages = store.bytes.len() / PAGE;
    let chosen: BTreeSet<usize> = if trial.is_short {
        let mut chosen = BTreeSet::from([0, 3, 6]);
        chosen.extend((0..2).map(|_| 1 + rng.below(N_ROOTS)));
        chosen.extend((0..3).map(|_| rng.below(n_pages)));
        chosen
    } else {
        (0..n_pages).collect()
    };
    let damage = |page: usize| {
        let mut bytes = store.bytes.clone();
        bytes[page * PAGE..][..PAGE].iter_mut().for_each(|byte| *byte = fill(rng));
        Damage { name: format!("page {}", page + 1), bytes, required: None }
    };
    chosen.into_iter().map(damage).collect()
}

/// Cuts of whole pages and of any length.
pub(super) fn truncations(trial: &Trial, store: &Store, rng: &mut Rng) -> Vec<Damage> {
    let all = store.bytes.len();
    let mut cuts = vec![PAGE, 10 * PAGE, all / 10 / PAGE * PAGE, all / 2 / PAGE * PAGE];
    cuts.extend((0..trial.tries(1, 16)).map(|_| 1 + rng.below(all / 2)));
    let damage = |cut: usize| {
        let bytes = store.bytes[..all - cut].to_vec();
        let required = store.messages.keys().filter(|message| is_in(message, &bytes)).cloned().collect();
        Damage { name: format!("{cut} bytes cut"), bytes, required: Some(required) }
    };
    cuts.into_iter().map(damage).collect()
}

/// Returns whether the bytes contain a message. A message that is longer than a page is stored in parts.
fn is_in(message: &str, bytes: &[u8]) -> bool {
    const MAX_BYTES: usize = PAGE / 4;
    message.len() < MAX_BYTES && find(bytes, message.as_bytes()).is_some()
}

/// Damages in the first hundred bytes; all messages must be saved.
pub(super) fn headers(trial: &Trial, store: &Store, rng: &mut Rng) -> Vec<Damage> {
    /// The magic text, the page size, the versions, counts, the free list, the schema, the encoding, all.
    const FIELDS: [(usize, usize); 9] =
        [(0, 16), (16, 2), (18, 6), (24, 8), (32, 8), (40, 8), (56, 4), (92, 8), (0, 100)];
    let mut damages = Vec::new();
    for (from, length) in FIELDS.into_iter().step_by(trial.tries(2, 1)) {
        for is_zero in [true, false] {
            let mut bytes = store.bytes.clone();
            let field = bytes[from..][..length].iter_mut();
            field.for_each(|byte| *byte = if is_zero { 0 } else { rng.number() as u8 });
            let required = Some(store.messages.keys().cloned().collect());
            damages.push(Damage {
                name: format!("header bytes {from} to {}", from + length),
                bytes,
                required,
            });
        }
    }
    damages
}

/// Changes one byte anywhere.
pub(super) fn flips(trial: &Trial, store: &Store, rng: &mut Rng) -> Vec<Damage> {
    let mut flip = |_| {
        let mut bytes = store.bytes.clone();
        let at = rng.below(bytes.len());
        bytes[at] ^= 1 << rng.below(8);
        Damage { name: format!("byte {at}"), bytes, required: None }
    };
    (0..trial.tries(6, 200)).map(&mut flip).collect()
}

/// Makes one message a text that is not UTF-8.
pub(super) fn invalid_texts(trial: &Trial, store: &Store, rng: &mut Rng) -> Vec<Damage> {
    let messages: Vec<&String> =
        store.messages.keys().filter(|message| is_in(message, &store.bytes)).collect();
    let mut invalidate = |_| {
        let mut bytes = store.bytes.clone();
        let message = messages[rng.below(messages.len())];
        let at = find(&bytes, message.as_bytes()).unwrap_or_default() + message.len() / 2;
        bytes[at] = 0xff;
        Damage { name: format!("byte {at}"), bytes, required: None }
    };
    (0..trial.tries(2, 30)).map(&mut invalidate).collect()
}

//! Damages of a store: pages, truncations, headers, bytes.

use std::collections::BTreeSet;

use fanfold_testkit::Rng;

use super::{LEAST, Store};
use crate::attack::Trial;
use crate::attack::http::find;

const PAGE: usize = 4096;

/// A damage, and the share of the remaining messages that must be saved.
pub(super) struct Damage {
    pub(super) name: String,
    pub(super) least: f64,
    change: Change,
}

enum Change {
    Overwrite { at: usize, bytes: Vec<u8> },
    Truncate { length: usize },
}

impl Damage {
    fn overwrite(name: String, at: usize, bytes: Vec<u8>) -> Damage {
        Damage { name, least: LEAST, change: Change::Overwrite { at, bytes } }
    }

    /// The file after the damage.
    pub(super) fn apply(&self, file: &[u8]) -> Vec<u8> {
        let mut file = file.to_vec();
        match &self.change {
            Change::Overwrite { at, bytes } => file[*at..][..bytes.len()].copy_from_slice(bytes),
            Change::Truncate { length } => file.truncate(*length),
        }
        file
    }

    /// The messages to save: all, or those in the rest of a truncated file.
    pub(super) fn remaining<'s>(&self, store: &'s Store, damaged: &[u8]) -> BTreeSet<&'s String> {
        let is_truncated = matches!(self.change, Change::Truncate { .. });
        store.messages.keys().filter(|message| !is_truncated || is_in(message, damaged)).collect()
    }
}

/// Returns whether the bytes contain a message. A message that is longer than a page is stored in parts.
fn is_in(message: &str, bytes: &[u8]) -> bool {
    const MAX_BYTES: usize = PAGE / 4;
    message.len() < MAX_BYTES && find(bytes, message.as_bytes()).is_some()
}

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
    let mut bytes = || (0..PAGE).map(|_| fill(rng)).collect();
    let damage = |page: usize| Damage::overwrite(format!("page {}", page + 1), page * PAGE, bytes());
    chosen.into_iter().map(damage).collect()
}

/// Cuts of whole pages and of any length.
pub(super) fn truncations(trial: &Trial, store: &Store, rng: &mut Rng) -> Vec<Damage> {
    let all = store.bytes.len();
    let mut cuts = vec![PAGE, 10 * PAGE, all / 10 / PAGE * PAGE, all / 2 / PAGE * PAGE];
    cuts.extend((0..trial.tries(1, 16)).map(|_| 1 + rng.below(all / 2)));
    let damage = |cut: usize| Damage {
        name: format!("{cut} bytes cut"),
        least: 1.0,
        change: Change::Truncate { length: all - cut },
    };
    cuts.into_iter().map(damage).collect()
}

/// Damages in the first hundred bytes; all messages must be saved.
pub(super) fn headers(trial: &Trial, rng: &mut Rng) -> Vec<Damage> {
    /// The magic text, the page size, the versions, counts, the free list, the schema, the encoding, all.
    const FIELDS: [(usize, usize); 9] =
        [(0, 16), (16, 2), (18, 6), (24, 8), (32, 8), (40, 8), (56, 4), (92, 8), (0, 100)];
    let mut damages = Vec::new();
    for (at, length) in FIELDS.into_iter().step_by(trial.tries(2, 1)) {
        let random = (0..length).map(|_| rng.number() as u8).collect();
        for bytes in [vec![0; length], random] {
            let name = format!("header bytes {at} to {}", at + length);
            damages.push(Damage { least: 1.0, ..Damage::overwrite(name, at, bytes) });
        }
    }
    damages
}

/// Changes one bit anywhere.
pub(super) fn flips(trial: &Trial, store: &Store, rng: &mut Rng) -> Vec<Damage> {
    let mut flip = |_| {
        let at = rng.below(store.bytes.len());
        let changed = store.bytes[at] ^ (1 << rng.below(8));
        Damage::overwrite(format!("byte {at}"), at, vec![changed])
    };
    (0..trial.tries(6, 200)).map(&mut flip).collect()
}

/// Makes one message a text that is not UTF-8.
pub(super) fn invalid_texts(trial: &Trial, store: &Store, rng: &mut Rng) -> Vec<Damage> {
    let messages: Vec<&String> =
        store.messages.keys().filter(|message| is_in(message, &store.bytes)).collect();
    let mut invalidate = |_| {
        let message = messages[rng.below(messages.len())];
        let at = find(&store.bytes, message.as_bytes()).unwrap_or_default() + message.len() / 2;
        Damage::overwrite(format!("byte {at}"), at, vec![0xff])
    };
    (0..trial.tries(2, 30)).map(&mut invalidate).collect()
}

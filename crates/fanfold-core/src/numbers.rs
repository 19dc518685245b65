//! The numbers of atoms, found by their hashes.
//!
//! A slot holds most of an atom's hash and its number, and stands where the hash says or soon behind. So most lookups
//! touch one line of the cache, and a table that grows is copied in order, without looking at an atom.

use crate::atoms::Atom;

/// A table from atoms to their numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Numbers {
    /// Most of a hash above, a number and one more below; zero where nothing is.
    slots: Vec<u64>,
    n_taken: usize,
}

impl Numbers {
    /// No atom's number.
    pub(crate) const UNKNOWN: u32 = u32::MAX;

    /// Forgets everything. About so many atoms will come.
    pub(crate) fn restart(&mut self, n_expected: usize) {
        self.slots.clear();
        self.slots.resize((3 * n_expected).next_power_of_two().max(LEAST), 0);
        self.n_taken = 0;
    }

    /// The number of an atom, or `next` from now on. There are no more numbers than slots can hold: behind the last,
    /// all new atoms share it.
    pub(crate) fn find_or_take(&mut self, atom: Atom, next: u32) -> u32 {
        // Half of the slots are free: then the free one that ends a search is near.
        if 2 * self.n_taken >= self.slots.len() {
            self.grow();
        }
        match self.find_slot(atom) {
            Ok(number) => number,
            Err(at) => {
                let next = next.min(LAST);
                self.slots[at] = atom.hash() & !NUMBER | u64::from(next + 1);
                self.n_taken += 1;
                next
            }
        }
    }

    /// The number of each atom that stands where it should, with nothing to wait for in between: most are found this
    /// way, and the place of the others is in the cache when they are looked for.
    pub(crate) fn guesses(&self, atoms: impl Iterator<Item = Atom>) -> Vec<u32> {
        if self.slots.is_empty() {
            return atoms.map(|_| Numbers::UNKNOWN).collect();
        }
        let guess = |atom: Atom| {
            let slot = self.slots[self.place(atom.hash())];
            if is_of(slot, atom) { number_in(slot) } else { Numbers::UNKNOWN }
        };
        atoms.map(guess).collect()
    }

    /// The number of an atom, if it has one.
    pub(crate) fn find(&self, atom: Atom) -> Option<u32> {
        if self.slots.is_empty() { None } else { self.find_slot(atom).ok() }
    }

    /// The number of an atom, or the slot where it would stand.
    fn find_slot(&self, atom: Atom) -> Result<u32, usize> {
        let mut at = self.place(atom.hash());
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return Err(at);
            }
            if is_of(slot, atom) {
                return Ok(number_in(slot));
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Where a slot with this hash should stand: in a table twice as large, twice as far.
    fn place(&self, hash: u64) -> usize {
        (((hash >> 32) * self.slots.len() as u64) >> 32) as usize
    }

    fn grow(&mut self) {
        let larger = vec![0; (2 * self.slots.len()).max(LEAST)];
        let slots = std::mem::replace(&mut self.slots, larger);
        for slot in slots.into_iter().filter(|slot| *slot != 0) {
            let mut at = self.place(slot);
            while self.slots[at] != 0 {
                at = (at + 1) & (self.slots.len() - 1);
            }
            self.slots[at] = slot;
        }
    }
}

const LEAST: usize = 16;

/// The bits of a slot that hold a number and one more; the forty above tell atoms apart.
const NUMBER: u64 = (1 << 24) - 1;
const LAST: u32 = NUMBER as u32 - 1;

fn is_of(slot: u64, atom: Atom) -> bool {
    // An empty slot has a number of its own: none.
    (slot ^ atom.hash()) & !NUMBER == 0 && slot & NUMBER != 0
}

fn number_in(slot: u64) -> u32 {
    (slot & NUMBER) as u32 - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atoms::each_atom;

    #[test]
    fn numbers_are_found_again_however_the_table_grew() {
        let mut atoms = Vec::new();
        (0..5000).for_each(|i| each_atom(&format!("name_{i}"), |atom, _| atoms.push(atom)));
        let mut numbers = Numbers::default();
        assert_eq!(numbers.find(atoms[0]), None);
        for n_expected in [0, 100, 10_000] {
            numbers.restart(n_expected);
            for round in 0..2 {
                for (i, &atom) in atoms.iter().enumerate() {
                    let next = if round == 0 { i as u32 } else { 9_999 };
                    let number = numbers.find_or_take(atom, next);
                    assert_eq!(number, i as u32);
                    assert_eq!(numbers.find(atom), Some(i as u32));
                }
            }
        }
    }
}

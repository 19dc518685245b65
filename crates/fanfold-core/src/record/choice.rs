//! Chooses the pieces that are worth most per token: kind after kind, each up to its share of the room.

use std::collections::{BTreeMap, BinaryHeap};

use crate::model::tokens::Count;
use crate::record::pieces::{Piece, PieceKind, PiecePart};
use crate::text::condense::is_definition;

/// The shares of the room, cumulative: what a kind leaves goes to the next.
const SHARES: [(PieceKind, f32); 4] =
    [(PieceKind::Statement, 0.26), (PieceKind::Edit, 0.39), (PieceKind::Error, 0.44), (PieceKind::Line, 1.0)];
/// The least value of a line per token.
const FLOOR: f32 = 0.006;
/// The number of lines of one result after which further lines have half of their value.
const DAMP: f32 = 30.0;

/// A chosen piece with its cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChosenPiece {
    /// The index of the piece.
    pub(crate) piece: usize,
    pub(crate) tokens: usize,
    /// Its value per token when it was chosen.
    pub(crate) ratio: f32,
}

/// Chooses pieces for about `room` tokens. `values` holds the value of each atom; it is zero once the atom is visible.
pub(crate) fn choose(
    pieces: &[Piece<'_>],
    values: &mut [f32],
    counter: &dyn Count,
    room: usize,
) -> Vec<ChosenPiece> {
    let is_chosen = vec![false; pieces.len()];
    let mut choice = Choice {
        pieces,
        values,
        counter,
        n_taken: BTreeMap::new(),
        chosen: Vec::new(),
        is_chosen,
        room,
        spent: 0,
        needs_passages: true,
    };
    for (kind, share) in SHARES {
        choice.choose_kind(kind, (room as f32 * share) as usize);
    }
    // The room that is left goes to further statements, then to single lines of code.
    choice.choose_kind(PieceKind::Statement, room);
    choice.needs_passages = false;
    choice.choose_kind(PieceKind::Edit, room);
    choice.choose_kind(PieceKind::Line, room);
    choice.fill_gaps();
    choice.drop_headings();
    choice.chosen
}

struct Choice<'a> {
    pieces: &'a [Piece<'a>],
    values: &'a mut [f32],
    counter: &'a dyn Count,
    /// The number of chosen lines of each result.
    n_taken: BTreeMap<(usize, PiecePart), usize>,
    chosen: Vec<ChosenPiece>,
    is_chosen: Vec<bool>,
    room: usize,
    spent: usize,
    /// True while lines of code are only chosen beside others.
    needs_passages: bool,
}

impl Choice<'_> {
    fn choose_kind(&mut self, kind: PieceKind, room: usize) {
        const MAX_MISSES: usize = 40;
        let spent_before = self.spent;
        let of_kind = |i: &usize| self.pieces[*i].kind == kind;
        let mut queue: BinaryHeap<u64> =
            (0..self.pieces.len()).filter(of_kind).filter_map(|i| self.key(i)).collect();
        let mut n_misses = 0;
        while let Some(top) = queue.pop() {
            let i = (top & 0xffff_ffff) as usize;
            let Some(now) = self.key(i).filter(|_| !self.is_chosen[i]) else { continue };
            if now < top && queue.peek().is_some_and(|next| now < *next) {
                queue.push(now);
                continue;
            }
            let tokens = self.counter.count(self.pieces[i].text).0 as usize + overhead(&self.pieces[i]);
            // The first piece of a kind may exceed the share of the kind.
            let most = if self.spent == spent_before { self.room } else { room };
            if self.spent + tokens > most {
                n_misses += 1;
                if n_misses > MAX_MISSES {
                    return;
                }
                continue;
            }
            self.spent += tokens;
            self.chosen.push(ChosenPiece { piece: i, tokens, ratio: f32::from_bits((now >> 32) as u32) });
            let piece = &self.pieces[i];
            piece.atoms.iter().for_each(|atom| self.values[*atom as usize] = 0.0);
            if kind == PieceKind::Line {
                *self.n_taken.entry((piece.step, piece.part)).or_default() += 1;
            }
            self.is_chosen[i] = true;
            // The neighbours are worth more now.
            let neighbours = [i.checked_sub(1), Some(i + 1)].into_iter().flatten();
            queue.extend(neighbours.filter(|at| self.is_neighbour(i, *at)).filter_map(|at| self.key(at)));
        }
    }

    /// Drops lines that announce what was not chosen.
    fn drop_headings(&mut self) {
        let pieces = self.pieces;
        let is_chosen = |at: usize, chosen: &[ChosenPiece]| chosen.iter().any(|chosen| chosen.piece == at);
        let announces = |at: usize| {
            let piece = &pieces[at];
            let text = piece.text.trim_end().trim_end_matches('*');
            matches!(piece.kind, PieceKind::Line | PieceKind::Statement)
                && !piece.is_code
                && !is_definition(text)
                && (text.ends_with(':') || text.starts_with("## ") || text.starts_with("### "))
        };
        let chosen = self.chosen.clone();
        self.chosen.retain(|it| {
            let has_next = self
                .pieces
                .get(it.piece + 1)
                .is_some_and(|next| (next.step, next.part) == (pieces[it.piece].step, pieces[it.piece].part));
            !(announces(it.piece) && has_next && !is_chosen(it.piece + 1, &chosen))
        });
    }

    /// Adds the lines of small gaps between chosen lines, because a gap mark costs as much as a short line.
    fn fill_gaps(&mut self) {
        const MAX_LINES: u32 = 2;
        const MAX_BYTES: usize = 36;
        let mut order: Vec<ChosenPiece> = self.chosen.clone();
        order.sort_unstable_by_key(|chosen| chosen.piece);
        for pair in order.windows(2) {
            let (first, last) = (&self.pieces[pair[0].piece], &self.pieces[pair[1].piece]);
            let is_same_part = first.step == last.step && first.part == last.part;
            if !is_same_part || matches!(first.part, PiecePart::Text(_)) {
                continue;
            }
            let n_lines = last.position - first.position - 1;
            let between = pair[0].piece + 1..pair[1].piece;
            let n_bytes: usize = self.pieces[between.clone()].iter().map(|piece| piece.text.len()).sum();
            let is_small = (1..=MAX_LINES).contains(&n_lines) && n_bytes <= MAX_BYTES;
            if is_small && between.len() as u32 == n_lines {
                let ratio = pair[0].ratio.min(pair[1].ratio);
                self.chosen.extend(between.map(|piece| ChosenPiece { piece, tokens: 4, ratio }));
            }
        }
    }

    /// Returns whether two pieces stand next to each other in the same part.
    fn is_neighbour(&self, one: usize, other: usize) -> bool {
        let one = &self.pieces[one];
        self.pieces.get(other).is_some_and(|other| {
            (one.step, one.part) == (other.step, other.part) && one.position.abs_diff(other.position) == 1
        })
    }

    /// Returns whether a neighbour of a piece is chosen.
    fn is_beside_chosen(&self, i: usize) -> bool {
        let neighbours = [i.checked_sub(1), Some(i + 1)].into_iter().flatten();
        neighbours.filter(|at| self.is_neighbour(i, *at)).any(|at| self.is_chosen[at])
    }

    /// The value per token as the upper half of a sort key, with the index of the piece as the lower half.
    fn key(&self, i: usize) -> Option<u64> {
        let piece = &self.pieces[i];
        let atoms: f32 = piece.atoms.iter().map(|atom| self.values[*atom as usize].max(0.0)).sum();
        let size = piece.text.len() as f32 / 3.2 + overhead(piece) as f32;
        let score = piece.score + piece.weight * atoms / likely(piece.kind);
        let mut ratio = score / size;
        if self.is_beside_chosen(i) {
            ratio *= if piece.is_code { BESIDE_CODE } else { BESIDE };
        }
        // A line of code that is no definition is only worth something in a passage, unless it is likely to be used.
        if self.needs_passages && piece.is_code && score < SEED && !self.is_beside_chosen(i) {
            return None;
        }
        if piece.kind == PieceKind::Line {
            let n_taken = self.n_taken.get(&(piece.step, piece.part)).copied().unwrap_or(0);
            ratio *= DAMP / (DAMP + n_taken as f32);
            if ratio <= FLOOR {
                return None;
            }
        }
        (ratio > 0.0).then(|| u64::from(ratio.to_bits()) << 32 | i as u64)
    }
}

/// The score that a line of code needs to begin a passage.
const SEED: f32 = 1.0;

/// The factor for a piece next to a chosen one: a passage reads better than scattered lines.
const BESIDE: f32 = 1.5;
const BESIDE_CODE: f32 = 3.0;

/// The probability of use that counts as one point of a score. What the agent stated and changed counts by itself, while
/// the lines of a result are mostly worth the names in them.
pub(crate) fn likely(kind: PieceKind) -> f32 {
    match kind {
        PieceKind::Statement => 0.02,
        PieceKind::Error => 0.02,
        PieceKind::Edit => 0.008,
        PieceKind::Line => 0.004,
    }
}

/// The tokens of indentation, line end, sign and gap mark.
fn overhead(piece: &Piece<'_>) -> usize {
    if piece.kind == PieceKind::Statement { 2 } else { 4 }
}

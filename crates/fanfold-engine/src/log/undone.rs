//! What has happened and no longer holds: what came since a checkpoint that was gone back to, and a window in which
//! nothing fitted. Handles that were given open all the same.

use std::collections::BTreeSet;

use crate::log::notes::{Moved, Note, Noted, Why};
use crate::log::session_log::Past;

impl Past {
    /// Which of the first so many notes no longer hold, by their positions.
    pub(crate) fn undone(&self, until: usize) -> BTreeSet<usize> {
        let mut undone = BTreeSet::new();
        if !self.may_be_undone {
            return undone;
        }
        // What each move took away, so that taking the move back brings it back.
        let mut moves: Vec<Vec<usize>> = Vec::new();
        for (i, noted) in self.notes[..until].iter().enumerate() {
            match &noted.note {
                Note::Moved(Moved { why: Why::Redone, .. }) => drop(moves.pop()),
                Note::Moved(Moved { mark: Some(mark), .. }) => moves.push(self.since(mark, i)),
                Note::Moved(_) => moves.push(Vec::new()),
                Note::Came { overflow: true, .. } => {
                    undone.extend((self.begin_of_request(i)..i).filter(|j| is_wanted(&self.notes[*j].note)));
                }
                _ => {}
            }
        }
        undone.extend(moves.into_iter().flatten());
        undone
    }

    /// The notes that still hold, oldest first, with their positions.
    pub(crate) fn in_force(&self) -> impl Iterator<Item = (usize, &Noted)> {
        let undone = self.undone(self.notes.len());
        self.notes.iter().enumerate().filter(move |(i, _)| !undone.contains(i))
    }

    /// What going to the newest checkpoint of a name takes away, after so many notes: all that was folded and told
    /// since, and what a fold was made for before which fanfold made the checkpoint by itself.
    pub(crate) fn since(&self, mark: &str, until: usize) -> Vec<usize> {
        let is_it = |noted: &Noted| matches!(&noted.note, Note::Checkpoint { name, .. } if name == mark);
        let Some(at) = self.notes[..until].iter().rposition(is_it) else { return Vec::new() };
        let is_auto = matches!(self.notes[at].note, Note::Checkpoint { auto: true, .. });
        let first = if is_auto { self.begin_of_request(at) } else { at };
        let before = (first..at).filter(|i| is_reason(&self.notes[*i].note));
        before.chain((at..until).filter(|i| is_outcome(&self.notes[*i].note))).collect()
    }

    /// The first of the notes that belong to the request of a note.
    fn begin_of_request(&self, at: usize) -> usize {
        let is_other = |noted: &Noted| {
            matches!(
                noted.note,
                Note::Request(_)
                    | Note::Came { .. }
                    | Note::Moved(Moved { why: Why::Rewound | Why::Redone | Why::Restored, .. })
                    | Note::Forked { .. }
                    | Note::Inherited { .. }
                    | Note::Imported { .. }
            )
        };
        self.notes[..at].iter().rposition(is_other).map_or(0, |last| last + 1)
    }
}

/// Whether a request asks for this, so that it goes with a request that came to nothing.
fn is_wanted(note: &Note) -> bool {
    matches!(note, Note::Began(_) | Note::Budget { .. } | Note::FoldAsked { .. })
}

/// Whether something is folded for this.
fn is_reason(note: &Note) -> bool {
    is_wanted(note)
        || matches!(note, Note::Refused { .. } | Note::Cooled { .. } | Note::Corrected { at_once: true, .. })
}

/// Whether this is how something is folded, or follows from it. What a person wished stays, and so does what was
/// written about what was said.
fn is_outcome(note: &Note) -> bool {
    is_reason(note)
        || matches!(note, Note::Corrected { .. } | Note::Unfolded { .. } | Note::Request(_) | Note::Fold(_))
}

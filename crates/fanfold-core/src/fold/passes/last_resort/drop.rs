//! Removes the oldest entries from the view, except for the system text and the first user message. (`window`)
//!
//! ```text
//! user    Rename the parser.
//! say     To what? There are three names in use: reader, loader and scanner.
//! user    Loader.
//! say     Done: src/parser.rs is src/loader.rs now, and nothing else changed.
//! say     All tests pass.
//! ->
//! user    Rename the parser.
//! note    <fanfold>
//!         [3 earlier messages left out, #1-2]
//!         </fanfold>
//! say     All tests pass.
//! ```

use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::fold::segment::write_marker;
use crate::model::tokens::Tokens;
use crate::model::transcript::EntryId;

pub(crate) const PASS: Pass = Pass { name: "drop", run };

/// The approximate cost of the marker.
const MARKER: Tokens = Tokens(24);

/// Something that can be removed: an entry, or a segment with its entries.
struct DropUnit {
    first: EntryId,
    cost: Tokens,
    segment: Option<u32>,
}

fn run(draft: &mut Draft<'_>, target: Tokens) {
    let mut units: Vec<DropUnit> = draft
        .absorbable()
        .into_iter()
        .map(|id| DropUnit { first: id, cost: draft.cost(id), segment: None })
        .collect();
    for &live in &draft.ledger.live_segments {
        let segment = &draft.ledger.segments[live as usize];
        units.push(DropUnit { first: segment.span().0, cost: segment.tokens(), segment: Some(live) });
    }
    units.sort_by_key(|unit| unit.first);
    let needed = draft.total() + MARKER - target;
    let mut saved = Tokens::ZERO;
    let (mut entries, mut merged) = (Vec::new(), Vec::new());
    for unit in units {
        if saved >= needed {
            break;
        }
        saved += unit.cost;
        match unit.segment {
            None => entries.push(unit.first),
            Some(id) => {
                entries.extend(&draft.ledger.segments[id as usize].entries);
                merged.push(id);
            }
        }
    }
    if entries.is_empty() {
        return;
    }
    entries.sort();
    let segment = write_marker(draft, entries);
    if segment.tokens() < saved {
        draft.absorb(segment, &merged);
    }
}

//! Cuts the results of the newest step to their share of the room if the view no longer fits. New results were not sent
//! yet, so the provider's cache stays valid, and often nothing else has to be folded.
//!
//! ```text
//! user    rows with a blank cell are lost
//! call    bash {"command":"cat src/rows.py"}
//! result  """Reads the rows of a table."""
//!
//!         from dataclasses import dataclass
//!
//!
//!         @dataclass
//!         class Row:
//!             number: int
//!             cells: list[str]
//!
//!
//!         class Reader:
//!             """Reads rows from a file, one after another."""
//!
//!             def __init__(self, file, separator=","):
//!                 self.file = file
//!                 self.separator = separator
//!                 self.number = 0
//!
//!             def __iter__(self):
//!                 return self
//!
//!             def __next__(self):
//!                 line = self.file.readline()
//!                 if not line:
//!                     raise StopIteration
//!                 self.number += 1
//!                 cells = self.split(line.rstrip("\n"))
//!                 return Row(self.number, cells)
//!
//!             def split(self, line):
//!                 """The cells of a line; blanks around them are left out."""
//!                 cells = (cell.strip() for cell in line.split(self.separator))
//!                 return [cell for cell in cells if cell]
//!
//!
//!         def read_all(path, separator=","):
//!             """All rows of a file that have a cell."""
//!             with open(path, encoding="utf-8") as file:
//!                 rows = list(Reader(file, separator))
//!             return [row for row in rows if row.cells]
//!
//!
//!         def widths(rows):
//!             """How wide each column is."""
//!             columns = zip(*(row.cells for row in rows))
//!             return [max(map(len, column)) for column in columns]
//! ->
//! user    rows with a blank cell are lost
//! call    bash {"command":"cat src/rows.py"}
//! result  """Reads the rows of a table."""
//!         …12
//!         class Reader:
//!             """Reads rows from a file, one after another."""
//!             def __init__(self, file, separator=","):
//!                 self.file = file
//!                 self.separator = separator
//!                 self.number = 0
//!             def __iter__(self):
//!                 return self
//!             def __next__(self):
//!                 line = self.file.readline()
//!                 if not line:
//!                     raise StopIteration
//!                 self.number += 1
//!                 cells = self.split(line.rstrip("\n"))
//!         …32
//!                 """The cells of a line; blanks around them are left out."""
//!                 cells = (cell.strip() for cell in line.split(self.separator))
//!         …37
//!         def read_all(path, separator=","):
//!             """All rows of a file that have a cell."""
//!             with open(path, encoding="utf-8") as file:
//!         …41
//!             return [row for row in rows if row.cells]
//!         def widths(rows):
//!             """How wide each column is.""" …
//!         [condensed from 47 lines, #1.1]
//! ```

use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::fold::passes::last_resort::squeeze::{cut_level, squeeze};
use crate::model::location::Place;
use crate::model::tokens::Tokens;

pub(crate) const PASS: Pass = Pass { name: "arrival", run };

fn run(draft: &mut Draft<'_>, _: Tokens) {
    let newest = draft.transcript.len().saturating_sub(1);
    let places = draft.places(|place| matches!(place, Place::Result(_)) && place.entry().index() == newest);
    let costs: Vec<u64> = places.iter().map(|place| draft.place_cost(*place).0).collect();
    let over = Tokens(costs.iter().sum()) - draft.room.permille(draft.policy.arrival_share);
    if over == Tokens::ZERO {
        return;
    }
    let max_tokens = cut_level(costs, over.0);
    for place in places {
        if draft.place_cost(place).0 > max_tokens {
            squeeze(draft, place, Tokens(max_tokens));
        }
    }
}

//! Removes lines from the newest results that are already visible in the view. New results were not sent yet, so the
//! provider's cache stays valid. If the same call is made again, its result is kept whole.
//!
//! ```text
//! call    read {"path":"src/rows.py"}
//! result  class Reader:
//!             """Reads rows from a file, one after another."""
//!
//!             def __init__(self, file, separator=","):
//!                 self.file = file
//!                 self.separator = separator
//!                 self.number = 0
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
//!         def read_all(path, separator=","):
//!             """All rows of a file that have a cell."""
//!             with open(path, encoding="utf-8") as file:
//!                 rows = list(Reader(file, separator))
//!             return [row for row in rows if row.cells]
//! call    bash {"command":"sed -i 's/ if cell\\]/]/' src/rows.py && cat src/rows.py"}
//! result  class Reader:
//!             """Reads rows from a file, one after another."""
//!
//!             def __init__(self, file, separator=","):
//!                 self.file = file
//!                 self.separator = separator
//!                 self.number = 0
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
//!                 return [cell for cell in cells]
//!
//!         def read_all(path, separator=","):
//!             """All rows of a file that have a cell."""
//!             with open(path, encoding="utf-8") as file:
//!                 rows = list(Reader(file, separator))
//!             return [row for row in rows if row.cells]
//! ->
//! call    read {"path":"src/rows.py"}
//! result  class Reader:
//!             """Reads rows from a file, one after another."""
//!
//!             def __init__(self, file, separator=","):
//!                 self.file = file
//!                 self.separator = separator
//!                 self.number = 0
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
//!         def read_all(path, separator=","):
//!             """All rows of a file that have a cell."""
//!             with open(path, encoding="utf-8") as file:
//!                 rows = list(Reader(file, separator))
//!             return [row for row in rows if row.cells]
//! call    bash {"command":"sed -i 's/ if cell\\]/]/' src/rows.py && cat src/rows.py"}
//! result  class Reader:
//!         [17 lines as shown above: rows.py]
//!                 cells = (cell.strip() for cell in line.split(self.separator))
//!                 return [cell for cell in cells]
//!
//!         def read_all(path, separator=","):
//!             """All rows of a file that have a cell."""
//!             with open(path, encoding="utf-8") as file:
//!                 rows = list(Reader(file, separator))
//!             return [row for row in rows if row.cells]
//!         [what stands above is left out; all of it: #2.1]
//! ```

use std::fmt::Write;

use crate::actions::short_name;
use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::model::location::Place;
use crate::model::tokens::Tokens;
use crate::model::transcript::{Body, Call, CallId, Entry, EntryId};
use crate::select::visible_lines::{RepeatedRun, calls};

pub(crate) const PASS: Pass = Pass { name: "again", run };

fn run(draft: &mut Draft<'_>, _: Tokens) {
    let newest = EntryId::from(draft.transcript.len().saturating_sub(1));
    let Some(step) = draft.transcript.entries().last().and_then(Entry::step) else { return };
    let Some(economy) = draft.policy.economy else { return };
    for (id, call) in calls(newest, step) {
        let place = Place::Result(id);
        if draft.may_fold(place) && !draft.has_never_rule(place) && draft.ledger.is_unfolded(place) {
            remove_visible_lines(draft, id, call, economy.min_repeat);
        }
    }
}

fn remove_visible_lines(draft: &mut Draft<'_>, id: CallId, call: &Call, least: Tokens) {
    let Some(outcome) = &call.result else { return };
    let (text, counter) = (outcome.body.as_str(), draft.counter);
    let runs = draft.ledger.repeated_lines(draft.transcript, call);
    // Folding would also remove parts that are not text.
    if runs.is_empty() || !is_all_text(&outcome.body) {
        return;
    }
    let n_tokens: Tokens = runs.iter().map(|run| counter.count(&text[run.inner.clone()])).sum();
    if n_tokens < least {
        return;
    }
    let (mut out, mut from) = (String::new(), 0);
    for RepeatedRun { inner, n_lines, source: shown } in runs {
        let source = short_name(draft.transcript.call(shown.call), &draft.action(shown.call));
        let verb = if shown.is_arguments { "written" } else { "shown" };
        out.push_str(&text[from..inner.start]);
        writeln!(out, "[{n_lines} lines as {verb} above: {source}]").expect("a string takes all");
        from = inner.end;
    }
    out.push_str(text[from..].trim_end());
    draft.fold_to(Place::Result(id), |tag| {
        format!("{out}\n[what stands above is left out; all of it: {tag}]")
    });
}

/// Returns whether a body consists of one text, verbatim or as the only part of its content.
fn is_all_text(body: &Body) -> bool {
    /// The maximum size of the JSON around the text of a part.
    const FRAME: usize = 160;
    let (text, original) = (body.as_str(), body.original());
    **original == *text || original.len() <= serde_json::Value::from(text).to_string().len() + FRAME
}

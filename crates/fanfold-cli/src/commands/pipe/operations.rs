//! Operations on a session besides folding.

use fanfold_core::{EntryId, Event, Extent};

use super::request::Request;
use crate::failure::{Failure, Result};

/// The part of an original that a request recalls.
pub(super) fn extent(request: &Request<'_>) -> Result<Extent> {
    match (&request.search, request.lines) {
        (Some(text), _) => Ok(Extent::Search { text: text.clone(), around: request.around.unwrap_or(2) }),
        (None, Some((from, to))) if from >= 1 && from <= to => Ok(Extent::Lines(from, to)),
        (None, Some(_)) => {
            Err(Failure::new("`lines` is not a range of lines", "send [first, last], counted from 1"))
        }
        (None, None) => Ok(Extent::Whole),
    }
}

/// The event of an operation on a session with `n_entries` entries.
pub(super) fn event(op: &str, request: &Request<'_>, n_entries: usize) -> Result<Event> {
    let checked = |entry: Option<u32>, field: &str| match entry {
        Some(entry) if (entry as usize) < n_entries => Ok(EntryId(entry)),
        Some(entry) => Err(Failure::new(
            format!("there is no entry {entry}"),
            format!("this session has {n_entries} entries, counted from 0"),
        )),
        None => Err(Failure::new(format!("there is no `{field}`"), "give the number of an entry, from 0")),
    };
    Ok(match op {
        "pin" => Event::Pinned(checked(request.entry, "entry")?),
        "unpin" => Event::Unpinned(checked(request.entry, "entry")?),
        "focus" => Event::Focused(request.topic.clone().unwrap_or_default()),
        "fold" => {
            Event::FoldRequested { range: Some((checked(request.from, "from")?, checked(request.to, "to")?)) }
        }
        "unfold" => Event::Unfolded(request.handle()?),
        other => {
            return Err(Failure::new(
                format!("there is no op `{other}`"),
                "the ops are expand, recall, pin, unpin, focus, fold, unfold and report",
            ));
        }
    })
}

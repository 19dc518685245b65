//! What is asked of a session beside folding.

use fanfold_core::{EntryId, Event, Extent};

use super::request::Request;
use crate::failure::Failure;

/// How much of an original a request asks for.
pub(crate) fn extent(request: &Request<'_>) -> Result<Extent, Failure> {
    match (&request.search, request.lines) {
        (Some(text), _) => {
            Ok(Extent::Search { text: text.clone(), around: request.around.unwrap_or_default() })
        }
        (None, Some((from, to))) if from >= 1 && from <= to => Ok(Extent::Lines(from, to)),
        (None, Some(_)) => Err(Failure::new("`lines` are no lines", "send [first, last], counted from 1")),
        (None, None) => Ok(Extent::Whole),
    }
}

/// What an op does to a session of so many entries.
pub(crate) fn event(op: &str, request: &Request<'_>, n_entries: usize) -> Result<Event, Failure> {
    let there = |entry: Option<u32>, field: &str| match entry {
        Some(entry) if (entry as usize) < n_entries => Ok(EntryId(entry)),
        Some(entry) => Err(Failure::new(
            format!("there is no entry {entry}"),
            format!("this session has {n_entries} entries, counted from 0"),
        )),
        None => Err(Failure::new(format!("there is no `{field}`"), "give the number of an entry, from 0")),
    };
    Ok(match op {
        "pin" => Event::Pinned(there(request.entry, "entry")?),
        "unpin" => Event::Unpinned(there(request.entry, "entry")?),
        "focus" => Event::Focused(request.topic.clone().unwrap_or_default()),
        "fold" => Event::FoldAsked { range: Some((there(request.from, "from")?, there(request.to, "to")?)) },
        "unfold" => Event::Unfolded(request.handle()?),
        other => {
            return Err(Failure::new(
                format!("there is no op `{other}`"),
                "the ops are expand, recall, pin, unpin, focus, fold, unfold and report",
            ));
        }
    })
}

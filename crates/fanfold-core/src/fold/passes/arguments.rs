//! Condenses long arguments of old calls according to their kind. Valid JSON stays valid JSON.
//!
//! Written files, patches and long commands are in the transcript and in the file. A file is condensed to its outline,
//! a patch to its hunks, a command to its shell lines. Short arguments are kept, because they show what the call was
//! about.
//!
//! ```text
//! call    write {"path":"limits.toml","content":"# Limits of the shop, as agreed with the warehouse.\n[orders]\nper_day = 400\nper_customer = 12\nlargest = 2_500\n\n[stock]\n# Counted once a week, on Sundays, when nothing is sent.\ncount_on = \"sunday\"\nwarn_below = 20\nrefill_to = 120\n\n[returns]\ndays = 30\nneeds_receipt = true\n"}
//! result  ok
//! ->
//! call    write {"path":"limits.toml","content":"… 1 line\n[orders]\n… 10 lines\n[returns]\ndays = 30\nneeds_receipt = true\n[15 lines, #1.1a]"}
//! result  ok
//! ```

use serde_json::Value;

use crate::actions::Verb;
use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::model::location::Place;
use crate::model::tokens::Tokens;
use crate::text::condense::{CondenseOptions, FileExcerpt, Outlines, condense_input};

pub(crate) const PASS: Pass = Pass { name: "arguments", run };

/// Strings longer than this are condensed.
const LONG: usize = 240;
/// The size of a condensed string: a fifth of the original, within these bounds.
const LEAST: usize = 80;
const MOST: usize = 800;

fn run(draft: &mut Draft<'_>, target: Tokens) {
    let is_long = |text: &str| text.len() > LONG;
    let room_of = |text: &str| if is_long(text) { (text.len() / 5).clamp(LEAST, MOST) } else { text.len() };
    for place in draft.unfolded_places(|place| matches!(place, Place::Arguments(_))) {
        if draft.total() <= target {
            return;
        }
        if is_long(arguments_at(draft, place)) {
            fold_arguments(draft, place, &room_of);
        }
    }
}

/// Folds arguments to about `room` bytes.
pub(crate) fn squeeze_arguments(draft: &mut Draft<'_>, place: Place, room: usize) -> bool {
    let n_bytes = arguments_at(draft, place).len();
    if n_bytes <= room / 2 {
        return false;
    }
    // Long strings shrink in proportion; short strings show what the call is about.
    let room_of = |text: &str| {
        if text.len() > room / 2 { (text.len() * room / n_bytes / 2).max(16) } else { text.len() }
    };
    fold_arguments(draft, place, &room_of)
}

fn arguments_at<'a>(draft: &Draft<'a>, place: Place) -> &'a str {
    match place {
        Place::Arguments(call) => draft.transcript.call(call).arguments.as_str(),
        _ => "",
    }
}

/// Folds arguments: each string to the size returned by `room_of`, as JSON if they were JSON.
fn fold_arguments(draft: &mut Draft<'_>, place: Place, room_of: &dyn Fn(&str) -> usize) -> bool {
    let Place::Arguments(call) = place else { return false };
    let text = arguments_at(draft, place);
    let action = draft.action(call);
    let file = action.changes.first().or(action.reads.first().map(|file_read| &file_read.path));
    let relevance = draft.relevance();
    let outlines = Outlines::from_cache(std::mem::take(&mut draft.analysis.outlines));
    let lexicon = &draft.analysis.lexicon;
    let value = |line: &str| relevance.line_score(lexicon, line);
    let first_line = (action.verb == Verb::Write).then_some(1);
    let file = file.map(|path| FileExcerpt { path, first_line, is_edited: &|_| false });
    let short_of = |text: &str| -> Option<String> {
        let room = room_of(text);
        if text.len() <= room {
            return None;
        }
        let short = condense_input(
            text,
            &CondenseOptions { file, outlines: Some(&outlines), ..CondenseOptions::new(room, &value) },
        );
        Some(short.unwrap_or_else(|| start_of(text, room)))
    };
    match serde_json::from_str::<Value>(text) {
        Ok(mut value) => {
            let mut notes: Vec<Option<String>> = Vec::new();
            each_string(&mut value, &mut |text| {
                let short = short_of(text);
                notes.push(short.as_ref().map(|_| lines(text)));
                if let Some(short) = short {
                    *text = short;
                }
            });
            draft.analysis.outlines = outlines.into_cache();
            draft.fold_to(place, |tag| with_notes(value, &notes, text.len(), tag))
        }
        Err(_) => {
            let short = short_of(text);
            draft.analysis.outlines = outlines.into_cache();
            let Some(short) = short else { return false };
            draft.fold_to(place, |tag| with_note(&short, &format!("{}, {tag}", lines(text))))
        }
    }
}

/// Adds a note to each shortened string, the first one with the handle of all arguments.
fn with_notes(mut value: Value, notes: &[Option<String>], n_bytes: usize, tag: &str) -> String {
    let mut notes = notes.iter();
    let mut is_tagged = false;
    each_string(&mut value, &mut |text| {
        let Some(Some(note)) = notes.next() else { return };
        let note = if is_tagged { note.clone() } else { format!("{note}, {tag}") };
        is_tagged = true;
        *text = with_note(text, &note);
    });
    if !is_tagged {
        // There are only short strings, which can be recalled.
        value = size_as_json(n_bytes, tag);
    }
    value.to_string()
}

/// Replaces arguments by their size.
pub(crate) fn size_as_json(n_bytes: usize, tag: &str) -> Value {
    serde_json::json!({ "folded": format!("{n_bytes} characters, {tag}") })
}

fn with_note(short: &str, note: &str) -> String {
    let short = short.trim_end();
    let space = if short.contains('\n') { '\n' } else { ' ' };
    format!("{short}{space}[{note}]")
}

/// Calls back with every string in a value, in order, without field names.
fn each_string(value: &mut Value, found: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) => found(text),
        Value::Array(values) => values.iter_mut().for_each(|value| each_string(value, found)),
        Value::Object(fields) => fields.values_mut().for_each(|value| each_string(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn start_of(text: &str, short: usize) -> String {
    let cut = text.floor_char_boundary(short);
    let end = text[..cut].rfind(char::is_whitespace).filter(|at| *at > cut / 2).unwrap_or(cut);
    format!("{}…", text[..end].trim_end())
}

/// The number of lines of a text as words.
pub(crate) fn lines(text: &str) -> String {
    match text.lines().count() {
        1 => "1 line".to_owned(),
        n => format!("{n} lines"),
    }
}

//! Shortens the long arguments of old calls; valid JSON stays valid JSON.
//!
//! Written files, patches and long commands stand in the transcript twice: as an argument, and in the file. The
//! short arguments stay, so that it can still be seen what the call was about.
//!
//! ```text
//! call    write {"path":"a.txt","content":"one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty and so on until the line is long enough to fold, which it is only after about two hundred characters have gone by, as they now have"}
//! result  ok
//! ->
//! call    write {"path":"a.txt","content":"one two three four five six seven eight nine ten eleven twelve thirteen… [1 line, 365412]"}
//! result  ok
//! ```

use super::Pass;
use crate::draft::Draft;
use crate::tokens::Tokens;
use crate::view::Place;

/// Shortens long arguments.
pub(crate) const PASS: Pass = Pass { name: "arguments", run };

/// A string in the arguments longer than this is cut.
const LONG: usize = 240;
/// What stays of it.
const SHORT: usize = 80;

fn run(draft: &mut Draft<'_>, target: Tokens) {
    for place in draft.open_places(|place| matches!(place, Place::Arguments(_))) {
        if draft.total() <= target {
            return;
        }
        fold_arguments(draft, place, LONG, SHORT);
    }
}

/// Folds arguments: strings longer than `long` bytes to their first `short`, in JSON where it was JSON.
pub(super) fn fold_arguments(draft: &mut Draft<'_>, place: Place, long: usize, short: usize) -> bool {
    let Place::Arguments(call) = place else { return false };
    let text = draft.transcript.call(call).arguments.as_str();
    if text.len() <= long {
        return false;
    }
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(mut value) => draft.fold_to(place, |tag| {
            let mut is_tagged = false;
            shorten(&mut value, &Cut { long, short, tag }, &mut is_tagged);
            if !is_tagged {
                // Many short values: what they are is behind the handle.
                value = serde_json::json!({ "folded": format!("{} characters, {tag}", text.len()) });
            }
            value.to_string()
        }),
        Err(_) => draft.fold_to(place, |tag| format!("{} [{}, {tag}]", start_of(text, short), lines(text))),
    }
}

struct Cut<'a> {
    long: usize,
    short: usize,
    tag: &'a str,
}

fn shorten(value: &mut serde_json::Value, cut: &Cut<'_>, is_tagged: &mut bool) {
    match value {
        serde_json::Value::String(text) if text.len() > cut.long => {
            // One tag is enough: the handle opens the whole arguments.
            let tag = if *is_tagged { String::new() } else { format!(", {}", cut.tag) };
            *is_tagged = true;
            *text = format!("{} [{}{tag}]", start_of(text, cut.short), lines(text));
        }
        serde_json::Value::Array(values) => {
            values.iter_mut().for_each(|value| shorten(value, cut, is_tagged));
        }
        serde_json::Value::Object(fields) => {
            fields.values_mut().for_each(|value| shorten(value, cut, is_tagged));
        }
        _ => {}
    }
}

fn start_of(text: &str, short: usize) -> String {
    let cut = text.floor_char_boundary(short);
    let end = text[..cut].rfind(char::is_whitespace).filter(|at| *at > cut / 2).unwrap_or(cut);
    format!("{}…", text[..end].trim_end())
}

fn lines(text: &str) -> String {
    match text.lines().count() {
        1 => "1 line".to_owned(),
        n => format!("{n} lines"),
    }
}

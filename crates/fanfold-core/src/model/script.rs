//! Scripts: entries rendered as text that contains every original byte for byte.

use crate::model::transcript::{Body, Entry, Speaker};

/// The part of an entry that a line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryPart {
    /// The text of a prompt, or the text or reasoning of a reply.
    Text,
    /// The arguments of a call.
    Arguments(u16),
    /// The result of a call.
    Result(u16),
}

/// Appends the script of an entry: every original in it, byte for byte.
pub(crate) fn write_script(entry: &Entry, out: &mut String) {
    each_part(entry, |_, label, text| {
        out.push_str(label);
        out.push_str(text);
        if !text.ends_with('\n') {
            out.push('\n');
        }
    });
}

/// Calls back with the part, the label and the text of each piece of an entry.
pub(crate) fn each_part(entry: &Entry, mut found: impl FnMut(EntryPart, &str, &str)) {
    match entry {
        Entry::Prompt(prompt) => {
            let label = match prompt.speaker {
                Speaker::System => "system: ",
                Speaker::User => "user: ",
                Speaker::Harness => "harness: ",
                Speaker::Provider => "sealed: ",
            };
            found(EntryPart::Text, label, prompt.body.original());
        }
        Entry::Step(step) => {
            if has_content(&step.reasoning) {
                found(EntryPart::Text, "thought: ", step.reasoning.original());
            }
            if has_content(&step.text) {
                found(EntryPart::Text, "", step.text.original());
            }
            let mut label = String::new();
            for (i, call) in step.calls.iter().enumerate() {
                label.clear();
                label.extend(["call ", &call.tool, ": "]);
                found(EntryPart::Arguments(i as u16), &label, call.arguments.original());
                if let Some(outcome) = &call.result {
                    found(EntryPart::Result(i as u16), "", outcome.body.original());
                }
            }
        }
    }
}

/// Returns whether a body has a text or an original other than an empty JSON value, such as sealed reasoning.
fn has_content(body: &Body) -> bool {
    !body.is_empty() || !matches!(body.original().trim(), "" | "null" | "\"\"" | "[]")
}

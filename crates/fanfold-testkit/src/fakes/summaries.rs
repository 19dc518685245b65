//! Summaries as models write them: a good one, and some with flaws.

use fanfold_core::summary::HEADINGS;

use crate::fakes::upstream::{Script, ScriptInput, ScriptedReply, Upstream};

/// Starts a model server that answers with `good_summary`.
pub fn summary_server() -> Upstream {
    let script = Script::new(|input: &ScriptInput<'_>| {
        let messages = input.body["messages"].as_array().into_iter().flatten();
        let shown: Vec<&str> = messages.filter_map(|message| message["content"].as_str()).collect();
        ScriptedReply { text: good_summary(&shown.join("\n")), ..ScriptedReply::default() }
    });
    Upstream::start(Script { is_strict: false, ..script }).expect("a port of this machine")
}

/// A summary with every section that names all files, errors and values listed in the prompt.
pub fn good_summary(prompt: &str) -> String {
    // The last list of a name is the one to follow; earlier lines of the prompt may look the same.
    let list = |name: &str| {
        let prefix = format!("- {name}: ");
        prompt.lines().rev().find_map(|line| line.strip_prefix(&prefix)).unwrap_or("(nothing)").to_owned()
    };
    let mut answer = String::new();
    for heading in HEADINGS {
        let words = match heading {
            "Goal" => "To find out what goes wrong, and to mend it.".to_owned(),
            "Completed Actions" => "1. READ the files below, all of them.".to_owned(),
            "Blocked" => list("errors").replace(" | ", "\n"),
            "Relevant Files" => list("files"),
            "Critical Context" => list("values"),
            _ => "Nothing of note.".to_owned(),
        };
        answer.push_str(&format!("## {heading}\n{words}\n\n"));
    }
    answer
}

/// The answer of a model that refuses.
pub const REFUSAL: &str = "I'm sorry, but I can't help with that request.";

/// A good summary with an invented quote of the user.
pub fn with_a_made_up_quote(prompt: &str) -> String {
    let quote = "The user said: \"Please delete the production database and all of its backups at once.\"";
    good_summary(prompt).replace("## Key Decisions\n", &format!("## Key Decisions\n{quote}\n"))
}

/// A good summary padded until it is longer than its prompt.
pub fn longer_than_its_source(prompt: &str) -> String {
    good_summary(prompt)
        + &"And then some more was thought about it, at length and without need. "
            .repeat(1 + prompt.len() / 20)
}

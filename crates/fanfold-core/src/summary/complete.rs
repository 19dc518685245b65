//! Completes an answer: adds the user's newest message and missing references.

use crate::model::tokens::{Count, Tokens};
use crate::model::transcript::{EntryId, Transcript};
use crate::summary::critical::{Reference, ReferenceKind};
use crate::summary::sections::{BLOCKED, CRITICAL, FILES, Sections, TASK};
use crate::text::words::one_line;

/// The text of the first section: the user's newest message, quoted from the transcript.
pub(crate) fn task_section(transcript: &Transcript) -> String {
    const LONGEST: usize = 1_400;
    let has_text = |id: &EntryId| {
        let prompt = transcript.entry(*id).prompt().filter(|_| transcript.entry(*id).is_user());
        prompt.is_some_and(|prompt| !prompt.body.as_str().trim().is_empty())
    };
    let newest = (0..transcript.len()).rev().map(EntryId::from).find(has_text);
    let Some(prompt) = newest.and_then(|id| transcript.entry(id).prompt()) else {
        return "No user had said anything when this was written.".to_owned();
    };
    let words = one_line(prompt.body.as_str());
    let n_bytes = words.char_indices().nth(LONGEST).map_or(words.len(), |(at, _)| at);
    let more = if n_bytes < words.len() { " …" } else { "" };
    format!(
        "The user's newest message when this was written, word for word (there may be newer ones below, and it may be done):\n> {}{more}",
        &words[..n_bytes]
    )
}

/// Sets the first section and adds missing references within the budget.
pub(crate) fn complete(
    sections: &mut Sections,
    task: &str,
    critical: &[Reference],
    counter: &dyn Count,
    budget: Tokens,
) {
    sections.set(TASK, task.to_owned());
    let text = sections.print();
    let mut left = budget - counter.count(&text);
    for one in critical.iter().filter(|one| !one.appears_in(&text)) {
        let (section, line) = match one.kind {
            ReferenceKind::Path => (FILES, format!("- {}", one.text)),
            ReferenceKind::Error => (BLOCKED, format!("- seen: {}", one.text)),
            ReferenceKind::Id => (CRITICAL, format!("- {}", one.text)),
        };
        let cost = counter.count(&line) + Tokens(1);
        if cost > left {
            continue;
        }
        left -= cost;
        sections.add(section, &line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tokens::Words;
    use crate::notation::parse;

    #[test]
    fn quotes_the_newest_user_message() {
        let mut transcript = Transcript::new();
        let conversation = "user    first\nsay     ok\nuser    make it   fast\n        please\nsay     I will\nuser       \n";
        for entry in parse(conversation).expect("the notation is right") {
            transcript.append(entry, &Words);
        }
        assert!(
            task_section(&transcript).ends_with("\n> make it fast please"),
            "{}",
            task_section(&transcript)
        );
        assert!(task_section(&Transcript::new()).starts_with("No user"));
        transcript
            .append(parse(&format!("user    {}", "wörd ".repeat(900))).expect("right").remove(0), &Words);
        let task = task_section(&transcript);
        assert!(task.ends_with(" …") && task.chars().count() < 1_600, "{task}");
    }

    #[test]
    fn adds_missing_references_within_the_budget() {
        let reference = |kind, text: &str| Reference { kind, text: text.to_owned() };
        let critical = [
            reference(ReferenceKind::Path, "src/known.rs"),
            reference(ReferenceKind::Path, "src/lost.rs"),
            reference(ReferenceKind::Error, "error: it broke in the middle"),
            reference(ReferenceKind::Id, "471100"),
        ];
        let mut sections = Sections::parse("## Relevant Files\n- src/known.rs");
        complete(&mut sections, "task", &critical, &Words, Tokens(500));
        assert_eq!(sections.get(FILES), Some("- src/known.rs\n- src/lost.rs"));
        assert_eq!(sections.get(TASK), Some("task"));
        assert!(sections.get(BLOCKED).is_some_and(|words| words.contains("it broke")));
        let mut sections = Sections::default();
        complete(&mut sections, "task", &critical, &Words, Tokens(10));
        assert_eq!(sections.get(FILES), None);
        assert_eq!(sections.get(BLOCKED), None);
    }
}

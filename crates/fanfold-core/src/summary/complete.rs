//! What is added to a good answer: the user's newest words, as they were said, and what the model left out.

use crate::model::tokens::{Count, Tokens};
use crate::model::transcript::{EntryId, Transcript};
use crate::summary::critical::{Kind, Reference};
use crate::summary::sections::{BLOCKED, CRITICAL, FILES, Sections, TASK};

/// The user's newest words, as the first section has them. They come from the transcript and from nobody else.
pub(crate) fn task_of(transcript: &Transcript) -> String {
    const LONGEST: usize = 1_400;
    let says = |id: &EntryId| {
        let prompt = transcript.entry(*id).prompt().filter(|_| transcript.entry(*id).is_user());
        prompt.is_some_and(|prompt| !prompt.body.as_str().trim().is_empty())
    };
    let newest = (0..transcript.len()).rev().map(EntryId::from).find(says);
    let Some(prompt) = newest.and_then(|id| transcript.entry(id).prompt()) else {
        return "No user had said anything when this was written.".to_owned();
    };
    let words: Vec<&str> = prompt.body.as_str().split_whitespace().collect();
    let words = words.join(" ");
    let n_bytes = words.char_indices().nth(LONGEST).map_or(words.len(), |(at, _)| at);
    let more = if n_bytes < words.len() { " …" } else { "" };
    format!(
        "The user's newest message when this was written, word for word (there may be newer ones below, and it may be done):\n> {}{more}",
        &words[..n_bytes]
    )
}

/// Puts in what is missing, as far as there is room for it. Says how many references it added.
pub(crate) fn complete(
    sections: &mut Sections,
    task: &str,
    critical: &[Reference],
    counter: &dyn Count,
    budget: Tokens,
) -> usize {
    sections.set(TASK, task.to_owned());
    let text = sections.print();
    let mut left = budget - counter.count(&text);
    let mut n_added = 0;
    for one in critical.iter().filter(|one| !one.stands_in(&text)) {
        let (section, line) = match one.kind {
            Kind::Path => (FILES, format!("- {}", one.text)),
            Kind::Error => (BLOCKED, format!("- seen: {}", one.text)),
            Kind::Id => (CRITICAL, format!("- {}", one.text)),
        };
        let cost = counter.count(&line) + Tokens(1);
        if cost > left {
            continue;
        }
        left -= cost;
        sections.add(section, &line);
        n_added += 1;
    }
    n_added
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tokens::Words;
    use crate::notation::parse;

    #[test]
    fn the_newest_words_of_a_person_are_quoted() {
        let mut transcript = Transcript::new();
        let said = "user    first\nsay     ok\nuser    make it   fast\n        please\nsay     I will\nuser       \n";
        for entry in parse(said).expect("the notation is right") {
            transcript.append(entry, &Words);
        }
        assert!(task_of(&transcript).ends_with("\n> make it fast please"), "{}", task_of(&transcript));
        assert!(task_of(&Transcript::new()).starts_with("No user"));
        transcript
            .append(parse(&format!("user    {}", "wörd ".repeat(900))).expect("right").remove(0), &Words);
        let task = task_of(&transcript);
        assert!(task.ends_with(" …") && task.chars().count() < 1_600, "{task}");
    }

    #[test]
    fn what_is_missing_is_added_within_the_budget() {
        let reference = |kind, text: &str| Reference { kind, text: text.to_owned() };
        let critical = [
            reference(Kind::Path, "src/known.rs"),
            reference(Kind::Path, "src/lost.rs"),
            reference(Kind::Error, "error: it broke in the middle"),
            reference(Kind::Id, "471100"),
        ];
        let mut sections = Sections::read("## Relevant Files\n- src/known.rs");
        assert_eq!(complete(&mut sections, "task", &critical, &Words, Tokens(500)), 3);
        assert_eq!(sections.get(FILES), Some("- src/known.rs\n- src/lost.rs"));
        assert_eq!(sections.get(TASK), Some("task"));
        assert!(sections.get(BLOCKED).is_some_and(|words| words.contains("it broke")));
        let mut sections = Sections::default();
        assert_eq!(complete(&mut sections, "task", &critical, &Words, Tokens(10)), 0);
    }
}

//! Detects answers that politely refuse.

use crate::summary::sections::{Sections, TASK};

/// Beginnings of refusals in the most common languages, in lower case with straight apostrophes.
const PHRASES: [&str; 41] = [
    "i can't help",
    "i cannot help",
    "i can't assist",
    "i cannot assist",
    "i can't summarize",
    "i can't summarise",
    "i cannot summari",
    "i can't provide",
    "i cannot provide",
    "i can't comply",
    "i cannot comply",
    "i can't fulfill",
    "i cannot fulfill",
    "i can't do that",
    "i'm unable to",
    "i am unable to",
    "i'm not able to",
    "i am not able to",
    "i won't be able to",
    "i must decline",
    "i have to decline",
    "as an ai language model",
    "i'm sorry, but i can",
    "i am sorry, but i can",
    "ich kann dabei nicht helfen",
    "ich kann ihnen dabei nicht",
    "es tut mir leid, aber",
    "tut mir leid, ich kann",
    "je ne peux pas vous aider",
    "je suis désolé",
    "je ne suis pas en mesure",
    "lo siento, pero no puedo",
    "no puedo ayudar",
    "non posso aiutar",
    "mi dispiace, ma non",
    "desculpe, mas não posso",
    "não posso ajudar",
    "извините, но я не могу",
    "我无法",
    "申し訳ありませんが",
    "죄송하지만",
];

/// The words of a refusal, if the answer is one.
pub(crate) fn refusal_in(answer: &str, sections: &Sections) -> Option<String> {
    const BEGINNING: usize = 240;
    const FEW: usize = 3;
    // An answer with sections may quote a refusal.
    if sections.n_found() < FEW {
        let begin = &answer[..answer.floor_char_boundary(BEGINNING)];
        return is_refusal(begin).then(|| begin.lines().next().unwrap_or_default().trim().to_owned());
    }
    let own: Vec<&str> = sections.each().filter(|(i, _)| *i != TASK).map(|(_, words)| words.trim()).collect();
    let n_filled = own.iter().filter(|words| !words.is_empty()).count();
    let refused: Vec<&&str> =
        own.iter().filter(|words| words.len() < BEGINNING && is_refusal(words)).collect();
    let is_most = refused.len() * 2 > n_filled.max(1);
    refused.first().filter(|_| is_most).map(|words| words.lines().next().unwrap_or_default().to_owned())
}

fn is_refusal(words: &str) -> bool {
    let lower = words.to_lowercase().replace('’', "'");
    PHRASES.iter().any(|phrase| lower.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(answer: &str) -> bool {
        refusal_in(answer, &Sections::parse(answer)).is_some()
    }

    #[test]
    fn detects_refusals_in_many_languages() {
        for answer in [
            "I’m sorry, but I can’t help with that.",
            "Es tut mir leid, aber dabei kann ich nicht helfen.",
            "Lo siento, pero no puedo resumir esta conversación.",
            "申し訳ありませんが、お手伝いできません。",
            "我无法协助完成这个请求。",
            "## Goal\nI cannot assist with this.\n## Blocked\nI cannot assist with this.\n## Key Decisions\nI can't help with that.",
        ] {
            assert!(is_refused(answer), "{answer}");
        }
    }

    #[test]
    fn accepts_summaries_that_quote_a_refusal() {
        let summary = "## Goal\nfix it\n## Blocked\nthe API said: I can't help with that\n## Key Decisions\nask again\n## Active State\nmain";
        assert!(!is_refused(summary));
        assert!(!is_refused("the parser was fixed"));
    }
}

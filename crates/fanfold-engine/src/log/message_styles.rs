//! How the messages of a request were dressed, written down small: most are dressed alike, and few have marks.

use std::borrow::Cow;

use fanfold_wire::{MessageStyle, restore_style};
use serde::{Deserialize, Serialize};

/// How the messages of a request were written beside what they say.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Dresses {
    /// Runs of messages whose texts are written as lists of one part: first, last, what stands before and behind them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    around: Vec<(u32, u32, String, String)>,
    /// Cache marks: the message, the offset in it, the mark.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    marks: Vec<(u32, usize, String)>,
}

impl Dresses {
    /// Writes down how messages were dressed.
    pub(crate) fn of(worn: &[MessageStyle]) -> Dresses {
        let mut dresses = Dresses::default();
        // A run goes on over messages that have no text to be written so or so.
        let mut is_open = false;
        for (i, one) in (0..).zip(worn) {
            dresses.marks.extend(one.markers.iter().map(|(at, marker)| (i, *at, marker.clone())));
            if !one.is_text {
                continue;
            }
            let Some((before, after)) = &one.around else {
                is_open = false;
                continue;
            };
            match dresses.around.last_mut() {
                Some(run) if is_open && run.2 == *before && run.3 == *after => run.1 = i,
                _ => dresses.around.push((i, i, before.clone(), after.clone())),
            }
            is_open = true;
        }
        dresses
    }

    /// Whether there is nothing to put back.
    pub(crate) fn is_plain(&self) -> bool {
        self.around.is_empty() && self.marks.is_empty()
    }

    /// The same without marks: what holds for other messages too.
    pub(crate) fn without_marks(self) -> Dresses {
        Dresses { marks: Vec::new(), ..self }
    }

    /// A message as it was written, by its number.
    pub(crate) fn dress<'m>(&self, message: u32, plain: &'m str) -> Cow<'m, str> {
        let run = self.around.iter().find(|(first, last, ..)| (*first..=*last).contains(&message));
        let marks = self.marks.iter().filter(|(of, ..)| *of == message);
        let worn = MessageStyle {
            around: run.map(|(_, _, before, after)| (before.clone(), after.clone())),
            markers: marks.map(|(_, at, mark)| (*at, mark.clone())).collect(),
            is_text: true,
        };
        if worn.is_plain() { Cow::Borrowed(plain) } else { restore_style(plain, &worn).into_owned().into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfold_wire::{Conversation, Format};

    const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

    fn check(messages: &[String]) -> Dresses {
        let body = format!("[{}]", messages.join(","));
        let (conversation, _) = Conversation::decode(&body, Some(Format::Anthropic)).unwrap();
        let dresses = Dresses::of(conversation.styles());
        let text = serde_json::to_string(&dresses).unwrap();
        let dresses: Dresses = serde_json::from_str(&text).unwrap();
        for (i, (plain, raw)) in conversation.plain_messages(0).zip(messages).enumerate() {
            assert_eq!(dresses.dress(i as u32, &plain), *raw);
        }
        dresses
    }

    #[test]
    fn messages_that_are_dressed_alike_are_one_run() {
        let part = |text: &str, mark: &str| {
            format!(r#"{{"role":"user","content":[{{"type":"text","text":"{text}"{mark}}}]}}"#)
        };
        let text = r#"{"role":"user","content":"a"}"#.to_owned();
        let result = r#"{"role":"user","content":[{"type":"tool_result","content":"b"}]}"#.to_owned();
        let run = check(&[part("a", ""), result.clone(), part("b", ""), result.clone(), part("c", MARK)]);
        assert_eq!((run.around.len(), run.marks.len()), (1, 1));
        let runs =
            check(&[part("a", ""), text.clone(), part("b", MARK), text.clone(), result, part("d", "")]);
        assert_eq!((runs.around.len(), runs.marks.len()), (3, 1));
        assert!(check(&[text.clone(), text]).is_plain());
    }
}

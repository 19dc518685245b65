//! The styles of the messages of a request: part lists and cache markers, stored apart from the messages.
//!
//! Most messages of a request have the same style, so runs of equal styles are stored once.

use std::borrow::Cow;

use fanfold_wire::{MessageStyle, restore_style};
use serde::{Deserialize, Serialize};

/// The styles of the messages of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MessageStyles {
    /// Runs of messages whose text is written as a list of one part: first message, last message, JSON before the
    /// text, JSON after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    around: Vec<(u32, u32, String, String)>,
    /// Cache markers: the message, the offset in it, the marker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    marks: Vec<(u32, usize, String)>,
}

impl MessageStyles {
    /// Collects the styles of consecutive messages.
    pub(crate) fn new(message_styles: &[MessageStyle]) -> MessageStyles {
        let mut styles = MessageStyles::default();
        // A message without text does not end a run.
        let mut is_open = false;
        for (i, style) in (0..).zip(message_styles) {
            styles.marks.extend(style.markers.iter().map(|(at, marker)| (i, *at, marker.clone())));
            if !style.is_text {
                continue;
            }
            let Some((before, after)) = &style.around else {
                is_open = false;
                continue;
            };
            match styles.around.last_mut() {
                Some(run) if is_open && run.2 == *before && run.3 == *after => run.1 = i,
                _ => styles.around.push((i, i, before.clone(), after.clone())),
            }
            is_open = true;
        }
        styles
    }

    /// Returns true if no message has a style.
    pub(crate) fn is_plain(&self) -> bool {
        self.around.is_empty() && self.marks.is_empty()
    }

    /// The same styles without cache markers, for other messages of the session.
    pub(crate) fn without_markers(self) -> MessageStyles {
        MessageStyles { marks: Vec::new(), ..self }
    }

    /// Applies the style of a message to its plain JSON.
    pub(crate) fn apply<'m>(&self, message: u32, plain: &'m str) -> Cow<'m, str> {
        let run = self.around.iter().find(|(first, last, ..)| (*first..=*last).contains(&message));
        let marks = self.marks.iter().filter(|(number, ..)| *number == message);
        let style = MessageStyle {
            around: run.map(|(_, _, before, after)| (before.clone(), after.clone())),
            markers: marks.map(|(_, at, mark)| (*at, mark.clone())).collect(),
            is_text: true,
        };
        if style.is_plain() { Cow::Borrowed(plain) } else { restore_style(plain, &style).into_owned().into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfold_wire::{Conversation, Format};

    const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

    fn check(messages: &[String]) -> MessageStyles {
        let body = format!("[{}]", messages.join(","));
        let (conversation, _) = Conversation::decode(&body, Some(Format::Anthropic)).unwrap();
        let styles = MessageStyles::new(conversation.styles());
        let text = serde_json::to_string(&styles).unwrap();
        let styles: MessageStyles = serde_json::from_str(&text).unwrap();
        for (i, (plain, raw)) in conversation.plain_messages(0).zip(messages).enumerate() {
            assert_eq!(styles.apply(i as u32, &plain), *raw);
        }
        styles
    }

    #[test]
    fn consecutive_messages_of_one_style_are_one_run() {
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

//! Text for people, with styles kept apart from its content.
//!
//! Only this module turns text into what a terminal receives, so that no content can contain codes of its own.

use std::borrow::Cow;
use std::fmt;

use anstyle::Style;

use super::controls::{Controls, visible, visible_line};

/// Parts of text, each with its style.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Text {
    parts: Vec<(Style, String)>,
}

/// Joins strings and texts to a [`Text`].
macro_rules! text {
    ($($part:expr),* $(,)?) => {{
        let mut text = $crate::terminal::Text::default();
        $( text.push($part); )*
        text
    }};
}

pub(crate) use text;

/// A text in a style.
pub(crate) fn paint(style: Style, content: impl fmt::Display) -> Text {
    Text { parts: vec![(style, content.to_string())] }
}

impl Text {
    /// Appends a string or a text.
    pub(crate) fn push(&mut self, more: impl Into<Text>) {
        self.parts.extend(more.into().parts);
    }

    /// Appends a string or a text, and a line end.
    pub(crate) fn push_line(&mut self, more: impl Into<Text>) {
        self.push(more);
        self.push("\n");
    }

    /// The same without styles.
    pub(super) fn plain(self) -> Text {
        let parts = self.parts.into_iter();
        Text { parts: parts.map(|(_, content)| (Style::new(), content)).collect() }
    }

    /// The same without spaces at the end.
    pub(crate) fn trim_end(mut self) -> Text {
        while let Some((style, content)) = self.parts.pop() {
            let end = content.trim_end();
            if !end.is_empty() {
                self.parts.push((style, end.to_owned()));
                break;
            }
        }
        self
    }

    /// The output for a terminal or a pipe.
    pub(super) fn render(&self, controls: Controls) -> String {
        self.render_with(|content| match controls {
            Controls::Visible => visible(content),
            Controls::Raw => Cow::Borrowed(content),
        })
    }

    /// The output for a terminal, on one line.
    pub(crate) fn render_line(&self) -> String {
        self.render_with(visible_line)
    }

    fn render_with<'a>(&'a self, print: impl Fn(&'a str) -> Cow<'a, str>) -> String {
        let print_part = |(style, content): &'a (Style, String)| {
            let content = print(content);
            if style.is_plain() { content.into_owned() } else { format!("{style}{content}{style:#}") }
        };
        self.parts.iter().map(print_part).collect()
    }
}

impl From<&str> for Text {
    fn from(content: &str) -> Text {
        Text::from(content.to_owned())
    }
}

impl From<&String> for Text {
    fn from(content: &String) -> Text {
        Text::from(content.clone())
    }
}

impl From<String> for Text {
    fn from(content: String) -> Text {
        paint(Style::new(), content)
    }
}

impl FromIterator<Text> for Text {
    fn from_iter<I: IntoIterator<Item = Text>>(texts: I) -> Text {
        Text { parts: texts.into_iter().flat_map(|text| text.parts).collect() }
    }
}

/// Text written with `write!` has no style.
impl fmt::Write for Text {
    fn write_str(&mut self, content: &str) -> fmt::Result {
        match self.parts.last_mut() {
            Some((style, last)) if style.is_plain() => last.push_str(content),
            _ => self.push(content),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::style;

    #[test]
    fn only_styles_reach_the_terminal_as_codes() {
        let page = text!["a\u{1b}[2J ", paint(style::DIM, "b\u{9b}1m"), String::from("\n")];
        assert_eq!(page.render(Controls::Visible), "a␛[2J \u{1b}[2mb<U+009B>1m\u{1b}[0m\n");
        assert_eq!(page.render(Controls::Raw), "a\u{1b}[2J \u{1b}[2mb\u{9b}1m\u{1b}[0m\n");
    }

    #[test]
    fn spaces_at_the_end_are_trimmed_in_all_parts() {
        assert_eq!(text!["a b ", paint(style::DIM, "  "), "\n"].trim_end(), text!["a b"]);
    }
}

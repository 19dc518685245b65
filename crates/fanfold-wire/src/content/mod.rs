//! Contents of messages: a string, or parts of text, images and files.

pub(crate) mod text_calls;
pub(crate) mod text_results;

use std::borrow::Cow;

use fanfold_core::{Body, Media, Origin};

use crate::json::{self, Object, Splices};

/// A decoded content.
#[derive(Debug, Clone)]
pub(crate) struct Content<'a> {
    /// The original value; empty if there was none.
    pub(crate) raw: Cow<'a, str>,
    pub(crate) text: Cow<'a, str>,
    /// True if it has only the text.
    pub(crate) is_plain: bool,
    /// True if a character could not be decoded.
    pub(crate) is_broken: bool,
    media: Vec<(usize, String, &'a str)>,
}

/// A part of a content.
pub(crate) enum ContentPart<'a> {
    /// Text, as a JSON string.
    Text(&'a str),
    /// An image or a file, with a label for people.
    Media(String),
    /// Anything else.
    Other,
}

impl<'a> Content<'a> {
    /// Reads the value of a content.
    pub(crate) fn read(value: Option<&'a str>) -> Content<'a> {
        let Some(value) = value else { return Content::plain("") };
        if let Some(text) = json::string(value) {
            let (is_plain, is_broken) = (text.is_exact, !text.is_exact);
            return Content {
                raw: Cow::Borrowed(value),
                text: text.text,
                is_plain,
                is_broken,
                media: Vec::new(),
            };
        }
        match json::array(value) {
            Some(parts) => Content::from_parts(&parts, Cow::Borrowed(value)),
            None if value == "null" => {
                Content { raw: Cow::Borrowed(value), is_plain: false, ..Content::plain("") }
            }
            None => Content { raw: Cow::Borrowed(value), is_plain: false, ..Content::plain(value) },
        }
    }

    /// A content that is only text.
    pub(crate) fn plain(text: &'a str) -> Content<'a> {
        Content {
            raw: Cow::Borrowed(""),
            text: Cow::Borrowed(text),
            is_plain: true,
            is_broken: false,
            media: Vec::new(),
        }
    }

    /// Reads parts. `raw` is their original, which may be a slice of a longer list.
    pub(crate) fn from_parts(parts: &[&'a str], raw: Cow<'a, str>) -> Content<'a> {
        let mut content = Content { raw, is_plain: false, ..Content::plain("") };
        let mut texts = Vec::new();
        for (i, part) in parts.iter().enumerate() {
            match read_part(part) {
                ContentPart::Text(value) => {
                    if let Some(text) = json::string(value) {
                        content.is_broken |= !text.is_exact;
                        texts.push(text.text);
                    }
                }
                ContentPart::Media(label) => content.media.push((i, label, part)),
                ContentPart::Other => {}
            }
        }
        content.text = match texts.len() {
            1 => texts.remove(0),
            _ => Cow::Owned(texts.join("\n")),
        };
        content
    }

    /// The body of its entry.
    pub(crate) fn body(&self) -> Body {
        if self.is_plain { Body::text(&*self.text) } else { Body::with_raw(&*self.text, &*self.raw) }
    }

    /// Its images and files, each with its part as origin.
    pub(crate) fn media(&self, message: u32) -> Vec<Media> {
        let media = self.media.iter().map(|(part, label, raw)| Media {
            label: label.clone(),
            raw: (*raw).into(),
            origin: Origin { message, part: *part as u32 },
        });
        media.collect()
    }
}

pub(crate) fn read_part(part: &str) -> ContentPart<'_> {
    if part.starts_with('"') {
        return ContentPart::Text(part);
    }
    let Some(object) = Object::parse(part) else { return ContentPart::Other };
    let kind = object.text("type");
    let key = match kind.as_deref() {
        Some("text" | "input_text" | "output_text" | "summary_text" | "reasoning_text") | None => "text",
        Some("refusal") => "refusal",
        Some(kind) if is_media(kind) => return ContentPart::Media(label(&object, kind)),
        Some(_) => return ContentPart::Other,
    };
    match object.get(key).filter(|value| value.starts_with('"')) {
        Some(value) => ContentPart::Text(value),
        None => ContentPart::Other,
    }
}

fn is_media(kind: &str) -> bool {
    matches!(
        kind,
        "image_url"
            | "image"
            | "input_image"
            | "input_audio"
            | "audio"
            | "file"
            | "input_file"
            | "document"
            | "video_url"
            | "video"
            | "computer_screenshot"
    )
}

/// The media type, such as `image/png`, if the part has one, or else its type.
fn label(part: &Object<'_>, kind: &str) -> String {
    let media_type = part.some("source").and_then(Object::parse).and_then(|source| source.text("media_type"));
    if let Some(media_type) = media_type {
        return media_type.chars().take(60).collect();
    }
    let urls = ["image_url", "video_url", "file_data", "file"].into_iter().filter_map(|key| part.some(key));
    for value in urls {
        let mut end = value.len().min(120);
        while !value.is_char_boundary(end) {
            end -= 1;
        }
        let data_url = value[..end].split_once("data:").and_then(|(_, rest)| rest.split_once(';'));
        if let Some((kind, _)) = data_url {
            return kind.replace('\\', "");
        }
    }
    kind.to_owned()
}

/// An edit of a content.
#[derive(Debug, Default)]
pub(crate) struct ContentEdit<'e> {
    /// The stub of the text.
    pub(crate) text: Option<&'e str>,
    /// The stubs of images and files, by part.
    pub(crate) media: Vec<(usize, &'e str)>,
}

impl ContentEdit<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_none() && self.media.is_empty()
    }

    /// Applies the edit to the value of a content whose text parts have the type `part_type`.
    pub(crate) fn apply(&self, value: &str, part_type: &str) -> String {
        let Some(parts) = json::array(value) else {
            return self.text.map_or_else(|| value.to_owned(), json::quote);
        };
        let mut splices = Splices::default();
        let members: Vec<_> = parts.iter().map(|part| json::span(value, part)).collect();
        for (i, stub) in &self.media {
            let Some(part) = parts.get(*i) else { continue };
            splices.replace(members[*i].clone(), text_part(part_type, stub, Object::parse(part).as_ref()));
        }
        if let Some(stub) = self.text {
            let texts: Vec<_> = parts.iter().map(|part| text_value(part)).collect();
            let first = texts.iter().position(Option::is_some);
            match first.and_then(|first| texts[first]) {
                Some(text) => splices.replace(json::span(value, text), json::quote(stub)),
                None if parts.is_empty() => return format!("[{}]", text_part(part_type, stub, None)),
                None => splices.replace(1..1, format!("{}, ", text_part(part_type, stub, None))),
            }
            splices.cut(&members, |i| Some(i) != first && texts[i].is_some());
        }
        splices.apply(value)
    }
}

fn text_value(part: &str) -> Option<&str> {
    match read_part(part) {
        ContentPart::Text(value) => Some(value),
        ContentPart::Media(_) | ContentPart::Other => None,
    }
}

/// A text part. It gets the cache marker of the part that it replaces.
pub(crate) fn text_part(part_type: &str, text: &str, replaced: Option<&Object<'_>>) -> String {
    let text = json::quote(text);
    match replaced.and_then(|part| part.some("cache_control")) {
        Some(marker) => format!(r#"{{"type":"{part_type}","text":{text},"cache_control":{marker}}}"#),
        None => format!(r#"{{"type":"{part_type}","text":{text}}}"#),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: &str = r#"[{"type":"text","text":"one"} ,{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}, {"x":1}, {"text":"two","type":"text"}]"#;

    #[test]
    fn parts_have_text_or_a_label() {
        let content = Content::read(Some(PARTS));
        assert_eq!(content.text, "one\ntwo");
        let media = content.media(4);
        assert_eq!((media[0].label.as_str(), media[0].origin), ("image/png", Origin { message: 4, part: 1 }));
        assert_eq!(&**content.body().original(), PARTS);
    }

    #[test]
    fn an_edit_keeps_other_parts() {
        let edit = ContentEdit { text: Some("stub"), media: vec![(1, "[image]")] };
        assert_eq!(
            edit.apply(PARTS, "text"),
            r#"[{"type":"text","text":"stub"} ,{"type":"text","text":"[image]"}, {"x":1}]"#
        );
        let edit = ContentEdit { text: Some("stub"), media: vec![] };
        assert_eq!(edit.apply(r#""old""#, "text"), r#""stub""#);
        assert_eq!(edit.apply("null", "text"), r#""stub""#);
        assert_eq!(edit.apply(r#"[{"x":1}]"#, "text"), r#"[{"type":"text","text":"stub"}, {"x":1}]"#);
    }

    #[test]
    fn unusual_contents_are_kept() {
        for (value, text) in
            [("null", ""), ("5", "5"), (r#"{"a":1}"#, r#"{"a":1}"#), (r#""\ud800""#, "\u{fffd}")]
        {
            let body = Content::read(Some(value)).body();
            assert_eq!((body.as_str(), &**body.original()), (text, value));
        }
        assert!(Content::read(None).body().is_empty());
    }
}

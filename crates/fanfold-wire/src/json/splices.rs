//! Replaces ranges of a text and keeps every other byte.

use std::ops::Range;

use super::{Object, quote};

/// Changes to one text, by their byte ranges.
#[derive(Debug, Default)]
pub(crate) struct Splices {
    changes: Vec<(Range<usize>, String)>,
}

impl Splices {
    pub(crate) fn replace(&mut self, range: Range<usize>, text: impl Into<String>) {
        self.changes.push((range, text.into()));
    }

    /// Removes members of an object or items of an array, with their commas.
    pub(crate) fn cut(&mut self, members: &[Range<usize>], is_cut: impl Fn(usize) -> bool) {
        let mut kept_end = None;
        let mut i = 0;
        while i < members.len() {
            if !is_cut(i) {
                kept_end = Some(members[i].end);
                i += 1;
                continue;
            }
            let first = i;
            while i < members.len() && is_cut(i) {
                i += 1;
            }
            let range = match (members.get(i), kept_end) {
                (Some(next), _) => members[first].start..next.start,
                (None, Some(end)) => end..members[i - 1].end,
                (None, None) => members[first].start..members[i - 1].end,
            };
            self.replace(range, "");
        }
    }

    /// Removes fields of an object that starts at an offset.
    pub(crate) fn cut_fields(&mut self, object: &Object<'_>, offset: usize, is_cut: impl Fn(&str) -> bool) {
        let members: Vec<_> =
            object.fields.iter().map(|field| offset + field.span.start..offset + field.span.end).collect();
        self.cut(&members, |i| is_cut(&object.fields[i].key));
    }

    /// The ranges to be changed, in order.
    pub(crate) fn ranges(self) -> Vec<Range<usize>> {
        let mut ranges: Vec<_> = self.changes.into_iter().map(|(range, _)| range).collect();
        ranges.sort_by_key(|range| range.start);
        ranges
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The text with all changes. Of two overlapping changes only the first is applied.
    pub(crate) fn apply(mut self, text: &str) -> String {
        self.changes.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let added: usize = self.changes.iter().map(|(_, new)| new.len()).sum();
        let mut out = String::with_capacity(text.len() + added);
        let mut at = 0;
        for (range, new) in self.changes {
            if range.start < at {
                continue;
            }
            out.push_str(text.get(at..range.start).unwrap_or_default());
            out.push_str(&new);
            at = range.end;
        }
        out.push_str(text.get(at..).unwrap_or_default());
        out
    }
}

/// An object with one value replaced, or added after the others.
pub(crate) fn with_field(object: &str, key: &str, value: &str) -> String {
    let Some(parsed) = Object::parse(object) else { return object.to_owned() };
    let mut splices = Splices::default();
    match parsed.get(key) {
        Some(old) => splices.replace(parsed.span(old), value),
        None => {
            let Some(end) = object.rfind('}') else { return object.to_owned() };
            let comma = if parsed.fields.is_empty() { "" } else { "," };
            splices.replace(end..end, format!("{comma}{}:{value}", quote(key)));
        }
    }
    splices.apply(object)
}

/// An object without some of its fields.
pub(crate) fn without_fields(object: &str, is_cut: impl Fn(&str) -> bool) -> String {
    let Some(parsed) = Object::parse(object) else { return object.to_owned() };
    let mut splices = Splices::default();
    splices.cut_fields(&parsed, 0, is_cut);
    splices.apply(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Object;

    fn without(object: &str, keys: &[&str]) -> String {
        let parsed = Object::parse(object).expect("an object");
        let members: Vec<_> = parsed.fields.iter().map(|field| field.span.clone()).collect();
        let mut splices = Splices::default();
        splices.cut(&members, |i| keys.contains(&&*parsed.fields[i].key));
        splices.apply(object)
    }

    #[test]
    fn cut_fields_take_their_commas() {
        let object = r#"{ "a":1, "b" : 2 ,"c":3 }"#;
        assert_eq!(without(object, &["a"]), r#"{ "b" : 2 ,"c":3 }"#);
        assert_eq!(without(object, &["b"]), r#"{ "a":1, "c":3 }"#);
        assert_eq!(without(object, &["c"]), r#"{ "a":1, "b" : 2 }"#);
        assert_eq!(without(object, &["b", "c"]), r#"{ "a":1 }"#);
        assert_eq!(without(object, &["a", "c"]), r#"{ "b" : 2 }"#);
        assert_eq!(without(object, &["a", "b", "c"]), "{  }");
    }

    #[test]
    fn changes_are_applied_in_text_order() {
        let mut splices = Splices::default();
        splices.replace(6..11, "moon");
        splices.replace(0..5, "bye");
        assert_eq!(splices.apply("hello world"), "bye moon");
    }
}

//! Changes places of a text and leaves every other byte alone.

use std::ops::Range;

/// Changes to one text, by their places in it.
#[derive(Debug, Default)]
pub(crate) struct Splices {
    changes: Vec<(Range<usize>, String)>,
}

impl Splices {
    /// Puts a text in the place of a range.
    pub(crate) fn replace(&mut self, place: Range<usize>, text: impl Into<String>) {
        self.changes.push((place, text.into()));
    }

    /// Takes members of an object or items of an array away, with their commas.
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
            let place = match (members.get(i), kept_end) {
                (Some(next), _) => members[first].start..next.start,
                (None, Some(end)) => end..members[i - 1].end,
                (None, None) => members[first].start..members[i - 1].end,
            };
            self.replace(place, "");
        }
    }

    /// The places that are to be changed, in order.
    pub(crate) fn places(self) -> Vec<Range<usize>> {
        let mut places: Vec<_> = self.changes.into_iter().map(|(place, _)| place).collect();
        places.sort_by_key(|place| place.start);
        places
    }

    /// Whether nothing is to be changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The text with all changes made. Of two changes that overlap, the one that starts first is made.
    pub(crate) fn apply(mut self, text: &str) -> String {
        self.changes.sort_by_key(|(place, _)| (place.start, std::cmp::Reverse(place.end)));
        let added: usize = self.changes.iter().map(|(_, new)| new.len()).sum();
        let mut out = String::with_capacity(text.len() + added);
        let mut at = 0;
        for (place, new) in self.changes {
            if place.start < at {
                continue;
            }
            out.push_str(text.get(at..place.start).unwrap_or_default());
            out.push_str(&new);
            at = place.end;
        }
        out.push_str(text.get(at..).unwrap_or_default());
        out
    }
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
    fn fields_leave_with_their_commas() {
        let object = r#"{ "a":1, "b" : 2 ,"c":3 }"#;
        assert_eq!(without(object, &["a"]), r#"{ "b" : 2 ,"c":3 }"#);
        assert_eq!(without(object, &["b"]), r#"{ "a":1, "c":3 }"#);
        assert_eq!(without(object, &["c"]), r#"{ "a":1, "b" : 2 }"#);
        assert_eq!(without(object, &["b", "c"]), r#"{ "a":1 }"#);
        assert_eq!(without(object, &["a", "c"]), r#"{ "b" : 2 }"#);
        assert_eq!(without(object, &["a", "b", "c"]), "{  }");
    }

    #[test]
    fn changes_are_made_in_order_of_place() {
        let mut splices = Splices::default();
        splices.replace(6..11, "moon");
        splices.replace(0..5, "bye");
        assert_eq!(splices.apply("hello world"), "bye moon");
    }
}

//! Detects the kind of a text from a sample of its lines.

use crate::text::condense::severity::{head, tail};
use crate::text::condense::source::code::unnumbered;
use crate::text::condense::{CONDENSERS, CondenseOptions, ContentKind, envelope};

/// How texts of one kind are detected and shortened.
pub(crate) struct Condenser {
    pub(crate) kind: ContentKind,
    /// Returns whether a text is of this kind, if it is of none before it in the list.
    pub(crate) detects: fn(&Sample<'_>) -> bool,
    /// Shortens a text; the number is the depth of its nesting in other texts.
    pub(crate) condense: fn(&str, &CondenseOptions<'_>, usize) -> String,
    /// True if words such as `error` report a failure; error lines then add to the default size.
    pub(crate) has_errors: bool,
    /// True if the most valuable lines represent a text of this kind well.
    pub(crate) suits_line_choice: bool,
    /// True if source code can look like this kind. The path of a file is more reliable.
    pub(crate) may_be_code: bool,
}

impl Condenser {
    pub(crate) fn for_kind(kind: ContentKind) -> &'static Condenser {
        CONDENSERS.iter().find(|condenser| condenser.kind == kind).expect("every kind is in the list")
    }
}

/// At most twelve kilobytes of a text.
pub(crate) struct Sample<'a> {
    /// The text without its envelope.
    pub(crate) text: &'a str,
    /// The beginning of the text.
    pub(crate) start: &'a str,
    /// The lines at the beginning and at the end that are not empty.
    pub(crate) lines: Vec<&'a str>,
    /// True if the lines begin with line numbers, as tools print them before lines of a file.
    pub(crate) is_numbered: bool,
}

const SAMPLE_HEAD: usize = 8_192;
const SAMPLE_TAIL: usize = 4_096;

impl<'a> Sample<'a> {
    fn new(text: &'a str) -> Sample<'a> {
        let text = envelope::split(text).body.trim_ascii_start();
        let start = head(text, SAMPLE_HEAD);
        let end = tail(text, SAMPLE_TAIL.min(text.len() - start.len()));
        let lines = start.lines().chain(end.lines()).map(str::trim_end).filter(|line| !line.is_empty());
        let mut sample = Sample { text, start, lines: lines.collect(), is_numbered: false };
        sample.is_numbered = sample.share(|line| unnumbered(line).len() < line.len()) > 0.8;
        sample
    }

    /// The share of lines with a property.
    pub(crate) fn share(&self, is_so: impl Fn(&str) -> bool) -> f32 {
        self.lines.iter().filter(|line| is_so(line)).count() as f32 / self.lines.len() as f32
    }
}

/// Detects the kind of a text from a sample.
pub fn detect_kind(text: &str) -> ContentKind {
    let sample = Sample::new(text);
    let found = CONDENSERS.iter().find(|condenser| (condenser.detects)(&sample));
    found.map_or(ContentKind::Log, |condenser| condenser.kind)
}

//! The HTTP interface of a dialect.

use std::borrow::Cow;

use crate::dialects::Provider;
use crate::json::{self, Object, Splices};
use crate::reply::reader::Reading;
use crate::reply::rounds::JoinRounds;
use crate::reply::sse::SseEvent;
use crate::reply::text::TextReader;
use crate::request::HiddenRecalls;

/// The HTTP interface of a dialect.
pub(crate) trait Api: Requests + Replies {}

impl<T: Requests + Replies> Api for T {}

/// The requests of a dialect, as clients send them.
pub(crate) trait Requests: Sync {
    fn provider(&self) -> &'static Provider;

    /// The end of the path that conversations are posted to.
    fn route(&self) -> &'static str;

    /// Returns whether requests to a path, given without a slash at its end, carry conversations in this dialect.
    fn serves(&self, path: &str) -> bool {
        path.ends_with(self.route())
    }

    /// The messages with alternating roles; `None` if providers of the dialect accept any order.
    fn alternate_roles<'a>(&self, _messages: &[&'a str]) -> Option<Vec<Cow<'a, str>>> {
        None
    }

    /// Puts a text at the end of a request. `None` where the request has no place for one.
    fn append_text(
        &self,
        splices: &mut Splices,
        body: &str,
        object: &Object<'_>,
        list: &str,
        text: &str,
    ) -> Option<()>;

    /// The declaration of the recall tool.
    fn recall_tool(&self) -> &'static str;

    /// A recall made by the model, with arguments that are a JSON object.
    fn print_call(&self, id: &str, name: &str, arguments: &str) -> String;

    /// The result of a call, with its id and its text as JSON strings.
    fn print_result(&self, id: &str, text: &str) -> String;

    /// Puts results into messages.
    fn wrap_results(&self, results: Vec<String>) -> Vec<String> {
        results
    }

    /// Where hidden recalls and their results belong in the messages of a body.
    fn recall_positions(
        &self,
        body: &str,
        messages: &[&str],
        recalls: &HiddenRecalls,
    ) -> Option<RecallPositions>;
}

/// The replies of a dialect.
pub(crate) trait Replies: Sync {
    /// Reads an event of a streamed reply.
    fn read_event(&self, reading: &mut Reading, event: &SseEvent);

    /// Reads a whole reply: the stop reason and the calls.
    fn read_whole(&self, reading: &mut Reading, body: &Object<'_>);

    /// Returns whether an event only announces that a reply begins.
    fn is_preamble(&self, event: &SseEvent, data: &str) -> bool;

    /// Returns whether `input` in a usage excludes cache reads and writes, and cache writes are always reported.
    fn counts_cache_separately(&self) -> bool {
        false
    }

    /// The text that an event adds to the reply.
    fn text_of_event(&self, reader: &mut TextReader, kind: &str, event: &Object<'_>) -> String;

    /// The text of a whole reply.
    fn text_of_whole(&self, reader: &mut TextReader, body: &Object<'_>) -> String;

    /// The visible texts that an event continues, repeats or ends.
    fn texts_of_event<'d>(&self, kind: &str, event: &Object<'d>) -> EventTexts<'d>;

    /// The visible texts of a whole reply, as JSON strings.
    fn texts_of_whole<'d>(&self, body: &Object<'d>) -> Vec<&'d str>;

    /// The joiner for the replies to a request and its follow-ups.
    fn join_rounds(&self, request: &str) -> Box<dyn JoinRounds + Send>;
}

/// Offsets in a body, each behind the last call or result of the client.
pub(crate) struct RecallPositions {
    /// `None` where the provider stores the calls.
    pub(crate) call: Option<usize>,
    pub(crate) result: usize,
}

/// The visible texts of one event.
#[derive(Default)]
pub(crate) struct EventTexts<'d> {
    pub(crate) fragments: Vec<TextFragment<'d>>,
    /// The texts that end before the event.
    pub(crate) ended_before: Vec<String>,
    /// The texts that end with the event.
    pub(crate) ended_after: Vec<String>,
    /// True if every text ends before the event.
    pub(crate) ends_all: bool,
}

impl<'d> EventTexts<'d> {
    /// One fragment that continues a text, if the event has one.
    pub(crate) fn continuing(text_name: String, value: Option<&'d str>) -> EventTexts<'d> {
        let fragment = value.map(|value| TextFragment { text_name, value, is_whole: false });
        EventTexts { fragments: fragment.into_iter().collect(), ..EventTexts::default() }
    }

    /// Texts that are repeated as a whole.
    pub(crate) fn repeating(values: impl IntoIterator<Item = &'d str>) -> EventTexts<'d> {
        let fragments =
            values.into_iter().map(|value| TextFragment { text_name: String::new(), value, is_whole: true });
        EventTexts { fragments: fragments.collect(), ..EventTexts::default() }
    }

    pub(crate) fn end_all() -> EventTexts<'d> {
        EventTexts { ends_all: true, ..EventTexts::default() }
    }
}

/// Visible text within an event.
pub(crate) struct TextFragment<'d> {
    /// The name of the text that it continues.
    pub(crate) text_name: String,
    /// Its JSON string.
    pub(crate) value: &'d str,
    /// True if it repeats a whole text instead of continuing one.
    pub(crate) is_whole: bool,
}

/// Returns whether the first segment of a path, after a version, is one of some resources, separated by spaces. The
/// root belongs to every API.
pub(crate) fn is_below(path: &str, resources: &str) -> bool {
    let path = path.trim_matches('/');
    let path =
        path.strip_prefix("v1").filter(|rest| rest.is_empty() || rest.starts_with('/')).unwrap_or(path);
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    first.is_empty() || resources.split(' ').any(|resource| resource == first)
}

/// Puts a text after a content that is a string or a list of parts.
pub(crate) fn append_to_content(
    splices: &mut Splices,
    body: &str,
    content: &str,
    part_type: &str,
    text: &str,
) -> Option<()> {
    let end = json::span(body, content).end.checked_sub(1)?;
    if content.starts_with('"') {
        let quoted = json::quote(&format!("\n\n{text}"));
        splices.replace(end..end, &quoted[1..quoted.len() - 1]);
        return Some(());
    }
    let comma = if json::array(content)?.is_empty() { "" } else { "," };
    splices.replace(end..end, format!(r#"{comma}{{"type":"{part_type}","text":{}}}"#, json::quote(text)));
    Some(())
}

/// The span of the last value that matches.
pub(crate) fn last_span(
    body: &str,
    values: &[&str],
    matches: impl Fn(&Object<'_>) -> bool,
) -> Option<std::ops::Range<usize>> {
    let last = values.iter().rev().find(|value| Object::parse(value).is_some_and(|value| matches(&value)));
    last.map(|last| json::span(body, last))
}

//! The check of an encoded body after its edits: memory block, provider rules, removed recall tool.

use crate::conversation::Conversation;
use crate::conversation::change::Change;
use crate::dialects::Format;

/// An edit damaged a body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EditFault(String);

/// Checks an edited body against the body before its edits: it can be decoded, has the same calls with the same number
/// of results, and nothing in it is odd that was not odd before.
pub fn check_edits(before: &str, edited: &str, format: Format) -> Result<(), EditFault> {
    // The body before the edits is the encoded view, which was checked.
    let Ok(before) = BodyContents::read(before, format) else { return Ok(()) };
    let edited = BodyContents::read(edited, format)?;
    if edited.calls != before.calls || edited.n_results != before.n_results {
        let (was, is) = (before.calls.len(), edited.calls.len());
        let (had, has) = (before.n_results, edited.n_results);
        return Err(EditFault(format!("edits changed {was} calls and {had} results to {is} and {has}")));
    }
    match edited.oddities.len() > before.oddities.len() {
        true => Err(EditFault(format!("edits made the body odd: {}", edited.oddities.join("; ")))),
        false => Ok(()),
    }
}

struct BodyContents {
    calls: Vec<(String, String)>,
    n_results: usize,
    oddities: Vec<String>,
}

impl BodyContents {
    fn read(body: &str, format: Format) -> Result<BodyContents, EditFault> {
        let decoded = Conversation::decode(body, Some(format));
        let (conversation, changes) =
            decoded.map_err(|error| EditFault(format!("an edited body cannot be decoded: {error}")))?;
        let mut contents = BodyContents { calls: Vec::new(), n_results: 0, oddities: Vec::new() };
        for change in &changes {
            match change {
                Change::Append(entry) => {
                    let calls = entry.step().map_or(&[][..], |step| &step.calls);
                    contents.n_results += calls.iter().filter(|call| call.result.is_some()).count();
                    contents.calls.extend(calls.iter().map(|call| (call.id.clone(), call.tool.clone())));
                }
                Change::Answer(..) => contents.n_results += 1,
            }
        }
        contents.oddities = conversation.repairs().iter().map(ToString::to_string).collect();
        Ok(contents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"{"messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"b.rs"},{"role":"user","content":"go on"}]}"#;

    #[test]
    fn text_may_be_added() {
        let edited = BODY.replace("go on", "go on\\n\\n<memory>x</memory>");
        assert_eq!(check_edits(BODY, &edited, Format::Chat), Ok(()));
    }

    #[test]
    fn a_lost_result_a_lost_call_and_broken_json_are_faults() {
        let result = r#",{"role":"tool","tool_call_id":"a","content":"b.rs"}"#;
        let cases = [
            (BODY.replace(result, ""), "edits changed 1 calls and 1 results to 1 and 0"),
            (BODY.replace(r#""id":"a""#, r#""id":"b""#), "edits"),
            (BODY.replace("]}", "}"), "an edited body cannot be decoded"),
            (BODY.replace(r#""arguments":"{}""#, r#""arguments":"{""#), "edits made the body odd"),
        ];
        for (edited, expected) in cases {
            let fault = check_edits(BODY, &edited, Format::Chat).expect_err(&edited).to_string();
            assert!(fault.starts_with(expected), "{fault}");
        }
    }
}

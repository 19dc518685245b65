//! Condenses texts, and describes calls in a line.
//!
//! Two bytes give the room; then follow the name, arguments and result of a tool, separated by NUL.

use fanfold_core::{
    Body, Call, CondenseOptions, FileExcerpt, Media, Origin, Outcome, call_status, condense, condense_input,
    describe_call, detect_kind, overtakes, parse_action,
};

/// A condensed text may exceed its room by a marker for omitted lines.
const MARKER: usize = 64;

/// Panics if a condensed text is too long, empty, or different the second time.
pub fn check(data: &[u8]) {
    let Some((room, rest)) = data.split_first_chunk::<2>() else { return };
    let room = usize::from(u16::from_le_bytes(*room)) % 4_096;
    let Ok(text) = std::str::from_utf8(rest) else { return };
    check_condense(text, room);
    let mut parts = text.splitn(3, '\0');
    let mut part = || parts.next().unwrap_or_default();
    let (tool, arguments, result) = (part(), part(), part());
    if !result.is_empty() {
        check_condense(result, room);
    }
    check_deed(tool, arguments, result);
}

fn check_condense(text: &str, room: usize) {
    let value = |line: &str| if line.len() % 7 == 3 { 1.5 } else { 0.0 };
    let is_edited = |line: &str| line.len() % 11 == 5;
    // Any text may be parsed as any language.
    let path = ["a.rs", "a.py", "a.ts", "a.js", "a.go", "a.java", "a.c", "a.txt"][text.len() % 8];
    let file = FileExcerpt { path, first_line: (room % 2 == 0).then_some(1), is_edited: &is_edited };
    let options = CondenseOptions { file: Some(file), ..CondenseOptions::new(room, &value) };
    if let Some(short) = condense_input(text, &options) {
        assert!(short.len() < text.len(), "a condensed argument is not shorter");
    }
    let _ = detect_kind(text);
    let Some(short) = condense(text, &options) else { return };
    assert!(short.len() <= room + MARKER, "{} bytes in a room of {room}:\n{short}", short.len());
    assert!(short.len() < text.len(), "not shorter");
    assert!(!short.trim().is_empty(), "empty");
    assert_eq!(condense(text, &options).as_ref(), Some(&short), "different the second time");
}

fn check_deed(tool: &str, arguments: &str, result: &str) {
    let origin = Origin::message(0);
    for is_error in [false, true] {
        let outcome = Outcome { body: Body::text(result), is_error, media: Vec::<Media>::new(), origin };
        let deed = parse_action(tool, arguments);
        let _ = call_status(&deed, &outcome);
        // A deed may overtake itself or not; asking does no harm.
        let _ = overtakes(&deed, &deed);
        let call = Call {
            id: String::new(),
            tool: tool.to_owned(),
            arguments: Body::text(arguments),
            result: Some(outcome),
            origin,
        };
        let line = describe_call(&call);
        assert!(!line.contains('\n'), "one line: {line}");
        assert_eq!(describe_call(&Call { result: None, ..call }).lines().count(), 1);
    }
}

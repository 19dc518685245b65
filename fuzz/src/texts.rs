//! Any text as a result to be condensed, and as a call to be told in a line.
//!
//! Two bytes give the room; then come a tool's name, its arguments and its result, with a NUL between them.

use fanfold_core::{
    Body, Call, FileExcerpt, Media, Origin, Outcome, CondenseOptions, condense, condense_input, deed_of, ending_of, detect_kind,
    line_of, overtakes,
};

/// How much a condensed text may be longer than its room: a mark for what is left out.
const MARK: usize = 64;

/// Condenses and tells. Panics where a text comes out longer, empty or different the second time.
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
    // Any text as a file of any language: what a parser makes of it must do no harm.
    let path = ["a.rs", "a.py", "a.ts", "a.js", "a.go", "a.java", "a.c", "a.txt"][text.len() % 8];
    let file = FileExcerpt { path, first_line: (room % 2 == 0).then_some(1), is_edited: &is_edited };
    let wish = CondenseOptions { file: Some(file), ..CondenseOptions::new(room, &value) };
    if let Some(short) = condense_input(text, &wish) {
        assert!(short.len() < text.len(), "what was written is not shorter");
    }
    let _ = detect_kind(text);
    let Some(short) = condense(text, &wish) else { return };
    assert!(short.len() <= room + MARK, "{} bytes in a room of {room}:\n{short}", short.len());
    assert!(short.len() < text.len(), "not shorter");
    assert!(!short.trim().is_empty(), "nothing is left");
    assert_eq!(condense(text, &wish).as_ref(), Some(&short), "different the second time");
}

fn check_deed(tool: &str, arguments: &str, result: &str) {
    let origin = Origin::message(0);
    for is_error in [false, true] {
        let outcome = Outcome { body: Body::text(result), is_error, media: Vec::<Media>::new(), origin };
        let deed = deed_of(tool, arguments);
        let _ = ending_of(&deed, &outcome);
        // A deed may overtake itself or not; asking does no harm.
        let _ = overtakes(&deed, &deed);
        let call = Call {
            id: String::new(),
            tool: tool.to_owned(),
            arguments: Body::text(arguments),
            result: Some(outcome),
            origin,
        };
        let line = line_of(&call);
        assert!(!line.contains('\n'), "one line: {line}");
        assert_eq!(line_of(&Call { result: None, ..call }).lines().count(), 1);
    }
}

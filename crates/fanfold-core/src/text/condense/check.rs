//! Test code shared by the condensers, and properties of all of them.

use expect_test::Expect;
use proptest::prelude::*;

use crate::text::condense::{CondenseOptions, ContentKind, condense, detect_kind};

/// Condenses a text while the words `in_use` have a value.
pub(crate) fn check(kind: ContentKind, text: &str, room: usize, in_use: &[&str], expected: &Expect) {
    assert_eq!(detect_kind(text), kind);
    let value = |line: &str| in_use.iter().filter(|word| line.contains(**word)).count() as f32;
    let options = CondenseOptions::new(room, &value);
    let short = condense(text, &options).expect("the text can be shortened");
    assert!(short.len() <= room, "{} bytes in a room of {room}:\n{short}", short.len());
    expected.assert_eq(&(short + "\n"));
}

fn line() -> impl Strategy<Value = String> {
    let typical = prop::sample::select(vec![
        "src/a.rs:12:    let x = 1;",
        "src/b.rs-13-}",
        "  File \"app/main.py\", line 3, in main",
        "    raise ValueError()",
        "ValueError: no",
        "test a::b ... ok",
        "test a::c ... FAILED",
        "test result: FAILED. 1 passed; 1 failed",
        "@@ -1,2 +3,4 @@ fn x",
        "diff --git a/x b/x",
        "+new",
        "-old",
        "   12→pub fn new() -> Self {",
        "    13\t}",
        "fn main() {",
        "-rw-r--r-- 1 root root 12 Nov 15 04:42 a.txt",
        "./src/lib.rs",
        "src/:",
        "| a | b |",
        "2024-01-01 10:00:00 INFO ok",
        "<div><p>text &amp; more</p><script>x</script>",
        "<!DOCTYPE html><html>",
        "{\"output\": \"a\\nb\", \"exit_code\": 1}",
        "## Heading",
        "A sentence with many words in it. And another one! And one more?",
        "<returncode>1</returncode>",
        "<output>",
        "</output>",
        "<system-reminder>",
        "</system-reminder>",
        "a\\nb\\nc\\nd\\ne\\nf",
        "ünïcödé … 🎉",
        "",
        "}",
    ]);
    let odd = "\\PC{0,40}";
    prop_oneof![6 => typical.prop_map(str::to_owned), 1 => odd.prop_map(String::from), 1 => (odd, 1..60_usize).prop_map(|(text, n)| text.repeat(n))]
}

fn text() -> impl Strategy<Value = String> {
    let mixed = prop::collection::vec(line(), 0..60).prop_map(|lines| lines.join("\n"));
    let same = (line(), 1..80_usize).prop_map(|(line, n)| format!("{line}\n").repeat(n));
    let wrapped = mixed.boxed().prop_map(|text| {
        serde_json::json!({"output": text, "exit_code": 1, "list": [1, 2, {"a": text}]}).to_string()
    });
    prop_oneof![
        prop::collection::vec(line(), 0..60).prop_map(|lines| lines.join("\n")),
        same,
        wrapped,
        "(\\PC|\n){0,400}"
    ]
}

proptest! {
    #[test]
    fn output_fits_the_room(text in text(), room in 0..2_000_usize, word in "[a-z]") {
        let value = |line: &str| if line.contains(&word) { 1.5 } else { 0.0 };
        if let Some(short) = condense(&text, &CondenseOptions::new(room, &value)) {
            prop_assert!(short.len() <= room + 64, "{} > {room}", short.len());
            prop_assert!(short.len() < text.len() && !short.is_empty());
            prop_assert_eq!(&short, &condense(&text, &CondenseOptions::new(room, &value)).expect("the same result"));
        }
    }

    /// A wrong kind is tolerated.
    #[test]
    fn any_kind_may_be_given(text in text(), room in 0..2_000_usize, kind in prop::sample::select(&ContentKind::ALL)) {
        let options = CondenseOptions { kind: Some(kind), ..CondenseOptions::new(room, &|_| 0.0) };
        if let Some(short) = condense(&text, &options) {
            prop_assert!(short.len() <= room + 64, "{} > {room}", short.len());
            prop_assert!(short.len() < text.len() && !short.is_empty());
            prop_assert_eq!(&short, &condense(&text, &options).expect("the same result"));
        }
    }

    #[test]
    fn any_value_is_accepted(text in text(), value in prop::num::f32::ANY) {
        condense(&text, &CondenseOptions::new(300, &|_| value));
    }

    #[test]
    fn errors_are_kept(lines in prop::collection::vec("[a-z ]{10,60}", 30..200), at in 0..30_usize) {
        let mut lines = lines;
        lines.insert(at, "error: the disk is full".to_owned());
        let short = condense(&lines.join("\n"), &CondenseOptions::new(200, &|_| 0.0));
        prop_assert!(short.expect("the text is long").contains("error: the disk is full"));
    }
}

#[test]
fn given_kind_applies_to_text_inside_json() {
    let names: String = (0..80).map(|i| format!("src/part{i}/mod.rs\n")).collect();
    let condensed = |text: &str, kind| {
        condense(text, &CondenseOptions { kind, ..CondenseOptions::new(400, &|_| 0.0) })
            .expect("the text is long")
    };
    assert_eq!(detect_kind(&names), ContentKind::Listing);
    let (listed, logged) = (condensed(&names, None), condensed(&names, Some(ContentKind::Log)));
    assert!(logged.contains(" alike") && !listed.contains(" alike"), "{listed}\n{logged}");
    let wrapped = serde_json::json!({ "output": names, "exit_code": 0 }).to_string();
    let (listed, logged) = (condensed(&wrapped, None), condensed(&wrapped, Some(ContentKind::Log)));
    assert!(logged.contains(" alike") && !listed.contains(" alike"), "{listed}\n{logged}");
    assert!(logged.contains("exit_code: 0"), "{logged}");
    // A list of records is not wrapped output, so the given kind applies to the JSON itself.
    let records: Vec<_> =
        (0..40).map(|i| serde_json::json!({ "id": i, "name": format!("part{i}") })).collect();
    let records = serde_json::to_string_pretty(&records).expect("JSON");
    assert!(condensed(&records, None).contains("40 items of {id, name}"));
    assert!(!condensed(&records, Some(ContentKind::Log)).contains("items of"));
}

#[test]
fn huge_texts_are_condensed() {
    let mega = 1 << 20;
    let texts = [
        "a".repeat(mega),
        "\n".repeat(mega),
        "aaaa ".repeat(mega / 5),
        "<".repeat(mega),
        "\\n".repeat(mega / 2),
        "[".repeat(mega),
        "{\"a\":".repeat(mega / 5),
        format!("[{}0]", "1,".repeat(mega / 2)),
        "error: x\n".repeat(mega / 9),
        "src/a.rs:1:x\n".repeat(mega / 13),
        (0..mega / 16).map(|i| format!("src/d{i}/f{i}.rs\n")).collect(),
        "<script>".repeat(mega / 8),
        "&amp".repeat(mega / 4),
        "ü".repeat(mega / 2),
    ];
    for text in texts {
        let short = condense(&text, &CondenseOptions::new(1_000, &|_| 0.0)).expect("the text is long");
        assert!(short.len() <= 1_064, "{}", short.len());
    }
}

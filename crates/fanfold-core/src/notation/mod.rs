//! The text notation for conversations, used in tests, by `fanfold show` and in bug reports.
//!
//! One line per message with the keyword in a column of eight. Further lines of a text are indented by that column. A
//! blank line inside a text may be left empty. Parsing printed entries returns the same entries.
//!
//! ```text
//! user    what is on the list?
//! think   I should look
//! call    read notes.md
//! result  buy milk,
//!         eggs and bread
//! ```

mod parser; //  parser
mod printer; // printer

pub use parser::parse;
pub use printer::{print_entries, print_view};

/// A syntax error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotationError {
    /// A line does not begin with a keyword.
    #[error(
        "line {line}: `{found}` is not a keyword\n\n\
         hint: a line starts with one of {KEYWORDS}; its text begins in the ninth column"
    )]
    Keyword {
        /// The line number, counted from 1.
        line: usize,
        /// The text in the keyword column.
        found: String,
    },
    /// A line does not follow a line that it belongs to.
    #[error("line {line}: this {keyword} has no {expected} before it")]
    Stray {
        /// The line number, counted from 1.
        line: usize,
        /// The keyword of the line.
        keyword: &'static str,
        /// The keyword of the line that it has to follow.
        expected: &'static str,
    },
}

const COLUMN: usize = 8;
const KEYWORDS: &str = "system, user, harness, sealed, think, say, call, result, error, open, image, note";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keyword {
    System,
    User,
    Harness,
    Provider,
    Think,
    Say,
    Call,
    Result,
    Error,
    Open,
    Image,
    Note,
}

impl Keyword {
    fn word(self) -> &'static str {
        match self {
            Keyword::System => "system",
            Keyword::User => "user",
            Keyword::Harness => "harness",
            Keyword::Provider => "sealed",
            Keyword::Think => "think",
            Keyword::Say => "say",
            Keyword::Call => "call",
            Keyword::Result => "result",
            Keyword::Error => "error",
            Keyword::Open => "open",
            Keyword::Image => "image",
            Keyword::Note => "note",
        }
    }

    fn find(word: &str) -> Option<Keyword> {
        let all = [
            Keyword::System,
            Keyword::User,
            Keyword::Harness,
            Keyword::Provider,
            Keyword::Think,
            Keyword::Say,
            Keyword::Call,
            Keyword::Result,
            Keyword::Error,
            Keyword::Open,
            Keyword::Image,
            Keyword::Note,
        ];
        all.into_iter().find(|keyword| keyword.word() == word)
    }
}

/// The part of the current step that was read or printed last. A line of an earlier part begins a new step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum StepPart {
    #[default]
    NoStep,
    Think,
    Say,
    Call,
    Result,
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;
    use crate::model::location::Place;
    use crate::model::tokens::Words;
    use crate::model::transcript::*;
    use crate::model::view::{Edit, Item, View, Voice};

    fn check(text: &str) {
        let entries = parse(text).expect("a conversation");
        assert_eq!(print_entries(&entries), text.trim_start_matches('\n'));
    }

    fn check_error(text: &str, expected: &Expect) {
        expected.assert_eq(&parse(text).expect_err("no conversation").to_string());
    }

    #[test]
    fn every_keyword_round_trips() {
        check(
            "
system  you are an agent
user    what is on the list?
image   image/png
think   I should look
say     let me look
call    read notes.md
call    read {\"path\": \"b.md\"}
call    wait
result  buy milk, eggs and bread
image   pdf
error   no such file
open
call    read again.md
result
harness the reply had no call
user    and now?
say     nothing
",
        );
    }

    #[test]
    fn further_lines_are_indented() {
        check(
            "user    one\n          two\n\n        user    three\n        \nsay     \tfour \n        \n        \n",
        );
    }

    #[test]
    fn adjacent_steps_are_separated() {
        check("think   a\nthink\nsay     b\nsay     c\nthink\ncall    d\nopen\ncall    e\nopen\n");
        assert_eq!(parse("think   a\nthink\nsay     b\nthink\ncall    d\n").expect("steps").len(), 3);
    }

    #[test]
    fn messages_are_numbered_like_chat_messages() {
        let entries =
            parse("user    a\ncall    x\ncall    y\ncall    z\nopen\nresult  1\nresult  2\nsay     b\n");
        let entries = entries.expect("a conversation");
        let step = entries[1].step().expect("a step");
        let results: Vec<_> = step
            .calls
            .iter()
            .map(|call| call.result.as_ref().map(|outcome| outcome.origin.message))
            .collect();
        assert_eq!((step.origin.message, results), (1, vec![None, Some(2), Some(3)]));
        assert_eq!(entries[2].step().expect("a step").origin.message, 4);
    }

    #[test]
    fn errors_report_the_line() {
        check_error(
            "user    hello\nusr     typo",
            &expect![[r#"
                line 2: `usr     ` is not a keyword

                hint: a line starts with one of system, user, harness, sealed, think, say, call, result, error, open, image, note; its text begins in the ninth column"#]],
        );
        check_error("user    a\nresult  b", &expect!["line 2: this result has no call before it"]);
        check_error("say     a\nimage   b", &expect!["line 2: this image has no prompt or result before it"]);
    }

    #[test]
    fn print_view_shows_edits_and_notes() {
        let text = "
user    look
image   png
think   hm
say     looking
call    read a.rs
result  fn main() {}
";
        let mut transcript = Transcript::new();
        for entry in parse(text).expect("a conversation") {
            transcript.append(entry, &Words);
        }
        let (user, step) = (EntryId(0), EntryId(1));
        let call = CallId { step, call: 0 };
        let edit = |place, stub: &str| Edit { place, stub: stub.into() };
        let note = |text: &str, voice| Item::Note { text: text.into(), voice };
        let view = View {
            items: vec![
                note("earlier work", Voice::Fanfold),
                Item::Edited(user, vec![edit(Place::PromptMedia(user, 0), "[image, 12345678]")]),
                note("I did things", Voice::Assistant),
                Item::Edited(
                    step,
                    vec![edit(Place::Reasoning(step), ""), edit(Place::Result(call), "[read, 2243bf1f]")],
                ),
            ],
            ..View::default()
        };
        expect![[r#"
            note    earlier work
            user    look
            image   [image, 12345678]
            say     I did things
            say     looking
            call    read a.rs
            result  [read, 2243bf1f]
        "#]]
        .assert_eq(&print_view(&transcript, &view));
    }

    fn text() -> impl Strategy<Value = String> {
        let hard = prop::sample::select(vec![
            "",
            " ",
            "\n",
            "user    hi",
            "        x",
            "a\n\n",
            "\n\nb",
            "\ta ",
            "say",
            "ü\r\n… ",
            "open\nopen",
        ]);
        let parts =
            prop::collection::vec(prop_oneof![hard.prop_map(str::to_owned), "[ a-z\\n\\t\\PC]{0,12}"], 0..4);
        parts.prop_map(|parts| parts.concat())
    }

    fn media() -> impl Strategy<Value = Vec<Media>> {
        let origin = Origin::message(0);
        let one = text().prop_map(move |label| Media { raw: label.as_str().into(), label, origin });
        prop::collection::vec(one, 0..3)
    }

    fn call() -> impl Strategy<Value = Call> {
        let origin = Origin::message(0);
        let result = (text(), any::<bool>(), media()).prop_map(move |(text, is_error, media)| Outcome {
            body: Body::text(text),
            is_error,
            media,
            origin,
        });
        ("[a-z_]{0,6}", text(), prop::option::of(result)).prop_map(move |(tool, arguments, result)| Call {
            id: String::new(),
            tool,
            arguments: Body::text(arguments),
            result,
            origin,
        })
    }

    fn entry() -> impl Strategy<Value = Entry> {
        let origin = Origin::message(0);
        let speaker =
            prop::sample::select(vec![Speaker::System, Speaker::User, Speaker::Harness, Speaker::Provider]);
        let prompt = (speaker, text(), media()).prop_map(move |(speaker, text, media)| {
            Entry::Prompt(Prompt { speaker, body: Body::text(text), media, origin })
        });
        let step = (text(), text(), prop::collection::vec(call(), 0..4)).prop_map(
            move |(text, reasoning, calls)| {
                Entry::Step(Step { text: Body::text(text), reasoning: Body::text(reasoning), calls, origin })
            },
        );
        prop_oneof![1 => prompt, 2 => step]
    }

    /// Numbers the entries as `parse` does.
    fn numbered(mut entries: Vec<Entry>) -> Vec<Entry> {
        let mut messages = 0_usize..;
        let mut ids = 1_usize..;
        let mut next = || Origin::message(messages.next().expect("endless"));
        let number = |media: &mut Vec<Media>, origin: Origin| {
            for (i, one) in media.iter_mut().enumerate() {
                one.origin = Origin { part: i as u32 + 1, ..origin };
            }
        };
        for entry in &mut entries {
            match entry {
                Entry::Prompt(prompt) => {
                    prompt.origin = next();
                    number(&mut prompt.media, prompt.origin);
                }
                Entry::Step(step) => {
                    step.origin = next();
                    for (i, call) in step.calls.iter_mut().enumerate() {
                        call.id = format!("call{}", ids.next().expect("endless"));
                        call.origin = Origin { part: i as u32, ..step.origin };
                        if let Some(outcome) = &mut call.result {
                            outcome.origin = next();
                            number(&mut outcome.media, outcome.origin);
                        }
                    }
                }
            }
        }
        entries
    }

    proptest! {
        #[test]
        fn printed_entries_round_trip(entries in prop::collection::vec(entry(), 0..6)) {
            let entries = numbered(entries);
            let printed = print_entries(&entries);
            prop_assert_eq!(parse(&printed).expect(&printed), entries, "{}", printed);
        }

        #[test]
        fn parses_any_text(text in "([a-z]{0,7} {0,9}\\PC{0,9}\n?){0,9}") {
            let _ = parse(&text);
        }
    }
}

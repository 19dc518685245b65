//! The spacing of arguments does not change the description of a call.

use fanfold_core::{
    Body, Budget, Count, Entry, Extent, FrameCosts, Item, Policy, RecordText, Session, Tokens, View, Words,
    parse,
};
use fanfold_testkit::Rng;
use serde_json::{Value, json};

use crate::cases::is_fast;

/// Counts characters except spaces, so that only derived texts can change the count.
struct Letters;

impl Count for Letters {
    fn count(&self, text: &str) -> Tokens {
        Tokens(text.bytes().filter(|byte| !byte.is_ascii_whitespace()).count() as u64 / 4)
    }

    fn frame(&self) -> FrameCosts {
        Words.frame()
    }

    fn name(&self) -> &str {
        "letters"
    }

    fn is_exact(&self) -> bool {
        true
    }
}

/// Prints JSON in some style.
type Print = fn(&Value) -> String;

const STYLES: [Print; 3] = [
    |value| value.to_string(),
    |value| serde_json::to_string_pretty(value).unwrap(),
    |value| serde_json::to_string_pretty(value).unwrap().replace('\n', "\r\n\t ") + "\n",
];

/// A conversation with calls of many tools, with arguments in one style.
fn conversation(seed: u64, print: Print) -> Vec<Entry> {
    let mut rng = Rng::new(seed);
    let mut entries = parse("user    find out why the night run stops\n").unwrap();
    for i in 0..60 + rng.below(60) {
        let n = rng.below(40);
        let (tool, arguments) = match rng.below(6) {
            0 => ("Read", json!({ "file_path": format!("src/stage_{n}.rs"), "offset": n, "limit": 40 })),
            1 => ("Bash", json!({ "command": format!("cargo test stage_{n}\nls -la"), "timeout": 60_000 })),
            2 => ("Grep", json!({ "pattern": format!("batch_{n}"), "path": "src", "-n": true })),
            3 => (
                "Edit",
                json!({ "file_path": format!("src/stage_{n}.rs"), "old_string": "a: {b, c}", "new_string": "d" }),
            ),
            4 => (
                "TodoWrite",
                json!({ "todos": [{ "content": format!("look at job_{n}"), "done": false }, {}] }),
            ),
            _ => ("fetch_ticket", json!({ "ticket": format!("T-{n}"), "tags": ["a", "b"], "by": null })),
        };
        let text = format!("say     step {i}\ncall    {tool} {{}}\nresult  job_{n} of queue_{i} ended\n");
        for mut entry in parse(&text).unwrap() {
            if let Entry::Step(step) = &mut entry {
                step.calls.iter_mut().for_each(|call| call.arguments = Body::text(print(&arguments)));
            }
            entries.push(entry);
        }
    }
    entries
}

fn session(entries: Vec<Entry>) -> Session<'static> {
    session_within(900, entries)
}

fn session_within(room: u64, entries: Vec<Entry>) -> Session<'static> {
    let budget = Budget::with_reserve(Tokens(room), Tokens::ZERO);
    let mut session = Session::new(Policy::fanfold(), budget, &Letters);
    entries.into_iter().for_each(|entry| {
        session.append(entry);
    });
    session
}

/// The notes of a view.
fn digest_of(view: &View) -> String {
    let notes = view.items.iter().filter_map(|item| match item {
        Item::Note { text, .. } => Some(text.to_string()),
        Item::Whole(_) | Item::Edited(..) => None,
    });
    notes.collect::<Vec<_>>().join("\n")
}

/// All items of a view as text, with placeholders for handles.
fn describe(view: &View) -> String {
    let mut text = String::new();
    for item in &view.items {
        match item {
            Item::Whole(id) => text += &format!("{} whole\n", id.0),
            Item::Edited(id, edits) => {
                edits.iter().for_each(|edit| text += &format!("{} {}\n", id.0, edit.stub));
            }
            Item::Note { text: note, .. } => text += &format!("{note}\n"),
        }
    }
    for handle in &view.handles {
        text = text.replace(&handle.to_string(), "HANDLE");
    }
    text
}

#[test]
fn argument_spacing_does_not_change_the_view() {
    for seed in 0..if is_fast() { 8 } else { 40 } {
        let mut views = STYLES.map(|print| session(conversation(seed, print)));
        let views = views.each_mut().map(|session| session.view().unwrap().clone());
        let [compact, others @ ..] = views.each_ref().map(describe);
        assert!(compact.contains("HANDLE"), "seed {seed}: something is folded\n{compact}");
        for other in others {
            assert_eq!(compact, other, "seed {seed}");
        }
    }
}

/// Recalled originals keep their spacing byte for byte.
#[test]
fn originals_keep_their_spacing() {
    for print in STYLES {
        let mut session = session(conversation(7, print));
        let view = session.view().unwrap().clone();
        crate::lossless::check(&session, &view).unwrap();
        let open = |handle| session.recall(handle, &Extent::Whole).unwrap();
        let opened: String = view.handles.iter().map(|handle| open(*handle)).collect();
        let n_folded = (0..40).filter(|n| {
            let ticket = json!({ "ticket": format!("T-{n}"), "tags": ["a", "b"], "by": null });
            opened.contains(&print(&ticket))
        });
        assert!(n_folded.count() > 3, "{opened}");
    }
}

/// Long arguments are listed under the handle of their step, also if spaces were removed.
#[test]
fn long_arguments_are_listed_under_their_step() {
    for print in STYLES {
        let fields = (0..300).map(|i| (format!("field_{i}"), Value::from(format!("value_{i}"))));
        let arguments = print(&Value::Object(fields.collect()));
        let mut text = "user    keep these\ncall    store {}\nresult  stored\n".to_owned();
        (0..120).for_each(|i| text += &format!("say     {}\n", "and so on ".repeat(8 + i % 5)));
        let mut entries = parse(&text).unwrap();
        if let Entry::Step(step) = &mut entries[1] {
            step.calls[0].arguments = Body::text(arguments);
        }
        let mut session = session_within(4_000, entries);
        let view = session.view().unwrap().clone();
        let digest = digest_of(&view);
        let entries = RecordText::parse(&digest).entries;
        let names = |text: &str| -> Vec<String> {
            let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.filter(|word| word.starts_with("field_")).map(str::to_owned).collect()
        };
        let stored =
            entries.iter().find(|entry| !names(&entry.lines[0]).is_empty()).expect("the call is listed");
        let opened = session.recall(stored.handle.parse().unwrap(), &Extent::Whole).unwrap();
        for name in names(&stored.lines.join("\n")) {
            assert!(opened.contains(&name), "{name} is not in\n{opened}");
        }
    }
}

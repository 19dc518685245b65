//! The memory block: at the end of the sent body, within its room, and not stored as a message.

use fanfold_core::{Count as _, Tokens, Words};
use fanfold_engine::{FoldOutcome, MemoryRecall, Mode, RequestInput, RequestOutcome, SessionEngine, Terms};
use fanfold_wire::{FENCE, FENCE_END};

use crate::setup::{chat, engine, id, long_chat, terms, terms_of};

const ROOM: Tokens = Tokens(60);

fn send(engine: &SessionEngine, body: &str, terms: &Terms, recalled: Option<&str>) -> RequestOutcome {
    let recall = || recalled.map(str::to_owned);
    let memory = Some(MemoryRecall { max_tokens: ROOM, recall: &recall });
    engine.request(&RequestInput { memory, ..RequestInput::new(&id("s"), body, terms, "test") })
}

/// A body without its memory block.
fn without_memory(body: &str) -> String {
    match (body.find(FENCE), body.find(FENCE_END)) {
        (Some(start), Some(end)) => {
            let start = body[..start].strip_suffix("\\n\\n").map_or(start, str::len);
            format!("{}{}", &body[..start], &body[end + FENCE_END.len()..])
        }
        _ => body.to_owned(),
    }
}

#[test]
fn memory_does_not_influence_folds() {
    let (with, none) = (engine(), engine());
    let terms = terms("fanfold", 700);
    let messages = long_chat(30);
    let mut n_folded = 0;
    let mut sent = Vec::new();
    for n in (2..=messages.len()).step_by(2) {
        let body = chat(&messages[..n]);
        let facts = format!("- fact {n} of a few words\n").repeat(n % 7);
        let answer = send(&with, &body, &terms, Some(&facts));
        let plain = send(&none, &body, &terms, None);
        assert_eq!(without_memory(&answer.body), plain.body, "after {n}");
        assert_eq!(answer.memory.is_some(), n % 7 > 0, "after {n}");
        let Some(sizes) = answer.sizes else { panic!("{:?}", answer.fold) };
        assert!(
            sizes.view + answer.memory.unwrap_or_default() <= Tokens(700),
            "{sizes:?} {:?}",
            answer.memory
        );
        n_folded += usize::from(matches!(answer.fold, FoldOutcome::Folded(_)));
        assert_eq!(answer.new_handles.is_empty(), plain.new_handles.is_empty());
        sent.push(answer.body);
    }
    assert!(n_folded > 10, "{n_folded}");
    // A rebuilt request has the memory block that was sent.
    assert_eq!(with.requests(&id("s")).unwrap().len(), sent.len());
    for (number, body) in (1..).zip(&sent) {
        let again = with.rebuild(&id("s"), number, &terms_of).unwrap();
        assert!(again.is_same && again.body == *body, "request {number}");
    }
}

#[test]
fn memory_is_truncated_to_its_room_and_omitted_without_room() {
    let terms = terms("fanfold", 700);
    let body = chat(&long_chat(1)[..2]);
    let facts = "- a fact of six words each\n".repeat(100);
    let answer = send(&engine(), &body, &terms, Some(&facts));
    let tokens = answer.memory.unwrap();
    assert!(tokens <= ROOM && tokens > Tokens(40), "{tokens:?}");
    let block = &answer.body[answer.body.find(FENCE).unwrap()..];
    assert!(block.contains("a fact of six words each\\n- a fact"), "{block}");
    assert!(Words.count(&without_memory(&answer.body)) <= Words.count(&body));
    // Memory gets at most an eighth of a window, which is too little here.
    let small = Terms { described: "small".to_owned(), ..crate::setup::terms("fanfold", 200) };
    let answer = send(&engine(), &body, &small, Some(&facts));
    assert_eq!((answer.memory, answer.body.as_str()), (None, body.as_str()));
}

#[test]
fn a_request_forwarded_unchanged_does_not_query_memory() {
    let never = || -> Option<String> { panic!("memory is queried") };
    let memory = Some(MemoryRecall { max_tokens: ROOM, recall: &never });
    let terms = terms("fanfold", 700);
    let session = id("s");
    let body = chat(&long_chat(1)[..2]);
    let observed = engine().request(&RequestInput {
        memory,
        mode: Mode::Observe,
        ..RequestInput::new(&session, &body, &terms, "test")
    });
    assert_eq!((observed.body.as_str(), observed.memory), (body.as_str(), None));
    assert!(matches!(observed.fold, FoldOutcome::Whole), "{:?}", observed.fold);
    let odd = engine()
        .request(&RequestInput { memory, ..RequestInput::new(&session, "no conversation", &terms, "test") });
    assert!(matches!(odd.fold, FoldOutcome::Failed(_)) && odd.body == "no conversation");
    let structured = body.replacen('{', r#"{"response_format":{"type":"json_object"},"#, 1);
    let answer = engine()
        .request(&RequestInput { memory, ..RequestInput::new(&session, &structured, &terms, "test") });
    assert!(matches!(answer.fold, FoldOutcome::Whole) && answer.body == structured, "{:?}", answer.fold);
}

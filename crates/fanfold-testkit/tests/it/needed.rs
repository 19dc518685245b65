//! Recall at the moment of need: small, budgeted, behind the entry that mentions it, and only what is not in view.
//!
//! All other promises are checked with it, too: every second case of ours has it on.

use fanfold_core::{
    Budget, Entry, Extent, Item, Need, Policy, Session, Tokens, What, Words, parse, print_view,
};

use crate::cases::{EAGER, hold, no};
use crate::walks::view_of;

const FILLER: usize = 30;

/// A conversation in which a file was read long ago, behind which much was said, and which then ends.
fn long_ago(end: &str) -> Vec<Entry> {
    let mut text = String::from(
        "user    why does it fail?\ncall    read src/server.rs\nresult  let retry_limit = \"ticket-4711\";\n",
    );
    for i in 0..FILLER {
        text +=
            &format!("call    run step_{i}x\nresult  {}\n", format!("made_part_{i}x and more ").repeat(12));
    }
    parse(&(text + end)).unwrap()
}

fn follow(entries: &[Entry], need: Option<Need>) -> Session<'static> {
    // The digest is so small that the first lines do not stay in it.
    let mut policy = Policy { need, ..Policy::fanfold() };
    policy.digest = fanfold_core::Digest::Segments { share: 40, most: Tokens(40), behind: 3 };
    policy.head = fanfold_core::Head::Messages(1);
    let mut session = Session::new(policy, Budget::with_reserve(Tokens(400), Tokens(0)), &Words);
    for entry in entries {
        session.append(entry.clone());
    }
    session
}

fn excerpts(session: &Session<'_>) -> Vec<String> {
    session.ledger().excerpts().map(|(_, excerpt)| excerpt.text.to_string()).collect()
}

const MENTION: &str = "call    run tests\nresult  failed: retry_limit\n";

#[test]
fn what_is_mentioned_comes_back_behind_it() {
    let mut session = follow(&long_ago(MENTION), Some(EAGER));
    let view = session.view().unwrap().clone();
    let Some(Item::Note { text, .. }) = view.items.last() else { panic!("nothing came back") };
    assert!(text.contains("let retry_limit = \"ticket-4711\";"), "{text}");
    assert!(text.contains("src/server.rs"), "{text}");
    let (_, excerpt) = session.ledger().excerpts().last().unwrap();
    let original = session.recall(excerpt.handles[0], &Extent::Whole).unwrap();
    assert!(original.contains("ticket-4711"), "{original}");
}

#[test]
fn nothing_comes_back_unasked() {
    let check = |end: &str, need: Option<Need>, why: &str| {
        let mut session = follow(&long_ago(end), need);
        let view = session.view().unwrap().clone();
        assert!(excerpts(&session).is_empty(), "{why}:\n{}", print_view(session.transcript(), &view));
    };
    check(MENTION, None, "it is off");
    check("call    run tests\nresult  all is well\n", Some(EAGER), "nothing is mentioned");
    check(MENTION, Some(Need { promise: 5_000, ..EAGER }), "it promises little");
    check(MENTION, Some(Need { mentions: 0, ..EAGER }), "too much is mentioned");
    check(MENTION, Some(Need { share: 10, ..EAGER }), "there is no room for it");
    let said = format!("user    I mean retry_limit\n{MENTION}");
    let mut session = follow(&long_ago(&said), Some(EAGER));
    session.view().unwrap();
    assert!(
        session.ledger().excerpts().all(|(behind, _)| behind.index() < 1 + 1 + FILLER + 1),
        "it is in view"
    );
}

#[test]
fn it_goes_with_the_next_fold() {
    let mut entries = long_ago(MENTION);
    let mut session = follow(&entries, Some(EAGER));
    session.view().unwrap();
    assert_eq!(excerpts(&session).len(), 1, "{:?}", excerpts(&session));
    let n_receipts = session.ledger().receipts().len();
    entries = long_ago("");
    while session.ledger().receipts().len() == n_receipts {
        session.append(entries.pop().unwrap());
        session.view().unwrap();
    }
    let receipt = session.ledger().receipts().last().unwrap();
    assert!(receipt.left.iter().any(|left| matches!(left.what, What::Excerpt(_)) && left.pass == "need"));
    assert!(excerpts(&session).iter().all(|text| !text.contains("ticket-4711")));
}

/// Each excerpt is small, stands behind its entry, and all its lines are new to the view before it.
#[test]
fn excerpts_are_small_and_new() {
    let n_seen = std::sync::atomic::AtomicUsize::new(0);
    hold(6_000, &["fanfold"], |case| {
        let policy = Policy { need: Some(EAGER), ..case.policy() };
        let mut session = case.session_by(policy);
        for entry in &case.entries {
            session.append(entry.clone());
            let Some(view) = view_of(&mut session)? else { continue };
            let room = session.budget().room();
            let mut sum = Tokens::ZERO;
            for (behind, excerpt) in session.ledger().excerpts() {
                n_seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                sum += excerpt.tokens;
                if excerpt.tokens > room.permille(EAGER.share).min(EAGER.most) {
                    return no(format!("an excerpt costs {}", excerpt.tokens));
                }
                let is_of =
                    |item: &Item| matches!(item, Item::Whole(id) | Item::Edited(id, _) if *id == behind);
                let Some(at) = view.items.iter().position(is_of) else {
                    return no(format!("the entry of an excerpt is gone: {}", behind.0));
                };
                let is_behind =
                    matches!(&view.items[at + 1], Item::Note { text, .. } if *text == excerpt.text);
                if !is_behind {
                    return no("an excerpt does not stand behind its entry");
                }
                for item in &view.items[..at] {
                    let Item::Note { text, .. } = item else { continue };
                    let lines = excerpt.text.lines().filter(|line| line.starts_with(' '));
                    if let Some(line) =
                        lines.into_iter().find(|line| text.lines().any(|other| other == *line))
                    {
                        return no(format!("a line of an excerpt stands in the view already: {line}"));
                    }
                }
                let opens = |handle| session.recall(handle, &Extent::Whole).is_ok();
                if excerpt.handles.is_empty() || !excerpt.handles.iter().all(|handle| opens(*handle)) {
                    return no("an excerpt does not open");
                }
            }
            if sum > room.permille(EAGER.sum) {
                return no(format!("all excerpts together cost {sum}"));
            }
        }
        Ok(())
    });
    assert!(n_seen.into_inner() > 20, "too few excerpts to tell");
}

/// There is room for it, or it is not there.
#[test]
fn it_never_makes_a_fold_by_itself() {
    hold(2_000, &["fanfold"], |case| {
        let policy = Policy { need: Some(EAGER), economy: None, ..case.policy() };
        let mut session = Session::new(policy, case.budget(), &Words);
        for entry in &case.entries {
            session.append(entry.clone());
            let _ = session.view();
            let is_added = session
                .ledger()
                .excerpts()
                .any(|(behind, _)| behind.index() + 1 == session.transcript().len());
            let trigger = session.policy().strategy.trigger(session.budget()).unwrap();
            if is_added && session.ledger().total(session.transcript()) > trigger {
                return no("an excerpt fills the view");
            }
        }
        Ok(())
    });
}

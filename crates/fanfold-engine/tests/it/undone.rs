//! A checkpoint before a fold brings back what was before it, and a window in which nothing fitted leaves no trace.

use fanfold_core::Extent;
use fanfold_engine::{Engine, FoldOutcome, RequestError};
use fanfold_store::SessionId;

use crate::setting::{chat, engine, id, long_chat, request, terms, terms_of};

/// The name of the newest checkpoint.
fn newest(engine: &Engine, session: &SessionId) -> String {
    engine.checkpoints(session).unwrap().pop().unwrap().name
}

fn n_folds(engine: &Engine, session: &SessionId) -> usize {
    engine.standing(session).unwrap().n_folds
}

/// Every handle opens, and every request is made again as it left.
fn check_whole(engine: &Engine, session: &SessionId) {
    engine.clear_cache();
    assert_eq!(engine.check_handles(session).unwrap().1, Vec::<String>::new());
    for handle in engine.handles(session).unwrap() {
        engine.recall(session, handle.parse().unwrap(), &Extent::Whole).unwrap();
    }
    for number in 1..=engine.requests(session).unwrap().len() {
        assert!(engine.rebuild(session, number, &terms_of).unwrap().is_same, "request {number}");
    }
}

#[test]
fn a_mistaken_fold_is_undone_and_redone() {
    for should_forget in [false, true] {
        let (engine, s) = (engine(), id("s"));
        let body = chat(&long_chat(30));
        let send = |window| {
            if should_forget {
                engine.clear_cache();
            }
            request(&engine, "s", &body, &terms("fanfold", window))
        };
        assert!(matches!(send(9_000).fold, FoldOutcome::Whole));
        let small = send(400);
        assert!(matches!(small.fold, FoldOutcome::Folded(_)) && n_folds(&engine, &s) > 0);
        let given = engine.handles(&s).unwrap();
        let step = engine.restore(&s, &newest(&engine, &s)).unwrap();
        assert_eq!((step.n_before, step.n_after, step.n_undone), (step.n_after, step.n_before, 1));
        assert_eq!(n_folds(&engine, &s), 0);
        let all = engine.row(&s).unwrap().n_messages;
        assert_eq!(engine.live(&s).unwrap(), vec![0..all; 1]);
        assert_eq!(engine.told(&s).unwrap().unwrap().budget.window().0, 9_000);
        let again = send(9_000);
        assert!(matches!(again.fold, FoldOutcome::Whole) && again.body == body);
        assert_eq!(engine.handles(&s).unwrap(), given, "what was given opens all the same");
        check_whole(&engine, &s);
        // The same fold made again is noted again.
        assert_eq!(send(400).body, small.body);
        assert!(n_folds(&engine, &s) > 0 && engine.live(&s).unwrap() != vec![0..all; 1]);
        check_whole(&engine, &s);
        engine.restore(&s, &newest(&engine, &s)).unwrap();
        engine.redo(&s).unwrap();
        assert!(n_folds(&engine, &s) > 0, "a redo brings the fold back");
        check_whole(&engine, &s);
    }
}

#[test]
fn a_session_that_grew_over_many_folds_goes_back_to_before_the_first() {
    let (engine, straight, s) = (engine(), engine(), id("s"));
    let messages = long_chat(60);
    for n in (5..messages.len()).step_by(9) {
        request(&engine, "s", &chat(&messages[..n]), &terms("fanfold", 400));
    }
    let places = engine.checkpoints(&s).unwrap();
    assert!(places.len() > 3, "{places:?}");
    let step = engine.restore(&s, &places[0].name).unwrap();
    assert_eq!((step.n_after, step.n_undone), (places[0].n_messages, places.len()));
    assert_eq!((n_folds(&engine, &s), engine.row(&s).unwrap().n_messages), (0, places[0].n_messages));
    // The same messages again are folded by the new window alone, though they are the same as those of before.
    let (body, wide) = (chat(&messages), terms("fanfold", 1_200));
    for n in (5..places[0].n_messages as usize).step_by(9) {
        request(&straight, "s", &chat(&messages[..n]), &terms("fanfold", 400));
    }
    let wanted = request(&straight, "s", &body, &wide);
    assert_eq!(request(&engine, "s", &body, &wide).body, wanted.body);
    check_whole(&engine, &s);
}

#[test]
fn the_first_fold_of_all_can_be_undone() {
    let (engine, s) = (engine(), id("s"));
    let body = chat(&long_chat(30));
    request(&engine, "s", &body, &terms("fanfold", 400));
    assert!(engine.has_view(&s).unwrap());
    engine.restore(&s, &newest(&engine, &s)).unwrap();
    assert!(!engine.has_view(&s).unwrap() && engine.told(&s).unwrap().is_none());
    assert!(engine.reopen(&s, &terms_of).is_err());
    assert_eq!(engine.body(&s).unwrap(), body);
    assert_eq!(request(&engine, "s", &body, &terms("fanfold", 9_000)).body, body);
    check_whole(&engine, &s);
}

#[test]
fn a_place_that_was_marked_by_hand_comes_back_with_its_view() {
    let (engine, s) = (engine(), id("s"));
    let body = chat(&long_chat(30));
    request(&engine, "s", &body, &terms("fanfold", 9_000));
    engine.checkpoint(&s, "good").unwrap();
    engine.pin(&s, 3, true).unwrap();
    request(&engine, "s", &body, &terms("fanfold", 400));
    assert_eq!(engine.restore(&s, "good").unwrap().n_undone, 1);
    assert_eq!(request(&engine, "s", &body, &terms("fanfold", 9_000)).body, body);
    assert_eq!(engine.standing(&s).unwrap().pins, [3], "what a person wished stays");
}

#[test]
fn what_was_undone_stays_undone_in_a_fork_whose_parent_goes_and_elsewhere() {
    let (engine, there, s) = (engine(), crate::setting::engine(), id("s"));
    let body = chat(&long_chat(30));
    request(&engine, "s", &body, &terms("fanfold", 9_000));
    request(&engine, "s", &body, &terms("fanfold", 400));
    engine.restore(&s, &newest(&engine, &s)).unwrap();
    there.import_line(&engine.export_line(&s).unwrap()).unwrap();
    assert_eq!(request(&there, "s", &body, &terms("fanfold", 9_000)).body, body);
    check_whole(&there, &s);
    let fork = engine.fork(&s, None, None).unwrap();
    let second = engine.fork(&fork, None, None).unwrap();
    engine.delete(&s).unwrap();
    engine.delete(&fork).unwrap();
    assert_eq!(n_folds(&engine, &second), 0);
    assert_eq!(request(&engine, &second.0, &body, &terms("fanfold", 9_000)).body, body);
    let folded = request(&engine, &second.0, &body, &terms("fanfold", 400));
    assert!(matches!(folded.fold, FoldOutcome::Folded(_)) && n_folds(&engine, &second) > 0);
    check_whole(&engine, &second);
}

#[test]
fn a_window_in_which_nothing_fitted_leaves_no_trace() {
    for n_before in [0, 1] {
        let (engine, straight) = (engine(), crate::setting::engine());
        let body = chat(&long_chat(30));
        let middle = terms("fanfold", 900);
        for engine in [&engine, &straight] {
            (0..n_before).for_each(|_| drop(request(engine, "s", &body, &middle)));
        }
        let tiny = request(&engine, "s", &body, &terms("fanfold", 20));
        assert!(matches!(tiny.fold, FoldOutcome::Failed(RequestError::Overflow(_))) && tiny.is_stored);
        let wanted = request(&straight, "s", &body, &middle);
        assert_eq!(request(&engine, "s", &body, &middle).body, wanted.body, "after {n_before} requests");
        engine.clear_cache();
        assert_eq!(request(&engine, "s", &body, &middle).body, wanted.body);
        check_whole(&engine, &id("s"));
    }
}

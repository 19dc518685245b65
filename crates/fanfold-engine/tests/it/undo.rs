//! Restoring a checkpoint undoes later folds, and a window that is too small for any view has no
//! effect on later requests.

use fanfold_core::Extent;
use fanfold_engine::{FoldOutcome, OpError, RequestError, RewindTarget, SessionEngine};
use fanfold_store::SessionId;

use crate::setup::{chat, engine, id, long_chat, request, terms, terms_of};

/// The name of the newest checkpoint.
fn newest(engine: &SessionEngine, session: &SessionId) -> String {
    engine.checkpoints(session).unwrap().pop().unwrap().name
}

fn n_folds(engine: &SessionEngine, session: &SessionId) -> usize {
    engine.session_overview(session).unwrap().n_folds
}

/// Checks that every handle can be recalled and every request can be rebuilt.
fn check_store(engine: &SessionEngine, session: &SessionId) {
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
    for is_restarted in [false, true] {
        let (engine, s) = (engine(), id("s"));
        let body = chat(&long_chat(30));
        let send = |window| {
            if is_restarted {
                engine.clear_cache();
            }
            request(&engine, "s", &body, &terms("fanfold", window))
        };
        assert!(matches!(send(9_000).fold, FoldOutcome::Whole));
        let small = send(400);
        assert!(matches!(small.fold, FoldOutcome::Folded(_)) && n_folds(&engine, &s) > 0);
        let handles = engine.handles(&s).unwrap();
        let step = engine.restore(&s, &newest(&engine, &s)).unwrap();
        assert_eq!((step.n_before, step.n_after, step.n_undone), (step.n_after, step.n_before, 1));
        assert_eq!(n_folds(&engine, &s), 0);
        let all = engine.row(&s).unwrap().n_messages;
        assert_eq!(engine.live_messages(&s).unwrap(), vec![0..all; 1]);
        assert_eq!(engine.recorded_terms(&s).unwrap().unwrap().budget.window().0, 9_000);
        let again = send(9_000);
        assert!(matches!(again.fold, FoldOutcome::Whole) && again.body == body);
        assert_eq!(engine.handles(&s).unwrap(), handles, "handles of the undone fold are kept");
        check_store(&engine, &s);
        // The same fold is recorded again.
        assert_eq!(send(400).body, small.body);
        assert!(n_folds(&engine, &s) > 0 && engine.live_messages(&s).unwrap() != vec![0..all; 1]);
        check_store(&engine, &s);
        engine.restore(&s, &newest(&engine, &s)).unwrap();
        engine.redo(&s).unwrap();
        assert!(n_folds(&engine, &s) > 0, "a redo brings the fold back");
        check_store(&engine, &s);
    }
}

#[test]
fn the_first_checkpoint_undoes_all_folds() {
    let (engine, straight, s) = (engine(), engine(), id("s"));
    let messages = long_chat(60);
    for n in (5..messages.len()).step_by(9) {
        request(&engine, "s", &chat(&messages[..n]), &terms("fanfold", 400));
    }
    let checkpoints = engine.checkpoints(&s).unwrap();
    assert!(checkpoints.len() > 3, "{checkpoints:?}");
    let step = engine.restore(&s, &checkpoints[0].name).unwrap();
    assert_eq!((step.n_after, step.n_undone), (checkpoints[0].n_messages, checkpoints.len()));
    assert_eq!((n_folds(&engine, &s), engine.row(&s).unwrap().n_messages), (0, checkpoints[0].n_messages));
    // The same messages are now folded for the new window only. The undone folds have no influence.
    let (body, wide) = (chat(&messages), terms("fanfold", 1_200));
    for n in (5..checkpoints[0].n_messages as usize).step_by(9) {
        request(&straight, "s", &chat(&messages[..n]), &terms("fanfold", 400));
    }
    let expected = request(&straight, "s", &body, &wide);
    assert_eq!(request(&engine, "s", &body, &wide).body, expected.body);
    check_store(&engine, &s);
}

#[test]
fn the_first_fold_of_all_can_be_undone() {
    let (engine, s) = (engine(), id("s"));
    let body = chat(&long_chat(30));
    request(&engine, "s", &body, &terms("fanfold", 400));
    assert!(engine.has_view(&s).unwrap());
    engine.restore(&s, &newest(&engine, &s)).unwrap();
    assert!(!engine.has_view(&s).unwrap() && engine.recorded_terms(&s).unwrap().is_none());
    assert!(engine.reopen(&s, &terms_of).is_err());
    assert_eq!(engine.body(&s).unwrap(), body);
    assert_eq!(request(&engine, "s", &body, &terms("fanfold", 9_000)).body, body);
    check_store(&engine, &s);
}

#[test]
fn a_checkpoint_by_hand_restores_its_view() {
    let (engine, s) = (engine(), id("s"));
    let body = chat(&long_chat(30));
    request(&engine, "s", &body, &terms("fanfold", 9_000));
    engine.checkpoint(&s, "good").unwrap();
    engine.pin(&s, 3, true).unwrap();
    request(&engine, "s", &body, &terms("fanfold", 400));
    assert_eq!(engine.restore(&s, "good").unwrap().n_undone, 1);
    assert_eq!(request(&engine, "s", &body, &terms("fanfold", 9_000)).body, body);
    assert_eq!(engine.session_overview(&s).unwrap().pins, [3], "pins are kept");
}

#[test]
fn checkpoint_names_are_cleaned_to_store_and_to_restore() {
    let (engine, s) = (engine(), id("s"));
    request(&engine, "s", &chat(&long_chat(30)), &terms("fanfold", 9_000));
    for name in ["  before\tthe merge ", "b", "a", "b"] {
        engine.checkpoint(&s, name).unwrap();
    }
    assert!(engine.restore(&s, " before  the merge").is_ok());
    let OpError::Invalid { hint, .. } = engine.restore(&s, "c").unwrap_err() else {
        panic!("there is no checkpoint c")
    };
    assert_eq!(hint, "its checkpoints are a, b, before the merge");
}

#[test]
fn an_empty_session_has_no_turns_to_rewind() {
    let (engine, s) = (engine(), id("s"));
    request(&engine, "s", &chat(&long_chat(3)), &terms("fanfold", 9_000));
    engine.rewind(&s, RewindTarget::Length(0)).unwrap();
    let error = engine.rewind(&s, RewindTarget::TurnsBack(1)).unwrap_err().to_string();
    assert!(error.contains("is empty, so it has no turns to go back"), "{error}");
    assert_eq!(engine.rewind(&s, RewindTarget::TurnsBack(0)).unwrap().n_after, 0);
}

#[test]
fn undone_folds_stay_undone_in_forks_and_after_an_import() {
    let (engine, there, s) = (engine(), crate::setup::engine(), id("s"));
    let body = chat(&long_chat(30));
    request(&engine, "s", &body, &terms("fanfold", 9_000));
    request(&engine, "s", &body, &terms("fanfold", 400));
    engine.restore(&s, &newest(&engine, &s)).unwrap();
    there.import_line(&engine.export_line(&s).unwrap()).unwrap();
    assert_eq!(request(&there, "s", &body, &terms("fanfold", 9_000)).body, body);
    check_store(&there, &s);
    let fork = engine.fork(&s, None, None).unwrap();
    let second = engine.fork(&fork, None, None).unwrap();
    engine.delete(&s).unwrap();
    engine.delete(&fork).unwrap();
    assert_eq!(n_folds(&engine, &second), 0);
    assert_eq!(request(&engine, &second.0, &body, &terms("fanfold", 9_000)).body, body);
    let folded = request(&engine, &second.0, &body, &terms("fanfold", 400));
    assert!(matches!(folded.fold, FoldOutcome::Folded(_)) && n_folds(&engine, &second) > 0);
    check_store(&engine, &second);
}

#[test]
fn a_window_in_which_nothing_fits_has_no_later_effect() {
    for n_before in [0, 1] {
        let (engine, straight) = (engine(), crate::setup::engine());
        let body = chat(&long_chat(30));
        let middle = terms("fanfold", 900);
        for engine in [&engine, &straight] {
            (0..n_before).for_each(|_| drop(request(engine, "s", &body, &middle)));
        }
        let tiny = request(&engine, "s", &body, &terms("fanfold", 20));
        assert!(matches!(tiny.fold, FoldOutcome::Failed(RequestError::Overflow(_))) && tiny.is_stored);
        let expected = request(&straight, "s", &body, &middle);
        assert_eq!(request(&engine, "s", &body, &middle).body, expected.body, "after {n_before} requests");
        engine.clear_cache();
        assert_eq!(request(&engine, "s", &body, &middle).body, expected.body);
        check_store(&engine, &id("s"));
    }
}

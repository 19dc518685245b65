//! Providers that hang, crash, flood and lie: a turn goes on after its deadline, and nobody is asked twice at once.

use std::time::{Duration, Instant};

use fanfold_memory::{MemoryError, MemoryEvent, MemoryLimits, NameConflict};
use fanfold_testkit::fakes::memory_server::{Behaviour, MemoryServer};

use crate::setting::{count, http, keeper, limits, mcp, program, recall, turn, until};

/// A deadline, and what a busy machine adds: less than a call may take.
const MOST: Duration = Duration::from_millis(250 + 1_000);

#[test]
fn whatever_it_does_a_turn_waits_no_longer_than_its_deadline() {
    let folder = tempfile::tempdir().unwrap();
    for manner in [Behaviour::Hang, Behaviour::Crash, Behaviour::Flood, Behaviour::Lie] {
        let server = MemoryServer::start(manner, &[]);
        let log = folder.path().join("log");
        let places = [http(&server.url()), mcp(&server.mcp_url()), program(manner, &log)];
        for place in places {
            let name = format!("{manner:?} {place}");
            let brief = MemoryLimits { shutdown: Duration::from_millis(300), ..limits() };
            let keeper = keeper(place, brief);
            for i in 0..5 {
                let asked = turn(i, &format!("question {i} about staging"));
                let (text, took) = recall(&keeper, &asked);
                assert!(took <= MOST, "{name}: {took:?} in turn {i}");
                assert_eq!(text, None, "{name}");
                keeper.turn_answered(&asked, "an answer");
            }
            let began = Instant::now();
            keeper.stop();
            drop(keeper);
            assert!(began.elapsed() < Duration::from_secs(4), "{name}: {:?}", began.elapsed());
        }
    }
}

#[test]
fn one_that_hangs_is_asked_once_and_not_waited_for_again() {
    let server = MemoryServer::start(Behaviour::Hang, &[]);
    let keeper = keeper(http(&server.url()), limits());
    let (_, first) = recall(&keeper, &turn(1, "first question"));
    assert!(first >= limits().deadline, "{first:?}");
    for i in 2..6 {
        let (_, took) = recall(&keeper, &turn(i, "the next question"));
        assert!(took < Duration::from_millis(100), "{took:?}");
    }
    assert_eq!((count(&keeper, MemoryEvent::Busy), count(&keeper, MemoryEvent::Late)), (4, 5));
}

#[test]
fn a_slow_one_is_soon_not_waited_for_until_it_is_quick() {
    let server = MemoryServer::start(Behaviour::Slow(400), &["the staging port is 8443"]);
    let keeper = keeper(http(&server.url()), limits());
    let mut waits = Vec::new();
    for i in 0..5 {
        waits.push(recall(&keeper, &turn(i, "which port?")).1);
        std::thread::sleep(Duration::from_millis(500));
    }
    assert!(waits[..3].iter().all(|took| *took >= limits().deadline), "{waits:?}");
    assert!(waits[3..].iter().all(|took| *took < Duration::from_millis(100)), "{waits:?}");
    server.set_behaviour(Behaviour::Normal);
    recall(&keeper, &turn(6, "which port?"));
    std::thread::sleep(Duration::from_millis(400));
    let (text, _) = recall(&keeper, &turn(7, "which port?"));
    assert_eq!(text.as_deref(), Some("- the staging port is 8443"));
    assert!(count(&keeper, MemoryEvent::Recalled) >= 1, "{:?}", keeper.counts());
}

#[test]
fn a_program_that_crashed_is_started_again_after_a_rest() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let keeper = keeper(program(Behaviour::Crash, &log), limits());
    let n_started = || std::fs::read_to_string(&log).unwrap_or_default().matches("started").count();
    keeper.warm_up();
    assert!(until(|| n_started() == 1));
    recall(&keeper, &turn(1, "a question"));
    assert!(until(|| count(&keeper, MemoryEvent::NotFound) == 1));
    // While it rests, nobody starts it.
    for i in 2..6 {
        recall(&keeper, &turn(i, "another question"));
    }
    assert_eq!(n_started(), 1);
    std::thread::sleep(Duration::from_millis(1_100));
    recall(&keeper, &turn(7, "a question after the rest"));
    assert!(until(|| n_started() == 2), "{}", n_started());
    keeper.stop();
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let place = fanfold_memory::ProviderAddress::Program {
        program: "no-such-memory-server".to_owned(),
        arguments: Vec::new(),
        environment: Vec::new(),
    };
    let fault = keeper(place, limits()).check("x").unwrap_err();
    assert!(
        matches!(&fault, MemoryError::Unreachable(why) if why.contains("no-such-memory-server")),
        "{fault}"
    );
    // One that ends at once is told with its last words.
    let place = fanfold_memory::ProviderAddress::Program {
        program: "sh".to_owned(),
        arguments: ["-c", "echo no database here >&2; exit 3"].map(str::to_owned).into(),
        environment: Vec::new(),
    };
    let fault = keeper(place, limits()).check("x").unwrap_err();
    assert!(fault.to_string().contains("no database here"), "{fault}");
}

#[test]
fn tools_that_stand_for_others_are_not_used() {
    let server = MemoryServer::start(Behaviour::Lie, &[]);
    let keeper = keeper(mcp(&server.mcp_url()), limits());
    // It has the tools it is searched with, by its own list, and does not know them.
    assert!(matches!(keeper.check("x"), Err(MemoryError::Refused(_))));
    server.set_behaviour(Behaviour::Normal);
    let checked = keeper.check("x").unwrap().unwrap();
    let refused: Vec<(&str, NameConflict)> =
        checked.rejected_tools.iter().map(|(name, why)| (name.as_str(), *why)).collect();
    assert_eq!(
        refused,
        [
            ("fanfold_recall", NameConflict::Reserved),
            ("Search-Memories", NameConflict::Duplicate),
            ("nonameatall", NameConflict::Invalid)
        ]
    );
    assert_eq!(checked.calls, ["searches with search_memories(query)", "writes with add_memory(text)"]);
}

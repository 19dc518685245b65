//! Faulty providers: a turn never waits longer than its deadline, and a hanging search is not repeated.

use std::time::{Duration, Instant};

use fanfold_memory::{MemoryError, MemoryEvent, MemoryLimits, NameConflict, ProviderAddress};
use fanfold_testkit::fakes::memory_server::{Behaviour, MemoryServer};

use crate::setup::{client, count, http, limits, mcp, program, recall, turn, until};

/// The deadline plus a margin for a busy machine, still less than the timeout of a call.
const MAX_WAIT: Duration = Duration::from_millis(250 + 1_000);

#[test]
fn a_turn_waits_at_most_its_deadline() {
    let folder = tempfile::tempdir().unwrap();
    for manner in [Behaviour::Hang, Behaviour::Crash, Behaviour::Flood, Behaviour::Lie] {
        let server = MemoryServer::start(manner, &[]);
        let log = folder.path().join("log");
        let addresses = [http(&server.url()), mcp(&server.mcp_url()), program(manner, &log)];
        for address in addresses {
            let name = format!("{manner:?} {address}");
            let brief = MemoryLimits { shutdown: Duration::from_millis(300), ..limits() };
            let client = client(address, brief);
            for i in 0..5 {
                let question_turn = turn(i, &format!("question {i} about staging"));
                let (text, took) = recall(&client, &question_turn);
                assert!(took <= MAX_WAIT, "{name}: {took:?} in turn {i}");
                assert_eq!(text, None, "{name}");
                client.turn_answered(&question_turn, "an answer");
            }
            let began = Instant::now();
            client.stop();
            drop(client);
            assert!(began.elapsed() < Duration::from_secs(4), "{name}: {:?}", began.elapsed());
        }
    }
}

#[test]
fn a_hanging_search_is_not_repeated_or_awaited_again() {
    let server = MemoryServer::start(Behaviour::Hang, &[]);
    let client = client(http(&server.url()), limits());
    let (_, first) = recall(&client, &turn(1, "first question"));
    assert!(first >= limits().deadline, "{first:?}");
    for i in 2..6 {
        let (_, took) = recall(&client, &turn(i, "the next question"));
        assert!(took < Duration::from_millis(100), "{took:?}");
    }
    assert_eq!((count(&client, MemoryEvent::Busy), count(&client, MemoryEvent::Late)), (4, 5));
}

#[test]
fn a_slow_provider_is_not_awaited_until_it_is_fast_again() {
    let server = MemoryServer::start(Behaviour::Slow(400), &["the staging port is 8443"]);
    let client = client(http(&server.url()), limits());
    let mut waits = Vec::new();
    for i in 0..5 {
        waits.push(recall(&client, &turn(i, "which port?")).1);
        std::thread::sleep(Duration::from_millis(500));
    }
    assert!(waits[..3].iter().all(|took| *took >= limits().deadline), "{waits:?}");
    assert!(waits[3..].iter().all(|took| *took < Duration::from_millis(100)), "{waits:?}");
    server.set_behaviour(Behaviour::Normal);
    recall(&client, &turn(6, "which port?"));
    std::thread::sleep(Duration::from_millis(400));
    let (text, _) = recall(&client, &turn(7, "which port?"));
    assert_eq!(text.as_deref(), Some("- the staging port is 8443"));
    assert!(count(&client, MemoryEvent::Recalled) >= 1, "{:?}", client.counts());
}

#[test]
fn a_crashed_program_is_restarted_after_a_backoff() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let client = client(program(Behaviour::Crash, &log), limits());
    let n_started = || std::fs::read_to_string(&log).unwrap_or_default().matches("started").count();
    client.warm_up();
    assert!(until(|| n_started() == 1));
    recall(&client, &turn(1, "a question"));
    assert!(until(|| count(&client, MemoryEvent::SearchFailed) == 1));
    // During the backoff no program is started.
    for i in 2..6 {
        recall(&client, &turn(i, "another question"));
    }
    assert_eq!(n_started(), 1);
    std::thread::sleep(Duration::from_millis(1_100));
    recall(&client, &turn(7, "a question after the rest"));
    assert!(until(|| n_started() == 2), "{}", n_started());
    client.stop();
}

#[test]
fn startup_errors_name_the_program() {
    let address = ProviderAddress::Program {
        program: "no-such-memory-server".to_owned(),
        arguments: Vec::new(),
        environment: Vec::new(),
    };
    let error = client(address, limits()).check("x").unwrap_err();
    assert!(
        matches!(&error, MemoryError::Unreachable(why) if why.contains("no-such-memory-server")),
        "{error}"
    );
    // The error of a program that exits at once quotes its stderr.
    let address = ProviderAddress::Program {
        program: "sh".to_owned(),
        arguments: ["-c", "echo no database here >&2; exit 3"].map(str::to_owned).into(),
        environment: Vec::new(),
    };
    let error = client(address, limits()).check("x").unwrap_err();
    assert!(error.to_string().contains("no database here"), "{error}");
}

#[test]
fn conflicting_tool_names_are_rejected() {
    let server = MemoryServer::start(Behaviour::Lie, &[]);
    let client = client(mcp(&server.mcp_url()), limits());
    // The server lists a search tool, but rejects calls to it.
    assert!(matches!(client.check("x"), Err(MemoryError::Refused(_))));
    server.set_behaviour(Behaviour::Normal);
    let checked = client.check("x").unwrap().unwrap();
    let rejected: Vec<(&str, NameConflict)> =
        checked.rejected_tools.iter().map(|(name, why)| (name.as_str(), *why)).collect();
    assert_eq!(
        rejected,
        [
            ("fanfold_recall", NameConflict::Reserved),
            ("Search-Memories", NameConflict::Duplicate),
            ("nonameatall", NameConflict::Invalid)
        ]
    );
    assert_eq!(checked.calls, ["searches with search_memories(query)", "writes with add_memory(text)"]);
}

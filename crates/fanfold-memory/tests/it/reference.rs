//! The MCP reference server from npm. The test installs it, and is skipped if that fails.

#![allow(clippy::print_stdout, reason = "a test reports that it is skipped")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fanfold_memory::{MemoryEvent, MemoryLimits, MemoryTurn, ProviderAddress};
use fanfold_testkit::clients::programs::install_npm;

use crate::setup::{client, count, recall, until};

const SERVER: (&str, &str, &str) = ("@modelcontextprotocol/server-memory", "2026.8.31", "mcp-server-memory");

fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("..")
}

#[test]
fn the_reference_server_remembers_across_processes() {
    let (name, version, program) = SERVER;
    let program = match install_npm(name, version, program, &target()) {
        Ok(program) => program,
        Err(why) => return println!("skipped: {name} {version}: {why}"),
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("memory.json");
    let address = || ProviderAddress::Program {
        program: program.display().to_string(),
        arguments: Vec::new(),
        environment: vec![("MEMORY_FILE_PATH".to_owned(), file.display().to_string())],
    };
    let limits = MemoryLimits { deadline: Duration::from_secs(30), ..MemoryLimits::default() };
    let first = client(address(), limits);
    let checked = first.check("memory").unwrap().unwrap();
    println!("{}: there after {:?}, searched in {:?}", checked.name, checked.startup, checked.search.0);
    assert_eq!(
        checked.calls,
        [
            "searches with search_nodes(query), once per search term",
            "writes with create_entities and add_observations"
        ]
    );
    let turn = |conversation: &str, number, asked: &str| MemoryTurn {
        conversation: conversation.to_owned(),
        number,
        prompt: asked.to_owned(),
    };
    let said = [
        ("Which port does the staging gateway use?", "It listens on 8443."),
        ("Who cuts the releases?", "Mirela does, on Tuesdays."),
    ];
    for (i, (asked, answer)) in said.iter().enumerate() {
        first.turn_answered(&turn("monday", i + 1, asked), answer);
    }
    assert!(until(|| count(&first, MemoryEvent::Synced) == 2), "{:?}", first.counts());
    assert_eq!(first.stop().n_writes, 0);
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept.find("8443").unwrap() < kept.find("Mirela").unwrap(), "{kept}");
    // A new process and a new conversation.
    let second = client(address(), limits);
    let began = Instant::now();
    let (text, _) = recall(&second, &turn("tuesday", 1, "Please connect to the staging gateway."));
    let text = text.unwrap();
    println!("recalled in {:?}: {text}", began.elapsed());
    assert!(text.contains("It listens on 8443.") && !text.contains("Mirela"), "{text}");
    // Text from a conversation itself is not recalled for it.
    assert_eq!(recall(&second, &turn("monday", 3, "And staging again?")).0, None);
    second.stop();
}

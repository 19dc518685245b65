//! Files with text of conversations are readable by their owner only, whatever the umask.
#![cfg(unix)]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::sandbox::{Sandbox, body, long_chat};

fn mode(sandbox: &Sandbox, name: &str) -> u32 {
    std::fs::metadata(sandbox.path(name)).unwrap().permissions().mode() & 0o777
}

/// Runs a line with a umask.
fn run(sandbox: &Sandbox, umask: &str, line: &str) {
    let program = assert_cmd::cargo::cargo_bin("fanfold");
    let ran = Command::new("sh")
        .args(["-c", &format!("umask {umask} && exec {} {line}", program.display())])
        .current_dir(sandbox.path(""))
        .env("HOME", sandbox.path(""))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{line}: {ran:?}");
}

#[test]
fn written_conversations_are_private() {
    for umask in ["000", "022", "077"] {
        let sandbox = Sandbox::new();
        sandbox.write("chat.json", &body(&long_chat(20)));
        run(&sandbox, umask, "fold chat.json -w 6k -o folded.json --receipt receipt.json");
        run(
            &sandbox,
            umask,
            "fold chat.json -w 6k --session s --store kept/s.db -o stored.json --receipt stored.txt",
        );
        run(&sandbox, umask, "sessions export --all --store kept/s.db -o all.jsonl");
        run(&sandbox, umask, "memory add 'the tests need a server' --store kept/s.db");
        for name in
            ["folded.json", "receipt.json", "stored.json", "stored.txt", "all.jsonl", "kept/.MEMORY.md.lock"]
        {
            assert_eq!(mode(&sandbox, name), 0o600, "{name} with umask {umask}");
        }
        for name in ["kept/s.db", "kept/MEMORY.md"] {
            assert_eq!(mode(&sandbox, name), 0o600, "{name} with umask {umask}");
        }
    }
}

#[test]
fn a_replaced_file_keeps_its_permissions() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(20)));
    for permissions in [0o644, 0o640, 0o600] {
        sandbox.write("folded.json", "{}");
        std::fs::set_permissions(sandbox.path("folded.json"), Permissions::from_mode(permissions)).unwrap();
        run(&sandbox, "077", "fold chat.json -w 6k -o folded.json");
        assert_eq!(mode(&sandbox, "folded.json"), permissions);
        assert!(sandbox.read("folded.json").len() > 100);
    }
}

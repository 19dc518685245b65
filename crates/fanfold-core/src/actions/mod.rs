//! Actions: what a call did, in a form that passes can compare: a verb, a target, the lines read, the files changed.
//!
//! ```text
//! Read {"file_path": "./src/a.rs", "offset": 10, "limit": 71}  ->  Read src/a.rs, lines 10 to 80
//! bash {"command": "cd src && sed -n 10,80p a.rs"}             ->  Read src/a.rs, lines 10 to 80
//! ```

pub(crate) mod tool_rule;
mod path; //        normalised paths
mod shell; //       splits shell commands
mod command; //     actions of shell commands
mod patch; //       files in patches
mod tools; //       actions of known tools
mod status; //      exit codes, verdicts, errors, test counts
mod verdicts; //    verdicts of programs in their output
mod description; // one-line descriptions

pub use description::describe_call;
pub(crate) use description::{describe_with_failure, short_name};
pub(crate) use path::is_same_file;
pub(crate) use status::CallStatus;
pub use status::{Verdict, call_status};
pub(crate) use tools::shell_command;

use crate::actions::tool_rule::ToolRule;
use crate::model::transcript::Call;

/// The kind of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reads a file.
    Read,
    /// Lists files.
    List,
    /// Searches files or the web.
    Search,
    /// Runs a program.
    Run,
    /// Changes a part of a file.
    Edit,
    /// Writes a whole file.
    Write,
    /// Fetches something from the network.
    Fetch,
    /// Asks a person or another agent.
    Ask,
    /// Writes a plan.
    Plan,
    /// Anything else.
    Other,
}

/// A range of lines, counted from 1, including the last one. `u32::MAX` is the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineRange {
    /// The first line.
    pub first: u32,
    /// The last line.
    pub last: u32,
}

impl LineRange {
    fn covers(self, other: LineRange) -> bool {
        self.first <= other.first && other.last <= self.last
    }

    /// The lines that remain if only the lines `shown` of this range are printed.
    fn inner(self, shown: LineRange) -> LineRange {
        let from = |n: u32| self.first.saturating_add(n.saturating_sub(1)).min(self.last);
        LineRange { first: from(shown.first), last: from(shown.last) }
    }
}

/// The lines that a read returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReadLines {
    /// The whole file.
    All,
    /// A range.
    Range(LineRange),
    /// A part of the file; which lines is unknown.
    Unknown,
}

impl ReadLines {
    /// Returns whether a read of these lines returned all of the others.
    pub(crate) fn cover(self, other: ReadLines) -> bool {
        match (self, other) {
            (ReadLines::All, _) => true,
            (ReadLines::Range(own), ReadLines::Range(other)) => own.covers(other),
            (ReadLines::Range(_) | ReadLines::Unknown, _) => false,
        }
    }

    /// The number of the first line, if it is known.
    pub fn first(self) -> Option<u32> {
        match self {
            ReadLines::All => Some(1),
            ReadLines::Range(range) => Some(range.first),
            ReadLines::Unknown => None,
        }
    }
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRead {
    /// The normalised path.
    pub path: String,
    /// The lines read.
    pub lines: ReadLines,
}

/// The action of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The kind of the action.
    pub verb: Verb,
    /// A normalised path, a command, a query or a URL; the first one if there are several.
    pub target: String,
    /// The display name taken from the arguments that a policy rule names.
    pub name: Option<String>,
    /// The scope of a search, or the command of a listing.
    pub scope: Option<String>,
    /// True if there are further targets.
    pub has_more: bool,
    /// The files that were read.
    pub reads: Vec<FileRead>,
    /// The files that were changed, as far as that is known.
    pub changes: Vec<String>,
    /// True if it ran tests.
    pub is_test: bool,
    /// The hash of a heredoc that was passed to the command. Commands with different heredocs are different.
    pub heredoc_hash: Option<u64>,
    /// True if the exit code is that of a later command, as in `make | tail`.
    pub hides_exit_code: bool,
}

impl Action {
    fn new(verb: Verb, target: String) -> Action {
        Action {
            verb,
            target,
            name: None,
            scope: None,
            has_more: false,
            reads: Vec::new(),
            changes: Vec::new(),
            is_test: false,
            heredoc_hash: None,
            hides_exit_code: false,
        }
    }

    /// The range that a read returned, if it was a range.
    pub fn lines(&self) -> Option<LineRange> {
        match self.reads.first()?.lines {
            ReadLines::Range(range) => Some(range),
            ReadLines::All | ReadLines::Unknown => None,
        }
    }

    /// The display name.
    pub(crate) fn display_name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.target)
    }

    /// Returns whether the result shows a file.
    pub(crate) fn shows_file(&self) -> bool {
        self.verb == Verb::Read && !self.reads.is_empty()
    }

    /// Returns whether it changed a part of a file.
    pub(crate) fn is_partial_edit(&self) -> bool {
        self.verb != Verb::Write && !self.changes.is_empty()
    }

    /// Returns whether it changed the file.
    pub(crate) fn has_changed(&self, file: &str) -> bool {
        self.changes.iter().any(|path| path::is_same_file(path, file))
    }
}

/// The action of a call with any tool and any arguments.
pub fn parse_action(tool: &str, arguments: &str) -> Action {
    tools::parse_tool_call(tool, arguments, &[])
}

/// The action of a call, with the display name of a matching policy rule.
pub(crate) fn parse_action_with_rules(rules: &[ToolRule], call: &Call) -> Action {
    let naming = ToolRule::find(rules, &call.tool).map_or(&[][..], |rule| &rule.target);
    tools::parse_tool_call(&call.tool, call.arguments.as_str(), naming)
}

/// Returns whether a call has a result and failed.
pub(crate) fn has_failed(call: &Call, action: &Action) -> bool {
    call.result.as_ref().is_some_and(|outcome| call_status(action, outcome).verdict == Verdict::Failed)
}

/// Returns whether the newer call makes the older one's result stale or redundant.
///
/// A read is overtaken if all of its lines were read again or its file changed; a listing, a search, a fetch, a plan or
/// a command if it was repeated.
pub fn overtakes(newer: &Action, older: &Action) -> bool {
    match older.verb {
        Verb::Read => {
            !older.reads.is_empty() && older.reads.iter().all(|file_read| is_overtaken(newer, file_read))
        }
        Verb::List | Verb::Search | Verb::Run | Verb::Fetch | Verb::Plan => {
            let is_same = newer.verb == older.verb
                && newer.target == older.target
                && newer.name == older.name
                && newer.scope == older.scope
                && newer.heredoc_hash == older.heredoc_hash;
            is_same && !older.target.is_empty() && !older.has_more && newer.reads == older.reads
        }
        Verb::Edit | Verb::Write | Verb::Ask | Verb::Other => false,
    }
}

fn is_overtaken(newer: &Action, file_read: &FileRead) -> bool {
    let is_changed = newer.has_changed(&file_read.path);
    let is_read_again = newer.reads.iter().any(|again| {
        let covers = match (again.lines, file_read.lines) {
            (ReadLines::All, _) => true,
            (ReadLines::Range(again), ReadLines::Range(old)) => again.covers(old),
            (ReadLines::Range(again), ReadLines::All) => again.first <= 1 && again.last == u32::MAX,
            (ReadLines::Range(_) | ReadLines::Unknown, _) => false,
        };
        covers && path::is_same_file(&again.path, &file_read.path)
    });
    is_changed || (newer.verb == Verb::Read && is_read_again)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn shown(tool: &str, arguments: &str) -> String {
        let action = parse_action(tool, arguments);
        let mut out = format!("{:?} {}", action.verb, action.target);
        if let Some(scope) = &action.scope {
            out += &format!(" in {scope}");
        }
        for file_read in &action.reads {
            out += &match file_read.lines {
                ReadLines::All => format!(", sees {}", file_read.path),
                ReadLines::Range(LineRange { first, last: u32::MAX }) => {
                    format!(", sees {} {first}-", file_read.path)
                }
                ReadLines::Range(range) => {
                    format!(", sees {} {}-{}", file_read.path, range.first, range.last)
                }
                ReadLines::Unknown => format!(", sees some of {}", file_read.path),
            };
        }
        for path in &action.changes {
            out += &format!(", changes {path}");
        }
        out + if action.is_test { ", tests" } else { "" }
    }

    fn check(calls: &[(&str, &str)], expected: &Expect) {
        let lines: Vec<_> = calls.iter().map(|(tool, arguments)| shown(tool, arguments)).collect();
        expected.assert_eq(&(lines.join("\n") + "\n"));
    }

    #[test]
    fn known_tools_have_actions() {
        check(
            &[
                ("Read", r#"{"file_path": "/r/./a.rs", "offset": 10, "limit": 71}"#),
                ("Read", r#"{"file_path": "/r/a.rs"}"#),
                ("Edit", r#"{"file_path": "a.rs", "old_string": "x", "new_string": "y"}"#),
                ("Write", r#"{"file_path": "a.rs", "content": "x"}"#),
                ("NotebookEdit", r#"{"notebook_path": "n.ipynb", "new_source": "x"}"#),
                ("Grep", r#"{"pattern": "fn main", "path": "src"}"#),
                ("Glob", r#"{"pattern": "**/*.rs"}"#),
                ("WebFetch", r#"{"url": "https://a.b/c", "prompt": "what?"}"#),
                ("WebSearch", r#"{"query": "rust regex"}"#),
                ("Task", r#"{"description": "look around", "prompt": "look"}"#),
                ("TodoWrite", r#"{"todos": []}"#),
                ("shell", r#"{"command": ["bash", "-lc", "rg -n foo src | head -5"], "workdir": "/r"}"#),
                ("exec_command", r#"{"cmd": "sed -n '1,40p' a.rs", "workdir": "/r"}"#),
                (
                    "apply_patch",
                    "*** Begin Patch\n*** Update File: a.rs\n@@\n-x\n+y\n*** Add File: b.rs\n+z\n*** End Patch",
                ),
                (
                    "apply_patch",
                    r#"{"input": "*** Begin Patch\n*** Update File: a.rs\n@@\n-x\n+y\n*** End Patch"}"#,
                ),
                ("update_plan", r#"{"plan": []}"#),
                ("view_image", r#"{"path": "a.png"}"#),
                ("read_file", r#"{"path": "a.rs", "offset": 1, "limit": 100}"#),
                ("search_files", r#"{"pattern": "foo", "target": "content", "path": "."}"#),
                ("patch", r#"{"mode": "replace", "path": "a.rs", "old_string": "x"}"#),
                ("web_extract", r#"{"urls": ["https://a.b", "https://c.d"]}"#),
                ("execute_code", r#"{"code": "print(1)"}"#),
                (
                    "str_replace_based_edit_tool",
                    r#"{"command": "view", "path": "a.rs", "view_range": [3, 9]}"#,
                ),
                ("developer__shell", r#"{"command": "ls -la"}"#),
                ("mcp__github__search_code", r#"{"q": "foo"}"#),
                ("get_reservation_details", r#"{"reservation_id": "XEWRD9"}"#),
                ("read", "notes.md"),
                ("Read", "null"),
                ("", "{"),
            ],
            &expect![[r#"
                Read /r/a.rs, sees /r/a.rs 10-80
                Read /r/a.rs, sees /r/a.rs
                Edit a.rs, changes a.rs
                Write a.rs, changes a.rs
                Edit n.ipynb, changes n.ipynb
                Search fn main in src
                List **/*.rs
                Fetch https://a.b/c
                Search rust regex
                Ask look around
                Plan plan
                Search foo in /r/src
                Read /r/a.rs, sees /r/a.rs 1-40
                Edit a.rs, changes a.rs, changes b.rs
                Edit a.rs, changes a.rs
                Plan plan
                Read a.png, sees a.png
                Read a.rs, sees a.rs 1-100
                Search foo in .
                Edit a.rs, changes a.rs
                Fetch https://a.b
                Run print(1)
                Read a.rs, sees a.rs 3-9
                List . in ls -la
                Search foo
                Other reservation_id=XEWRD9
                Read notes.md, sees notes.md
                Read 
                Other {
            "#]],
        );
    }

    #[test]
    fn shell_commands_have_actions() {
        let commands = [
            "cat a.rs",
            "cd /r && cat -n src/a.rs | sed -n '10,80p'",
            "nl -ba a.py | sed -n '60,80p' | head -n 5",
            "head -n 20 a.rs; head -20 b.rs",
            "tail -50 a.log",
            "awk 'NR>=10 && NR<=20' a.rs",
            "cat a.rs | grep foo",
            "rg -n \"a b\" src tests",
            "grep -rn --include=*.py foo . | head",
            "find . -name '*.rs' | head -50",
            "find . -name '*.rs' | xargs grep foo",
            "ls -la src",
            "git status --short",
            "git diff HEAD~1 2>&1 | tail -20",
            "cargo test -p core 2>&1 | tail -20",
            "cd /r && timeout 60 python -m pytest tests/test_a.py -q",
            "npm run test:unit",
            "cat <<'EOF' > a.py\nprint(1)\nEOF",
            "cat <<'EOF' > a.py\nprint(1)\nEOF\npython a.py",
            "sed -i 's/a/b/' src/a.rs",
            "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.rs\n@@\n*** End Patch\nEOF",
            "curl -s https://a.b/c | jq .",
            "git add -A && git commit -m 'x y'",
            "FOO=1 sudo make",
            "echo done",
            "python - <<'EOF'\nopen('x')\nEOF",
            "",
        ];
        let calls: Vec<_> = commands
            .map(|command| serde_json::json!({ "command": command }).to_string())
            .into_iter()
            .collect();
        let calls: Vec<_> = calls.iter().map(|arguments| ("bash", arguments.as_str())).collect();
        check(
            &calls,
            &expect![[r#"
                Read a.rs, sees a.rs
                Read /r/src/a.rs, sees /r/src/a.rs 10-80
                Read a.py, sees a.py 60-64
                Read a.rs, sees a.rs 1-20, sees b.rs 1-20
                Read a.log, sees some of a.log
                Read a.rs, sees a.rs 10-20
                Search foo in a.rs
                Search a b in src tests
                Search foo in .
                List . in find . -name *.rs
                Search foo in .
                List src in ls -la src
                Run git status --short
                Run git diff HEAD~1
                Run cargo test -p core, tests
                Run timeout 60 python -m pytest tests/test_a.py -q, tests
                Run npm run test:unit, tests
                Write a.py, changes a.py
                Run python a.py, changes a.py
                Edit src/a.rs, changes src/a.rs
                Edit a.rs, changes a.rs
                Fetch https://a.b/c
                Run git add -A && git commit -m 'x y'
                Run FOO=1 sudo make
                Run echo done
                Run python - <<'EOF'
                Run command=
            "#]],
        );
    }

    fn named(tool: &str, target: &[&str], arguments: &str) -> Action {
        let target = target.iter().map(|name| (*name).to_owned()).collect();
        let rule = ToolRule { tool: "*".to_owned(), target, ..ToolRule::default() };
        let call = Call {
            id: "1".to_owned(),
            tool: tool.to_owned(),
            arguments: crate::model::transcript::Body::text(arguments),
            result: None,
            origin: crate::model::transcript::Origin::message(0),
        };
        parse_action_with_rules(&[rule], &call)
    }

    #[test]
    fn rules_set_the_display_name() {
        let display_name =
            |tool, target: &[&str], arguments| named(tool, target, arguments).display_name().to_owned();
        let ticket =
            r#"{"detail": "full", "project": "shop", "ticket": "T-1", "part": 2, "tags": ["a"], "by": null}"#;
        for (target, name) in [
            (&["ticket"][..], "T-1"),
            (&["project", "ticket"], "shop T-1"),
            (&["ticket", "part"], "T-1 2"),
            (&["by", "key", "ticket"], "T-1"),
            (&["tags"], r#"["a"]"#),
            // Without any of these arguments, the target is used.
            (&["by", "key"], "detail=full project=shop"),
            (&[], "detail=full project=shop"),
        ] {
            assert_eq!(display_name("fetch_ticket", target, ticket), name, "{target:?}");
        }
        assert_eq!(display_name("fetch_ticket", &["ticket"], "T-1"), "T-1", "no JSON");
    }

    #[test]
    fn path_names_are_reads_and_other_fields_are_kept() {
        let read = named("open_doc", &["doc"], r#"{"doc": "./src/a.rs", "mode": "r"}"#);
        assert_eq!((read.verb, read.display_name(), read.reads.len()), (Verb::Read, "src/a.rs", 1));
        let ticket = named("open_doc", &["doc"], r#"{"doc": "T-1"}"#);
        assert_eq!((ticket.verb, ticket.display_name(), ticket.reads.len()), (Verb::Other, "T-1", 0));
        let run = named("Bash", &["description"], r#"{"command": "cat src/a.rs", "description": "Look"}"#);
        assert_eq!((run.verb, run.display_name(), &*run.reads[0].path), (Verb::Read, "Look", "src/a.rs"));
        let line = named("bash", &["line"], r#"{"line": "cargo test"}"#);
        assert_eq!((line.verb, line.is_test, line.display_name()), (Verb::Run, true, "cargo test"));
    }

    #[test]
    fn calls_with_other_names_do_not_overtake() {
        let fetch = |ticket: &str| {
            let arguments = format!(r#"{{"detail": "full", "project": "shop", "ticket": "{ticket}"}}"#);
            named("fetch_ticket", &["ticket"], &arguments)
        };
        assert!(overtakes(&fetch("T-1"), &fetch("T-1")));
        assert!(!overtakes(&fetch("T-2"), &fetch("T-1")));
    }

    fn check_overtakes(older: &str, newer: &str, expected: bool) {
        let (old, new) = (parse_action("bash", older), parse_action("bash", newer));
        assert_eq!(overtakes(&new, &old), expected, "{older} -> {newer}");
    }

    #[test]
    fn repeated_or_changed_results_are_overtaken() {
        for (older, newer) in [
            ("sed -n 10,20p src/a.rs", "cat src/a.rs"),
            ("sed -n 10,20p src/a.rs", "sed -n 5,30p /r/src/a.rs"),
            ("cat src/a.rs", "sed -i s/a/b/ src/a.rs"),
            ("cat src/a.rs", "cat > src/a.rs <<EOF\nx\nEOF"),
            ("ls -la", "ls -la"),
            ("git status", "git status | head"),
            ("cargo test 2>&1 | tail -5", "cargo test"),
            ("rg foo src", "rg foo src"),
        ] {
            check_overtakes(older, newer, true);
        }
    }

    #[test]
    fn results_with_other_content_are_not_overtaken() {
        for (older, newer) in [
            ("cat src/a.rs", "sed -n 10,20p src/a.rs"),
            ("sed -n 10,20p src/a.rs", "sed -n 15,30p src/a.rs"),
            ("cat src/a.rs", "cat src/b.rs"),
            ("cat src/a.rs", "tail src/a.rs"),
            ("cat src/a.rs src/b.rs", "cat src/a.rs"),
            ("ls", "ls -R"),
            ("rg foo src", "rg foo tests"),
            ("python - <<E\na\nE", "python - <<E\nb\nE"),
            ("sed -i s/a/b/ a.rs", "sed -i s/a/b/ a.rs"),
        ] {
            check_overtakes(older, newer, false);
        }
    }

    proptest! {
        #[test]
        fn any_call_is_parsed(tool in "[A-Za-z_]{0,12}", arguments in "\\PC{0,40}") {
            parse_action(&tool, &arguments);
            parse_action("bash", &arguments);
        }
    }
}

//! Examples of records, and those in the headers of the kinds of actions.

use expect_test::{Expect, expect};

use crate::examples::{FourBytes, example, header_of};
use crate::model::parallel::Sequential;
use crate::model::transcript::{EntryId, Transcript};
use crate::notation::parse;
use crate::record::standing::numbered_steps;
use crate::record::write::{RecordInput, write_record};
use crate::select::analysis::Analysis;
use crate::select::scorer::Relevance;

/// The record of a conversation in about `budget` tokens.
fn record_of(conversation: &str, budget: usize) -> String {
    let mut transcript = Transcript::new();
    for entry in parse(conversation).expect("valid notation") {
        transcript.append(entry, &FourBytes);
    }
    let mut analysis = Analysis::default();
    analysis.index(&transcript, &[], &Sequential, transcript.len());
    let entries: Vec<EntryId> = (0..transcript.len()).map(EntryId::from).collect();
    let steps = numbered_steps(&mut analysis, &transcript, &[], transcript.len());
    let relevance = Relevance::new(&[], "", "");
    let Analysis { lexicon, values, .. } = &mut analysis;
    let input = RecordInput {
        transcript: &transcript,
        counter: &FourBytes,
        lexicon,
        relevance: &relevance,
        visible: Vec::new(),
        entries: &entries,
        steps: &steps,
        recall: "",
        is_first: false,
        is_newest: false,
    };
    let written = write_record(&input, values, budget);
    let texts: Vec<String> = written.parts.into_iter().map(|(_, text)| text).collect();
    texts.join("\n").replace("<fanfold>\n", "").replace("\n</fanfold>", "")
}

#[test]
fn header_examples_match_the_record() {
    const BUDGET: usize = 150;
    let sources = [
        include_str!("kinds/command.rs"),
        include_str!("kinds/data.rs"),
        include_str!("kinds/listing.rs"),
        include_str!("kinds/read.rs"),
        include_str!("kinds/report.rs"),
        include_str!("kinds/search.rs"),
        include_str!("kinds/written.rs"),
    ];
    let mut wrong = String::new();
    for source in sources {
        let header = header_of(source);
        let (before, after) = example(&header).expect("an example");
        let record = record_of(&before, BUDGET);
        if record != after {
            wrong.push_str(&format!("--- {}\n{record}\n", header[0]));
        }
    }
    assert!(wrong.is_empty(), "the correct examples are:\n{wrong}");
}

fn check(budget: usize, conversation: &str, expected: &Expect) {
    expected.assert_eq(&(record_of(conversation.trim_start_matches('\n'), budget) + "\n"));
}

#[test]
fn answers_of_the_user_are_quoted() {
    check(
        120,
        r#"
call    AskUserQuestion {"questions":[{"question":"Which queue is it?"}]}
result  User has answered your questions: "Which queue is it?"="The retry queue.
        It loses jobs since Monday, but only those that were claimed twice. Leave the others alone."
"#,
        &expect![[r##"
            #1 AskUserQuestion `Which queue is it?`
                User has answered your questions: "Which queue is it?"="The retry queue.
                It loses jobs since Monday, but only those that were claimed twice. Leave the others alone."
        "##]],
    );
}

#[test]
fn inserted_text_is_kept_rather_than_the_script_around_it() {
    check(
        90,
        r#"
call    bash {"command":"cat <<'EOF' > fix.py\npath = 'src/queue.py'\nwith open(path, 'r') as file:\n    lines = file.readlines()\nout = []\nfor i, line in enumerate(lines):\n    if 'def requeue' in line:\n        out.append(line)\n        out.extend([\n            '    if job.claimed_elsewhere:\\n',\n            '        return False\\n',\n        ])\n    else:\n        out.append(line)\nwith open(path, 'w') as file:\n    file.writelines(out)\nEOF\npython fix.py"}
result  <returncode>0</returncode>
        <output>
        </output>
"#,
        &expect![[r#"
            #1 wrote fix.py (15 lines), then `python fix.py` → exit 0, no output
                + path = 'src/queue.py'
                + with open(path, 'r') as file: …
                + out = [] …
                +         out.append(line)
                +         out.extend([
                +             '    if job.claimed_elsewhere:\n',
                +             '        return False\n', …
        "#]],
    );
}

#[test]
fn repeated_reads_and_results_name_each_other() {
    check(
        200,
        r#"
call    Read {"file_path":"src/queue.py","offset":1,"limit":4}
result  class Queue:
            def take(self):
                return self.jobs.pop()
call    bash {"command":"make check"}
result  warning: the cache of the last run is older than the lock file, so all targets are checked again from the beginning
        checked 14 targets
call    Read {"file_path":"src/queue.py"}
result  class Queue:
            def take(self):
                return self.jobs.pop()
            def requeue(self, job):
                self.jobs.append(job)
call    bash {"command":"make check"}
result  warning: the cache of the last run is older than the lock file, so all targets are checked again from the beginning
        checked 14 targets
"#,
        &expect![[r#"
            #1 read src/queue.py 1-4 (read again in #3)
            #2 bash `make check` → 2 lines
                warning: the cache of the last run is older than the lock file, so all targets are checked again from the beginning
                checked 14 targets
            #3 read queue.py
                class Queue:
                    def take(self):
                        return self.jobs.pop()
                    def requeue(self, job):
                        self.jobs.append(job)
            #4 bash `make check` (same result as #2)
        "#]],
    );
}

#[test]
fn lists_in_a_report_stay_whole() {
    check(
        160,
        r#"
user    sum it up
say     All tests pass, so the queue is done. I looked at the worker, too.

        1. `requeue` keeps the claim, because the worker checks it.
        2. `take` returns the oldest job.
        3. Three tests are new:
           - `test_claims_are_kept`
           - `test_oldest_first`

        | run | before | after |
        |---|---|---|
        | queue | 3 failed | 42 passed |
"#,
        &expect![[r#"
            #e1 user: sum it up
            #1 to the user: All tests pass, so the queue is done. I looked at the worker, too.
                1. `requeue` keeps the claim, because the worker checks it.
                2. `take` returns the oldest job.
                3. Three tests are new:
                   - `test_claims_are_kept`
                   - `test_oldest_first`
                | run | before | after |
                |---|---|---|
                | queue | 3 failed | 42 passed |
        "#]],
    );
}

#[test]
fn rejected_replies_name_the_reason() {
    check(
        80,
        r#"
say     I will do both at once.
harness Please always provide EXACTLY ONE action in triple backticks, found 2 actions.
"#,
        &expect![[r#"
            #1 I will do both at once.
              #e2 rejected by the harness, no call was made: 2 actions instead of one
        "#]],
    );
}

#[test]
fn tools_of_unknown_kind_write_files() {
    check(
        90,
        r#"
call    execute-tool {"server_name":"files","tool_name":"create","params":{"path":"report.sh","content":"set -e\n# Converts the report.\npandoc report.html -o report.pdf || exit 1\necho done\n"}}
result  ok
"#,
        &expect![[r#"
            #1 wrote report.sh (4 lines)
                + set -e
                + # Converts the report.
                + pandoc report.html -o report.pdf || exit 1
                + echo done
        "#]],
    );
}

#[test]
fn repeated_changes_share_a_line() {
    check(
        120,
        r##"
call    Edit {"file_path":"src/a_test.go","old_string":"func TestA(t *testing.T) {","new_string":"func TestA(t *testing.T) {\n\tt.Parallel()"}
call    Edit {"file_path":"src/a_test.go","old_string":"func TestB(t *testing.T) {","new_string":"func TestB(t *testing.T) {\n\tt.Parallel()"}
call    Edit {"file_path":"src/a_test.go","old_string":"func TestC(t *testing.T) {","new_string":"func TestC(t *testing.T) {\n\tt.Parallel()"}
call    Edit {"file_path":"src/a_test.go","old_string":"func TestD(t *testing.T) {","new_string":"func TestD(t *testing.T) {\n\tt.Setenv()"}
result  The file src/a_test.go has been updated.
result  The file src/a_test.go has been updated.
result  The file src/a_test.go has been updated.
error   File has been modified since read.
"##,
        &expect![[r#"
            #1 edited src/a_test.go (+1 −0; 3 times)
                + 	t.Parallel()
              edited a_test.go → File has been modified since read.
        "#]],
    );
}

#[test]
fn a_finished_subagent_is_quoted() {
    check(
        120,
        r##"
call    Task {"description":"Add the tests","prompt":"Add them to each file."}
result  Async agent launched successfully.
        agentId: acc7c96 (internal ID - do not mention to user. Use to resume later if needed.)
        The agent is working in the background. You will be notified automatically when it completes.
        Continue with other tasks.
        output_file: /tmp/tasks/acc7c96.output
harness <task-notification>
        <task-id>acc7c96</task-id>
        <status>completed</status>
        <summary>Agent "Add the tests" completed</summary>
        <result>I cannot edit files, because all prompts are denied.</result>
        </task-notification>
"##,
        &expect![[r##"
            #1 Task `Add the tests` → Async agent launched successfully.
              #e2 harness: Agent "Add the tests" completed: I cannot edit files, because all prompts are denied.
        "##]],
    );
}

#[test]
fn equal_result_lines_are_kept_once() {
    check(
        90,
        r##"
call    fetch {"url":"https://shop.example/s?k=lamps"}
result  ## Brass lamp of 1920 with a green shade
        Sustainability features of this product
        ## Desk lamp with two arms
        Sustainability features of this product
        ## Oil lamp made of glass, 30 cm
        Sustainability features of this product
        ## Lamp for two candles
        Sustainability features of this product
        Delivery on Saturday to all addresses
        Sustainability features of this product
        Sustainability features of this product
"##,
        &expect![[r#"
            #1 fetch(url=https://shop.example/s?k=lamps) → 11 lines
                …
                Delivery on Saturday to all addresses …
                Sustainability features of this product
        "#]],
    );
}

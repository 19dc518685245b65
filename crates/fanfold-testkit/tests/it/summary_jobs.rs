//! Summary jobs: the prompts, and the validation of the answers.

use std::borrow::Cow;

use fanfold_core::summary::{Flaw, HEADINGS, NextStep, SummaryJob, SummaryOptions};
use fanfold_core::{
    Budget, Count as _, Entry, EntryId, Event, Policy, Session, Summary, Tokens, Words, parse,
};

use crate::cases::{check_cases, fail};

/// A session with folds, whose turns have a user message, a read, a failing test and an edit.
fn session(n_turns: usize) -> Session<'static> {
    let mut session =
        Session::new(Policy::fanfold(), Budget::with_reserve(Tokens(4_000), Tokens::ZERO), &Words);
    append_turns(&mut session, 0..n_turns);
    session
}

fn append_turns(session: &mut Session<'_>, turns: std::ops::Range<usize>) {
    for i in turns {
        let lines: String = (0..60)
            .map(|n| format!("        let width_{i}_{n} = load(\"key_{i}_{n}\", {});\n", i * 1000 + n))
            .collect();
        let text = format!(
            "user    please look at part {i} of the loader\n\
             call    read {{\"path\":\"src/part_{i}/loader.rs\"}}\nresult  mod part_{i};\n{lines}\
             call    bash {{\"command\":\"cargo test part_{i}\"}}\n\
             result  running 1 test\n        error[E0{i:03}]: no field `width_{i}` on type `Loader{i}`\n        test result: FAILED. 0 passed; 1 failed\n\
             call    edit {{\"file_path\":\"src/part_{i}/fix.rs\",\"old_string\":\"a\",\"new_string\":\"b\"}}\nresult  ok\n\
             say     part {i} is fixed\n"
        );
        for entry in parse(&text).unwrap() {
            let entry: Entry = entry;
            session.append(entry);
        }
    }
    session.view().unwrap();
}

fn options() -> SummaryOptions {
    SummaryOptions { today: "2026-11-15".to_owned(), ..SummaryOptions::new(Tokens(16_000)) }
}

fn job(session: &Session<'static>) -> SummaryJob<'static> {
    SummaryJob::plan(session, &options()).unwrap()
}

fn prompt_of(job: &SummaryJob<'_>) -> String {
    match job.next() {
        NextStep::Ask(request) => request.user,
        other => panic!("{other:?}"),
    }
}

/// The files, values and errors that a prompt requires in the summary.
fn required_details(prompt: &str) -> Vec<String> {
    let lines = prompt.lines().skip_while(|line| !line.starts_with("Later work"));
    let lists = lines.filter_map(|line| {
        line.strip_prefix("- files: ").or(line.strip_prefix("- values: ")).map(|list| (list, ", "))
    });
    let errors = prompt.lines().filter_map(|line| line.strip_prefix("- errors: ")).map(|list| (list, " | "));
    lists
        .chain(errors)
        .flat_map(|(list, separator)| list.split(separator).map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// A good answer to a prompt: every heading, and all required details.
fn answer(prompt: &str) -> String {
    let details = required_details(prompt);
    let mut out = String::new();
    for heading in &HEADINGS[1..] {
        out.push_str(&format!("## {heading}\n"));
        match *heading {
            "Critical Context" => details.iter().for_each(|detail| out.push_str(&format!("- {detail}\n"))),
            _ => out.push_str("- as it was\n"),
        }
    }
    out
}

fn done(job: &SummaryJob<'_>) -> Summary {
    match job.next() {
        NextStep::Done(summary) => summary,
        other => panic!("{other:?}"),
    }
}

/// Gives a flawed answer twice: the first leads to a second prompt that names the flaw, the second ends the job.
fn check_flaw(flawed: &dyn Fn(&str) -> String, name: &str, description: &str) {
    let session = session(20);
    let mut job = job(&session);
    let prompt = prompt_of(&job);
    job.accept_answer(&flawed(&prompt));
    let again = prompt_of(&job);
    assert!(again.contains("can't be used") && again.contains(description), "{name}: {again}");
    let mut better = job.clone();
    better.accept_answer(&answer(&again));
    done(&better);
    job.accept_answer(&flawed(&again));
    let NextStep::GiveUp(flaws) = job.next() else { panic!("{name} was accepted") };
    assert!(flaws.iter().any(|flaw| flaw.name() == name), "{flaws:?}");
    assert!(job.partial_summary().is_none());
    job.accept_answer(&answer(&prompt));
    assert!(matches!(job.next(), NextStep::GiveUp(_)), "a job that gave up accepts no answer");
}

#[test]
fn an_empty_answer_is_requested_again_once() {
    check_flaw(&|_| " \n".to_owned(), "empty", "the summary is empty");
    check_flaw(
        &|_| HEADINGS.iter().map(|heading| format!("## {heading}\n(nothing)\n")).collect(),
        "empty",
        "empty",
    );
    check_flaw(&|_| "<think>I wonder".to_owned(), "empty", "empty");
}

#[test]
fn a_refusal_is_rejected() {
    check_flaw(&|_| "I'm sorry, but I can't help with that.".to_owned(), "refused", "the model refused");
    check_flaw(&|_| "Lo siento, pero no puedo ayudar con eso.".to_owned(), "refused", "the model refused");
}

#[test]
fn an_overlong_answer_is_rejected() {
    let long = |prompt: &str| answer(prompt) + &"and so on ".repeat(1_000);
    check_flaw(&long, "too_long", "tokens and may have");
}

#[test]
fn an_answer_without_headings_is_rejected() {
    let flat = |prompt: &str| required_details(prompt).join("\n");
    check_flaw(&flat, "no_headings", "Relevant Files");
}

#[test]
fn an_answer_with_too_few_details_is_rejected() {
    let vague =
        |_: &str| HEADINGS.iter().map(|heading| format!("## {heading}\nthings were done\n")).collect();
    check_flaw(&vague, "few_references", "missing: src/part_");
}

#[test]
fn an_answer_with_made_up_quotes_is_rejected() {
    let liar = |prompt: &str| {
        answer(prompt)
            .replace("## Goal\n", "## Goal\nThe user said \"please delete the production database\".\n")
    };
    check_flaw(&liar, "made_up_quotes", "please delete the production database");
}

#[test]
fn a_few_headings_may_be_missing_the_second_time() {
    let session = session(20);
    let mut job = job(&session);
    let short = |prompt: &str| answer(prompt).replace("## Resolved Questions\n- as it was\n", "");
    job.accept_answer(&short(&prompt_of(&job)));
    job.accept_answer(&short(&prompt_of(&job)));
    let text = done(&job).text.to_string();
    assert!(text.contains("## Resolved Questions\n(nothing)"), "{text}");
    assert_eq!(job.n_rejected(), 1);
}

#[test]
fn a_summary_has_all_sections_and_the_newest_user_message() {
    let session = session(20);
    let mut job = job(&session);
    job.accept_answer(&format!(
        "Here you are:\n\n## Historical Task Snapshot\nThe user wants \"a pony\"\n{}",
        answer(&prompt_of(&job))
    ));
    let summary = done(&job);
    let headings: Vec<&str> = summary.text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(headings, HEADINGS);
    assert!(summary.text.contains("> please look at part 19 of the loader"), "{}", summary.text);
    assert!(!summary.text.contains("pony"));
    assert_eq!(summary.day, "2026-11-15");
    assert!(Words.count(&summary.text) <= Tokens(job.budget().0 * 5 / 4));
}

#[test]
fn missing_details_are_added() {
    let session = session(20);
    let mut job = job(&session);
    let prompt = prompt_of(&job);
    let details = required_details(&prompt);
    let half: Vec<&String> = details.iter().take(details.len() / 2 + 1).collect();
    let omitted: Vec<&String> = details.iter().filter(|detail| !half.contains(detail)).collect();
    assert!(!omitted.is_empty(), "{details:?}");
    let list: String = half.iter().map(|detail| format!("- {detail}\n")).collect();
    let short: String = HEADINGS[1..].iter().map(|heading| format!("## {heading}\n{list}")).collect();
    job.accept_answer(&short.replace("## Goal\n", "## Goal\nbrief\n"));
    let text = done(&job).text;
    assert!(omitted.iter().any(|detail| text.contains(detail.as_str())), "{omitted:?} {text}");
}

#[test]
fn prompts_fit_the_window_and_the_number_of_chunks() {
    let session = session(40);
    for (window, chunks) in [(4_000, 1), (4_000, 3), (8_000, 2), (64_000, 4)] {
        let options = SummaryOptions { chunks, ..SummaryOptions::new(Tokens(window)) };
        let mut job = SummaryJob::plan(&session, &options).unwrap();
        assert!(job.n_chunks() <= chunks);
        let mut n_prompts = 0;
        while let NextStep::Ask(request) = job.next() {
            let cost = Words.count(&request.system) + Words.count(&request.user);
            assert!(cost + Tokens(u64::from(request.max_tokens)) <= Tokens(window), "{cost} of {window}");
            assert!(request.user.contains("Today is") != options.today.is_empty());
            n_prompts += 1;
            job.accept_answer(&answer(&request.user));
        }
        assert_eq!(n_prompts, job.n_chunks());
        done(&job);
    }
}

#[test]
fn finished_chunks_stay_when_a_later_one_fails() {
    let session = session(40);
    let mut job =
        SummaryJob::plan(&session, &SummaryOptions { chunks: 3, ..SummaryOptions::new(Tokens(4_000)) })
            .unwrap();
    assert!(job.partial_summary().is_none());
    job.accept_answer(&answer(&prompt_of(&job)));
    job.accept_answer("");
    job.accept_answer("");
    assert!(matches!(job.next(), NextStep::GiveUp(_)));
    let partial = job.partial_summary().unwrap();
    let whole = done_of(
        SummaryJob::plan(&session, &SummaryOptions { chunks: 3, ..SummaryOptions::new(Tokens(4_000)) })
            .unwrap(),
    );
    assert!(partial.upto < whole.upto);
}

fn done_of(mut job: SummaryJob<'_>) -> Summary {
    while let NextStep::Ask(request) = job.next() {
        job.accept_answer(&answer(&request.user));
    }
    done(&job)
}

#[test]
fn the_next_summary_covers_only_new_entries() {
    let mut session = session(20);
    let first = done_of(job(&session));
    assert!(first.text.contains("src/part_0/fix.rs"));
    session.apply(Event::SummaryWritten(first.clone()));
    assert!(SummaryJob::plan(&session, &options()).is_none(), "nothing was folded since");
    append_turns(&mut session, 20..40);
    let mut second = job(&session);
    let prompt = prompt_of(&second);
    assert!(prompt.contains("----- the record so far -----"));
    assert!(!prompt.contains("mod part_0;"), "summarised entries are not shown again");
    assert!(prompt.contains("mod part_21;"));
    // A failed job does not remove the earlier summary.
    let mut failed = second.clone();
    failed.accept_answer("");
    failed.accept_answer("");
    assert!(matches!(failed.next(), NextStep::GiveUp(_)));
    assert_eq!(session.ledger().summaries().next_back(), Some(&first));
    second.accept_answer(&answer(&prompt));
    while let NextStep::Ask(request) = second.next() {
        second.accept_answer(&answer(&request.user));
    }
    let next = done(&second);
    assert!(next.upto > first.upto);
    assert!(next.text.contains("> please look at part 39 of the loader"));
}

#[test]
fn a_summary_from_scratch_covers_everything() {
    let mut session = session(20);
    let first = done_of(job(&session));
    session.apply(Event::SummaryWritten(first.clone()));
    let from_scratch = SummaryOptions { focus: Some("part_3".to_owned()), from_scratch: true, ..options() };
    let job = SummaryJob::plan(&session, &from_scratch).unwrap();
    let prompt = prompt_of(&job);
    assert!(prompt.contains("mod part_0;") && !prompt.contains("----- the record so far -----"));
    assert!(prompt.contains("The user wants this kept above all: part_3"));
    assert_eq!(done_of(job).upto, first.upto);
    // If new entries were folded, the summary continues the earlier one instead.
    append_turns(&mut session, 20..40);
    assert!(
        prompt_of(&SummaryJob::plan(&session, &from_scratch).unwrap())
            .contains("----- the record so far -----")
    );
}

#[test]
fn prompts_show_originals_instead_of_folds() {
    let session = session(20);
    let job = SummaryJob::plan(&session, &SummaryOptions::new(Tokens(200_000))).unwrap();
    let shown: String = job.material().collect();
    assert!(!shown.contains("<fanfold>"));
    let segment = session.ledger().live_segments().next().unwrap();
    assert!(!shown.contains(&segment.handle.to_string()));
    for n in 0..60 {
        assert!(shown.contains(&format!("let width_0_{n} = load(\"key_0_{n}\", {n});")), "{n}");
    }
    assert!(shown.contains("error[E0000]: no field `width_0` on type `Loader0`"));
}

/// Removes the text between two marker lines, like a redaction rule for private keys.
fn without_keys(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, key)) = rest.split_once("BEGIN KEY\n") {
        out.push_str(&format!("{before}[gone]"));
        rest = key.split_once("END KEY").map_or("", |(_, behind)| behind);
    }
    if rest.len() == text.len() { Cow::Borrowed(text) } else { Cow::Owned(out + rest) }
}

#[test]
fn redacted_text_is_in_no_prompt_and_no_summary() {
    let mut session =
        Session::new(Policy::fanfold(), Budget::with_reserve(Tokens(4_000), Tokens::ZERO), &Words);
    for i in 0..30 {
        let key: String = (0..6)
            .map(|n| format!("        error: /vault/s3cret_{i}_{n}.pem has the number {i}77{n}88\n"))
            .collect();
        let lines: String =
            (0..30).map(|n| format!("        let width_{i}_{n} = load(\"key_{i}_{n}\");\n")).collect();
        let text = format!(
            "user    please look at part {i} with\n        BEGIN KEY\n        s3cret of {i}\n        END KEY\n\
             call    bash {{\"command\":\"cat part_{i}\"}}\n\
             result  mod part_{i};\n        BEGIN KEY\n{key}        END KEY\n{lines}say     part {i} is read\n"
        );
        parse(&text).unwrap().into_iter().for_each(|entry| {
            session.append(entry);
        });
    }
    session.view().unwrap();
    // The small window shows selected lines, the large one shows everything.
    for (window, chunks) in [(6_000, 1), (6_000, 3), (200_000, 1)] {
        let options = SummaryOptions { redact: without_keys, chunks, ..SummaryOptions::new(Tokens(window)) };
        let mut job = SummaryJob::plan(&session, &options).unwrap();
        while let NextStep::Ask(request) = job.next() {
            assert!(request.user.contains("with [gone]"), "{}", request.user);
            assert!(!request.user.contains("s3cret"), "{window}: {}", request.user);
            let leak = "## Goal\nBEGIN KEY\nthe model knows a s3cret\nEND KEY\n";
            job.accept_answer(&answer(&request.user).replace("## Goal\n", leak));
        }
        let text = done(&job).text;
        assert!(text.contains("> please look at part 29 with [gone]"), "{text}");
        assert!(!text.contains("s3cret"), "{window}: {text}");
    }
}

#[test]
fn a_focus_gets_more_room() {
    let session = session(40);
    let count = |focus: Option<&str>, what: &str| {
        let options = SummaryOptions {
            focus: focus.map(str::to_owned),
            chunks: 1,
            ..SummaryOptions::new(Tokens(6_000))
        };
        let job = SummaryJob::plan(&session, &options).unwrap();
        let shown: String = job.material().collect();
        (shown.matches(what).count(), prompt_of(&job))
    };
    let (without, _) = count(Some("no such thing"), "width_3_");
    let (with, prompt) = count(Some("width_3_7 loader3"), "width_3_");
    assert!(with > without, "{with} and {without}");
    assert!(prompt.contains("The user wants this kept above all: width_3_7 loader3"));
    assert!(count(None, "x").1.contains("The user's newest words: please look at part 39"));
}

/// The job of any conversation ends.
#[test]
fn jobs_of_any_conversation_end() {
    check_cases(1_000, &Policy::NAMES, |case| {
        let mut session = case.session();
        case.entries.iter().for_each(|entry| {
            session.append(entry.clone());
        });
        let _ = session.view();
        let options = SummaryOptions {
            window: Tokens(case.window.max(2_000)),
            chunks: 1 + case.seed as usize % 3,
            ..options()
        };
        let Some(mut job) = SummaryJob::plan(&session, &options) else { return Ok(()) };
        if SummaryJob::plan(&session, &options).map(|job| job.next()) != Some(job.next()) {
            return fail("the same session gives another prompt");
        }
        let mut rng = case.rng();
        for _ in 0..2 * job.n_chunks() {
            let NextStep::Ask(request) = job.next() else { break };
            match rng.below(3) {
                0 => job.accept_answer("I can't help with that."),
                _ => job.accept_answer(&answer(&request.user)),
            }
        }
        match job.next() {
            NextStep::Ask(_) => fail("the job does not end"),
            NextStep::GiveUp(flaws) if flaws.is_empty() => fail("the job gave up without a flaw"),
            NextStep::GiveUp(_) => Ok(()),
            NextStep::Done(summary) => {
                let is_within = summary.upto < EntryId::from(session.transcript().len());
                if is_within { Ok(()) } else { fail("the summary covers entries that do not exist") }
            }
        }
    });
}

#[test]
fn flaws_describe_the_problem() {
    let flaw = Flaw::FewReferences { found: 1, of: 9, missing: vec!["a".into()] };
    assert_eq!(flaw.to_string(), "only 1 of 9 paths, errors and ids that matter stand in the summary");
}

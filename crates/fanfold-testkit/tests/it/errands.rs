//! What a model is asked for a summary, and what becomes of its answer.

use std::borrow::Cow;

use fanfold_core::summary::{Flaw, HEADINGS, NextStep, SummaryJob, SummaryOptions};
use fanfold_core::{
    Budget, Count as _, Entry, EntryId, Event, Policy, Session, Summary, Tokens, Words, parse,
};

use crate::cases::{hold, no};

/// A session with folds: reads, a failing test, an edit, a question of the user's at the end.
fn session(n_turns: usize) -> Session<'static> {
    let mut session =
        Session::new(Policy::fanfold(), Budget::with_reserve(Tokens(4_000), Tokens::ZERO), &Words);
    say(&mut session, 0..n_turns);
    session
}

fn say(session: &mut Session<'_>, turns: std::ops::Range<usize>) {
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

fn wish() -> SummaryOptions {
    SummaryOptions { today: "2026-11-15".to_owned(), ..SummaryOptions::new(Tokens(16_000)) }
}

fn errand(session: &Session<'static>) -> SummaryJob<'static> {
    SummaryJob::plan(session, &wish()).unwrap()
}

fn asked(errand: &SummaryJob<'_>) -> String {
    match errand.next() {
        NextStep::Ask(asked) => asked.user,
        other => panic!("{other:?}"),
    }
}

/// What the question says must not be missing.
fn wanted(question: &str) -> Vec<String> {
    let lines = question.lines().skip_while(|line| !line.starts_with("Later work"));
    let lists = lines.filter_map(|line| {
        line.strip_prefix("- files: ").or(line.strip_prefix("- values: ")).map(|list| (list, ", "))
    });
    let all = question.lines().filter_map(|line| line.strip_prefix("- errors: ")).map(|list| (list, " | "));
    lists
        .chain(all)
        .flat_map(|(list, mark)| list.split(mark).map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// A good answer to a question: every heading, and every second of what must be there.
fn answer(question: &str) -> String {
    let wanted = wanted(question);
    let mut out = String::new();
    for heading in &HEADINGS[1..] {
        out.push_str(&format!("## {heading}\n"));
        match *heading {
            "Critical Context" => wanted.iter().for_each(|one| out.push_str(&format!("- {one}\n"))),
            _ => out.push_str("- as it was\n"),
        }
    }
    out
}

fn done(errand: &SummaryJob<'_>) -> Summary {
    match errand.next() {
        NextStep::Done(summary) => summary,
        other => panic!("{other:?}"),
    }
}

/// Gives a bad answer twice: the first is asked for again with its flaw named, the second is the end.
fn check_flaw(bad: &dyn Fn(&str) -> String, name: &str, told: &str) {
    let session = session(20);
    let mut errand = errand(&session);
    let question = asked(&errand);
    errand.accept_answer(&bad(&question));
    let again = asked(&errand);
    assert!(again.contains("can't be used") && again.contains(told), "{name}: {again}");
    let mut better = errand.clone();
    better.accept_answer(&answer(&again));
    done(&better);
    errand.accept_answer(&bad(&again));
    let NextStep::GiveUp(flaws) = errand.next() else { panic!("{name} was accepted") };
    assert!(flaws.iter().any(|flaw| flaw.name() == name), "{flaws:?}");
    assert!(errand.partial_summary().is_none());
    errand.accept_answer(&answer(&question));
    assert!(matches!(errand.next(), NextStep::GiveUp(_)), "what is given up stays so");
}

#[test]
fn an_empty_answer_is_asked_for_again_once() {
    check_flaw(&|_| " \n".to_owned(), "empty", "the summary is empty");
    check_flaw(
        &|_| HEADINGS.iter().map(|heading| format!("## {heading}\n(nothing)\n")).collect(),
        "empty",
        "empty",
    );
    check_flaw(&|_| "<think>I wonder".to_owned(), "empty", "empty");
}

#[test]
fn a_refusal_is_no_summary() {
    check_flaw(&|_| "I'm sorry, but I can't help with that.".to_owned(), "refused", "the model refused");
    check_flaw(&|_| "Lo siento, pero no puedo ayudar con eso.".to_owned(), "refused", "the model refused");
}

#[test]
fn an_answer_longer_than_it_may_be_is_no_summary() {
    let long = |question: &str| answer(question) + &"and so on ".repeat(1_000);
    check_flaw(&long, "too_long", "tokens and may have");
}

#[test]
fn an_answer_without_headings_is_no_summary() {
    let flat = |question: &str| wanted(question).join("\n");
    check_flaw(&flat, "no_headings", "Relevant Files");
}

#[test]
fn an_answer_that_names_too_little_is_no_summary() {
    let vague =
        |_: &str| HEADINGS.iter().map(|heading| format!("## {heading}\nthings were done\n")).collect();
    check_flaw(&vague, "few_references", "missing: src/part_");
}

#[test]
fn words_that_no_user_said_are_no_summary() {
    let liar = |question: &str| {
        answer(question)
            .replace("## Goal\n", "## Goal\nThe user said \"please delete the production database\".\n")
    };
    check_flaw(&liar, "made_up_quotes", "please delete the production database");
}

#[test]
fn a_few_headings_may_be_missing_the_second_time() {
    let session = session(20);
    let mut errand = errand(&session);
    let short = |question: &str| answer(question).replace("## Resolved Questions\n- as it was\n", "");
    errand.accept_answer(&short(&asked(&errand)));
    errand.accept_answer(&short(&asked(&errand)));
    let text = done(&errand).text.to_string();
    assert!(text.contains("## Resolved Questions\n(nothing)"), "{text}");
    assert_eq!(errand.n_rejected(), 1);
}

#[test]
fn a_summary_has_all_sections_and_the_users_own_words() {
    let session = session(20);
    let mut errand = errand(&session);
    errand.accept_answer(&format!(
        "Here you are:\n\n## Historical Task Snapshot\nThe user wants \"a pony\"\n{}",
        answer(&asked(&errand))
    ));
    let summary = done(&errand);
    let headings: Vec<&str> = summary.text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(headings, HEADINGS);
    assert!(summary.text.contains("> please look at part 19 of the loader"), "{}", summary.text);
    assert!(!summary.text.contains("pony"));
    assert_eq!(summary.day, "2026-11-15");
    assert!(Words.count(&summary.text) <= Tokens(errand.budget().0 * 5 / 4));
}

#[test]
fn what_an_answer_leaves_out_is_added() {
    let session = session(20);
    let mut errand = errand(&session);
    let question = asked(&errand);
    let wanted = wanted(&question);
    let half: Vec<&String> = wanted.iter().take(wanted.len() / 2 + 1).collect();
    let lost = wanted.iter().filter(|one| one.contains('/')).find(|one| !half.contains(one));
    let told: String = half.iter().map(|one| format!("- {one}\n")).collect();
    let short: String = HEADINGS[1..].iter().map(|heading| format!("## {heading}\n{told}")).collect();
    errand.accept_answer(&short.replace("## Goal\n", "## Goal\nbrief\n"));
    if let Some(lost) = lost {
        assert!(done(&errand).text.contains(lost.as_str()), "{lost}");
    }
    assert!(errand.n_added() > 0);
}

#[test]
fn questions_fit_the_window_and_are_no_more_than_wanted() {
    let session = session(40);
    for (window, chunks) in [(4_000, 1), (4_000, 3), (8_000, 2), (64_000, 4)] {
        let wish = SummaryOptions { chunks, ..SummaryOptions::new(Tokens(window)) };
        let mut errand = SummaryJob::plan(&session, &wish).unwrap();
        assert!(errand.n_chunks() <= chunks);
        let mut n_asked = 0;
        while let NextStep::Ask(asked) = errand.next() {
            let cost = Words.count(&asked.system) + Words.count(&asked.user);
            assert!(cost + Tokens(u64::from(asked.max_tokens)) <= Tokens(window), "{cost} of {window}");
            assert!(asked.user.contains("Today is") != wish.today.is_empty());
            n_asked += 1;
            errand.accept_answer(&answer(&asked.user));
        }
        assert_eq!(n_asked, errand.n_chunks());
        done(&errand);
    }
}

#[test]
fn what_was_good_stays_when_a_later_chunk_fails() {
    let session = session(40);
    let mut errand =
        SummaryJob::plan(&session, &SummaryOptions { chunks: 3, ..SummaryOptions::new(Tokens(4_000)) })
            .unwrap();
    assert!(errand.partial_summary().is_none());
    errand.accept_answer(&answer(&asked(&errand)));
    errand.accept_answer("");
    errand.accept_answer("");
    assert!(matches!(errand.next(), NextStep::GiveUp(_)));
    let so_far = errand.partial_summary().unwrap();
    let whole = done_of(
        SummaryJob::plan(&session, &SummaryOptions { chunks: 3, ..SummaryOptions::new(Tokens(4_000)) })
            .unwrap(),
    );
    assert!(so_far.upto < whole.upto);
}

fn done_of(mut errand: SummaryJob<'_>) -> Summary {
    while let NextStep::Ask(asked) = errand.next() {
        errand.accept_answer(&answer(&asked.user));
    }
    done(&errand)
}

#[test]
fn the_next_one_is_of_what_is_new() {
    let mut session = session(20);
    let first = done_of(errand(&session));
    assert!(first.text.contains("src/part_0/fix.rs"));
    session.apply(Event::SummaryWritten(first.clone()));
    assert!(SummaryJob::plan(&session, &wish()).is_none(), "nothing is folded since");
    say(&mut session, 20..40);
    let mut second = errand(&session);
    let question = asked(&second);
    assert!(question.contains("----- the record so far -----"));
    assert!(!question.contains("mod part_0;"), "what was told is not shown again");
    assert!(question.contains("mod part_21;"));
    // A failure costs nothing of what was there.
    let mut failed = second.clone();
    failed.accept_answer("");
    failed.accept_answer("");
    assert!(matches!(failed.next(), NextStep::GiveUp(_)));
    assert_eq!(session.ledger().summaries().next_back(), Some(&first));
    second.accept_answer(&answer(&question));
    while let NextStep::Ask(asked) = second.next() {
        second.accept_answer(&answer(&asked.user));
    }
    let next = done(&second);
    assert!(next.upto > first.upto);
    assert!(next.text.contains("> please look at part 39 of the loader"));
}

#[test]
fn who_wants_one_anew_gets_one_of_everything() {
    let mut session = session(20);
    let first = done_of(errand(&session));
    session.apply(Event::SummaryWritten(first.clone()));
    let anew = SummaryOptions { focus: Some("part_3".to_owned()), from_scratch: true, ..wish() };
    let errand = SummaryJob::plan(&session, &anew).unwrap();
    let question = asked(&errand);
    assert!(question.contains("mod part_0;") && !question.contains("----- the record so far -----"));
    assert!(question.contains("The user wants this kept above all: part_3"));
    assert_eq!(done_of(errand).upto, first.upto);
    // Where there is news, that is told, and the record goes on.
    say(&mut session, 20..40);
    assert!(asked(&SummaryJob::plan(&session, &anew).unwrap()).contains("----- the record so far -----"));
}

#[test]
fn originals_are_shown_and_never_what_was_made_of_them() {
    let session = session(20);
    let errand = SummaryJob::plan(&session, &SummaryOptions::new(Tokens(200_000))).unwrap();
    let shown: String = errand.material().collect();
    assert!(!shown.contains("<fanfold>"));
    let segment = session.ledger().live_segments().next().unwrap();
    assert!(!shown.contains(&segment.handle.to_string()));
    for n in 0..60 {
        assert!(shown.contains(&format!("let width_0_{n} = load(\"key_0_{n}\", {n});")), "{n}");
    }
    assert!(shown.contains("error[E0000]: no field `width_0` on type `Loader0`"));
}

/// Takes out what stands between two lines: like a rule for keys, it knows a line of one by the first alone.
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
fn what_is_veiled_stands_in_no_question_and_in_no_summary() {
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
    // Lines are chosen in the small window, and everything is shown in the large one.
    for (window, chunks) in [(6_000, 1), (6_000, 3), (200_000, 1)] {
        let wish = SummaryOptions { redact: without_keys, chunks, ..SummaryOptions::new(Tokens(window)) };
        let mut errand = SummaryJob::plan(&session, &wish).unwrap();
        while let NextStep::Ask(asked) = errand.next() {
            assert!(asked.user.contains("with [gone]"), "{}", asked.user);
            assert!(!asked.user.contains("s3cret"), "{window}: {}", asked.user);
            let told = "## Goal\nBEGIN KEY\nthe model knows a s3cret\nEND KEY\n";
            errand.accept_answer(&answer(&asked.user).replace("## Goal\n", told));
        }
        let text = done(&errand).text;
        assert!(text.contains("> please look at part 29 with [gone]"), "{text}");
        assert!(!text.contains("s3cret"), "{window}: {text}");
    }
}

#[test]
fn a_topic_gets_more_room() {
    let session = session(40);
    let count = |focus: Option<&str>, what: &str| {
        let wish = SummaryOptions {
            focus: focus.map(str::to_owned),
            chunks: 1,
            ..SummaryOptions::new(Tokens(6_000))
        };
        let errand = SummaryJob::plan(&session, &wish).unwrap();
        let shown: String = errand.material().collect();
        (shown.matches(what).count(), asked(&errand))
    };
    let (without, _) = count(Some("no such thing"), "width_3_");
    let (with, question) = count(Some("width_3_7 loader3"), "width_3_");
    assert!(with > without, "{with} and {without}");
    assert!(question.contains("The user wants this kept above all: width_3_7 loader3"));
    assert!(count(None, "x").1.contains("The user's newest words: please look at part 39"));
}

/// Whatever was said, an errand asks what fits and ends.
#[test]
fn errands_of_any_conversation_end() {
    hold(1_000, &Policy::NAMES, |case| {
        let mut session = case.session();
        case.entries.iter().for_each(|entry| {
            session.append(entry.clone());
        });
        let _ = session.view();
        let wish = SummaryOptions {
            window: Tokens(case.window.max(2_000)),
            chunks: 1 + case.seed as usize % 3,
            ..wish()
        };
        let Some(mut errand) = SummaryJob::plan(&session, &wish) else { return Ok(()) };
        if SummaryJob::plan(&session, &wish).map(|errand| errand.next()) != Some(errand.next()) {
            return no("the same session gives another question");
        }
        let mut rng = case.rng();
        for _ in 0..2 * errand.n_chunks() {
            let NextStep::Ask(asked) = errand.next() else { break };
            match rng.below(3) {
                0 => errand.accept_answer("I can't help with that."),
                _ => errand.accept_answer(&answer(&asked.user)),
            }
        }
        match errand.next() {
            NextStep::Ask(_) => no("it never ends"),
            NextStep::GiveUp(flaws) if flaws.is_empty() => no("it was given up without a reason"),
            NextStep::GiveUp(_) => Ok(()),
            NextStep::Done(summary) => {
                let is_told = summary.upto < EntryId::from(session.transcript().len());
                if is_told { Ok(()) } else { no("it tells of what was not said") }
            }
        }
    });
}

#[test]
fn flaws_say_what_is_wrong() {
    let flaw = Flaw::FewReferences { found: 1, of: 9, missing: vec!["a".into()] };
    assert_eq!(flaw.to_string(), "only 1 of 9 paths, errors and ids that matter stand in the summary");
}

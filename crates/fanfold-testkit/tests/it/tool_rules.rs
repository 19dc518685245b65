//! Rules of a policy for single tools: the arguments that name their target, and the kind of their results.

use fanfold_core::{
    Budget, ContentKind, Entry, Item, Policy, Session, Tokens, ToolFold, ToolRule, Words, parse, print_view,
};
use fanfold_testkit::Rng;
use fanfold_testkit::generators::tool_outputs::KINDS;

use crate::cases::check_cases;
use crate::determinism::{Backwards, replayed, same};
use crate::drivers::view_of;

/// A conversation that reads tickets with an unknown tool.
fn tickets(n: usize) -> Vec<Entry> {
    let mut text = "user    which of the tickets are about the till?\n".to_owned();
    for i in 0..n {
        // All results are different, and they contain no details worth keeping.
        let letter = |n: usize| char::from(b'a' + (n % 26) as u8);
        let who = String::from_iter([letter(i / 676), letter(i / 26), letter(i)]);
        text += &format!(
            "call    fetch_ticket {{\"detail\":\"full\",\"format\":\"text\",\"ticket\":\"T-{i}00\"}}\n\
             result  {who} says that the till prints no receipt any more\n        \
             and that it did so only the other day, before the shop was closed\n"
        );
    }
    parse(&text).unwrap()
}

fn ticket_rule() -> ToolRule {
    let target = vec!["ticket".to_owned()];
    ToolRule { tool: "fetch_ticket".to_owned(), target, ..ToolRule::default() }
}

fn session_of(policy: Policy, room: u64) -> Session<'static> {
    Session::new(policy, Budget::with_reserve(Tokens(room), Tokens::ZERO), &Words)
}

/// The view of a conversation as text.
fn sent(policy: Policy, entries: &[Entry], room: u64) -> String {
    let mut session = replayed(entries, session_of(policy, room));
    let view = session.view().unwrap().clone();
    print_view(session.transcript(), &view)
}

#[test]
fn an_unknown_tool_is_described_by_its_target() {
    let always = ToolRule { fold: ToolFold::Always, ..ticket_rule() };
    let cases = [("fanfold", ticket_rule(), 500), ("hamr", ticket_rule(), 700), ("fanfold", always, 1_200)];
    for (name, rule, room) in cases {
        let policy = |tools: &[ToolRule]| Policy { tools: tools.to_vec(), ..Policy::named(name).unwrap() };
        let unnamed = ToolRule { target: Vec::new(), ..rule.clone() };
        let (with, without) =
            (sent(policy(&[rule]), &tickets(80), room), sent(policy(&[unnamed]), &tickets(80), room));
        let n_described = |sent: &str| {
            (0..80)
                .filter(|i| sent.replace(['[', ']'], "").contains(&format!("fetch_ticket T-{i}00 ")))
                .count()
        };
        assert!(n_described(&with) > 0 && !with.contains("] detail=full"), "{name}:\n{with}");
        assert!(n_described(&without) == 0, "{name}:\n{without}");
    }
}

#[test]
fn parallel_scans_use_tool_targets() {
    let policy = || Policy { tools: vec![ticket_rule()], ..Policy::fanfold() };
    let entries = tickets(600);
    let mut sequential = replayed(&entries, session_of(policy(), 10_000));
    let mut parallel = session_of(policy(), 10_000);
    parallel.set_parallel(&Backwards);
    let mut parallel = replayed(&entries, parallel);
    assert_eq!(sequential.view().unwrap(), parallel.view().unwrap());
    let view = parallel.view().unwrap().clone();
    let digest = print_view(parallel.transcript(), &view);
    assert!(digest.contains("fetch_ticket T-"), "{digest}");
}

/// With any rules for tools, folding is deterministic and lossless, and views fit.
#[test]
fn views_with_tool_rules_keep_the_invariants() {
    check_cases(4_000, &Policy::NAMES, |case| {
        let policy = || Policy { tools: rules(&mut case.rng()), ..case.policy() };
        let mut followed = case.session_with(policy());
        for entry in &case.entries {
            followed.append(entry.clone());
            let Some(view) = view_of(&mut followed)? else { continue };
            crate::budget::check_view(&followed, &view)?;
            crate::lossless::check(&followed, &view)?;
        }
        same(&mut followed, &mut replayed(&case.entries, case.session_with(policy())))
    });
}

fn rules(rng: &mut Rng) -> Vec<ToolRule> {
    let starts = ["", "read", "bash", "mcp__", "search", "edit"];
    let names = ["path", "command", "file_path", "query", "ticket", "content", "id"];
    let rule = |start: &str, rng: &mut Rng| ToolRule {
        tool: format!("{start}*"),
        fold: [ToolFold::Auto, ToolFold::Always, ToolFold::Never][rng.below(3)],
        cap: rng.percent(40).then(|| 20 + rng.below(300) as u32),
        condense: rng.percent(70).then(|| KINDS[rng.below(KINDS.len())]),
        target: (0..rng.below(3)).map(|_| rng.pick(&names).to_owned()).collect(),
    };
    (0..1 + rng.below(3)).map(|_| rule(starts[rng.below(starts.len())], rng)).collect()
}

/// The stub of a result whose tool has a cap.
fn capped(result: &str, condense: Option<ContentKind>) -> String {
    let rule = ToolRule { tool: "night_run".to_owned(), cap: Some(100), condense, ..ToolRule::default() };
    let mut session = session_of(Policy { tools: vec![rule], ..Policy::fanfold() }, 900);
    let lines: Vec<&str> = result.lines().collect();
    let text =
        format!("user    how was the night?\ncall    night_run {{}}\nresult  {}\n", lines.join("\n        "));
    parse(&text).unwrap().into_iter().for_each(|entry| {
        session.append(entry);
    });
    let view = session.view().unwrap().clone();
    let edits = view.items.iter().find_map(|item| match item {
        Item::Edited(_, edits) => Some(edits),
        Item::Whole(_) | Item::Note { .. } => None,
    });
    edits.expect("it is over its cap")[0].stub.to_string()
}

#[test]
fn a_result_is_condensed_as_the_configured_kind() {
    let names: String = (0..300).map(|i| format!("src/part{}/job_{i}.rs\n", i / 30)).collect();
    assert_eq!(fanfold_core::detect_kind(&names), ContentKind::Listing);
    let (listed, logged) = (capped(&names, None), capped(&names, Some(ContentKind::Log)));
    assert_eq!(listed, capped(&names, Some(ContentKind::Listing)));
    assert!(logged.contains(" alike\n") && !listed.contains(" alike\n"), "{listed}\n\n{logged}");
}

//! What a policy says of single tools: which arguments name their target, and what their results are.

use fanfold_core::{
    Budget, ContentKind, Entry, Item, Policy, Session, Tokens, ToolFold, ToolRule, Words, parse, print_view,
};
use fanfold_testkit::Rng;
use fanfold_testkit::kinds::KINDS;

use crate::cases::hold;
use crate::deterministic::{Backwards, replayed, same};
use crate::walks::view_of;

/// Tickets that were looked at one after another by a tool that nobody knows.
fn tickets(n: usize) -> Vec<Entry> {
    let mut said = "user    which of the tickets are about the till?\n".to_owned();
    for i in 0..n {
        // No two answers are the same, and there is nothing to quote in them.
        let letter = |n: usize| char::from(b'a' + (n % 26) as u8);
        let who = String::from_iter([letter(i / 676), letter(i / 26), letter(i)]);
        said += &format!(
            "call    fetch_ticket {{\"detail\":\"full\",\"format\":\"text\",\"ticket\":\"T-{i}00\"}}\n\
             result  {who} says that the till prints no receipt any more\n        \
             and that it did so only the other day, before the shop was closed\n"
        );
    }
    parse(&said).unwrap()
}

fn by_ticket() -> ToolRule {
    let target = vec!["ticket".to_owned()];
    ToolRule { tool: "fetch_ticket".to_owned(), target, ..ToolRule::default() }
}

fn session_of(policy: Policy, room: u64) -> Session<'static> {
    Session::new(policy, Budget::with_reserve(Tokens(room), Tokens::ZERO), &Words)
}

/// What is sent of a conversation, and how many things in it are folded.
fn sent(policy: Policy, entries: &[Entry], room: u64) -> String {
    let mut session = replayed(entries, session_of(policy, room));
    let view = session.view().unwrap().clone();
    print_view(session.transcript(), &view)
}

#[test]
fn a_tool_of_ones_own_is_called_by_its_target() {
    let always = ToolRule { fold: ToolFold::Always, ..by_ticket() };
    let cases = [("fanfold", by_ticket(), 500), ("hamr", by_ticket(), 700), ("fanfold", always, 1_200)];
    for (name, rule, room) in cases {
        let policy = |tools: &[ToolRule]| Policy { tools: tools.to_vec(), ..Policy::named(name).unwrap() };
        let unnamed = ToolRule { target: Vec::new(), ..rule.clone() };
        let (with, without) =
            (sent(policy(&[rule]), &tickets(80), room), sent(policy(&[unnamed]), &tickets(80), room));
        let n_told =
            |sent: &str| (0..80).filter(|i| sent.contains(&format!("[fetch_ticket] T-{i}00 "))).count();
        assert!(n_told(&with) > 2 && !with.contains("] detail=full"), "{name}:\n{with}");
        assert!(n_told(&without) == 0 && without.contains("] detail=full"), "{name}:\n{without}");
    }
}

#[test]
fn parallel_scans_use_tool_targets() {
    let policy = || Policy { tools: vec![by_ticket()], ..Policy::fanfold() };
    let came = tickets(600);
    let mut sequential = replayed(&came, session_of(policy(), 10_000));
    let mut parallel = session_of(policy(), 10_000);
    parallel.set_parallel(&Backwards);
    let mut parallel = replayed(&came, parallel);
    assert_eq!(sequential.view().unwrap(), parallel.view().unwrap());
    let view = parallel.view().unwrap().clone();
    let digest = print_view(parallel.transcript(), &view);
    assert!(digest.contains("[fetch_ticket] T-"), "{digest}");
}

/// Whatever is said of tools: the same values give the same bytes, nothing is lost, and everything fits.
#[test]
fn rules_for_tools_keep_every_promise() {
    hold(4_000, &Policy::NAMES, |case| {
        let policy = || Policy { tools: rules(&mut case.rng()), ..case.policy() };
        let mut followed = case.session_by(policy());
        for entry in &case.entries {
            followed.append(entry.clone());
            let Some(view) = view_of(&mut followed)? else { continue };
            crate::budget::check_view(&followed, &view)?;
            crate::lossless::check(&followed, &view)?;
        }
        same(&mut followed, &mut replayed(&case.entries, case.session_by(policy())))
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

/// What stands for the one result of a tool when it may take a tenth of the room.
fn capped(result: &str, condense: Option<ContentKind>) -> String {
    let rule = ToolRule { tool: "night_run".to_owned(), cap: Some(100), condense, ..ToolRule::default() };
    let mut session = session_of(Policy { tools: vec![rule], ..Policy::fanfold() }, 900);
    let lines: Vec<&str> = result.lines().collect();
    let said =
        format!("user    how was the night?\ncall    night_run {{}}\nresult  {}\n", lines.join("\n        "));
    parse(&said).unwrap().into_iter().for_each(|entry| {
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
fn a_result_is_condensed_as_what_it_is_said_to_be() {
    let names: String = (0..300).map(|i| format!("src/part{}/job_{i}.rs\n", i / 30)).collect();
    assert_eq!(fanfold_core::detect_kind(&names), ContentKind::Listing);
    let (listed, logged) = (capped(&names, None), capped(&names, Some(ContentKind::Log)));
    assert_eq!(listed, capped(&names, Some(ContentKind::Listing)));
    assert!(logged.contains(" alike\n") && !listed.contains(" alike\n"), "{listed}\n\n{logged}");
}

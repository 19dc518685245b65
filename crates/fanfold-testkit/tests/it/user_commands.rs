//! Commands of users: pin, unfold, fold, focus.

use fanfold_core::{Budget, EntryId, Event, Item, Notice, Policy, Session, Tokens, Words, parse, print_view};

use crate::cases::{check_cases, fail};
use crate::drivers::view_of;

#[test]
fn pinned_entries_stay_whole() {
    check_cases(4_000, &Policy::NAMES, |case| {
        let mut rng = case.rng();
        let mut session = case.session();
        for entry in &case.entries {
            let id = session.append(entry.clone());
            if rng.percent(15) {
                session.apply(Event::Pinned(id));
            }
            let Some(view) = view_of(&mut session)? else { continue };
            for pinned in session.ledger().pinned() {
                if !view.items.contains(&Item::Whole(*pinned)) {
                    return fail(format!("entry {} is pinned but not whole", pinned.0));
                }
            }
        }
        Ok(())
    });
}

/// Pins on any entry, also on folded ones, never cause a fault.
#[test]
fn pins_on_anything_are_harmless() {
    check_cases(3_000, &Policy::NAMES, |case| {
        let mut rng = case.rng();
        let mut session = case.session();
        for entry in &case.entries {
            session.append(entry.clone());
            let n = session.transcript().len();
            if rng.percent(20) {
                session.apply(Event::Pinned(EntryId::from(rng.below(n))));
            }
            if rng.percent(10) {
                session.apply(Event::Unpinned(EntryId::from(rng.below(n))));
            }
            view_of(&mut session)?;
        }
        Ok(())
    });
}

#[test]
fn unfolding_brings_entries_back() {
    check_cases(4_000, &Policy::NAMES, |case| {
        let mut rng = case.rng();
        let mut session = case.session();
        for entry in &case.entries {
            session.append(entry.clone());
            let Some(view) = view_of(&mut session)? else { continue };
            if view.handles.is_empty() || !rng.percent(30) {
                continue;
            }
            let handle = view.handles[rng.below(view.handles.len())];
            let original = session.ledger().original(session.transcript(), handle);
            let entries = original.map(|original| original.entries()).unwrap_or_default();
            session.apply(Event::Unfolded(handle));
            let Some(view) = view_of(&mut session)? else { return Ok(()) };
            for entry in entries {
                if !view.items.contains(&Item::Whole(entry)) {
                    return fail(format!("entry {} was unfolded but is not whole", entry.0));
                }
            }
            crate::budget::check_view(&session, &view)?;
            crate::lossless::check(&session, &view)?;
        }
        Ok(())
    });
}

#[test]
fn a_requested_fold_folds_or_gives_a_reason() {
    check_cases(3_000, &Policy::NAMES, |case| {
        let mut session = case.session();
        for entry in &case.entries {
            session.append(entry.clone());
            view_of(&mut session)?;
            session.take_notices();
            let n = session.ledger().receipts().len();
            session.apply(Event::FoldRequested { range: None });
            let is_folded = session.ledger().receipts().len() > n;
            let is_reported =
                session.take_notices().iter().any(|notice| matches!(notice, Notice::NothingToFold(_)));
            if is_folded == is_reported {
                return fail(format!(
                    "folded: {is_folded}, reported that there is nothing to fold: {is_reported}"
                ));
            }
            view_of(&mut session)?;
        }
        Ok(())
    });
}

/// A fold of a range changes nothing outside of it, except earlier folds.
#[test]
fn a_requested_range_folds_only_its_entries() {
    check_cases(3_000, &["fanfold"], |case| {
        let mut rng = case.rng();
        let mut session = case.session();
        case.entries.iter().for_each(|entry| {
            session.append(entry.clone());
        });
        let Some(before) = view_of(&mut session)? else { return Ok(()) };
        let n = session.transcript().len();
        if n == 0 {
            return Ok(());
        }
        let from = rng.below(n);
        let to = from + rng.below(n - from);
        session.apply(Event::FoldRequested { range: Some((EntryId::from(from), EntryId::from(to))) });
        let Some(after) = view_of(&mut session)? else {
            return fail("a requested fold made the session overflow");
        };
        for item in &before.items {
            let (Item::Whole(id) | Item::Edited(id, _)) = item else { continue };
            let is_outside = id.index() < from || id.index() > to;
            if is_outside && !after.items.contains(item) {
                return fail(format!("entry {} is outside of {from}..{to} but changed", id.0));
            }
        }
        if after.tokens > before.tokens {
            return fail(format!("a fold grew the view from {} to {} tokens", before.tokens, after.tokens));
        }
        Ok(())
    });
}

#[test]
fn focus_keeps_more_lines_of_its_topic() {
    let mut text = String::from("user    find out what is wrong with the billing service\n");
    for i in 0..30 {
        text.push_str(&format!("call    bash {{\"command\":\"cat log{i}\"}}\n"));
        text.push_str(&format!(
            "result  invoice_{i} rounding of the invoice total is {i}77 cents off in round_total\n"
        ));
        for n in 0..9 {
            text.push_str(&format!(
                "        socket_{i}_{n} connection pool worker{i}{n} closed after {i}{n}3 milliseconds\n"
            ));
        }
    }
    let n_lines = |focus: &str| {
        let budget = Budget::with_reserve(Tokens(700), Tokens::ZERO);
        let mut session = Session::new(Policy::fanfold(), budget, &Words);
        session.apply(Event::Focused(focus.to_owned()));
        parse(&text).unwrap().into_iter().for_each(|entry| {
            session.append(entry);
        });
        let view = session.view().unwrap().clone();
        assert!(!view.is_untouched(), "the view has folds");
        print_view(session.transcript(), &view)
            .lines()
            .filter(|line| line.contains("rounding of the invoice"))
            .count()
    };
    let (with, without) = (n_lines("invoice rounding"), n_lines(""));
    assert!(with > without, "{with} lines with focus, {without} without");
}

#[test]
fn results_of_a_never_folded_tool_are_folded_last() {
    use fanfold_core::{ToolFold, ToolRule};
    check_cases(1_000, &["fanfold"], |case| {
        let mut policy = case.policy();
        policy.tools =
            vec![ToolRule { tool: "mcp__*".to_owned(), fold: ToolFold::Never, ..ToolRule::default() }];
        let mut session = Session::new(policy, case.budget(), &Words);
        for entry in &case.entries {
            session.append(entry.clone());
            let Some(view) = view_of(&mut session)? else { continue };
            let is_last_resort = session
                .ledger()
                .receipts()
                .iter()
                .any(|receipt| !matches!(receipt.stage, "normal" | "smaller tail" | "smallest tail"));
            if is_last_resort {
                return Ok(());
            }
            for (i, entry) in session.transcript().entries().iter().enumerate() {
                let is_protected = entry
                    .step()
                    .is_some_and(|step| step.calls.iter().any(|call| call.tool.starts_with("mcp__")));
                let id = EntryId::from(i);
                let is_present = view
                    .items
                    .iter()
                    .any(|item| matches!(item, Item::Whole(at) | Item::Edited(at, _) if *at == id));
                if is_protected && !is_present {
                    return fail(format!("entry {i} has a protected result but is not in the view"));
                }
            }
        }
        Ok(())
    });
}

/// Lines about the topic of the user message stay, in any spelling of the name.
#[test]
fn lines_about_the_question_stay() {
    let n_kept = |question: &str, name: fn(usize) -> String| {
        let mut text = format!("user    {question}\n");
        for i in 0..40 {
            text.push_str(&format!("call    bash {{\"command\":\"cat log{i}\"}}\n"));
            text.push_str(&format!("result  socket_timeout_{i} was seen at last\n"));
            for n in 0..9 {
                text.push_str(&format!("        worker_{i}_{n} was started by the pool\n"));
            }
            text.push_str(&format!("        {} was seen at last\n", name(i)));
        }
        let budget = Budget::with_reserve(Tokens(300), Tokens::ZERO);
        let mut session = Session::new(Policy::fanfold(), budget, &Words);
        parse(&text).unwrap().into_iter().for_each(|entry| {
            session.append(entry);
        });
        let view = session.view().unwrap().clone();
        let sent = print_view(session.transcript(), &view);
        (0..40).filter(|i| sent.contains(&name(*i))).count()
    };
    let spellings: [fn(usize) -> String; 3] = [
        |i| format!("invoice_rounding_{i}"),
        |i| format!("invoiceRounding_{i}"),
        |i| format!("INVOICE_ROUNDING_{i}"),
    ];
    for name in spellings {
        let with = n_kept("is the Invoice rounding right?", name);
        let without = n_kept("is it right?", name);
        assert!(with > without, "{}: {with} lines with a question about it, {without} without", name(0));
    }
}

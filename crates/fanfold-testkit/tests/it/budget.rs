//! 3. A view is no longer than its room, or there is an `Overflow` and no view.

use fanfold_core::{
    Budget, Entry, Event, Notice, Overflow, Policy, Pressure, Reason, Session, Strategy, Tokens, View,
    ViewError, Words, check, parse, recount,
};

use crate::cases::{Case, Verdict, hold, no};
use crate::walks::{Sent, view_of, walk, walk_case_in_chat, yardstick};

/// The view fits, and costs what it says.
pub(crate) fn check_view(session: &Session<'_>, view: &View) -> Verdict {
    let room = session.budget().room();
    if view.tokens > room {
        return no(format!("the view costs {} and the room is {room}", view.tokens));
    }
    let counted = recount(session.transcript(), view, session.counter());
    if counted != view.tokens {
        return no(format!("the view says {} and costs {counted}", view.tokens));
    }
    check(session.transcript(), session.ledger(), view, session.budget()).map_err(|fault| fault.to_string())
}

/// What is sent fits, by the yardstick's own formula.
pub(crate) fn check_sent(sent: &Sent<'_>) -> Verdict {
    let cost = yardstick(&sent.parsed(), sent.session.counter()) + sent.session.transcript().tools().0;
    let room = sent.session.budget().room().0;
    if cost <= room {
        Ok(())
    } else {
        no(format!("{cost} tokens are sent, {} were counted, and the room is {room}", sent.view.tokens))
    }
}

#[test]
fn views_fit_and_cost_what_they_say() {
    hold(6_000, &Policy::NAMES, |case| walk(case, |session, view| check_view(session, view)));
}

/// The same by a real vocabulary, which most lines of a segment are counted by only once.
#[test]
fn views_cost_what_they_say_in_real_tokens() {
    hold(2_000, &["fanfold"], |case| {
        let budget = Budget::with_reserve(Tokens(case.window * 4), Tokens::ZERO);
        let mut session = Session::new(case.policy(), budget, fanfold_tokens::o200k());
        for entry in &case.entries {
            session.append(entry.clone());
            if let Some(view) = view_of(&mut session)? {
                check_view(&session, &view)?;
            }
        }
        Ok(())
    });
}

#[test]
fn what_is_sent_fits() {
    hold(3_000, &Policy::NAMES, |case| walk_case_in_chat(case, check_sent));
}

/// Only what the format itself adds may be missing from the count, and nothing may be counted twice.
#[test]
fn what_is_sent_costs_what_the_view_says() {
    hold(3_000, &Policy::NAMES, |case| {
        walk_case_in_chat(case, |sent| {
            let cost = yardstick(&sent.parsed(), sent.session.counter());
            // A call without a result is counted with the placeholder that it comes to need when anything is folded, and
            // a conversation that does not begin with a prompt with the opening that a note of ours may make needless.
            let entries = sent.session.transcript().entries();
            let is_open = |entry: &Entry| {
                entry.step().is_some_and(|step| step.calls.iter().any(|call| call.result.is_none()))
            };
            let is_late_opened =
                entries.iter().find(|entry| !entry.is_system()).is_some_and(|first| first.step().is_some());
            let may_cost_less = is_late_opened || entries.iter().any(is_open);
            if cost == sent.view.tokens.0 || may_cost_less && cost < sent.view.tokens.0 {
                Ok(())
            } else {
                no(format!("{cost} are sent, {} were counted", sent.view.tokens))
            }
        })
    });
}

#[test]
fn an_overflow_says_what_is_in_the_way_and_what_would_help() {
    hold(6_000, &Policy::NAMES, |case| {
        let mut session = case.session();
        for entry in &case.entries {
            session.append(entry.clone());
            if let Err(ViewError::Overflow(overflow)) = session.view() {
                check_overflow(case, &mut session, &overflow)?;
                return Ok(());
            }
        }
        Ok(())
    });
}

fn check_overflow(case: &Case, session: &mut Session<'_>, overflow: &Overflow) -> Verdict {
    if overflow.smallest <= overflow.room {
        return no("it overflows and fits");
    }
    let sizes: Vec<_> = overflow.contributors.iter().map(|contributor| contributor.tokens).collect();
    if sizes.is_empty() || !sizes.is_sorted_by(|a, b| a >= b) {
        return no(format!("contributors are not told, or not in order: {sizes:?}"));
    }
    let window = window_of(overflow)?;
    // The same session in the window that it asked for.
    session.apply(Event::Budget(Budget::with_reserve(Tokens(window), session.budget().reserve())));
    if let Err(refusal) = session.view() {
        return no(format!("a window of {} overflows, {window} was named, and then: {refusal}", case.window));
    }
    Ok(())
}

/// The window that a remedy names.
fn window_of(overflow: &Overflow) -> Result<u64, String> {
    let window = overflow.remedy.split(' ').find_map(|word| word.replace(',', "").parse::<u64>().ok());
    window.ok_or_else(|| format!("no window is named: {}", overflow.remedy))
}

/// Also where the reserve grows with the window: the session goes on at once in what is named, and one token less has not
/// the room.
#[test]
fn the_window_that_is_named_is_enough() {
    hold(6_000, &Policy::NAMES, |case| {
        let mut session = Session::new(case.policy(), Budget::of_window(Tokens(case.window)), &Words);
        for entry in &case.entries {
            session.append(entry.clone());
            let Err(ViewError::Overflow(overflow)) = session.view() else { continue };
            let window = window_of(&overflow)?;
            if Budget::of_window(Tokens(window - 1)).room() >= overflow.smallest {
                return no(format!("{window} was named, and less would do for {}", overflow.smallest));
            }
            session.apply(Event::Budget(Budget::of_window(Tokens(window))));
            if let Err(refusal) = session.view() {
                return no(format!("{window} was named, and then: {refusal}"));
            }
            return Ok(());
        }
        Ok(())
    });
}

/// What is printed as the trigger is what is used, also by a policy that goes no further than it must.
#[test]
fn a_strategy_moves_the_sliding_window() {
    let said = format!("user    begin\n{}", "say     one two three four five six seven eight\n".repeat(60));
    let budget = Budget::with_reserve(Tokens(200), Tokens::ZERO);
    for (strategy, most) in [(Strategy::Aggressive, 120), (Strategy::Moderate, 160), (Strategy::Light, 190)] {
        let mut session = Session::new(Policy::window().with_strategy(strategy), budget, &Words);
        for entry in parse(&said).unwrap() {
            session.append(entry);
            assert!(session.view().unwrap().tokens <= Tokens(most), "{strategy}");
        }
        assert!(session.view().unwrap().tokens > Tokens(most - 40), "{strategy} folds more than it must");
    }
}

#[test]
fn nothing_is_folded_when_the_strategy_is_off() {
    hold(1_000, &["fanfold"], |case| {
        let policy = Policy { strategy: Strategy::Off, ..case.policy() };
        let mut session = Session::new(policy, case.budget(), &fanfold_core::Words);
        for entry in &case.entries {
            session.append(entry.clone());
            let is_small = session.transcript().total() <= session.budget().room();
            match session.view() {
                Ok(view) if !view.is_untouched() || !is_small => return no("it was folded, or is too long"),
                Err(_) if is_small => return no("it fits and was refused"),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    });
}

#[test]
fn pressure_is_told_once_for_each_level_until_a_fold() {
    hold(3_000, &Policy::NAMES, |case| {
        let (mut told, mut n_receipts) = (Pressure::None, 0);
        let mut session = case.session();
        for entry in &case.entries {
            session.append(answered(entry));
            let _ = session.view();
            // What is cut before it is sent leaves what was told as it is.
            let receipts = session.ledger().receipts().iter();
            let receipts = receipts.filter(|receipt| receipt.reason != Reason::Arrival).count();
            if receipts > n_receipts {
                (told, n_receipts) = (Pressure::None, receipts);
            }
            let level = Pressure::new(session.ledger().total(session.transcript()), session.budget());
            let expected = (level > told).then_some(level);
            told = told.max(level);
            let notices = session.take_notices();
            let mut heard = notices.iter().filter_map(|notice| match notice {
                Notice::Pressure(level) => Some(*level),
                Notice::Resting { .. } | Notice::NothingToFold(_) => None,
            });
            if (heard.next(), heard.next()) != (expected, None) {
                return no(format!("at {level}, {expected:?} should be told, and {notices:?} was"));
            }
        }
        Ok(())
    });
}

/// However often somebody looks while a call runs.
#[test]
fn looking_again_does_not_tell_again() {
    let budget = Budget::with_reserve(Tokens(100), Tokens::ZERO);
    let mut session = Session::new(Policy::fanfold(), budget, &fanfold_core::Words);
    let said = format!("user    {}\ncall    ls a b c d e f\nopen    \n", "word ".repeat(55).trim_end());
    for entry in parse(&said).unwrap() {
        session.append(entry);
    }
    (0..3).for_each(|_| drop(session.view().map(drop)));
    session.append(parse("user    go on").unwrap().remove(0));
    (0..3).for_each(|_| drop(session.view().map(drop)));
    assert_eq!(session.take_notices(), [Notice::Pressure(Pressure::Info)]);
}

/// The entry with a result for every call: while one runs, a view is provisional and nothing is told yet.
fn answered(entry: &Entry) -> Entry {
    let mut entry = entry.clone();
    if let Entry::Step(step) = &mut entry {
        step.calls.retain(|call| call.result.is_some());
    }
    entry
}

#[test]
fn thresholds_rise_with_the_window() {
    for name in Policy::NAMES {
        let policy = Policy::named(name).unwrap();
        let trigger = |window| policy.strategy.trigger(Budget::of_window(Tokens(window))).unwrap();
        assert!((0..300_000).step_by(333).map(trigger).is_sorted(), "{name}");
    }
}

/// After two folds in a row that win less than a tenth, none follows until somebody speaks.
#[test]
fn weak_folds_rest() {
    hold(6_000, &["fanfold"], |case| {
        let mut session = case.session();
        let (mut n_receipts, mut n_weak) = (0, 0);
        for entry in &case.entries {
            session.append(entry.clone());
            let _ = session.view();
            if entry.is_user() {
                n_weak = 0;
            }
            for receipt in &session.ledger().receipts()[n_receipts..] {
                let is_weak = receipt.saved().0 * 10 < receipt.before.0;
                if n_weak >= 2 && matches!(receipt.reason, Reason::Threshold(_)) {
                    return no(format!("fold {n_receipts} follows {n_weak} weak ones"));
                }
                n_weak = if is_weak { n_weak + 1 } else { 0 };
            }
            n_receipts = session.ledger().receipts().len();
        }
        Ok(())
    });
}

#[test]
fn resting_says_what_is_in_the_way() {
    // 96 words of a person's in a room of 100: over the trigger, and nothing to be won.
    let mut session = Session::new(
        Policy::fanfold(),
        Budget::with_reserve(Tokens(100), Tokens::ZERO),
        &fanfold_core::Words,
    );
    let said = "word ".repeat(96);
    let entries = parse(&format!(
        "user    {}\nsay     one\nthink   \nsay     two\nthink   \nsay     three\nthink   \nsay     four\n",
        said.trim_end()
    ))
    .unwrap();
    for entry in entries {
        session.append(entry);
        session.view().unwrap();
    }
    let notices = session.take_notices();
    let resting: Vec<_> = notices.iter().filter(|notice| matches!(notice, Notice::Resting { .. })).collect();
    assert_eq!(resting.len(), 1, "{notices:?}");
    let Notice::Resting { in_the_way } = resting[0] else { unreachable!("only these were kept") };
    assert_eq!(in_the_way[0].tokens, Tokens(96));
    assert!(in_the_way[0].description.contains("user"), "{in_the_way:?}");
}

/// A smaller window at once, and what the provider says it takes at most.
#[test]
fn another_window_is_heeded_at_once() {
    hold(2_000, &Policy::NAMES, |case| {
        let mut session = case.session();
        let mut rng = case.rng();
        for entry in &case.entries {
            session.append(entry.clone());
            let limit = Tokens(10 + rng.below(2_000) as u64);
            match rng.below(6) {
                0 => session.apply(Event::Budget(Budget::with_reserve(limit, Tokens::ZERO))),
                1 => {
                    session.apply(Event::Refused { limit: Some(limit) });
                    if session.budget().window() > limit {
                        return no("a refusal did not lower the window");
                    }
                }
                _ => {}
            }
            if let Some(view) = crate::walks::view_of(&mut session)? {
                check_view(&session, &view)?;
            }
        }
        Ok(())
    });
}

#[test]
fn tool_schemas_count() {
    hold(1_000, &Policy::NAMES, |case| {
        let mut session = case.session();
        let schemas = Tokens(case.window / 3);
        session.set_tools(schemas);
        for entry in &case.entries {
            session.append(entry.clone());
            let Some(view) = crate::walks::view_of(&mut session)? else { continue };
            check_view(&session, &view)?;
            let without: u64 = view.tokens.0 - schemas.0;
            if without + schemas.0 > case.window {
                return no("the schemas are not counted");
            }
        }
        Ok(())
    });
}

/// An entry that says nothing still has its place.
#[test]
fn nothing_said_is_nothing_sent() {
    for name in Policy::NAMES {
        let budget = Budget::with_reserve(Tokens(10), Tokens::ZERO);
        let mut session = Session::new(Policy::named(name).unwrap(), budget, &fanfold_core::Words);
        assert_eq!(session.view().unwrap().items, []);
        let empty: Vec<Entry> = parse("user    \nsay     \n").unwrap();
        empty.into_iter().for_each(|entry| {
            session.append(entry);
        });
        assert_eq!(session.view().unwrap().items.len(), 2, "{name}");
    }
}

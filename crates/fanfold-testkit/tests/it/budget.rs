//! 3. A view fits its room, or there is an `Overflow` and no view.

use fanfold_core::{
    Budget, Entry, Event, Notice, Overflow, Policy, Pressure, Prices, Quality, Reason, Session, Strategy,
    Tokens, View, ViewError, Words, check, parse, recount,
};

use crate::cases::{Case, Verdict, check_cases, fail};
use crate::drivers::{SentView, drive, drive_case_as_chat, reference_count, view_of};

/// The view fits and reports its exact token count.
pub(crate) fn check_view(session: &Session<'_>, view: &View) -> Verdict {
    let room = session.budget().room();
    if view.tokens > room {
        return fail(format!("the view has {} tokens and the room is {room}", view.tokens));
    }
    let counted = recount(session.transcript(), view, session.counter());
    if counted != view.tokens {
        return fail(format!("the view reports {} tokens and has {counted}", view.tokens));
    }
    check(session.transcript(), session.ledger(), view, session.budget()).map_err(|fault| fault.to_string())
}

/// The sent messages fit by the independent formula.
pub(crate) fn check_sent(sent: &SentView<'_>) -> Verdict {
    let cost = reference_count(&sent.parsed(), sent.session.counter()) + sent.session.transcript().tools().0;
    let room = sent.session.budget().room().0;
    if cost <= room {
        Ok(())
    } else {
        fail(format!("{cost} tokens are sent, the view reports {}, and the room is {room}", sent.view.tokens))
    }
}

#[test]
fn views_fit_and_report_their_tokens() {
    check_cases(6_000, &Policy::NAMES, |case| drive(case, |session, view| check_view(session, view)));
}

/// With a real tokenizer, which counts most lines of a segment only once.
#[test]
fn views_report_their_tokens_with_a_real_tokenizer() {
    check_cases(2_000, &["fanfold"], |case| {
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
fn sent_messages_fit() {
    check_cases(3_000, &Policy::NAMES, |case| drive_case_as_chat(case, check_sent));
}

/// The view counts everything that is sent except the framing of the format, and nothing twice.
#[test]
fn sent_messages_have_the_tokens_of_the_view() {
    check_cases(3_000, &Policy::NAMES, |case| {
        drive_case_as_chat(case, |sent| {
            let cost = reference_count(&sent.parsed(), sent.session.counter());
            // The view also counts the placeholder result of an unanswered call, which is sent only after a fold,
            // and the opening before a conversation that begins with a step, which a note of ours may replace.
            let entries = sent.session.transcript().entries();
            let is_open = |entry: &Entry| {
                entry.step().is_some_and(|step| step.calls.iter().any(|call| call.result.is_none()))
            };
            let begins_with_step =
                entries.iter().find(|entry| !entry.is_system()).is_some_and(|first| first.step().is_some());
            let may_cost_less = begins_with_step || entries.iter().any(is_open);
            if cost == sent.view.tokens.0 || may_cost_less && cost < sent.view.tokens.0 {
                Ok(())
            } else {
                fail(format!("{cost} tokens are sent, the view reports {}", sent.view.tokens))
            }
        })
    });
}

#[test]
fn an_overflow_names_contributors_and_a_sufficient_window() {
    check_cases(6_000, &Policy::NAMES, |case| {
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
        return fail("an overflow, but the smallest view fits");
    }
    let sizes: Vec<_> = overflow.contributors.iter().map(|contributor| contributor.tokens).collect();
    if sizes.is_empty() || !sizes.is_sorted_by(|a, b| a >= b) {
        return fail(format!("contributors are missing or not sorted: {sizes:?}"));
    }
    let window = window_of(overflow)?;
    // The same session must fit the window that the overflow names.
    session.apply(Event::Budget(Budget::with_reserve(Tokens(window), session.budget().reserve())));
    if let Err(refusal) = session.view() {
        return fail(format!(
            "a window of {} overflows and names {window}, which fails: {refusal}",
            case.window
        ));
    }
    Ok(())
}

/// The window that the remedy of an overflow names.
fn window_of(overflow: &Overflow) -> Result<u64, String> {
    let window = overflow.remedy.split(' ').find_map(|word| word.replace(',', "").parse::<u64>().ok());
    window.ok_or_else(|| format!("the remedy names no window: {}", overflow.remedy))
}

/// The named window is the smallest sufficient one, also if the reserve grows with the window.
#[test]
fn the_named_window_is_the_smallest_sufficient_one() {
    check_cases(6_000, &Policy::NAMES, |case| {
        let mut session = Session::new(case.policy(), Budget::of_window(Tokens(case.window)), &Words);
        for entry in &case.entries {
            session.append(entry.clone());
            let Err(ViewError::Overflow(overflow)) = session.view() else { continue };
            let window = window_of(&overflow)?;
            if Budget::of_window(Tokens(window - 1)).room() >= overflow.smallest {
                return fail(format!(
                    "{window} is named, but a smaller window has room for {}",
                    overflow.smallest
                ));
            }
            session.apply(Event::Budget(Budget::of_window(Tokens(window))));
            if let Err(refusal) = session.view() {
                return fail(format!("{window} is named, but fails: {refusal}"));
            }
            return Ok(());
        }
        Ok(())
    });
}

/// The trigger of the strategy is used, also by a policy that folds only what it must.
#[test]
fn the_strategy_moves_the_sliding_window() {
    let text = format!("user    begin\n{}", "say     one two three four five six seven eight\n".repeat(60));
    let budget = Budget::with_reserve(Tokens(200), Tokens::ZERO);
    for (strategy, most) in [(Strategy::Aggressive, 120), (Strategy::Moderate, 160), (Strategy::Light, 190)] {
        let mut session = Session::new(Policy::window().with_strategy(strategy), budget, &Words);
        for entry in parse(&text).unwrap() {
            session.append(entry);
            assert!(session.view().unwrap().tokens <= Tokens(most), "{strategy}");
        }
        assert!(session.view().unwrap().tokens > Tokens(most - 40), "{strategy} folds more than it must");
    }
}

#[test]
fn nothing_is_folded_when_the_strategy_is_off() {
    check_cases(1_000, &["fanfold"], |case| {
        let policy = Policy { strategy: Strategy::Off, ..case.policy() };
        let mut session = Session::new(policy, case.budget(), &fanfold_core::Words);
        for entry in &case.entries {
            session.append(entry.clone());
            let is_small = session.transcript().total() <= session.budget().room();
            match session.view() {
                Ok(view) if !view.is_untouched() || !is_small => return fail("it was folded or is too long"),
                Err(_) if is_small => return fail("it fits but was refused"),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    });
}

#[test]
fn nothing_is_folded_before_the_window_is_full_if_the_quality_is_faithful() {
    check_cases(2_000, &Policy::NAMES, |case| {
        let policy = case.policy().with_quality(Quality::Faithful);
        let prices = Prices { write: 1.25, read: 0.1, ..Prices::without_cache() };
        let mut session = Session::new(policy, case.budget(), &Words).with_prices(prices);
        let mut was_full = false;
        for entry in &case.entries {
            session.append(entry.clone());
            was_full |= session.transcript().total() > session.budget().room();
            let is_untouched = session.view().is_ok_and(|view| view.is_untouched());
            if !was_full && !is_untouched {
                return fail("it was folded before the window was full");
            }
        }
        Ok(())
    });
}

#[test]
fn pressure_is_reported_once_per_level_until_a_fold() {
    check_cases(3_000, &Policy::NAMES, |case| {
        let (mut reported, mut n_receipts) = (Pressure::None, 0);
        let mut session = case.session();
        for entry in &case.entries {
            session.append(without_running_calls(entry));
            let _ = session.view();
            // Folds of new results do not reset the reported level.
            let receipts = session.ledger().receipts().iter();
            let receipts = receipts.filter(|receipt| receipt.reason != Reason::Arrival).count();
            if receipts > n_receipts {
                (reported, n_receipts) = (Pressure::None, receipts);
            }
            let level = Pressure::new(session.ledger().total(session.transcript()), session.budget());
            let expected = (level > reported).then_some(level);
            reported = reported.max(level);
            let notices = session.take_notices();
            let mut levels = notices.iter().filter_map(|notice| match notice {
                Notice::Pressure(level) => Some(*level),
                Notice::Resting { .. } | Notice::NothingToFold(_) => None,
            });
            if (levels.next(), levels.next()) != (expected, None) {
                return fail(format!(
                    "at {level}, {expected:?} is expected, but the notices are {notices:?}"
                ));
            }
        }
        Ok(())
    });
}

/// Repeated views while a call runs report the pressure once.
#[test]
fn repeated_views_report_pressure_once() {
    let budget = Budget::with_reserve(Tokens(100), Tokens::ZERO);
    let mut session = Session::new(Policy::fanfold(), budget, &fanfold_core::Words);
    let text = format!("user    {}\ncall    ls a b c d e f\nopen    \n", "word ".repeat(55).trim_end());
    for entry in parse(&text).unwrap() {
        session.append(entry);
    }
    (0..3).for_each(|_| drop(session.view().map(drop)));
    session.append(parse("user    go on").unwrap().remove(0));
    (0..3).for_each(|_| drop(session.view().map(drop)));
    assert_eq!(session.take_notices(), [Notice::Pressure(Pressure::Info)]);
}

/// The entry without running calls. While a call runs, a view is provisional and reports nothing.
fn without_running_calls(entry: &Entry) -> Entry {
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

/// After two folds in a row that save less than a tenth, none follows until the next user message.
#[test]
fn folding_rests_after_two_weak_folds() {
    check_cases(2_000, &["fanfold"], |case| {
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
                    return fail(format!("fold {n_receipts} follows {n_weak} weak ones"));
                }
                n_weak = if is_weak { n_weak + 1 } else { 0 };
            }
            n_receipts = session.ledger().receipts().len();
        }
        Ok(())
    });
}

#[test]
fn resting_names_the_largest_entries() {
    // A user message of 96 words in a room of 100 exceeds the trigger and cannot be folded.
    let mut session = Session::new(
        Policy::fanfold(),
        Budget::with_reserve(Tokens(100), Tokens::ZERO),
        &fanfold_core::Words,
    );
    let words = "word ".repeat(96);
    let entries = parse(&format!(
        "user    {}\nsay     one\nthink   \nsay     two\nthink   \nsay     three\nthink   \nsay     four\n",
        words.trim_end()
    ))
    .unwrap();
    for entry in entries {
        session.append(entry);
        session.view().unwrap();
    }
    let notices = session.take_notices();
    let resting: Vec<_> = notices.iter().filter(|notice| matches!(notice, Notice::Resting { .. })).collect();
    assert_eq!(resting.len(), 1, "{notices:?}");
    let Notice::Resting { in_the_way } = resting[0] else { unreachable!("others were filtered out") };
    assert_eq!(in_the_way[0].tokens, Tokens(96));
    assert!(in_the_way[0].description.contains("user"), "{in_the_way:?}");
}

/// A smaller budget, or a limit from a refusal of the provider, takes effect at once.
#[test]
fn a_new_window_takes_effect_at_once() {
    check_cases(2_000, &Policy::NAMES, |case| {
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
                        return fail("a refusal did not lower the window");
                    }
                }
                _ => {}
            }
            if let Some(view) = crate::drivers::view_of(&mut session)? {
                check_view(&session, &view)?;
            }
        }
        Ok(())
    });
}

#[test]
fn tool_schemas_are_counted() {
    check_cases(1_000, &Policy::NAMES, |case| {
        let mut session = case.session();
        let schemas = Tokens(case.window / 3);
        session.set_tools(schemas);
        for entry in &case.entries {
            session.append(entry.clone());
            let Some(view) = crate::drivers::view_of(&mut session)? else { continue };
            check_view(&session, &view)?;
            let without: u64 = view.tokens.0 - schemas.0;
            if without + schemas.0 > case.window {
                return fail("the schemas are not counted");
            }
        }
        Ok(())
    });
}

/// An empty entry is still an item of the view.
#[test]
fn empty_entries_are_in_the_view() {
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

//! A contract suite for implementations of `fanfold_core::Engine`, including those of third parties.
//!
//! It drives an engine like a host, with generated conversations, and reports the first broken invariant. It does
//! not judge which entries an engine folds.

use std::collections::BTreeSet;

use fanfold_core::{
    Budget, Engine, Entry, EntryId, Event, Extent, FoldRequest, FoldStatus, Item, ProviderUsage,
    SessionTransition, Tokens, View, ViewError, recount,
};

use crate::Rng;
use crate::generators::conversations::{ConversationSize, conversation};

/// A broken invariant, and where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContractViolation {
    /// The seed of the conversation.
    pub seed: u64,
    /// The number of entries appended before.
    pub n_entries: usize,
    /// The broken invariant.
    pub message: String,
}

/// Creates an engine with `create` for each seed, and drives it through the conversation of that seed.
pub fn check<E: Engine>(
    seeds: std::ops::Range<u64>,
    create: impl Fn(Budget) -> E,
) -> Result<(), ContractViolation> {
    for seed in seeds {
        let size = if seed % 4 == 3 { ConversationSize::Long } else { ConversationSize::Medium };
        let entries = conversation(seed, size);
        let mut rng = Rng::new(seed);
        let budget = Budget::with_reserve(Tokens(40 + rng.below(2_000) as u64), Tokens::ZERO);
        let mut host = Host { engine: create(budget), twin: create(budget), budget, n_appended: 0, rng };
        host.drive(&entries).map_err(|message| ContractViolation {
            seed,
            n_entries: host.n_appended,
            message,
        })?;
    }
    Ok(())
}

/// A host with an engine, and a twin of it that misses only the calls that must have no effect.
struct Host<E> {
    engine: E,
    twin: E,
    budget: Budget,
    n_appended: usize,
    rng: Rng,
}

/// `Err` describes the broken invariant.
type CheckResult = Result<(), String>;

impl<E: Engine> Host<E> {
    fn drive(&mut self, entries: &[Entry]) -> CheckResult {
        self.check_new_engine()?;
        for entry in entries {
            self.n_appended += 1;
            self.engine.append(entry.clone());
            self.twin.append(entry.clone());
            self.change_sessions()?;
            self.report_usage();
            self.check_view()?;
            match self.rng.below(12) {
                0 => self.fold_by_request()?,
                1 => self.change_budget()?,
                2 => self.check_tools()?,
                3 => self.apply_event(),
                _ => {}
            }
        }
        self.check_reset()
    }

    fn check_new_engine(&mut self) -> CheckResult {
        let name = self.engine.name();
        let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
        hold(is_name, || format!("the name {name:?} is empty or has spaces"))?;
        hold(self.engine.transcript().is_empty(), || {
            "the transcript of a new engine is not empty".to_owned()
        })?;
        hold(self.engine.status().window == self.budget.window(), || {
            "the status reports another window than the budget".to_owned()
        })
    }

    /// A view fits the room, is in order, ends with the newest entry and has the token count that it reports.
    fn check_view(&mut self) -> CheckResult {
        let should = self.engine.should_fold(None);
        hold(!should.reason.is_empty(), || "`should_fold` gives no reason".to_owned())?;
        let can_be_sent = self.engine.preflight().is_ok();
        let twin_view = self.twin.view().cloned();
        let view = match self.engine.view().cloned() {
            Ok(view) => view,
            Err(ViewError::Overflow(overflow)) => {
                hold(!can_be_sent, || "`preflight` succeeds, but `view` overflows".to_owned())?;
                return hold(overflow.smallest > overflow.room, || {
                    format!(
                        "it overflows, but its smallest view of {} fits the room of {}",
                        overflow.smallest, overflow.room
                    )
                });
            }
            Err(ViewError::Fault(fault)) => return Err(fault.to_string()),
        };
        hold(can_be_sent, || "`preflight` fails, but `view` succeeds".to_owned())?;
        hold(view.tokens <= self.budget.room(), || {
            format!("a view of {} tokens exceeds the room of {}", view.tokens, self.budget.room())
        })?;
        let counted = recount(self.engine.transcript(), &view, self.engine.counter());
        hold(counted == view.tokens, || {
            format!("the view has {counted} tokens and reports {}", view.tokens)
        })?;
        hold(self.engine.status().tokens == view.tokens, || {
            "the status and the view report different token counts".to_owned()
        })?;
        self.check_order(&view)?;
        for handle in &view.handles {
            let original = self.engine.recall(*handle, &Extent::Whole);
            hold(original.is_ok(), || format!("{handle} is in the view but cannot be recalled"))?;
        }
        let n_receipts = self.engine.ledger().receipts().len();
        hold(n_receipts <= self.engine.status().n_folds, || "there are more receipts than folds".to_owned())?;
        hold(self.engine.view().ok() == Some(&view), || {
            "two calls of `view` return different views".to_owned()
        })?;
        hold(twin_view.is_ok_and(|twin_view| twin_view == view), || {
            "calls that must have no effect changed the view".to_owned()
        })
    }

    fn check_order(&self, view: &View) -> CheckResult {
        let entries = view.items.iter().filter_map(|item| match item {
            Item::Whole(entry) | Item::Edited(entry, _) => Some(*entry),
            Item::Note { .. } => None,
        });
        let entries: Vec<EntryId> = entries.collect();
        hold(entries.is_sorted_by(|a, b| a < b), || "entries are out of order".to_owned())?;
        let newest = EntryId::from(self.n_appended - 1);
        hold(entries.last() == Some(&newest), || "the newest entry is not at the end".to_owned())
    }

    /// Some hosts end the session at each fold and continue under a new id; the transcript must survive that.
    fn change_sessions(&mut self) -> CheckResult {
        if self.rng.percent(30) {
            let id = || "the-same".to_owned();
            for change in [
                SessionTransition::End(id()),
                SessionTransition::Start(id()),
                SessionTransition::Switch("b".into()),
            ] {
                self.engine.change_session(&change);
            }
        }
        let n = self.engine.transcript().len();
        hold(n == self.n_appended, || {
            format!("{n} of {} entries are left after a change of session", self.n_appended)
        })
    }

    /// An empty report has no effect, so only the engine gets it; both get reports with a token count.
    fn report_usage(&mut self) {
        self.engine.report_usage(ProviderUsage::default());
        if self.rng.percent(20) {
            let input = Tokens(self.rng.below(4_000) as u64);
            for engine in [&mut self.engine, &mut self.twin] {
                engine.report_usage(ProviderUsage { input, ..ProviderUsage::default() });
            }
        }
    }

    /// A requested fold folds something or gives a reason, and never makes the view longer.
    fn fold_by_request(&mut self) -> CheckResult {
        let (before, has_something) = (self.engine.status(), self.engine.has_something_to_fold());
        let request = FoldRequest { force: true, focus: Some("parse_header".to_owned()), tokens: None };
        let mut fork = self.engine.fork();
        let by_fork = fork.fold(&request);
        hold(self.engine.status() == before, || "folding a fork changes the original".to_owned())?;
        let report = self.engine.fold(&request);
        hold(report.is_ok() == by_fork.is_ok(), || "a fork folds differently from the original".to_owned())?;
        let by_twin = self.twin.fold(&request);
        hold(report.is_ok() == by_twin.is_ok(), || "two equal engines fold differently".to_owned())?;
        let Ok(report) = report else { return Ok(()) };
        let after = self.engine.status();
        hold(!report.headline.is_empty() && !report.token_line.is_empty(), || {
            "the report of a fold is empty".to_owned()
        })?;
        hold(after.tokens <= before.tokens || before.tokens > self.budget.room(), || {
            format!("a fold grew the view from {} to {} tokens", before.tokens, after.tokens)
        })?;
        match report.status {
            FoldStatus::Folded => {
                hold(after.n_folds > before.n_folds, || "the status does not count a fold".to_owned())
            }
            FoldStatus::Nothing => {
                hold(report.note.is_some(), || "nothing was folded, and no reason is given".to_owned())?;
                let is_same = after.tokens == before.tokens && after.n_folds == before.n_folds;
                hold(is_same, || "nothing was folded, but the status changed".to_owned())?;
                hold(!has_something, || {
                    "nothing was folded, but `has_something_to_fold` returned true".to_owned()
                })
            }
            FoldStatus::Aborted | FoldStatus::FellBack => {
                Err("a fold without a summary ended like one with a summary".to_owned())
            }
        }?;
        self.check_view()
    }

    /// A new budget takes effect at once.
    fn change_budget(&mut self) -> CheckResult {
        self.budget = Budget::with_reserve(Tokens(30 + self.rng.below(2_500) as u64), Tokens::ZERO);
        self.engine.set_budget(self.budget);
        self.twin.set_budget(self.budget);
        let status = self.engine.status();
        hold((status.window, status.room) == (self.budget.window(), self.budget.room()), || {
            format!("the window is {} after a change to {}", status.window, self.budget.window())
        })?;
        self.check_view()
    }

    /// Tools have unique names and object schemas, and answer any arguments.
    fn check_tools(&mut self) -> CheckResult {
        let tools = self.engine.tools();
        let names: BTreeSet<&str> = tools.iter().map(|tool| tool.name).collect();
        hold(names.len() == tools.len(), || format!("two tools have the same name: {names:?}"))?;
        for tool in &tools {
            let schema: Option<serde_json::Value> = serde_json::from_str(tool.parameters).ok();
            let is_schema = schema.is_some_and(|schema| schema["type"] == "object");
            hold(is_schema, || format!("{} has no object schema", tool.name))?;
            for arguments in ["", "null", "[]", "{}", r#"{"handle":7}"#, r#"{"handle":"000000"}"#] {
                let answer = self.engine.call_tool(tool.name, arguments);
                hold(answer.is_some_and(|answer| !answer.is_empty()), || {
                    format!("{} returns nothing for {arguments}", tool.name)
                })?;
            }
        }
        let unknown = self.engine.call_tool("nobody_s_tool", "{}");
        hold(unknown.is_none(), || "it answers for an unknown tool".to_owned())?;
        self.check_view()
    }

    fn apply_event(&mut self) {
        let entry = EntryId::from(self.rng.below(self.n_appended));
        let event = match self.rng.below(3) {
            0 => Event::Pinned(entry),
            1 => Event::Unpinned(entry),
            _ => Event::Focused("timeout of the worker".to_owned()),
        };
        self.engine.apply(event.clone());
        self.twin.apply(event);
    }

    /// A reset clears the transcript and the folds, but keeps the current window.
    fn check_reset(&mut self) -> CheckResult {
        self.engine.change_session(&SessionTransition::Reset);
        let status = self.engine.status();
        hold(self.engine.transcript().is_empty(), || "the transcript is not empty after a reset".to_owned())?;
        hold((status.n_folds, status.window) == (0, self.budget.window()), || {
            format!("the status after a reset is {status:?}")
        })
    }
}

fn hold(is_held: bool, message: impl FnOnce() -> String) -> CheckResult {
    if is_held { Ok(()) } else { Err(message()) }
}

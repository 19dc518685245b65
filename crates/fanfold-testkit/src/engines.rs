//! One suite for every engine that keeps to `fanfold_core::Engine`, ours and those of others.
//!
//! It drives an engine as a host would, through conversations from a seed, and says which promise was broken. What an
//! engine keeps and what it drops is its own; that it can be relied on is not.

use std::collections::BTreeSet;

use fanfold_core::{
    Budget, Engine, Entry, EntryId, Event, Extent, FoldRequest, FoldStatus, Item, ProviderUsage,
    SessionTransition, Tokens, View, ViewError, recount,
};

use crate::Rng;
use crate::conversations::{Size, conversation};

/// A promise that was broken: which conversation, after how many entries, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The seed of the conversation.
    pub seed: u64,
    /// After how many entries.
    pub after: usize,
    /// What was wrong.
    pub what: String,
}

/// Drives engines that `make` makes for a budget, each through the conversation of one of the seeds.
pub fn check<E: Engine>(seeds: std::ops::Range<u64>, make: impl Fn(Budget) -> E) -> Result<(), Broken> {
    for seed in seeds {
        let size = if seed % 4 == 3 { Size::Long } else { Size::Middling };
        let entries = conversation(seed, size);
        let mut rng = Rng::new(seed);
        let budget = Budget::with_reserve(Tokens(40 + rng.below(2_000) as u64), Tokens::ZERO);
        let mut host = Host { engine: make(budget), twin: make(budget), budget, n_said: 0, rng };
        host.drive(&entries).map_err(|what| Broken { seed, after: host.n_said, what })?;
    }
    Ok(())
}

/// A host with an engine, and one more that hears the same but for what must not matter.
struct Host<E> {
    engine: E,
    twin: E,
    budget: Budget,
    n_said: usize,
    rng: Rng,
}

type Checked = Result<(), String>;

impl<E: Engine> Host<E> {
    fn drive(&mut self, entries: &[Entry]) -> Checked {
        self.at_the_start()?;
        for entry in entries {
            self.n_said += 1;
            self.engine.append(entry.clone());
            self.twin.append(entry.clone());
            self.between_sessions()?;
            self.reported();
            self.a_view()?;
            match self.rng.below(12) {
                0 => self.by_hand()?,
                1 => self.another_model()?,
                2 => self.tools()?,
                3 => self.wished(),
                _ => {}
            }
        }
        self.reset()
    }

    fn at_the_start(&mut self) -> Checked {
        let name = self.engine.name();
        let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
        hold(is_name, || format!("{name:?} is no name"))?;
        hold(self.engine.transcript().is_empty(), || "something was said before anything was".to_owned())?;
        hold(self.engine.status().window == self.budget.window(), || "the window is another".to_owned())
    }

    /// Views are within the room, in order, end with the newest entry, and cost what they say.
    fn a_view(&mut self) -> Checked {
        let should = self.engine.should_fold(None);
        hold(!should.reason.is_empty(), || "it does not say why it should or should not fold".to_owned())?;
        let can_be_sent = self.engine.preflight().is_ok();
        let by_twin = self.twin.view().cloned();
        let view = match self.engine.view().cloned() {
            Ok(view) => view,
            Err(ViewError::Overflow(overflow)) => {
                hold(!can_be_sent, || "the preflight said that it can be sent".to_owned())?;
                return hold(overflow.smallest > overflow.room, || {
                    format!("nothing fits, though {} is within {}", overflow.smallest, overflow.room)
                });
            }
            Err(ViewError::Fault(fault)) => return Err(fault.to_string()),
        };
        hold(can_be_sent, || "the preflight said that it can't be sent".to_owned())?;
        hold(view.tokens <= self.budget.room(), || {
            format!("a view of {} for a room of {}", view.tokens, self.budget.room())
        })?;
        let counted = recount(self.engine.transcript(), &view, self.engine.counter());
        hold(counted == view.tokens, || format!("it costs {counted}, and says {}", view.tokens))?;
        hold(self.engine.status().tokens == view.tokens, || "the status tells of another view".to_owned())?;
        self.check_order(&view)?;
        for handle in &view.handles {
            let original = self.engine.recall(*handle, &Extent::Whole);
            hold(original.is_ok(), || format!("{handle} is in the view and recalls nothing"))?;
        }
        let n_receipts = self.engine.ledger().receipts().len();
        hold(n_receipts <= self.engine.status().n_folds, || "there are more receipts than folds".to_owned())?;
        hold(self.engine.view().ok() == Some(&view), || "looking twice shows two views".to_owned())?;
        hold(by_twin.is_ok_and(|by_twin| by_twin == view), || "what must not matter does".to_owned())
    }

    fn check_order(&self, view: &View) -> Checked {
        let entries = view.items.iter().filter_map(|item| match item {
            Item::Whole(entry) | Item::Edited(entry, _) => Some(*entry),
            Item::Note { .. } => None,
        });
        let entries: Vec<EntryId> = entries.collect();
        hold(entries.is_sorted_by(|a, b| a < b), || "entries are out of order".to_owned())?;
        let newest = EntryId::from(self.n_said - 1);
        hold(entries.last() == Some(&newest), || "the newest entry is not at the end".to_owned())
    }

    /// Some hosts tell an end at each fold, and a new id, and go on.
    fn between_sessions(&mut self) -> Checked {
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
        let n_said = self.engine.transcript().len();
        hold(n_said == self.n_said, || format!("{n_said} of {} entries are left", self.n_said))
    }

    /// A report without a number says nothing; any other may say anything.
    fn reported(&mut self) {
        self.engine.report_usage(ProviderUsage::default());
        if self.rng.percent(20) {
            let input = Tokens(self.rng.below(4_000) as u64);
            for engine in [&mut self.engine, &mut self.twin] {
                engine.report_usage(ProviderUsage { input, ..ProviderUsage::default() });
            }
        }
    }

    /// A fold by hand does something or says why not, and never makes more of it.
    fn by_hand(&mut self) -> Checked {
        let (before, has_something) = (self.engine.status(), self.engine.has_something_to_fold());
        let request = FoldRequest { force: true, focus: Some("parse_header".to_owned()), tokens: None };
        let mut fork = self.engine.fork();
        let by_fork = fork.fold(&request);
        hold(self.engine.status() == before, || "folding a fork changes the original".to_owned())?;
        let told = self.engine.fold(&request);
        hold(told.is_ok() == by_fork.is_ok(), || "a fork folds differently".to_owned())?;
        let by_twin = self.twin.fold(&request);
        hold(told.is_ok() == by_twin.is_ok(), || "two engines fold the same differently".to_owned())?;
        let Ok(told) = told else { return Ok(()) };
        let after = self.engine.status();
        hold(!told.headline.is_empty() && !told.token_line.is_empty(), || "it tells nothing".to_owned())?;
        hold(after.tokens <= before.tokens || before.tokens > self.budget.room(), || {
            format!("a fold made {} of {}", after.tokens, before.tokens)
        })?;
        match told.status {
            FoldStatus::Folded => hold(after.n_folds > before.n_folds, || "a fold is not counted".to_owned()),
            FoldStatus::Nothing => {
                hold(told.note.is_some(), || "nothing was folded, and it does not say why".to_owned())?;
                let is_same = after.tokens == before.tokens && after.n_folds == before.n_folds;
                hold(is_same, || "nothing was folded, but something changed".to_owned())?;
                hold(!has_something, || "there was something to fold".to_owned())
            }
            FoldStatus::Aborted | FoldStatus::FellBack => Err("nobody asked for a summary".to_owned()),
        }?;
        self.a_view()
    }

    /// Another window holds at once.
    fn another_model(&mut self) -> Checked {
        self.budget = Budget::with_reserve(Tokens(30 + self.rng.below(2_500) as u64), Tokens::ZERO);
        self.engine.set_budget(self.budget);
        self.twin.set_budget(self.budget);
        let status = self.engine.status();
        hold((status.window, status.room) == (self.budget.window(), self.budget.room()), || {
            format!("the window is {} after a switch to {}", status.window, self.budget.window())
        })?;
        self.a_view()
    }

    /// Tools have names of their own and schemas, and answer whatever they are asked.
    fn tools(&mut self) -> Checked {
        let tools = self.engine.tools();
        let names: BTreeSet<&str> = tools.iter().map(|tool| tool.name).collect();
        hold(names.len() == tools.len(), || format!("two tools of one name: {names:?}"))?;
        for tool in &tools {
            let schema: Option<serde_json::Value> = serde_json::from_str(tool.parameters).ok();
            let is_schema = schema.is_some_and(|schema| schema["type"] == "object");
            hold(is_schema, || format!("{} has no schema", tool.name))?;
            for arguments in ["", "null", "[]", "{}", r#"{"handle":7}"#, r#"{"handle":"000000"}"#] {
                let answer = self.engine.call_tool(tool.name, arguments);
                hold(answer.is_some_and(|answer| !answer.is_empty()), || {
                    format!("{} says nothing to {arguments}", tool.name)
                })?;
            }
        }
        let other = self.engine.call_tool("nobody_s_tool", "{}");
        hold(other.is_none(), || "it answers for a tool that is not its own".to_owned())?;
        self.a_view()
    }

    fn wished(&mut self) {
        let entry = EntryId::from(self.rng.below(self.n_said));
        let event = match self.rng.below(3) {
            0 => Event::Pinned(entry),
            1 => Event::Unpinned(entry),
            _ => Event::Focused("timeout of the worker".to_owned()),
        };
        self.engine.apply(event.clone());
        self.twin.apply(event);
    }

    /// After a reset it is as new, for the window that it has by now.
    fn reset(&mut self) -> Checked {
        self.engine.change_session(&SessionTransition::Reset);
        let status = self.engine.status();
        hold(self.engine.transcript().is_empty(), || "a reset leaves something".to_owned())?;
        hold((status.n_folds, status.window) == (0, self.budget.window()), || {
            format!("a reset leaves {status:?}")
        })
    }
}

fn hold(is_held: bool, what: impl FnOnce() -> String) -> Checked {
    if is_held { Ok(()) } else { Err(what()) }
}

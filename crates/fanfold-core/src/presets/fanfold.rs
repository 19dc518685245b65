//! The policy `fanfold`: user text stays, folds are rare and deep, and a digest keeps the most valuable lines.

use crate::actions::tool_rule::{ToolFold, ToolRule};
use crate::fold::economy::Economy;
use crate::fold::passes::*;
use crate::fold::policy::{Digest, Head, Policy, Reach, Stage, Tail, Users};
use crate::model::budget::Strategy;
use crate::model::tokens::Tokens;

/// A view above this share of the room needs another fold soon, in per mille.
const FULL: u32 = 850;

impl Policy {
    /// The policy of fanfold.
    pub fn fanfold() -> Policy {
        Policy {
            strategy: Strategy::Light,
            economy: Some(economy()),
            low_mark: 565,
            arrival: 330,
            tail: Tail { share: 40, steps: 1, results: 0, ceiling: 1500 },
            head: Head::FirstTurn { steps: 1, share: 20 },
            digest: Digest::Segments { share: 550, most: Tokens(40_000), behind: 3 },
            stages: stages(),
            tools: plan_tools(),
            anchors: true,
            rests: true,
            ..Policy::base("fanfold")
        }
    }
}

fn economy() -> Economy {
    Economy {
        tail: Tokens(1_500),
        steps: 3,
        keep: 245,
        usual: Tokens(6_000),
        least: Tokens(5_000),
        patience: 1400,
        horizon: 12,
        again: Tokens(200),
        limit: 1000,
    }
}

/// The stages, from the smallest loss to the largest.
fn stages() -> Vec<Stage> {
    // Measured: of what is used later, a segment keeps more than condensed results do. So condensing comes after it, for
    // steps that must stay.
    let first = [TOOL_RULES, DEDUPE, MEDIA, REASONING, ANCHOR, DIGEST];
    let more = [OVERTAKEN, ARGUMENTS, CONDENSE, ONE_LINE];
    let smaller = |name, tail| Stage {
        tail,
        above: FULL,
        goal: Some(FULL),
        ..Stage::new(name, [&first[..], &more].concat())
    };
    // The remaining stages run only if the view does not fit.
    let if_too_large = |name, tail, passes| Stage {
        tail,
        reach: Reach { tail: true, ..Reach::default() },
        above: 1000,
        goal: Some(FULL),
        ..Stage::new(name, passes)
    };
    let users = |name, users, passes| {
        let stage = if_too_large(name, 0, passes);
        Stage { reach: Reach { users, ..stage.reach }, ..stage }
    };
    // As few images as possible.
    let images = if_too_large("newest images", 0, vec![MEDIA]);
    let images = Stage { reach: Reach { images: true, ..images.reach }, goal: Some(1000), ..images };
    vec![
        Stage::new("normal", first.to_vec()),
        smaller("smaller tail", 600),
        smaller("smallest tail", 400),
        if_too_large("newest steps", 400, vec![DIGEST, SQUEEZE]),
        if_too_large("minimal", 0, [&first[..], &[SQUEEZE]].concat()),
        images,
        users("pasted blocks", Users::Pastes, vec![USER_TEXT]),
        users("oldest user messages", Users::Oldest, vec![USER_TEXT]),
        // User messages that are in a segment by now may be merged further.
        users("older user messages", Users::Older, vec![USER_TEXT, DIGEST]),
        users("newest user message", Users::Newest, vec![USER_TEXT]),
    ]
}

/// Rules for the planning tools of common agents: only the newest state of a plan has a value.
fn plan_tools() -> Vec<ToolRule> {
    let tools = ["TodoWrite", "update_plan", "todo", "write_todos", "todo_write"];
    let rule = |tool: &str| ToolRule { tool: tool.to_owned(), fold: ToolFold::Always, ..ToolRule::default() };
    tools.into_iter().map(rule).collect()
}

//! The policy `fanfold`: user text stays, folds are rare and deep, and a record accounts for folded steps.

use crate::actions::tool_rule::{ToolFold, ToolRule};
use crate::fold::economy::Economy;
use crate::fold::passes::*;
use crate::fold::policy::{Digest, Head, Policy, Reach, Stage, Tail, UserTextReach};
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
            low_mark: 616,
            arrival_share: 330,
            tail: Tail { share: 22, steps: 1, results: 0, ceiling: 1500 },
            middle_share: 10,
            head: Head::FirstTurn { steps: 1, share: 20 },
            digest: Digest::Segments { share: 600, max_tokens: Tokens(40_000), max_appended: 3 },
            stages: stages(),
            tools: plan_tools(),
            keeps_anchor: true,
            rests: true,
            ..Policy::base("fanfold")
        }
    }
}

fn economy() -> Economy {
    Economy {
        tail: Tokens(3_500),
        min_steps: 3,
        kept_share: 245,
        full_share_limit: Tokens(6_000),
        min_saving: Tokens(5_000),
        delay: 2000,
        max_payback_requests: 12,
        min_repeat: Tokens(200),
        cost_limit: 1000,
        loss_weight: 1000,
    }
}

/// The stages, from the smallest loss to the largest.
fn stages() -> Vec<Stage> {
    // Measured: of what is used later, a segment keeps more than condensed results do. So condensing comes after it,
    // for steps that must stay.
    let first = [TOOL_RULES, DEDUPE, MEDIA, REASONING, ANCHOR, MIDDLE, DIGEST];
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
    let user_stage = |name, user_text, passes| {
        let stage = if_too_large(name, 0, passes);
        Stage { reach: Reach { user_text, ..stage.reach }, ..stage }
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
        user_stage("pasted blocks", UserTextReach::PastedBlocks, vec![USER_TEXT]),
        user_stage("oldest user messages", UserTextReach::Oldest, vec![USER_TEXT]),
        // User messages that are in a segment by now may be merged further.
        user_stage("older user messages", UserTextReach::Older, vec![USER_TEXT, DIGEST]),
        user_stage("newest user message", UserTextReach::Newest, vec![USER_TEXT]),
    ]
}

/// Rules for the planning tools of common agents: only the newest state of a plan has a value.
fn plan_tools() -> Vec<ToolRule> {
    let tools = ["TodoWrite", "update_plan", "todo", "write_todos", "todo_write"];
    let rule = |tool: &str| ToolRule { tool: tool.to_owned(), fold: ToolFold::Always, ..ToolRule::default() };
    tools.into_iter().map(rule).collect()
}

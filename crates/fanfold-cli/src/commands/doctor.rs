//! `fanfold doctor`: checks the store.

use clap::Args;
use fanfold_engine::{SessionEngine, store_message};
use fanfold_store::{CheckMode, ReadableSessions, RepairStatus, SessionFilter, SessionId};
use serde_json::{Value, json};

use crate::failure::{Failure, Result};
use crate::settings::{Options, StoreFlags};
use crate::setup::terms::restore;
use crate::store;
use crate::terminal::{self, Reporter, Text, count, paint, style, text};

/// Check the store: every message, every fold, the index
#[derive(Debug, Args)]
#[command(after_help = "Example: fanfold doctor --repair")]
pub(crate) struct DoctorArgs {
    /// Repair what can be repaired
    #[arg(long)]
    repair: bool,
    /// Also rebuild every request and compare it with what was sent
    #[arg(long)]
    requests: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(super) store: StoreFlags,
}

/// The results of the check.
#[derive(Default)]
struct Health {
    n_sessions: usize,
    /// The stored messages; one that several sessions share counts once.
    n_messages: u64,
    n_handles: usize,
    n_requests: usize,
    /// The problems, and whether each was repaired.
    findings: Vec<(String, RepairStatus)>,
}

pub(crate) fn run(args: &DoctorArgs, options: &Options, _: Reporter) -> Result<()> {
    let mode = if args.repair { CheckMode::Repair } else { CheckMode::Report };
    let engine = store::open_to_check(options, mode).map_err(without_doctor_hint)?;
    let mut health = Health::default();
    let found = engine.store().check(mode).map_err(Failure::from).map_err(without_doctor_hint)?;
    health.findings.extend(found.iter().map(|finding| (finding.to_string(), finding.repair)));
    // An unreadable store has findings.
    health.n_messages = engine.store().size().map_or(0, |size| size.n_nodes);
    let ReadableSessions { rows, errors: unread } = engine.readable_sessions(&SessionFilter::default());
    // Findings explain why sessions are unreadable.
    if found.is_empty() {
        health.findings.extend(unread.iter().map(|error| (store_message(error), RepairStatus::Impossible)));
    }
    health.n_sessions += unread.len();
    for row in &rows {
        health.n_sessions += 1;
        let location = format!("session {}", row.id);
        let is_reported = found.iter().any(|finding| finding.location == location);
        // A damaged session does not prevent the others from being checked.
        if let Err(failure) = check_session(&engine, &row.id, args, &mut health)
            && !is_reported
        {
            health.findings.push((format!("{location}: {failure}"), RepairStatus::Impossible));
        }
    }
    report(&health, args)
}

/// A failure without the hint to run this command.
fn without_doctor_hint(failure: Failure) -> Failure {
    let is_circular = failure.hint().is_some_and(|hint| hint.contains("fanfold doctor"));
    if !is_circular {
        return failure;
    }
    let hint = "restore the file from a backup; `sqlite3 FILE .recover` may still read some of it";
    Failure::new(failure.to_string(), hint)
}

/// Checks the handles of a session, and its requests if wanted.
fn check_session(
    engine: &SessionEngine,
    id: &SessionId,
    args: &DoctorArgs,
    health: &mut Health,
) -> Result<()> {
    let (n_handles, broken) = engine.check_handles(id)?;
    health.n_handles += n_handles;
    for handle in broken {
        let text = format!("session {id}: the handle {handle} does not recall its original");
        health.findings.push((text, RepairStatus::Impossible));
    }
    if args.requests { check_requests(engine, id, health) } else { Ok(()) }
}

/// Rebuilds every request of a session.
fn check_requests(engine: &SessionEngine, id: &SessionId, health: &mut Health) -> Result<()> {
    let n = engine.requests(id)?.len();
    for number in 1..=n {
        health.n_requests += 1;
        let rebuilt = engine.rebuild(id, number, &restore)?;
        if !rebuilt.is_same {
            let text = format!("session {id}: request {number} cannot be rebuilt byte for byte");
            health.findings.push((text, RepairStatus::Impossible));
        }
    }
    Ok(())
}

fn report(health: &Health, args: &DoctorArgs) -> Result<()> {
    let n_left = health.findings.iter().filter(|(_, repair)| *repair != RepairStatus::Done).count();
    if args.json {
        let findings: Value = health
            .findings
            .iter()
            .map(|(text, repair)| json!({ "text": text, "repaired": *repair == RepairStatus::Done }))
            .collect();
        terminal::print_json(
            &json!({ "sessions": health.n_sessions, "messages": health.n_messages, "handles": health.n_handles,
            "requests": health.n_requests, "findings": findings, "well": n_left == 0 }),
        )?;
    } else {
        let mut page = Text::default();
        for (finding, repair) in &health.findings {
            let mark = if *repair == RepairStatus::Done { style::HINT } else { style::WARNING };
            page.push_line(text![paint(mark, "-"), " ", finding]);
        }
        let requests =
            if args.requests { format!(", {}", count(health.n_requests, "request")) } else { String::new() };
        let (sessions, handles) = (count(health.n_sessions, "session"), count(health.n_handles, "handle"));
        page.push(format!("{sessions}, {handles}{requests}: "));
        page.push(if n_left == 0 { "no problems\n" } else { "see above\n" });
        terminal::print_page(page)?;
    }
    if n_left == 0 {
        return Ok(());
    }
    let is_repairable = health.findings.iter().any(|(_, repair)| *repair == RepairStatus::Possible);
    let hint = if is_repairable {
        "`fanfold doctor --repair` repairs what it can"
    } else {
        "export intact sessions with `fanfold sessions export --all`"
    };
    Err(Failure::new(format!("{} found", count(n_left, "problem")), hint))
}

//! `fanfold doctor`: is everything there, and as it was?

use fanfold_engine::{Engine, store_words};
use fanfold_store::{CheckMode, ReadableSessions, RepairStatus, SessionFilter, SessionId};
use serde_json::{Value, json};

use crate::choose::terms_of;
use crate::failure::Failure;
use crate::flags::DoctorArgs;
use crate::settings::Options;
use crate::store::{engine, engine_to_read, failed, store_failed};
use crate::terminal::{self, count, paint, style};

/// What was looked at, and what is wrong.
#[derive(Default)]
struct Health {
    n_sessions: usize,
    n_handles: usize,
    n_requests: usize,
    /// What is wrong, and whether it still is.
    findings: Vec<(String, RepairStatus)>,
}

pub(crate) fn run(args: &DoctorArgs, options: &Options) -> anyhow::Result<()> {
    let opened = if args.repair { engine(options) } else { engine_to_read(options) };
    let engine = opened.map_err(beyond)?;
    let care = if args.repair { CheckMode::Repair } else { CheckMode::Report };
    let mut health = Health::default();
    let found = engine.store().check(care).map_err(|error| store_failed(&error)).map_err(beyond)?;
    health.findings.extend(found.iter().map(|finding| (finding.to_string(), finding.repair)));
    let ReadableSessions { rows, broken: unread } = engine.readable(&SessionFilter::default());
    // Where something is found, that is why.
    if found.is_empty() {
        health.findings.extend(unread.iter().map(|error| (store_words(error), RepairStatus::Impossible)));
    }
    health.n_sessions += unread.len();
    for row in &rows {
        health.n_sessions += 1;
        let place = format!("session {}", row.id);
        let is_told = found.iter().any(|finding| finding.location == place);
        // What is wrong with one does not keep the others from being looked at.
        if let Err(failure) = session(&engine, &row.id, args, &mut health)
            && !is_told
        {
            health.findings.push((format!("{place}: {failure}"), RepairStatus::Impossible));
        }
    }
    tell(&health, args)
}

/// Why there is nothing to look at, without the advice to look.
fn beyond(failure: Failure) -> Failure {
    let is_circular = failure.hint().is_some_and(|hint| hint.contains("fanfold doctor"));
    if !is_circular {
        return failure;
    }
    let hint = "put a copy of the file in its place; `sqlite3 FILE .recover` may still read some of it";
    Failure::new(failure.to_string(), hint)
}

/// Looks whether a session opens: its handles, and its requests if that is asked for.
fn session(engine: &Engine, id: &SessionId, args: &DoctorArgs, health: &mut Health) -> Result<(), Failure> {
    let (n_handles, broken) = engine.check_handles(id).map_err(|error| store_failed(&error))?;
    health.n_handles += n_handles;
    for handle in broken {
        let text = format!("session {id}: the handle {handle} does not open what it was given for");
        health.findings.push((text, RepairStatus::Impossible));
    }
    if args.requests { requests(engine, id, health) } else { Ok(()) }
}

/// Makes every request of a session again.
fn requests(engine: &Engine, id: &SessionId, health: &mut Health) -> Result<(), Failure> {
    let n = engine.requests(id).map_err(|error| store_failed(&error))?.len();
    for number in 1..=n {
        health.n_requests += 1;
        let rebuilt = engine.rebuild(id, number, &terms_of).map_err(|error| failed(&error))?;
        if !rebuilt.is_same {
            let text = format!("session {id}: request {number} is not made again byte for byte");
            health.findings.push((text, RepairStatus::Impossible));
        }
    }
    Ok(())
}

fn tell(health: &Health, args: &DoctorArgs) -> anyhow::Result<()> {
    let n_left = health.findings.iter().filter(|(_, cure)| *cure != RepairStatus::Done).count();
    if args.json {
        let findings: Value = health
            .findings
            .iter()
            .map(|(text, cure)| json!({ "text": text, "repaired": *cure == RepairStatus::Done }))
            .collect();
        let all = json!({ "sessions": health.n_sessions, "handles": health.n_handles,
            "requests": health.n_requests, "findings": findings, "well": n_left == 0 });
        terminal::data(&format!("{all:#}\n"))?;
    } else {
        let mut page = String::new();
        for (text, cure) in &health.findings {
            let mark = if *cure == RepairStatus::Done { style::HINT } else { style::WARNING };
            page.push_str(&format!("{} {text}\n", paint(mark, "-")));
        }
        let requests =
            if args.requests { format!(", {}", count(health.n_requests, "request")) } else { String::new() };
        let (sessions, handles) = (count(health.n_sessions, "session"), count(health.n_handles, "handle"));
        page.push_str(&format!("{sessions}, {handles}{requests}: "));
        page.push_str(if n_left == 0 { "all is well\n" } else { "see above\n" });
        terminal::page(&page)?;
    }
    if n_left == 0 {
        return Ok(());
    }
    let is_curable = health.findings.iter().any(|(_, cure)| *cure == RepairStatus::Possible);
    let hint = if is_curable {
        "`fanfold doctor --repair` repairs what it can"
    } else {
        "export what is whole with `fanfold sessions export --all`"
    };
    Err(Failure::new(format!("{n_left} things are not as they should be"), hint).into())
}

//! `fanfold doctor`: is everything there, and as it was?

use fanfold_engine::Engine;
use fanfold_store::{Care, Cure, Filter};
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
    findings: Vec<(String, Cure)>,
}

pub(crate) fn run(args: &DoctorArgs, options: &Options) -> anyhow::Result<()> {
    let engine = if args.repair { engine(options)? } else { engine_to_read(options)? };
    let care = if args.repair { Care::Repair } else { Care::Check };
    let mut health = Health::default();
    let found = engine.store().examine(care).map_err(|error| store_failed(&error))?;
    health.findings.extend(found.iter().map(|finding| (finding.to_string(), finding.cure)));
    let rows = engine.store().sessions(&Filter::default()).map_err(|error| store_failed(&error))?;
    for row in &rows {
        health.n_sessions += 1;
        let (n_handles, broken) = engine.check_handles(&row.id).map_err(|error| store_failed(&error))?;
        health.n_handles += n_handles;
        for handle in broken {
            let text = format!("session {}: the handle {handle} does not open what it was given for", row.id);
            health.findings.push((text, Cure::None));
        }
        if args.requests {
            requests(&engine, &row.id, &mut health)?;
        }
    }
    tell(&health, args)
}

/// Makes every request of a session again.
fn requests(engine: &Engine, id: &fanfold_store::SessionId, health: &mut Health) -> anyhow::Result<()> {
    let n = engine.requests(id).map_err(|error| store_failed(&error))?.len();
    for number in 1..=n {
        health.n_requests += 1;
        let rebuilt = engine.rebuild(id, number, &terms_of).map_err(|error| failed(&error))?;
        if !rebuilt.is_same {
            let text = format!("session {id}: request {number} is not made again byte for byte");
            health.findings.push((text, Cure::None));
        }
    }
    Ok(())
}

fn tell(health: &Health, args: &DoctorArgs) -> anyhow::Result<()> {
    let n_left = health.findings.iter().filter(|(_, cure)| *cure != Cure::Done).count();
    if args.json {
        let findings: Value = health
            .findings
            .iter()
            .map(|(text, cure)| json!({ "text": text, "repaired": *cure == Cure::Done }))
            .collect();
        let all = json!({ "sessions": health.n_sessions, "handles": health.n_handles,
            "requests": health.n_requests, "findings": findings, "well": n_left == 0 });
        terminal::data(&format!("{all:#}\n"))?;
    } else {
        let mut page = String::new();
        for (text, cure) in &health.findings {
            let mark = if *cure == Cure::Done { style::HINT } else { style::WARNING };
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
    let is_curable = health.findings.iter().any(|(_, cure)| *cure == Cure::Possible);
    let hint = if is_curable {
        "`fanfold doctor --repair` repairs what it can"
    } else {
        "export what is whole with `fanfold sessions export --all`"
    };
    Err(Failure::new(format!("{n_left} things are not as they should be"), hint).into())
}

//! Sessions written down.

use fanfold_engine::{Engine, store_words};
use fanfold_store::{SessionFilter, SessionRow};

use super::sharegpt::{self, Secrets};
use crate::commands::Say;
use crate::failure::Failure;
use crate::flags::{ExportArgs, ExportFormat};
use crate::settings::Options;
use crate::store::{engine_to_read, failed, find, refuse_to_replace};
use crate::terminal::count;
use crate::{output, terminal};

pub(crate) fn run(args: &ExportArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    let engine = engine_to_read(options)?;
    let mut rows = Vec::new();
    let mut failures = Vec::new();
    if args.all {
        let readable = engine.readable(&SessionFilter::default());
        rows = readable.rows;
        failures.extend(readable.broken.iter().map(store_words));
        // Those that came from others come after them, so that an import finds where they belong.
        rows.sort_by(|a, b| (a.started_at, &a.id).cmp(&(b.started_at, &b.id)));
    }
    for name in &args.sessions {
        rows.push(find(&engine, name)?);
    }
    if args.format == ExportFormat::Raw && rows.len() != 1 {
        let message = format!("a raw export is one body, and {} sessions are named", rows.len());
        return Err(Failure::new(message, "name one session, or use --format jsonl").into());
    }
    if let Some(path) = &args.output {
        refuse_to_replace(options, path)?;
    }
    let mut text = String::new();
    let mut n_written = 0;
    for row in &rows {
        match written(&engine, row, args) {
            Ok(written) => {
                n_written += 1;
                text.push_str(&written);
            }
            // What is broken in one does not keep the others here.
            Err(failure) if args.all => failures.push(format!("session {}: {failure}", row.id)),
            Err(failure) => return Err(failure),
        }
    }
    match &args.output {
        Some(path) => {
            output::write_file(path, text.as_bytes())?;
            say.note(&format!("{} written to {}\n", count(n_written, "session"), path.display()));
        }
        None => terminal::data(&text)?,
    }
    if failures.is_empty() {
        return Ok(());
    }
    let message = format!("{} not written: {}", count(failures.len(), "session"), failures.join("; "));
    Err(Failure::new(message, "`fanfold doctor` tells what is wrong with the store").into())
}

fn written(engine: &Engine, row: &SessionRow, args: &ExportArgs) -> anyhow::Result<String> {
    Ok(match args.format {
        ExportFormat::Jsonl => engine.export_line(&row.id).map_err(|error| failed(&error))? + "\n",
        ExportFormat::Sharegpt => {
            let body = engine.body(&row.id).map_err(|error| failed(&error))?;
            let secrets = if args.with_secrets { Secrets::Keep } else { Secrets::Redact };
            sharegpt::line(row, &body, secrets)? + "\n"
        }
        ExportFormat::Raw => engine.body(&row.id).map_err(|error| failed(&error))?,
    })
}

//! Sessions written down.

use fanfold_store::Filter;

use super::sharegpt;
use crate::commands::Say;
use crate::failure::Failure;
use crate::flags::{ExportArgs, ExportFormat};
use crate::settings::Options;
use crate::store::{engine_to_read, failed, find, refuse_to_replace, store_failed};
use crate::{output, terminal};

pub(crate) fn run(args: &ExportArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    let engine = engine_to_read(options)?;
    let mut rows = Vec::new();
    if args.all {
        rows = engine.store().sessions(&Filter::default()).map_err(|error| store_failed(&error))?;
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
    for row in &rows {
        match args.format {
            ExportFormat::Jsonl => {
                text.push_str(&engine.export_line(&row.id).map_err(|error| failed(&error))?);
                text.push('\n');
            }
            ExportFormat::Sharegpt => {
                let body = engine.body(&row.id).map_err(|error| failed(&error))?;
                text.push_str(&sharegpt::line(row, &body)?);
                text.push('\n');
            }
            ExportFormat::Raw => text = engine.body(&row.id).map_err(|error| failed(&error))?,
        }
    }
    match &args.output {
        Some(path) => {
            output::write_file(path, text.as_bytes())?;
            say.note(&format!("{} sessions written to {}\n", rows.len(), path.display()));
            Ok(())
        }
        None => terminal::data(&text),
    }
}

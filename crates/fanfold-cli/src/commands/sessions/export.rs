//! Exports sessions.

use std::path::PathBuf;

use clap::Args;
use fanfold_engine::{SessionEngine, store_message};
use fanfold_store::{SessionFilter, SessionRow};

use super::sharegpt::{self, Secrets};
use crate::failure::{Failure, Result};
use crate::files::output;
use crate::settings::Options;
use crate::store;
use crate::terminal::{self, Reporter, count};

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// Sessions: numbers in the list, ids or their prefixes, titles
    #[arg(required_unless_present = "all")]
    sessions: Vec<String>,
    /// Export every session
    #[arg(long, conflicts_with = "sessions")]
    all: bool,
    /// Export format
    #[arg(short = 'f', long = "format", value_enum, default_value_t = ExportFormat::Jsonl)]
    format: ExportFormat,
    /// Keep keys, tokens and passwords in a ShareGPT export; the other formats are exact and always contain them
    #[arg(long)]
    with_secrets: bool,
    /// Output file [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ExportFormat {
    /// One line per session with its whole history, exact; readable by `import`
    Jsonl,
    /// One line per session in the ShareGPT format, without secrets
    Sharegpt,
    /// The request body as the client would send it now, byte for byte
    Raw,
}

pub(super) fn run(args: &ExportArgs, options: &Options, reporter: Reporter) -> Result<()> {
    let engine = store::open_read_only(options)?;
    let mut rows = Vec::new();
    let mut failures = Vec::new();
    if args.all {
        let readable = engine.readable_sessions(&SessionFilter::default());
        rows = readable.rows;
        failures.extend(readable.errors.iter().map(store_message));
        // Sessions follow those they came from, so that an import finds their parents.
        rows.sort_by(|a, b| (a.started_at, &a.id).cmp(&(b.started_at, &b.id)));
    }
    for name in &args.sessions {
        rows.push(engine.find(name)?);
    }
    if args.format == ExportFormat::Raw && rows.len() != 1 {
        let message = format!("a raw export is one body, and {} sessions are named", rows.len());
        return Err(Failure::new(message, "name one session, or use --format jsonl"));
    }
    if let Some(path) = &args.output {
        store::refuse_to_overwrite(options, path)?;
    }
    let mut text = String::new();
    let mut n_written = 0;
    for row in &rows {
        match export(&engine, row, args) {
            Ok(exported) => {
                n_written += 1;
                text.push_str(&exported);
            }
            // A damaged session does not prevent the export of the others.
            Err(failure) if args.all => failures.push(format!("session {}: {failure}", row.id)),
            Err(failure) => return Err(failure),
        }
    }
    match &args.output {
        Some(path) => {
            output::write_file(path, text.as_bytes())?;
            reporter.line(format!("{} written to {}", count(n_written, "session"), path.display()));
        }
        None => terminal::print_body(&text)?,
    }
    if failures.is_empty() {
        return Ok(());
    }
    let message = format!("{} not written: {}", count(failures.len(), "session"), failures.join("; "));
    Err(Failure::new(message, "`fanfold doctor` checks the store"))
}

fn export(engine: &SessionEngine, row: &SessionRow, args: &ExportArgs) -> Result<String> {
    Ok(match args.format {
        ExportFormat::Jsonl => engine.export_line(&row.id)? + "\n",
        ExportFormat::Sharegpt => {
            let body = engine.body(&row.id)?;
            let secrets = if args.with_secrets { Secrets::Keep } else { Secrets::Redact };
            sharegpt::line(row, &body, secrets)? + "\n"
        }
        ExportFormat::Raw => engine.body(&row.id)?,
    })
}

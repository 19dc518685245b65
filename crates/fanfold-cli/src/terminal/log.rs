//! Log lines on stderr, for people or as JSON.
//!
//! Only events of fanfold itself are logged: at verbose levels, HTTP libraries log headers, which hold keys.

use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use fanfold_store::Millis;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::controls::{escape_json, visible};

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Human,
    /// A JSON object per line.
    Json,
    /// No log lines.
    Off,
}

/// The log level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum LogLevel {
    /// Errors and warnings.
    Warn,
    /// Also a line for each request.
    #[default]
    Info,
    /// Also the stages of each request.
    Debug,
    /// Everything.
    Trace,
}

/// Starts logging. Later calls have no effect.
pub(crate) fn start(format: LogFormat, level: LogLevel) {
    let level = match level {
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let ours = Targets::new().with_target("fanfold", level);
    let layer = tracing_subscriber::fmt::layer().with_ansi(false);
    let layer = match format {
        LogFormat::Human => layer.with_writer(io::stderr).event_format(HumanFormat).boxed(),
        LogFormat::Json => layer
            .with_writer(|| EscapedJson(io::stderr()))
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .boxed(),
        LogFormat::Off => return,
    };
    // A panic message may quote user data, so only its location is logged.
    std::panic::set_hook(Box::new(|panic| {
        let at = panic.location().map_or(String::new(), ToString::to_string);
        tracing::error!(target: "fanfold", at, "fanfold panicked");
    }));
    let _ = tracing_subscriber::registry().with(layer.with_filter(ours)).try_init();
}

/// One line per event, beginning with the time. Lines about requests have a fixed layout.
struct HumanFormat;

impl<S, N> FormatEvent<S, N> for HumanFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut record = EventRecord::default();
        event.record(&mut record);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let moment = Millis(now.as_millis() as i64).to_string();
        let level = event.metadata().level();
        let line = if event.metadata().target() == "fanfold::request" {
            record.request()
        } else if *level == Level::INFO {
            record.plain()
        } else {
            format!("{}: {}", level.to_string().to_lowercase(), record.plain())
        };
        // Paths, headers and names of models are of a client's choice, and must not start a new line either.
        let line = line.replace(['\n', '\t'], " ");
        writeln!(out, "{} {}", moment.split(' ').next_back().unwrap_or_default(), visible(&line))
    }
}

/// Writes lines of JSON without control characters.
struct EscapedJson<W>(W);

impl<W: Write> Write for EscapedJson<W> {
    /// Receives one whole line at a time.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write_all(escape_json(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The message and the fields of an event.
#[derive(Default)]
struct EventRecord {
    message: String,
    fields: Vec<(&'static str, String)>,
}

impl EventRecord {
    fn get(&self, name: &str) -> &str {
        self.fields.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    fn plain(&self) -> String {
        let mut line = self.message.clone();
        for (name, value) in self.fields.iter().filter(|(_, value)| !value.is_empty()) {
            let _ = write!(line, " {name}={value}");
        }
        line.trim_start().to_owned()
    }

    fn request(&self) -> String {
        let mut outcome = self.get("outcome").replace('_', " ");
        if !self.get("why").is_empty() {
            outcome = format!("{outcome} ({})", self.get("why"));
        }
        let status = match (self.get("status"), self.get("exit")) {
            (status, "done") => status.to_owned(),
            ("0", exit) => exit.replace('_', " "),
            (status, exit) => format!("{status} {}", exit.replace('_', " ")),
        };
        let session = if self.get("session").is_empty() { "-" } else { self.get("session") };
        let parts = [
            format!("{session} {} {}", self.get("format"), self.get("model")).trim_end().to_owned(),
            format!("{outcome} {}", self.message).trim_end().to_owned(),
            format!("ours {} ms", self.get("ours_ms")),
            format!("first byte {} ms", self.get("first_byte_ms")),
            format!("took {} ms", self.get("took_ms")),
            status,
        ];
        parts.join("  ")
    }
}

impl Visit for EventRecord {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.to_owned());
    }
}

impl EventRecord {
    fn add(&mut self, field: &Field, value: String) {
        match field.name() {
            "message" => self.message = value,
            name => self.fields.push((name, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_one_line_in_fixed_order() {
        let fields = [
            ("session", "20261115-a"),
            ("format", "anthropic"),
            ("model", "claude-opus-5-5"),
            ("outcome", "as_it_came"),
            ("why", "store"),
            ("ours_ms", "2.1"),
            ("first_byte_ms", "812"),
            ("took_ms", "3200"),
            ("status", "200"),
            ("exit", "client_gone"),
        ];
        let fields = fields.into_iter().map(|(name, value)| (name, value.to_owned())).collect();
        let record = EventRecord { message: "10 -> 10 tokens".to_owned(), fields };
        assert_eq!(
            record.request(),
            "20261115-a anthropic claude-opus-5-5  as it came (store) 10 -> 10 tokens  ours 2.1 ms  \
             first byte 812 ms  took 3200 ms  200 client gone"
        );
    }
}

//! Lines about what happens, on stderr: for people, or as JSON for programs.
//!
//! Only what fanfold itself says is let through. Libraries for HTTP write whole headers down when they are asked to be
//! talkative, and those hold keys.

use std::fmt::{self, Write as _};
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

/// What log lines look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Look {
    /// For people.
    #[default]
    Human,
    /// A JSON object per line.
    Json,
    /// None.
    Off,
}

/// How much is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Talk {
    /// What went wrong.
    Warn,
    /// A line for each request, too.
    #[default]
    Info,
    /// What happens to each request, too.
    Debug,
    /// Everything.
    Trace,
}

/// Lets log lines out from now on.
pub(crate) fn start(look: Look, talk: Talk) {
    let level = match talk {
        Talk::Warn => LevelFilter::WARN,
        Talk::Info => LevelFilter::INFO,
        Talk::Debug => LevelFilter::DEBUG,
        Talk::Trace => LevelFilter::TRACE,
    };
    let ours = Targets::new().with_target("fanfold", level);
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let layer = match look {
        Look::Human => layer.event_format(ForPeople).boxed(),
        Look::Json => layer.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
        Look::Off => return,
    };
    // What a panic says may quote what was being read; where it happened is enough.
    std::panic::set_hook(Box::new(|panic| {
        let at = panic.location().map_or(String::new(), ToString::to_string);
        tracing::error!(target: "fanfold", at, "something of fanfold's failed");
    }));
    // A second start leaves the first one as it is.
    let _ = tracing_subscriber::registry().with(layer.with_filter(ours)).try_init();
}

/// One line per event, the time first. A request's line says what matters in a fixed order.
struct ForPeople;

impl<S, N> FormatEvent<S, N> for ForPeople
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut said = Said::default();
        event.record(&mut said);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let moment = Millis(now.as_millis() as i64).to_string();
        let level = event.metadata().level();
        let line = if event.metadata().target() == "fanfold::request" {
            said.request()
        } else if *level == Level::INFO {
            said.plain()
        } else {
            format!("{}: {}", level.to_string().to_lowercase(), said.plain())
        };
        writeln!(out, "{} {line}", moment.split(' ').next_back().unwrap_or_default())
    }
}

/// What an event says.
#[derive(Default)]
struct Said {
    message: String,
    fields: Vec<(&'static str, String)>,
}

impl Said {
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
        let mut left = self.get("outcome").replace('_', " ");
        if !self.get("why").is_empty() {
            left = format!("{left} ({})", self.get("why"));
        }
        let status = match (self.get("status"), self.get("exit")) {
            (status, "done") => status.to_owned(),
            ("0", exit) => exit.replace('_', " "),
            (status, exit) => format!("{status} {}", exit.replace('_', " ")),
        };
        let session = if self.get("session").is_empty() { "-" } else { self.get("session") };
        let parts = [
            format!("{session} {} {}", self.get("format"), self.get("model")).trim_end().to_owned(),
            format!("{left} {}", self.message).trim_end().to_owned(),
            format!("ours {} ms", self.get("ours_ms")),
            format!("first byte {} ms", self.get("first_byte_ms")),
            format!("took {} ms", self.get("took_ms")),
            status,
        ];
        parts.join("  ")
    }
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.take(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        // A value must not look like a line of its own.
        self.take(field, value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect());
    }
}

impl Said {
    fn take(&mut self, field: &Field, value: String) {
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
    fn a_request_is_one_line_in_a_fixed_order() {
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
        let said = Said { message: "10 -> 10 tokens".to_owned(), fields };
        assert_eq!(
            said.request(),
            "20261115-a anthropic claude-opus-5-5  as it came (store) 10 -> 10 tokens  ours 2.1 ms  \
             first byte 812 ms  took 3200 ms  200 client gone"
        );
    }
}

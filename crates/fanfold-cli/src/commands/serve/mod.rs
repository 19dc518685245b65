//! `fanfold serve`: the proxy, alone or with a client that it starts.

mod proxy_host; //     stores and terms for the proxy
mod addresses; //      where it listens, and where it sends requests
mod codex; //          the upstream in Codex's own settings
mod client_process; // a client with its base URLs set

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args};
use fanfold_engine::{Mode, store_message};
use fanfold_mcp::{AccessRules, Server as McpServer, ServerSettings, http_service};
use fanfold_memory::EventCallback;
use fanfold_proxy::meter::{Collector, Meter};
use fanfold_proxy::{Config, Limits, ProxyMemory, Recall, Running, ServeError, Token, serve};
use fanfold_store::StoreError;
use tokio::runtime::Runtime;

use self::addresses::SelectedUpstreams;
pub(super) use self::addresses::parse_address;
use self::client_process::ProxyAddress;
use self::codex::Codex;
use self::proxy_host::ProxyHost;
use super::memory;
use super::search::OtherProfiles;
use crate::failure::{Failure, Result, not_read};
use crate::settings::{FoldFlags, Options, StoreFlags};
use crate::setup::terms;
use crate::store;
use crate::terminal::log::{self, LogFormat, LogLevel};
use crate::terminal::signals::Signals;
use crate::terminal::{Reporter, count, paint, style, text};

const HELP: &str = "\
Point a client's base URL at the proxy; it needs no other change:

  ANTHROPIC_BASE_URL=http://127.0.0.1:7744 claude
  OPENAI_BASE_URL=http://127.0.0.1:7744/v1 my-agent

or let fanfold start the client, on a free port, and end with it:

  fanfold serve -- claude
  fanfold serve -- codex exec \"fix the build\"

Requests go to api.openai.com or api.anthropic.com, depending on their path; --upstream sets
one address for all. The client's credentials are passed on and not stored. If fanfold fails,
the request is sent unchanged. /fanfold/health, /fanfold/ready, /fanfold/metrics and
/fanfold/status report the state of the proxy; `fanfold top` shows it.";

/// Run a proxy that folds requests to a model provider
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ServeArgs {
    /// Address to listen on, or a port of this machine; 0 selects a free port [default: 127.0.0.1:7744]
    #[arg(long, value_name = "ADDRESS", env = "FANFOLD_LISTEN")]
    listen: Option<String>,
    /// Upstream for all requests [default: https://api.openai.com/v1 and https://api.anthropic.com]
    #[arg(long, value_name = "URL", env = "FANFOLD_UPSTREAM")]
    upstream: Option<String>,
    /// PEM file with certificate authorities to trust for upstreams, besides those of the system and SSL_CERT_FILE
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Send requests unchanged, and measure what folding would save
    #[arg(long)]
    observe: bool,
    /// How the model recalls folds: tool (added to requests, run by the proxy), mcp (the client's MCP server), off
    #[arg(long, value_name = "METHOD", default_value = "tool", hide_possible_values = true)]
    recall: RecallMethod,
    /// Token that clients must send as x-fanfold-token; required if other machines can connect
    #[arg(long, value_name = "TOKEN", env = "FANFOLD_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// File that holds the token; takes precedence over --token
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// How long fanfold may work on a request, in milliseconds; then the request is sent unchanged
    #[arg(long, value_name = "MS", default_value_t = 2000)]
    deadline: u64,
    /// Largest body that is folded, in megabytes; larger bodies are sent unchanged
    #[arg(long, value_name = "MB", default_value_t = 64)]
    max_body: usize,
    /// Idle timeout of upstream connections, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    upstream_idle: u64,
    /// Idle timeout of client connections, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    client_idle: u64,
    /// Format of log lines: human, json, off [default: human; off with a COMMAND]
    #[arg(long, value_name = "FORMAT", env = "FANFOLD_LOG", hide_possible_values = true)]
    log: Option<LogFormat>,
    /// Log level: warn, info, debug, trace
    #[arg(
        long,
        value_name = "LEVEL",
        env = "FANFOLD_TALK",
        default_value = "info",
        hide_possible_values = true
    )]
    talk: LogLevel,
    /// OpenTelemetry collector for spans, over HTTP: http://127.0.0.1:4318
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    otlp: Option<String>,
    #[command(flatten)]
    pub(super) store: StoreFlags,
    #[command(flatten)]
    pub(super) fold: FoldFlags,
    /// Client to start with its base URLs set; fanfold ends with it
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl ServeArgs {
    /// With a client to start, ignores an address and a token from the environment: they belong to a shared proxy,
    /// and the client would not have the token.
    pub(crate) fn ignore_environment_of_shared_proxy(&mut self, matches: &ArgMatches) {
        if self.command.is_empty() {
            return;
        }
        let is_variable = |id: &str| matches.value_source(id) == Some(ValueSource::EnvVariable);
        if is_variable("listen") {
            self.listen = None;
        }
        if is_variable("token") {
            self.token = None;
        }
    }
}

/// How a model recalls folds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum RecallMethod {
    /// With a tool that the proxy adds to requests and runs
    Tool,
    /// With the client's MCP server
    Mcp,
    /// Not at all
    Off,
}

/// How long fanfold's own work may take at the end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// How many bodies of the maximum size fit into memory at once.
const MAX_LARGE_BODIES: usize = 4;

pub(crate) fn run(args: &ServeArgs, options: &Options, reporter: Reporter) -> Result<ExitCode> {
    let host = Arc::new(ProxyHost::new(options, &store::address(options)?)?);
    let runtime = Runtime::new()?;
    let code = runtime.block_on(serve_until_end(args, options, Arc::clone(&host), reporter));
    // A thread that hangs in the store must not keep the program running.
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    // Outside of the runtime, because a PostgreSQL store has a runtime of its own, which cannot end inside another.
    drop(host);
    code
}

/// Serves until a signal arrives or the client ends.
async fn serve_until_end(
    args: &ServeArgs,
    options: &Options,
    host: Arc<ProxyHost>,
    reporter: Reporter,
) -> Result<ExitCode> {
    let default_log = if args.command.is_empty() { LogFormat::Human } else { LogFormat::Off };
    let codex = Codex::detect(&args.command);
    let upstreams = addresses::upstreams(args, options, codex.as_ref(), reporter)?;
    let client_paths = upstreams.client_paths.clone();
    log::start(args.log.unwrap_or(default_log), args.talk);
    let config = config(args, options, &host, upstreams)?;
    let (meter, proxy_memory) = (Arc::clone(&config.meter), config.memory.clone());
    let description = format!(
        "sends to {}, stores sessions in {}, {}",
        addresses::describe(&config.upstreams),
        store::without_password(host.address()),
        if args.observe { "sends requests unchanged (--observe)" } else { "folds when necessary or cheaper" },
    );
    let running = serve(config).await.map_err(|error| serve_failure(&error))?;
    let mut signals = Signals::listen();
    let title = paint(style::BOLD, "fanfold listens on");
    reporter.line(text![title, format!(" http://{}, {description}", running.address())]);
    if let Some(warning) = host.window_warning() {
        reporter.warn(&warning);
    }
    if let Err(why) = running.is_ready().await {
        reporter.warn(&format!("{why}; until the store can be used, requests are folded in memory"));
    }
    let code = match args.command.split_first() {
        Some((program, arguments)) => {
            let proxy = ProxyAddress { address: running.address(), paths: &client_paths };
            client_process::run(program, arguments, codex.as_ref(), proxy, &mut signals).await?
        }
        None => {
            signals.next().await;
            ExitCode::SUCCESS
        }
    };
    // A client that was started here has closed its connections.
    stop(&running, args.command.is_empty(), &mut signals, reporter).await;
    if let Some(outage) = running.outage().filter(|outage| outage.n_messages > 0) {
        let messages = count(outage.n_messages, "message");
        reporter.warn(&format!(
            "{messages} could not be stored: {}",
            store_message(&StoreError::Unavailable(outage.error))
        ));
    }
    if let Some(proxy_memory) = proxy_memory {
        flush_memory(proxy_memory, reporter).await;
    }
    meter.flush().await;
    let report = meter.status().report();
    if !report.is_empty() {
        reporter.line(report.trim_end());
    }
    Ok(code)
}

/// The configuration of the proxy.
fn config(
    args: &ServeArgs,
    options: &Options,
    host: &Arc<ProxyHost>,
    upstreams: SelectedUpstreams,
) -> Result<Config> {
    let listen = addresses::listen(args, options)?;
    let meter = Arc::new(meter(args, options)?);
    let recalled = Arc::clone(&meter);
    let mcp_settings = ServerSettings {
        profiles: Arc::new(OtherProfiles),
        on_recall: Some(Arc::new(move || recalled.count_recall(None, "mcp"))),
        ..ServerSettings::default()
    };
    let mcp = McpServer::new(host.address(), mcp_settings);
    Ok(Config {
        listen,
        upstreams: upstreams.upstreams,
        host: Arc::clone(host) as Arc<dyn fanfold_proxy::Host>,
        mode: if args.observe { Mode::Observe } else { Mode::Fold },
        recall: match args.recall {
            RecallMethod::Tool => Recall::Tool,
            RecallMethod::Mcp => Recall::Mcp,
            RecallMethod::Off => Recall::Off,
        },
        memory: proxy_memory(options, &meter)?,
        mcp: Some(http_service(mcp, AccessRules::Checked)),
        ca: authorities(args, options)?,
        token: token(args)?,
        web_access: options.serve.web_access(),
        limits: limits(args),
        meter,
    })
}

/// The memory in the settings.
fn proxy_memory(options: &Options, meter: &Arc<Meter>) -> Result<Option<ProxyMemory>> {
    let meter = Arc::clone(meter);
    let on_event: EventCallback = Arc::new(move |event| meter.count_memory(event.name()));
    let client = memory::client(options, Some(on_event))?;
    if let Some(client) = &client {
        client.warm_up();
    }
    Ok(client.map(|client| ProxyMemory { client: Arc::new(client), max_tokens: memory::max_tokens(options) }))
}

/// Gives memory a few seconds to write pending turns.
async fn flush_memory(proxy_memory: ProxyMemory, reporter: Reporter) {
    let Ok(abandoned) = tokio::task::spawn_blocking(move || proxy_memory.client.stop()).await else { return };
    if abandoned.n_writes > 0 {
        reporter.warn(&format!(
            "{} not written to memory: its provider did not answer in time",
            count(abandoned.n_writes, "turn")
        ));
    }
}

/// The meter, with the prices in the settings, and a collector if one is given.
fn meter(args: &ServeArgs, options: &Options) -> Result<Meter> {
    let mut meter = Meter::new(terms::prices(options));
    if args.observe {
        meter = meter.observing();
    }
    if let Some(endpoint) = &args.otlp {
        let variable = |name: &str| std::env::var(name).ok();
        let (headers, service) = (variable("OTEL_EXPORTER_OTLP_HEADERS"), variable("OTEL_SERVICE_NAME"));
        let collector = Collector::new(endpoint, headers.as_deref(), service.as_deref())
            .map_err(|error| Failure::new(error.to_string(), error.hint()))?;
        meter = meter.tracing_to(collector);
    }
    Ok(meter)
}

/// Stops gracefully, or at once on a second signal.
async fn stop(running: &Running, is_alone: bool, signals: &mut Signals, reporter: Reporter) {
    let n_left = running.n_connections();
    if is_alone && n_left > 0 {
        let connections = count(n_left, "connection");
        reporter.line(format!("stopping; {connections} still open, press Ctrl-C again to close them"));
    }
    tokio::select! {
        is_done = running.stop() => {
            if !is_done {
                reporter.warn("some replies were cut off, because they did not end in time");
            }
        }
        _ = signals.next() => reporter.warn("stopped at once; replies in progress were cut off"),
    }
}

fn limits(args: &ServeArgs) -> Limits {
    Limits {
        deadline: Duration::from_millis(args.deadline),
        body: args.max_body << 20,
        buffered_bytes: (args.max_body << 20).saturating_mul(MAX_LARGE_BODIES),
        upstream_idle: Duration::from_secs(args.upstream_idle.max(1)),
        client_idle: Duration::from_secs(args.client_idle.max(1)),
        ..Limits::default()
    }
}

/// Additional certificate authorities to trust for upstreams.
fn authorities(args: &ServeArgs, options: &Options) -> Result<Option<Vec<u8>>> {
    let file = args.ca.as_ref().or(options.serve.ca.as_ref());
    file.map(|path| std::fs::read(path).map_err(|error| not_read(path, &error))).transpose()
}

/// A token from a file, or else from a flag.
pub(super) fn read_token(file: Option<&Path>, flag: Option<&str>) -> Result<Option<String>> {
    let Some(path) = file else { return Ok(flag.map(str::to_owned)) };
    let text = std::fs::read_to_string(path).map_err(|error| not_read(path, &error))?;
    Ok(Some(text.trim().to_owned()))
}

fn token(args: &ServeArgs) -> Result<Option<Token>> {
    let Some(text) = read_token(args.token_file.as_deref(), args.token.as_deref())? else {
        return Ok(None);
    };
    let too_short = || {
        let message = format!("the token is shorter than {} characters", Token::MIN_LENGTH);
        Failure::new(message, "create one with `openssl rand -hex 24`")
    };
    Token::new(&text).map(Some).ok_or_else(too_short)
}

fn serve_failure(error: &ServeError) -> Failure {
    let hint = match error {
        ServeError::Listen { .. } => "choose another port with --listen; 0 selects a free port",
        ServeError::MissingToken(_) => "set FANFOLD_TOKEN or --token-file, or listen on 127.0.0.1",
        ServeError::OwnAddress(_) => {
            "set --upstream to the address of the provider, or --listen to another port"
        }
        ServeError::Authorities => "pass --ca a file that contains `-----BEGIN CERTIFICATE-----`",
        ServeError::HttpClient(_) => "check the certificates of this machine",
    };
    Failure::new(error.to_string(), hint)
}

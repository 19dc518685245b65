//! `fanfold serve`: the proxy, alone or with a client that it starts.

mod host; //    stores and terms for the proxy
mod places; //  where it listens, and where requests go
mod codex; //   where Codex's own settings send it
mod client; //  a command with its base URLs set

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use fanfold_engine::Mode;
use fanfold_mcp::{AccessRules, Server as McpServer, ServerSettings, http_service};
use fanfold_memory::EventCallback;
use fanfold_proxy::meter::{Collector, Meter};
use fanfold_proxy::{Config, Limits, Recall, Remember, Running, ServeError, Token, serve};
use tokio::runtime::Runtime;

use self::client::Proxy;
use self::host::Offered;
use self::places::Chosen;
use super::Say;
use super::provider;
use super::search::OtherProfiles;
use super::signals::Signals;
use crate::choose;
use crate::failure::{Failure, not_read};
use crate::flags::{RecallWay, ServeArgs};
use crate::log::{self, Look};
use crate::settings::Options;
use crate::store;
use crate::terminal::{count, paint, style};

/// Work of ours that is still under way at the end is not waited for longer.
const ENDING: Duration = Duration::from_secs(1);

/// So many of the largest bodies are held at once.
const LARGEST_AT_ONCE: usize = 4;

pub(crate) fn run(args: &ServeArgs, options: &Options, say: Say) -> anyhow::Result<ExitCode> {
    let address = store::address(options)?;
    let host = Arc::new(Offered::new(options, &address)?);
    let runtime = Runtime::new().context("the runtime could not be started")?;
    let done = runtime.block_on(serve_until_asked(args, options, Arc::clone(&host), say));
    // A thread that hangs in a store must not keep the program.
    runtime.shutdown_timeout(ENDING);
    // Last, and outside the runtime: a store on a server has a runtime of its own, which can't end inside another.
    drop(host);
    done
}

async fn serve_until_asked(
    args: &ServeArgs,
    options: &Options,
    host: Arc<Offered>,
    say: Say,
) -> anyhow::Result<ExitCode> {
    let listen = places::listen(args, options)?;
    let codex = codex::Codex::of(&args.command);
    let Chosen { upstreams, openai_path } = places::upstreams(args, options, codex.as_ref(), say)?;
    let mode = if args.observe { Mode::Observe } else { Mode::Fold };
    let usual = if args.command.is_empty() { Look::Human } else { Look::Off };
    log::start(args.log.unwrap_or(usual), args.talk);
    let meter = Arc::new(meter(args, options)?);
    let token = token(args)?;
    let counted = Arc::clone(&meter);
    let mcp_settings = ServerSettings {
        profiles: Arc::new(OtherProfiles),
        on_recall: Some(Arc::new(move || counted.count_recall(None, "mcp"))),
        ..ServerSettings::default()
    };
    let mcp = McpServer::new(host.address(), mcp_settings);
    let access = AccessRules::checked(listen.ip().is_loopback());
    let remember = memory(options, &meter)?;
    let config = Config {
        listen,
        upstreams,
        host: Arc::clone(&host) as Arc<dyn fanfold_proxy::Host>,
        mode,
        recall: match args.recall {
            RecallWay::Tool => Recall::Tool,
            RecallWay::Mcp => Recall::Mcp,
            RecallWay::Off => Recall::Off,
        },
        memory: remember.clone(),
        meter: Arc::clone(&meter),
        mcp: Some(http_service(mcp, access)),
        ca: authorities(args, options)?,
        token,
        limits: limits(args),
    };
    let line = format!(
        "sends to {}, keeps sessions in {}, {}",
        places::told(&config.upstreams),
        store::shown(host.address()),
        if args.observe {
            "changes nothing (--observe)"
        } else {
            "folds what does not fit, or where that pays"
        },
    );
    let running = serve(config).await.map_err(|error| not_served(&error))?;
    let mut signals = Signals::listen();
    say.note(&format!("{} http://{}, {line}\n", paint(style::BOLD, "fanfold listens on"), running.address()));
    if let Some(doubt) = host.doubt() {
        say.warn(&doubt);
    }
    if let Err(why) = running.is_ready().await {
        say.warn(&format!("{why}; until the store can be used, requests go through unfolded"));
    }
    let code = match args.command.split_first() {
        Some((program, arguments)) => {
            let proxy = Proxy { address: running.address(), openai_path: &openai_path };
            client::run(program, arguments, codex.as_ref(), proxy, &mut signals).await?
        }
        None => {
            signals.next().await;
            ExitCode::SUCCESS
        }
    };
    // With a client of ours, whoever is still connected has ended.
    end(&running, args.command.is_empty(), &mut signals, say).await;
    if let Some(remember) = remember {
        farewell(remember, say).await;
    }
    meter.flush().await;
    let report = meter.status().report();
    if !report.is_empty() {
        say.note(&format!("{}\n", report.trim_end()));
    }
    Ok(code)
}

/// Memory as the settings have it.
fn memory(options: &Options, meter: &Arc<Meter>) -> anyhow::Result<Option<Remember>> {
    let counted = Arc::clone(meter);
    let on_deed: EventCallback = Arc::new(move |deed| counted.count_memory(deed.name()));
    let keeper = provider::keeper(options, Some(on_deed))?;
    if let Some(keeper) = &keeper {
        keeper.warm_up();
    }
    Ok(keeper.map(|keeper| Remember { keeper: Arc::new(keeper), room: provider::room(options) }))
}

/// Lets memory write down what is left, for a few seconds.
async fn farewell(remember: Remember, say: Say) {
    let Ok(abandoned) = tokio::task::spawn_blocking(move || remember.keeper.stop()).await else { return };
    if abandoned.n_writes > 0 {
        say.warn(&format!(
            "{} not written to memory: its provider did not answer in time",
            count(abandoned.n_writes, "turn")
        ));
    }
}

/// What counts, by the prices that are set, with a collector where one is named.
fn meter(args: &ServeArgs, options: &Options) -> anyhow::Result<Meter> {
    let mut meter = Meter::new(choose::prices(options));
    if args.observe {
        meter = meter.observing();
    }
    if let Some(endpoint) = &args.otlp {
        let set = |name: &str| std::env::var(name).ok();
        let (headers, service) = (set("OTEL_EXPORTER_OTLP_HEADERS"), set("OTEL_SERVICE_NAME"));
        let collector = Collector::new(endpoint, headers.as_deref(), service.as_deref())
            .map_err(|error| Failure::new(error.to_string(), error.hint()))?;
        meter = meter.tracing_to(collector);
    }
    Ok(meter)
}

/// Ends in good order, or at once if that is asked for.
async fn end(running: &Running, is_alone: bool, signals: &mut Signals, say: Say) {
    let n_left = running.n_connections();
    if is_alone && n_left > 0 {
        say.note(&format!(
            "ending; {} still open, Ctrl-C again drops what is left\n",
            count(n_left, "connection")
        ));
    }
    tokio::select! {
        is_done = running.stop() => {
            if !is_done {
                say.warn("some answers were cut off: they did not end in time");
            }
        }
        _ = signals.next() => say.warn("ended at once; answers that were under way are cut off"),
    }
}

fn limits(args: &ServeArgs) -> Limits {
    Limits {
        deadline: Duration::from_millis(args.deadline),
        body: args.max_body << 20,
        held: (args.max_body << 20).saturating_mul(LARGEST_AT_ONCE),
        upstream_idle: Duration::from_secs(args.upstream_idle.max(1)),
        client_idle: Duration::from_secs(args.client_idle.max(1)),
        ..Limits::default()
    }
}

/// The certificates of authorities that upstreams are trusted by.
fn authorities(args: &ServeArgs, options: &Options) -> Result<Option<Vec<u8>>, Failure> {
    let file = args.ca.as_ref().or(options.serve.ca.as_ref());
    file.map(|path| std::fs::read(path).map_err(|error| not_read(path, &error))).transpose()
}

fn token(args: &ServeArgs) -> Result<Option<Token>, Failure> {
    let text = match &args.token_file {
        Some(path) => Some(std::fs::read_to_string(path).map_err(|error| not_read(path, &error))?),
        None => args.token.clone(),
    };
    let Some(text) = text else { return Ok(None) };
    let short = || {
        let message = format!("the token is shorter than {} characters", Token::LEAST);
        Failure::new(message, "make one with `openssl rand -hex 24`")
    };
    Token::new(&text).map(Some).ok_or_else(short)
}

fn not_served(error: &ServeError) -> Failure {
    let hint = match error {
        ServeError::Listen { .. } => "choose another port with --listen; 0 lets the system choose one",
        ServeError::Open(_) => "set FANFOLD_TOKEN or --token-file, or listen on 127.0.0.1",
        ServeError::Itself(_) => "give --upstream the address of the provider, or --listen another port",
        ServeError::Authorities => "give --ca a file that has `-----BEGIN CERTIFICATE-----` in it",
        ServeError::Sender(_) => "check the certificates of this machine",
    };
    Failure::new(error.to_string(), hint)
}

//! `fanfold mcp`: search, recall and status for any agent that speaks MCP.

use std::io::IsTerminal as _;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use fanfold_mcp::{AccessRules, PATHS, Server, ServerSettings};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::Say;
use super::search::OtherProfiles;
use super::signals::Signals;
use crate::failure::{Failure, not_read};
use crate::flags::McpArgs;
use crate::log;
use crate::settings::Options;
use crate::store;
use crate::terminal::{paint, style};

/// What is asked when the end comes is answered within this time.
const ENDING: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &McpArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    log::start(args.log, args.talk);
    let address = store::address(options)?;
    let settings = ServerSettings {
        session: args.session.clone(),
        profiles: Arc::new(OtherProfiles),
        ..ServerSettings::default()
    };
    let server = Server::new(&address, settings);
    let runtime = Runtime::new().context("the runtime could not be started")?;
    let done = match &args.listen {
        None => runtime.block_on(on_stdio(server.clone(), say)),
        Some(listen) => runtime.block_on(on_http(server.clone(), args, listen, &address, say)),
    };
    // A call that hangs in a store must not keep the program.
    runtime.shutdown_timeout(Duration::from_secs(1));
    // Last, and outside the runtime: a store on a server has a runtime of its own, which can't end inside another.
    drop(server);
    done
}

async fn on_stdio(server: Server, say: Say) -> anyhow::Result<()> {
    if std::io::stdin().is_terminal() {
        say.note("speaking MCP on stdin and stdout, for a client to start it; Ctrl-D ends it\n");
    }
    fanfold_mcp::stdio(server).await.map_err(|error| {
        Failure::new(format!("the client could not be served: {error}"), "start it from an MCP client").into()
    })
}

async fn on_http(server: Server, args: &McpArgs, listen: &str, store: &str, say: Say) -> anyhow::Result<()> {
    let address = address(listen)?;
    let access = AccessRules::new(address, token(args)?)
        .map_err(|error| Failure::new(error.to_string(), error.hint()))?;
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let hint = "choose another port; 0 lets the system choose one";
        Failure::new(format!("{address} can't be listened on: {error}"), hint)
    })?;
    let address = listener.local_addr().context("the address is not known")?;
    let mut signals = Signals::listen();
    say.note(&format!("{} http://{address}{}, store {store}\n", paint(style::BOLD, "MCP at"), PATHS[0]));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(fanfold_mcp::listen(server, access, listener, async {
        drop(stopped.await);
    }));
    signals.next().await;
    drop(stop);
    tokio::select! {
        served = serving => Ok(served.context("the server failed")?.context("the server failed")?),
        // Whoever holds a connection open without asking anything is not waited for.
        () = tokio::time::sleep(ENDING) => Ok(()),
        // Asked a second time, nobody is.
        _ = signals.next() => Ok(()),
    }
}

/// An address as people write it: a port of this machine, or a name and a port.
fn address(text: &str) -> Result<SocketAddr, Failure> {
    let whole = match text.trim().trim_start_matches(':').parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => text.trim().to_owned(),
    };
    let found = whole.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.ok_or_else(|| {
        Failure::new(format!("`{text}` is no address to listen on"), "write a port, or 127.0.0.1:8765")
    })
}

fn token(args: &McpArgs) -> Result<Option<String>, Failure> {
    let Some(path) = &args.token_file else { return Ok(args.token.clone()) };
    let text = std::fs::read_to_string(path).map_err(|error| not_read(path, &error))?;
    Ok(Some(text.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_on_this_machine() {
        for text in ["8765", ":8765", " 127.0.0.1:8765 "] {
            assert_eq!(address(text).ok(), "127.0.0.1:8765".parse().ok(), "{text}");
        }
        for text in ["", "here", "127.0.0.1", "99999"] {
            assert!(address(text).is_err(), "{text}");
        }
    }
}

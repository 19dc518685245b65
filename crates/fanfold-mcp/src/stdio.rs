//! JSON lines on stdin and stdout, until stdin ends.

use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio_pipes;

use crate::server::Server;

/// Longer lines are ignored.
const MAX_LINE: usize = 1 << 20;

/// Serves one client until stdin ends. Nothing else may write to stdout meanwhile.
pub async fn stdio(server: Server) -> std::io::Result<()> {
    let (input, output) = stdio_pipes();
    let transport = AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_LINE);
    let running = match server.serve(transport).await {
        Ok(running) => running,
        // A client may disconnect before the handshake.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(std::io::Error::other(error)),
    };
    running.waiting().await.map(drop).map_err(std::io::Error::other)
}

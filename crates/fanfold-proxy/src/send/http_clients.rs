//! HTTP clients for providers, and the causes of their errors.

use std::error::Error;
use std::time::Duration;

use crate::config::Limits;
use crate::receive::upstream::{Upstream, Upstreams};
use crate::server::ServeError;

/// A connection pool for servers on this machine, and one for all others.
pub(crate) struct HttpClients {
    local: reqwest::Client,
    remote: reqwest::Client,
}

impl HttpClients {
    pub(crate) fn new(
        limits: &Limits,
        ca: Option<&[u8]>,
        upstreams: &Upstreams,
    ) -> Result<HttpClients, ServeError> {
        let authorities = match ca {
            Some(pem) => {
                let found =
                    reqwest::Certificate::from_pem_bundle(pem).map_err(|_| ServeError::Authorities)?;
                if found.is_empty() { return Err(ServeError::Authorities) } else { found }
            }
            None => Vec::new(),
        };
        let builder = || {
            reqwest::Client::builder()
                .connect_timeout(limits.connect)
                .read_timeout(limits.upstream_idle)
                .pool_idle_timeout(Duration::from_secs(60))
                .tcp_nodelay(true)
                .redirect(reqwest::redirect::Policy::none())
                .tls_certs_merge(authorities.iter().cloned())
        };
        let build = |builder: &dyn Fn() -> reqwest::ClientBuilder, is_local: bool| {
            let needs_tls =
                upstreams.all().any(|upstream| upstream.is_local() == is_local && !upstream.is_plain());
            match builder().build() {
                // A minimal container has no certificates, and needs none if no upstream uses TLS.
                Err(_) if !needs_tls && ca.is_none() => builder().tls_certs_only([]).build(),
                built => built,
            }
        };
        // `HTTP_PROXY` and its like do not apply to servers on this machine.
        Ok(HttpClients { local: build(&|| builder().no_proxy(), true)?, remote: build(&builder, false)? })
    }

    pub(crate) fn client(&self, upstream: &Upstream) -> &reqwest::Client {
        if upstream.is_local() { &self.local } else { &self.remote }
    }
}

/// The innermost cause of an error, which is the informative one.
pub(crate) fn root_cause(error: &(dyn Error + 'static)) -> String {
    causes(error).last().map_or_else(|| error.to_string(), ToString::to_string)
}

/// The causes of an error, outermost first.
pub(crate) fn causes<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

//! A call upstream, and its answer on the way to the client.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use reqwest::Url;

use crate::local::local_routes;
use crate::meter::Exit;
use crate::pipeline::Shared;
use crate::receive::headers;
use crate::send::upstream::Upstream;

/// A call upstream.
pub(crate) struct Call {
    pub(crate) shared: Arc<Shared>,
    pub(crate) upstream: Upstream,
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
}

/// Upstream gave no answer.
pub(crate) struct NotSent {
    pub(crate) exit: Exit,
    /// What the client is told.
    pub(crate) response: Response,
}

impl Call {
    /// Sends a body as it comes, and gives the answer as it comes.
    pub(crate) async fn pass(
        &self,
        body: Body,
        length: Option<&HeaderValue>,
    ) -> Result<http::Response<Body>, NotSent> {
        let mut headers = self.headers.clone();
        // With a length it goes on as it was; without, in chunks, if there is anything.
        if let Some(length) = length {
            headers.insert(CONTENT_LENGTH, length.clone());
        }
        let is_empty = hyper::body::Body::is_end_stream(&body);
        let body = (!is_empty).then(|| reqwest::Body::wrap_stream(body.into_data_stream()));
        self.send(headers, body).await.map(|response| response.map(Body::new))
    }

    /// Sends a request.
    pub(crate) async fn send(
        &self,
        headers: HeaderMap,
        body: Option<reqwest::Body>,
    ) -> Result<http::Response<reqwest::Body>, NotSent> {
        let sender = self.shared.senders.of(&self.upstream);
        let mut request = sender.request(self.method.clone(), self.url.clone()).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        request.send().await.map(http::Response::from).map_err(|error| self.not_sent(&error))
    }

    fn not_sent(&self, error: &reqwest::Error) -> NotSent {
        let address = self.upstream.address();
        let (exit, status, what) = if error.is_connect() {
            (Exit::Unreachable, StatusCode::BAD_GATEWAY, format!("{address} can't be reached"))
        } else if error.is_timeout() {
            (Exit::Stalled, StatusCode::GATEWAY_TIMEOUT, format!("{address} does not answer"))
        } else {
            (Exit::BrokenOff, StatusCode::BAD_GATEWAY, format!("{address} broke off before it answered"))
        };
        let causes = || std::iter::successors(std::error::Error::source(error), |cause| cause.source());
        let what = causes().last().map_or(what.clone(), |cause| format!("{what}: {cause}"));
        let hint = match causes().find_map(tls_error) {
            Some(rustls::Error::InvalidCertificate(why)) => wrong_certificate(why),
            Some(_) => NO_TLS,
            None if self.url.scheme() == "https" && causes().any(is_no_handshake) => NO_TLS,
            None => "try again; check --upstream if it stays so",
        };
        NotSent { exit, response: local_routes::error(status, &what, hint) }
    }
}

/// What to do about somebody who does not speak TLS.
const NO_TLS: &str = "check that --upstream speaks TLS: http:// where it does not";

/// Whether a connection ended where TLS should have begun.
fn is_no_handshake(cause: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::ErrorKind::{InvalidData, UnexpectedEof};
    let Some(error) = cause.downcast_ref::<std::io::Error>() else { return false };
    let inner = || error.get_ref().is_some_and(|inner| is_no_handshake(inner));
    matches!(error.kind(), InvalidData | UnexpectedEof) || inner()
}

/// What TLS found wrong, where an error was caused by that.
fn tls_error<'e>(cause: &'e (dyn std::error::Error + 'static)) -> Option<&'e rustls::Error> {
    // It may be wrapped in several errors of input and output.
    let inner = || cause.downcast_ref::<std::io::Error>()?.get_ref();
    cause.downcast_ref().or_else(|| tls_error(inner()?))
}

/// What to do about a certificate that is not trusted.
fn wrong_certificate(why: &rustls::CertificateError) -> &'static str {
    use rustls::CertificateError as Wrong;
    match why {
        Wrong::UnknownIssuer => {
            "if you trust it, give the certificate of its authority: --ca FILE, `ca` in [serve], or SSL_CERT_FILE"
        }
        Wrong::NotValidForName | Wrong::NotValidForNameContext { .. } => {
            "it belongs to another name: write --upstream with the name that it was made for"
        }
        Wrong::Expired
        | Wrong::ExpiredContext { .. }
        | Wrong::NotValidYet
        | Wrong::NotValidYetContext { .. } => {
            "check the clock of this machine; if it is right, the provider needs a new certificate"
        }
        _ => "nothing was sent; ask whoever runs the provider",
    }
}

/// An answer as the client gets it.
pub(crate) fn to_client(response: http::Response<Body>) -> Response {
    let (parts, body) = response.into_parts();
    let mut response = Response::new(body);
    *response.status_mut() = parts.status;
    *response.headers_mut() = headers::client(&parts.headers);
    response
}

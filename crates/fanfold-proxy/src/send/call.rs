//! A call to the provider.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use reqwest::Url;

use crate::error_reply::ErrorReply;
use crate::meter::Exit;
use crate::receive::headers;
use crate::receive::upstream::Upstream;
use crate::send::http_clients::causes;
use crate::shared::Shared;

/// The destination of a request.
pub(crate) struct ProviderCall {
    pub(crate) shared: Arc<Shared>,
    pub(crate) upstream: Upstream,
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
}

/// A call without a response.
pub(crate) struct CallError {
    pub(crate) exit: Exit,
    /// The error for the client.
    pub(crate) error: ErrorReply,
}

impl ProviderCall {
    /// Streams a body to the provider. Returns the response as a stream.
    pub(crate) async fn stream(
        &self,
        body: Body,
        length: Option<&HeaderValue>,
    ) -> Result<http::Response<Body>, CallError> {
        let mut headers = self.headers.clone();
        // A body without a length is sent in chunks.
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
    ) -> Result<http::Response<reqwest::Body>, CallError> {
        let client = self.shared.http.client(&self.upstream);
        let mut request = client.request(self.method.clone(), self.url.clone()).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = request.send().await.map_err(|error| self.call_error(&error))?;
        // The request asked for no other protocol, so there is no answer.
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let message = format!("{} answered by switching to another protocol", self.upstream.address());
            let hint = "try again; if the error persists, check --upstream";
            let error = ErrorReply::new(StatusCode::BAD_GATEWAY, message, hint);
            return Err(CallError { exit: Exit::BrokenOff, error });
        }
        Ok(http::Response::from(response))
    }

    fn call_error(&self, error: &reqwest::Error) -> CallError {
        let address = self.upstream.address();
        let (exit, status, what) = if error.is_connect() {
            (Exit::Unreachable, StatusCode::BAD_GATEWAY, format!("{address} can't be reached"))
        } else if error.is_timeout() {
            (Exit::Stalled, StatusCode::GATEWAY_TIMEOUT, format!("{address} does not answer"))
        } else {
            (Exit::BrokenOff, StatusCode::BAD_GATEWAY, format!("{address} broke off before it answered"))
        };
        let message = causes(error).last().map_or(what.clone(), |cause| format!("{what}: {cause}"));
        let hint = match causes(error).find_map(tls_error) {
            Some(rustls::Error::InvalidCertificate(why)) => certificate_hint(why),
            Some(_) => NO_TLS,
            None if self.url.scheme() == "https" && causes(error).any(is_failed_handshake) => NO_TLS,
            None => "try again; if the error persists, check --upstream",
        };
        CallError { exit, error: ErrorReply::new(status, message, hint) }
    }
}

/// Hint for a server that does not speak TLS.
const NO_TLS: &str = "check that --upstream speaks TLS: http:// where it does not";

/// Returns whether a connection ended during the TLS handshake.
fn is_failed_handshake(cause: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::ErrorKind::{InvalidData, UnexpectedEof};
    let Some(error) = cause.downcast_ref::<std::io::Error>() else { return false };
    let inner = || error.get_ref().is_some_and(|inner| is_failed_handshake(inner));
    matches!(error.kind(), InvalidData | UnexpectedEof) || inner()
}

/// The TLS error behind an error, which may be wrapped in several I/O errors.
fn tls_error<'e>(cause: &'e (dyn std::error::Error + 'static)) -> Option<&'e rustls::Error> {
    let inner = || cause.downcast_ref::<std::io::Error>()?.get_ref();
    cause.downcast_ref().or_else(|| tls_error(inner()?))
}

fn certificate_hint(why: &rustls::CertificateError) -> &'static str {
    use rustls::CertificateError as Error;
    match why {
        Error::UnknownIssuer => {
            "if you trust it, give the certificate of its authority: --ca FILE, `ca` in [serve], or SSL_CERT_FILE"
        }
        Error::NotValidForName | Error::NotValidForNameContext { .. } => {
            "the certificate belongs to another name: write --upstream with that name"
        }
        Error::Expired
        | Error::ExpiredContext { .. }
        | Error::NotValidYet
        | Error::NotValidYetContext { .. } => {
            "check the clock of this machine; if it is right, the provider needs a new certificate"
        }
        _ => "nothing was sent; ask the operator of the provider",
    }
}

/// A response with the headers for the client.
pub(crate) fn to_client(response: http::Response<Body>) -> Response {
    let (parts, body) = response.into_parts();
    let mut response = Response::new(body);
    *response.status_mut() = parts.status;
    *response.headers_mut() = headers::to_client(&parts.headers);
    response
}

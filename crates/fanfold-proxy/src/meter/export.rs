//! Spans sent to a collector, over OTLP/HTTP in JSON.
//!
//! Nothing waits for it: a queue of bounded length is emptied in the background, and what does not fit is counted and
//! dropped. Why it is written here: docs/decisions/14-spans-without-a-library.md.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::trace::Span;

/// So many requests may wait to be sent.
const QUEUE: usize = 1024;
/// So many are sent at once.
const BATCH: usize = 128;
/// How long a batch waits to become full.
const PAUSE: Duration = Duration::from_secs(2);
/// How long a collector may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where spans go.
#[derive(Debug, Clone)]
pub struct Collector {
    url: reqwest::Url,
    headers: HeaderMap,
    service: String,
}

/// Why spans can't be sent somewhere.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// The address is none.
    #[error("`{0}` is no address of a collector\n\nhint: write it as http://HOST:4318")]
    Address(String),
    /// The headers are none.
    #[error("the headers for the collector are not understood\n\nhint: write them as name=value,name=value")]
    Headers,
}

impl Collector {
    /// A collector by its base address, as OTEL_EXPORTER_OTLP_ENDPOINT has it, with `headers` as
    /// OTEL_EXPORTER_OTLP_HEADERS has them.
    pub fn new(
        endpoint: &str,
        headers: Option<&str>,
        service: Option<&str>,
    ) -> Result<Collector, CollectorError> {
        let wrong = || CollectorError::Address(endpoint.chars().take(200).collect());
        let mut url: reqwest::Url = endpoint.parse().map_err(|_| wrong())?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(wrong());
        }
        if !url.path().ends_with("/v1/traces") {
            let path = format!("{}/v1/traces", url.path().trim_end_matches('/'));
            url.set_path(&path);
        }
        let mut all = HeaderMap::new();
        for pair in headers.unwrap_or_default().split(',').filter(|pair| !pair.trim().is_empty()) {
            let (name, value) = pair.split_once('=').ok_or(CollectorError::Headers)?;
            let name = HeaderName::try_from(name.trim()).map_err(|_| CollectorError::Headers)?;
            let mut value = HeaderValue::try_from(value.trim()).map_err(|_| CollectorError::Headers)?;
            value.set_sensitive(true);
            all.insert(name, value);
        }
        Ok(Collector { url, headers: all, service: service.unwrap_or("fanfold").to_owned() })
    }
}

/// Takes spans and sends them in the background.
pub(super) struct Exporter {
    queue: mpsc::Sender<Message>,
    n_dropped: Arc<AtomicU64>,
}

enum Message {
    Spans(Vec<Span>),
    Flush(oneshot::Sender<()>),
}

impl Exporter {
    /// Starts it on the runtime that this is called on.
    pub(super) fn start(collector: Collector) -> Exporter {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (queue, messages) = mpsc::channel(QUEUE);
        let n_dropped = Arc::new(AtomicU64::new(0));
        tokio::spawn(export(collector, messages, Arc::clone(&n_dropped)));
        Exporter { queue, n_dropped }
    }

    /// Takes the spans of a request.
    pub(super) fn take(&self, spans: Vec<Span>) {
        if self.queue.try_send(Message::Spans(spans)).is_err() {
            self.n_dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many requests' spans were dropped: the queue was full, or the collector did not take them.
    pub(super) fn n_dropped(&self) -> u64 {
        self.n_dropped.load(Ordering::Relaxed)
    }

    /// Sends what waits, and comes back when that is done.
    pub(super) async fn flush(&self) {
        let (done, is_done) = oneshot::channel();
        if self.queue.send(Message::Flush(done)).await.is_ok() {
            let _ = tokio::time::timeout(PATIENCE, is_done).await;
        }
    }
}

/// Sends batches until nobody is left who gives any.
async fn export(collector: Collector, mut messages: mpsc::Receiver<Message>, n_dropped: Arc<AtomicU64>) {
    let Ok(client) = reqwest::Client::builder().timeout(PATIENCE).build() else { return };
    let mut batch: Vec<Vec<Span>> = Vec::new();
    let mut is_told = false;
    loop {
        // What came is sent when there is enough of it, or after a while.
        let next = if batch.is_empty() {
            messages.recv().await
        } else {
            match tokio::time::timeout(PAUSE, messages.recv()).await {
                Ok(next) => next,
                Err(_) => Some(Message::Spans(Vec::new())),
            }
        };
        let is_late = matches!(&next, Some(Message::Spans(spans)) if spans.is_empty());
        let (is_last, flushed) = match next {
            Some(Message::Spans(spans)) => {
                batch.extend((!spans.is_empty()).then_some(spans));
                (false, None)
            }
            Some(Message::Flush(done)) => (false, Some(done)),
            None => (true, None),
        };
        if !batch.is_empty() && (batch.len() >= BATCH || is_late || is_last || flushed.is_some()) {
            let n = batch.len() as u64;
            if let Err(why) = send(&client, &collector, &batch).await {
                n_dropped.fetch_add(n, Ordering::Relaxed);
                if !std::mem::replace(&mut is_told, true) {
                    tracing::warn!(why, "spans are not taken by the collector, and dropped");
                }
            }
            batch.clear();
        }
        if let Some(flushed) = flushed {
            let _ = flushed.send(());
        }
        if is_last {
            return;
        }
    }
}

async fn send(client: &reqwest::Client, collector: &Collector, batch: &[Vec<Span>]) -> Result<(), String> {
    let body = body(collector, batch).to_string();
    let request = client.post(collector.url.clone()).headers(collector.headers.clone());
    let answer = request.header(http::header::CONTENT_TYPE, "application/json").body(body).send().await;
    match answer {
        Ok(answer) if answer.status().is_success() => Ok(()),
        Ok(answer) => Err(format!("it answers with {}", answer.status().as_u16())),
        Err(error) if error.is_timeout() => Err("it does not answer".to_owned()),
        Err(_) => Err("it can't be reached".to_owned()),
    }
}

/// An export request as OTLP writes it in JSON.
fn body(collector: &Collector, batch: &[Vec<Span>]) -> Value {
    let spans: Vec<Value> = batch.iter().flatten().map(Span::json).collect();
    let text = |key: &str, value: &str| json!({ "key": key, "value": { "stringValue": value } });
    json!({ "resourceSpans": [{
        "resource": { "attributes": [
            text("service.name", &collector.service),
            text("service.version", env!("CARGO_PKG_VERSION")),
        ] },
        "scopeSpans": [{
            "scope": { "name": "fanfold", "version": env!("CARGO_PKG_VERSION") },
            "spans": spans,
        }],
    }] })
}

//! Sends spans to a collector, over OTLP/HTTP in JSON.
//!
//! Requests do not wait for it: a bounded queue is sent in the background, and spans that do not fit are dropped and
//! counted. See docs/decisions/14-spans-without-a-library.md.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fanfold_provider::install_tls;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::trace::Span;

/// Capacity of the queue, in requests.
const QUEUE: usize = 1024;
/// Requests per batch.
const BATCH: usize = 128;
/// Maximum age of a batch that is not full.
const BATCH_TIME: Duration = Duration::from_secs(2);
/// Timeout of a collector.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The collector that receives spans.
#[derive(Debug, Clone)]
pub struct Collector {
    url: reqwest::Url,
    headers: HeaderMap,
    service: String,
}

/// Why a collector cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// The address is invalid.
    #[error("`{0}` is not a collector address")]
    Address(String),
    /// The headers are malformed.
    #[error("the headers for the collector are malformed")]
    Headers,
}

impl CollectorError {
    /// The next step.
    pub fn hint(&self) -> &'static str {
        match self {
            CollectorError::Address(_) => "write it as http://HOST:4318 (--otlp)",
            CollectorError::Headers => "write OTEL_EXPORTER_OTLP_HEADERS as name=value,name=value",
        }
    }
}

impl Collector {
    /// A collector at a base address, in the form of OTEL_EXPORTER_OTLP_ENDPOINT, with headers in the form of
    /// OTEL_EXPORTER_OTLP_HEADERS.
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

/// Sends spans in the background.
pub(crate) struct Exporter {
    queue: mpsc::Sender<ExporterMessage>,
    n_dropped: Arc<AtomicU64>,
}

enum ExporterMessage {
    Spans(Vec<Span>),
    Flush(oneshot::Sender<()>),
}

impl Exporter {
    /// Starts the background task on the current runtime.
    pub(crate) fn start(collector: Collector) -> Exporter {
        install_tls();
        let (queue, messages) = mpsc::channel(QUEUE);
        let n_dropped = Arc::new(AtomicU64::new(0));
        tokio::spawn(export(collector, messages, Arc::clone(&n_dropped)));
        Exporter { queue, n_dropped }
    }

    /// Queues the spans of a request.
    pub(crate) fn queue(&self, spans: Vec<Span>) {
        if self.queue.try_send(ExporterMessage::Spans(spans)).is_err() {
            self.n_dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many requests' spans were dropped: the queue was full, or the collector did not take them.
    pub(crate) fn n_dropped(&self) -> u64 {
        self.n_dropped.load(Ordering::Relaxed)
    }

    /// Sends all queued spans.
    pub(crate) async fn flush(&self) {
        let (done, is_done) = oneshot::channel();
        if self.queue.send(ExporterMessage::Flush(done)).await.is_ok() {
            let _ = tokio::time::timeout(TIMEOUT, is_done).await;
        }
    }
}

/// Sends batches until the exporter is dropped.
async fn export(
    collector: Collector,
    mut messages: mpsc::Receiver<ExporterMessage>,
    n_dropped: Arc<AtomicU64>,
) {
    let Ok(client) = reqwest::Client::builder().timeout(TIMEOUT).build() else { return };
    let mut batch: Vec<Vec<Span>> = Vec::new();
    let mut is_logged = false;
    loop {
        // A batch is sent when it is full, or after a while.
        let next = if batch.is_empty() {
            messages.recv().await
        } else {
            match tokio::time::timeout(BATCH_TIME, messages.recv()).await {
                Ok(next) => next,
                Err(_) => Some(ExporterMessage::Spans(Vec::new())),
            }
        };
        let is_late = matches!(&next, Some(ExporterMessage::Spans(spans)) if spans.is_empty());
        let (is_last, flushed) = match next {
            Some(ExporterMessage::Spans(spans)) => {
                batch.extend((!spans.is_empty()).then_some(spans));
                (false, None)
            }
            Some(ExporterMessage::Flush(done)) => (false, Some(done)),
            None => (true, None),
        };
        if !batch.is_empty() && (batch.len() >= BATCH || is_late || is_last || flushed.is_some()) {
            let n = batch.len() as u64;
            if let Err(why) = send(&client, &collector, &batch).await {
                n_dropped.fetch_add(n, Ordering::Relaxed);
                if !std::mem::replace(&mut is_logged, true) {
                    tracing::warn!(why, "the collector does not accept spans; they are dropped");
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
        Ok(answer) => Err(format!("it responds with {}", answer.status().as_u16())),
        Err(error) if error.is_timeout() => Err("it does not answer".to_owned()),
        Err(_) => Err("it cannot be reached".to_owned()),
    }
}

/// An export request in the JSON form of OTLP.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use axum::Router;
    use axum::extract::State;
    use axum::routing::post;
    use fanfold_replay::PriceTable;
    use fanfold_store::SessionId;
    use fanfold_wire::Format;

    use super::*;
    use crate::meter::{Meter, RequestInfo};
    use crate::outcome::{Exit, ProxyOutcome};

    /// The API key and the body of each export request.
    type Exports = Arc<Mutex<Vec<(String, Value)>>>;

    /// A collector on a port of its own.
    async fn collector() -> (String, Exports) {
        let exports = Exports::default();
        let take = |State(exports): State<Exports>, headers: HeaderMap, body: String| async move {
            let key = headers.get("x-key").map_or(String::new(), |key| key.to_str().unwrap().to_owned());
            assert_eq!(headers["content-type"], "application/json");
            exports.lock().unwrap().push((key, serde_json::from_str(&body).unwrap()));
            "{}"
        };
        let routes = Router::new().route("/v1/traces", post(take)).with_state(Arc::clone(&exports));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        (address, exports)
    }

    fn request(traceparent: &str) -> RequestInfo<'_> {
        RequestInfo { format: Format::Chat, model: Some("gpt-5"), traceparent: Some(traceparent) }
    }

    #[tokio::test]
    async fn a_request_is_a_span_with_children() {
        let (address, exports) = collector().await;
        let to = Collector::new(&address, Some("x-key=abc"), Some("mine")).unwrap();
        let meter = Arc::new(Meter::new(PriceTable::built_in()).tracing_to(to));
        let client = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let mut request_meter = meter.start_request(&request(client));
        let upstream = request_meter.traceparent().unwrap();
        let began = std::time::Instant::now();
        request_meter.add_timing("recognise", began, Duration::from_millis(1));
        request_meter.add_timing("fold", began, Duration::from_millis(2));
        request_meter.set_session(&SessionId("a".to_owned()), None);
        request_meter.set_outcome(ProxyOutcome::Whole);
        request_meter.start_call(10);
        request_meter.first_byte(200);
        request_meter.end(Exit::Done);
        // A trace that the client does not sample is not sent.
        meter
            .start_request(&request("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"))
            .end(Exit::Done);
        meter.flush().await;

        let exports = exports.lock().unwrap();
        assert_eq!((exports.len(), exports[0].0.as_str()), (1, "abc"));
        let all = &exports[0].1["resourceSpans"][0];
        assert_eq!(all["resource"]["attributes"][0]["value"]["stringValue"], "mine");
        let spans = all["scopeSpans"][0]["spans"].as_array().unwrap();
        let by_name: BTreeMap<&str, &Value> =
            spans.iter().map(|span| (span["name"].as_str().unwrap(), span)).collect();
        let names: Vec<&str> = by_name.keys().copied().collect();
        assert_eq!(names, ["chat gpt-5", "first byte", "fold", "recognise", "stream"]);
        let top = by_name["chat gpt-5"];
        assert_eq!(top["parentSpanId"], "00f067aa0ba902b7");
        assert_eq!(
            upstream,
            format!("00-{}-{}-01", top["traceId"].as_str().unwrap(), top["spanId"].as_str().unwrap())
        );
        let time = |span: &Value, key: &str| span[key].as_str().unwrap().parse::<u128>().unwrap();
        for (name, span) in &by_name {
            assert_eq!(span["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736", "{name}");
            assert!(time(span, "endTimeUnixNano") >= time(span, "startTimeUnixNano"), "{name}");
            assert!(*name == "chat gpt-5" || span["parentSpanId"] == top["spanId"], "{name}");
        }
    }

    #[tokio::test]
    async fn spans_are_dropped_if_the_collector_is_down() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let to = Collector::new(&address, None, None).unwrap();
        let meter = Arc::new(Meter::new(PriceTable::built_in()).tracing_to(to));
        (0..3).for_each(|_| meter.start_request(&request("")).end(Exit::Done));
        meter.flush().await;
        assert!(meter.prometheus().contains("fanfold_spans_dropped_total 3"));
    }

    #[test]
    fn accepts_the_usual_forms_of_addresses() {
        let path =
            |endpoint: &str| Collector::new(endpoint, None, None).map(|found| found.url.path().to_owned());
        assert_eq!(path("http://127.0.0.1:4318").unwrap(), "/v1/traces");
        assert_eq!(path("https://host/otlp/").unwrap(), "/otlp/v1/traces");
        assert_eq!(path("http://127.0.0.1:4318/v1/traces").unwrap(), "/v1/traces");
        for wrong in ["127.0.0.1:4318", "ftp://host", "", "grpc://x"] {
            assert!(path(wrong).is_err(), "{wrong}");
        }
        assert!(Collector::new("http://h", Some("no equals sign"), None).is_err());
    }
}

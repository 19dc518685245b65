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
    #[error("`{0}` is no address of a collector")]
    Address(String),
    /// The headers are none.
    #[error("the headers for the collector are not understood")]
    Headers,
}

impl CollectorError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            CollectorError::Address(_) => "write it as http://HOST:4318 (--otlp)",
            CollectorError::Headers => "write OTEL_EXPORTER_OTLP_HEADERS as name=value,name=value",
        }
    }
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
    use crate::meter::{Arrival, Exit, Meter, Outcome};

    /// What a collector was sent: the key it was given, and the body.
    type Got = Arc<Mutex<Vec<(String, Value)>>>;

    /// A collector on a port of its own.
    async fn collector() -> (String, Got) {
        let got = Got::default();
        let take = |State(got): State<Got>, headers: HeaderMap, body: String| async move {
            let key = headers.get("x-key").map_or(String::new(), |key| key.to_str().unwrap().to_owned());
            assert_eq!(headers["content-type"], "application/json");
            got.lock().unwrap().push((key, serde_json::from_str(&body).unwrap()));
            "{}"
        };
        let routes = Router::new().route("/v1/traces", post(take)).with_state(Arc::clone(&got));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        (address, got)
    }

    fn arrival(traceparent: &str) -> Arrival<'_> {
        Arrival { format: Format::Chat, model: Some("gpt-5"), traceparent: Some(traceparent) }
    }

    #[tokio::test]
    async fn a_request_is_a_span_with_its_parts_below() {
        let (address, got) = collector().await;
        let to = Collector::new(&address, Some("x-key=abc"), Some("mine")).unwrap();
        let meter = Arc::new(Meter::new(PriceTable::built_in()).tracing_to(to));
        let client = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let mut passage = meter.came(&arrival(client));
        let upstream = passage.traceparent().unwrap();
        let began = std::time::Instant::now();
        passage.did("recognise", began, Duration::from_millis(1));
        passage.did("fold", began, Duration::from_millis(2));
        passage.looked(&SessionId("a".to_owned()), None);
        passage.left(Outcome::Whole);
        passage.sending(10);
        passage.first_byte(200);
        passage.ended(Exit::Done);
        // One that its client does not want kept is not sent.
        meter.came(&arrival("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")).ended(Exit::Done);
        meter.flush().await;

        let got = got.lock().unwrap();
        assert_eq!((got.len(), got[0].0.as_str()), (1, "abc"));
        let all = &got[0].1["resourceSpans"][0];
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
    async fn a_collector_that_is_not_there_costs_nothing_but_its_spans() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let to = Collector::new(&address, None, None).unwrap();
        let meter = Arc::new(Meter::new(PriceTable::built_in()).tracing_to(to));
        (0..3).for_each(|_| meter.came(&arrival("")).ended(Exit::Done));
        meter.flush().await;
        assert!(meter.prometheus().contains("fanfold_spans_dropped_total 3"));
    }

    #[test]
    fn addresses_are_taken_as_others_take_them() {
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

//! A client of one endpoint: asks, waits, asks again where that makes sense, within one deadline.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::answer::reader::ModelAnswer;
use crate::endpoint::key::Secret;
use crate::endpoint::url::{AddressError, ProviderUrl};
use crate::endpoint::{Endpoint, Timeouts};
use crate::error::secret_mask::SecretMask;
use crate::error::{ErrorClass, ProviderError, RequestTarget};
use crate::request::http_request::{HttpRequest, TextSink, root_cause};
use crate::request::prompt::{self, Prompt, RequestOptions};
use crate::request::retry;

/// A key that a command made is taken for good so long.
const KEY_CACHE_TTL: Duration = Duration::from_secs(300);

/// Asks one model at one address.
pub struct Client {
    pub(crate) endpoint: Endpoint,
    pub(crate) route: ProviderUrl,
    pub(crate) http: reqwest::Client,
    /// Guards how the server wants to be asked; whole values go in and out.
    request_options: Mutex<RequestOptions>,
    /// Guards the key that was read last, and when.
    cached_key: Mutex<Option<(Secret, Instant)>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Client {
    /// A client of an endpoint. Nothing is sent yet, and no key is read.
    pub fn new(endpoint: Endpoint) -> Result<Client, AddressError> {
        let route = ProviderUrl::parse(&endpoint.url, endpoint.style)?;
        // Whoever was first has chosen; all that matters is that there is one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(endpoint.timeouts.connect)
            .pool_idle_timeout(Duration::from_secs(60))
            .tcp_nodelay(true)
            // A key is sent to the address that was written, and to no other.
            .redirect(reqwest::redirect::Policy::none());
        if route.is_local() {
            builder = builder.no_proxy();
        }
        if route.is_local() && route.is_plain() {
            // A local server needs no certificates, and a small container has none.
            builder = builder.tls_certs_only([]);
        }
        let sender = builder
            .build()
            .map_err(|error| AddressError::NoClient { address: route.display(), why: root_cause(&error) })?;
        Ok(Client {
            endpoint,
            route,
            http: sender,
            request_options: Mutex::default(),
            cached_key: Mutex::default(),
        })
    }

    /// What it asks.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Asks, and waits for the whole answer on this thread. It may be called from anywhere.
    pub fn ask(&self, prompt: &Prompt) -> Result<ModelAnswer, ProviderError> {
        self.block_on(|| self.send(prompt))
    }

    /// Asks, and gives the whole answer.
    pub async fn send(&self, prompt: &Prompt) -> Result<ModelAnswer, ProviderError> {
        self.send_with_retries(prompt, &mut |_| {}, false).await
    }

    /// Asks, and tells the words of the answer as they come. What was told is not taken back: an answer that breaks off
    /// is not asked for again.
    pub async fn stream(
        &self,
        prompt: &Prompt,
        mut on: impl FnMut(&str) + Send,
    ) -> Result<ModelAnswer, ProviderError> {
        self.send_with_retries(prompt, &mut on, true).await
    }

    async fn send_with_retries(
        &self,
        prompt: &Prompt,
        on: TextSink<'_>,
        is_heard: bool,
    ) -> Result<ModelAnswer, ProviderError> {
        let until = Instant::now() + self.endpoint.timeouts.total;
        let mut n_tries = 0;
        let mut n_retries = 0;
        let mut is_key_renewed = false;
        let mut is_begun = false;
        loop {
            let secret = match self.secret(until).await {
                Ok(secret) => secret,
                Err(fault) => return Err(self.annotate(fault, n_tries, None)),
            };
            let manner = *self.request_options();
            n_tries += 1;
            let mut heard = |piece: &str| {
                is_begun = true;
                on(piece);
            };
            let fault = match self.request(prompt, manner, secret.as_ref(), until).send(&mut heard).await {
                Ok(answer) => return Ok(answer),
                Err(fault) => fault,
            };
            if is_heard && is_begun {
                return Err(self.annotate(fault, n_tries, secret.as_ref()));
            }
            if self.adapt(manner, &fault) {
                continue;
            }
            // A key that a command made may have run out since.
            if fault.class == ErrorClass::Auth && self.endpoint.key.is_command() && !is_key_renewed {
                is_key_renewed = true;
                if self.refresh_key(secret.as_ref(), until).await {
                    continue;
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            let pause =
                retry::retry_pause(&fault, n_retries, left).filter(|_| n_retries < self.endpoint.n_retries);
            let Some(pause) = pause else { return Err(self.annotate(fault, n_tries, secret.as_ref())) };
            n_retries += 1;
            sleep(pause).await;
        }
    }

    fn request<'a>(
        &'a self,
        prompt: &Prompt,
        manner: RequestOptions,
        secret: Option<&'a Secret>,
        until: Instant,
    ) -> HttpRequest<'a> {
        let Endpoint { style, model, timeouts, .. } = &self.endpoint;
        HttpRequest {
            http: &self.http,
            style: *style,
            is_azure: self.route.is_azure(),
            url: self.route.completions(manner.uses_url_as_written),
            secret,
            body: prompt::body(*style, model, prompt, manner),
            timeouts,
            deadline: until,
        }
    }

    /// Takes the lesson of a refusal, and says whether there is something new to try.
    fn adapt(&self, asked: RequestOptions, fault: &ProviderError) -> bool {
        let lesson = fault.adaptation.filter(|lesson| match lesson {
            crate::error::Adaptation::UrlAsWritten => self.route.has_fallback(),
            _ => true,
        });
        let Some(next) = lesson.and_then(|lesson| asked.adapted(lesson)) else { return false };
        *self.request_options() = next;
        true
    }

    fn request_options(&self) -> MutexGuard<'_, RequestOptions> {
        self.request_options.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cached_key(&self) -> MutexGuard<'_, Option<(Secret, Instant)>> {
        self.cached_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key, if there is one: as it was read last, or anew.
    pub(crate) async fn secret(&self, until: Instant) -> Result<Option<Secret>, ProviderError> {
        let kept = self
            .cached_key()
            .clone()
            .filter(|(_, at)| self.endpoint.key.is_command() && at.elapsed() < KEY_CACHE_TTL);
        if let Some((secret, _)) = kept {
            return Ok(Some(secret));
        }
        let read = timeout_at(until, self.endpoint.key.read()).await;
        let late = || {
            ProviderError::new(
                ErrorClass::Timeout,
                format!("{} did not come in time", self.endpoint.key.describe()),
            )
        };
        let secret = read.map_err(|_| late())??;
        *self.cached_key() = secret.clone().map(|secret| (secret, Instant::now()));
        Ok(secret)
    }

    /// Reads the key anew, and says whether it is another one.
    async fn refresh_key(&self, old: Option<&Secret>, until: Instant) -> bool {
        *self.cached_key() = None;
        self.secret(until).await.is_ok_and(|secret| secret.as_ref() != old)
    }

    /// A fault with all that a person has to know, and nothing that nobody may.
    pub(crate) fn annotate(
        &self,
        fault: ProviderError,
        n_tries: u32,
        secret: Option<&Secret>,
    ) -> ProviderError {
        let key = secret.map(|secret| secret.reveal().to_owned());
        let fault = SecretMask::new(key.into_iter().chain(self.route.secrets())).mask_error(fault);
        let asked = RequestTarget {
            address: self.route.display(),
            model: self.endpoint.model.clone(),
            credential: self.endpoint.key.describe(),
        };
        ProviderError { target: Box::new(asked), n_tries, ..fault }
    }

    /// Waits on a thread of its own, so that who calls may be inside of a runtime.
    pub(crate) fn block_on<T, F>(&self, work: impl FnOnce() -> F + Send) -> Result<T, ProviderError>
    where
        T: Send,
        F: Future<Output = Result<T, ProviderError>>,
    {
        let failed =
            |words: String| self.annotate(ProviderError::new(ErrorClass::Connection, words), 0, None);
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(work()),
                Err(error) => Err(failed(format!("nothing can be sent from here: {error}"))),
            }
        };
        let ended = std::thread::scope(|scope| {
            let thread =
                std::thread::Builder::new().name("fanfold-provider".to_owned()).spawn_scoped(scope, run);
            thread.map(|thread| thread.join())
        });
        match ended {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(failed("the request panicked, which is a bug of fanfold's".to_owned())),
            Err(error) => Err(failed(format!("no thread could be started: {error}"))),
        }
    }

    /// How long one waits.
    pub(crate) fn timeouts(&self) -> &Timeouts {
        &self.endpoint.timeouts
    }
}

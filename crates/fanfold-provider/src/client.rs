//! Client of one endpoint: sends prompts, with retries and adaptations, within one deadline.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::answer::reader::ModelAnswer;
use crate::endpoint::key::ApiKey;
use crate::endpoint::url::{AddressError, ProviderUrl};
use crate::endpoint::{Endpoint, Timeouts};
use crate::error::secret_mask::SecretMask;
use crate::error::{ErrorClass, ProviderError, RequestTarget};
use crate::request::http_request::{HttpRequest, root_cause};
use crate::request::prompt::{self, ModelPrompt, RequestOptions};
use crate::request::retry;

/// Lifetime of a cached key that a command printed.
const KEY_CACHE_TTL: Duration = Duration::from_secs(300);

/// Installs the cryptography that HTTP clients need, unless the process already has it.
pub fn install_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// A client for one model at one endpoint.
pub struct ModelClient {
    pub(crate) endpoint: Endpoint,
    pub(crate) provider_url: ProviderUrl,
    pub(crate) http: reqwest::Client,
    /// Guards the options learned from errors. They are only replaced as a whole.
    request_options: Mutex<RequestOptions>,
    /// Guards the key that was read last, and the time of the read.
    cached_key: Mutex<Option<(ApiKey, Instant)>>,
}

impl fmt::Debug for ModelClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl ModelClient {
    /// Creates a client without sending a request or reading a key.
    pub fn new(endpoint: Endpoint) -> Result<ModelClient, AddressError> {
        let provider_url = ProviderUrl::parse(&endpoint.url, endpoint.provider)?;
        install_tls();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(endpoint.timeouts.connect)
            .pool_idle_timeout(Duration::from_secs(60))
            .tcp_nodelay(true)
            // A redirect could send the key to another host.
            .redirect(reqwest::redirect::Policy::none());
        if provider_url.is_local() {
            builder = builder.no_proxy();
        }
        if provider_url.is_local() && provider_url.is_plain() {
            // A local server without TLS needs no root certificates, which small containers lack.
            builder = builder.tls_certs_only([]);
        }
        let http = builder.build().map_err(|error| AddressError::NoClient {
            address: provider_url.display(),
            why: root_cause(&error),
        })?;
        Ok(ModelClient {
            endpoint,
            provider_url,
            http,
            request_options: Mutex::default(),
            cached_key: Mutex::default(),
        })
    }

    /// The endpoint of the client.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends a prompt and blocks until the answer is complete. It may be called inside of an async runtime.
    pub fn send_blocking(&self, prompt: &ModelPrompt) -> Result<ModelAnswer, ProviderError> {
        self.block_on(|| self.send(prompt))
    }

    /// Sends a prompt and returns the whole answer.
    pub async fn send(&self, prompt: &ModelPrompt) -> Result<ModelAnswer, ProviderError> {
        let deadline = Instant::now() + self.endpoint.timeouts.total;
        let mut n_attempts = 0;
        let mut n_retries = 0;
        let mut is_key_renewed = false;
        loop {
            let secret = match self.secret(deadline).await {
                Ok(secret) => secret,
                Err(error) => return Err(self.annotate(error, n_attempts, None)),
            };
            let options = *self.request_options();
            n_attempts += 1;
            let error = match self.request(prompt, options, secret.as_ref(), deadline).send().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if self.adapt(options, &error) {
                continue;
            }
            // The cached key of a command may have expired.
            if error.class == ErrorClass::Auth && self.endpoint.key.is_command() && !is_key_renewed {
                is_key_renewed = true;
                if self.refresh_key(secret.as_ref(), deadline).await {
                    continue;
                }
            }
            let remaining = deadline.saturating_duration_since(Instant::now());
            let pause = retry::retry_pause(&error, n_retries, remaining)
                .filter(|_| n_retries < self.endpoint.n_retries);
            let Some(pause) = pause else { return Err(self.annotate(error, n_attempts, secret.as_ref())) };
            n_retries += 1;
            sleep(pause).await;
        }
    }

    fn request<'a>(
        &'a self,
        prompt: &ModelPrompt,
        options: RequestOptions,
        secret: Option<&'a ApiKey>,
        deadline: Instant,
    ) -> HttpRequest<'a> {
        let Endpoint { provider, model, timeouts, .. } = &self.endpoint;
        HttpRequest {
            http: &self.http,
            provider_url: &self.provider_url,
            url: self.provider_url.completions(options.uses_url_as_written),
            secret,
            body: prompt::body(provider, model, prompt, options),
            timeouts,
            deadline,
        }
    }

    /// Applies the adaptation of an error. Returns false if it changes nothing.
    fn adapt(&self, options: RequestOptions, error: &ProviderError) -> bool {
        let adaptation = error.adaptation.filter(|adaptation| match adaptation {
            crate::error::Adaptation::UrlAsWritten => self.provider_url.has_fallback(),
            _ => true,
        });
        let Some(next) = adaptation.and_then(|adaptation| options.adapted(adaptation)) else { return false };
        *self.request_options() = next;
        true
    }

    fn request_options(&self) -> MutexGuard<'_, RequestOptions> {
        self.request_options.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cached_key(&self) -> MutexGuard<'_, Option<(ApiKey, Instant)>> {
        self.cached_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key: cached if it comes from a command, otherwise read again.
    pub(crate) async fn secret(&self, deadline: Instant) -> Result<Option<ApiKey>, ProviderError> {
        let cached = self
            .cached_key()
            .clone()
            .filter(|(_, at)| self.endpoint.key.is_command() && at.elapsed() < KEY_CACHE_TTL);
        if let Some((secret, _)) = cached {
            return Ok(Some(secret));
        }
        let result = timeout_at(deadline, self.endpoint.key.read()).await;
        let timeout_error = || {
            ProviderError::new(
                ErrorClass::Timeout,
                format!("reading {} timed out", self.endpoint.key.describe()),
            )
        };
        let secret = result.map_err(|_| timeout_error())??;
        *self.cached_key() = secret.clone().map(|secret| (secret, Instant::now()));
        Ok(secret)
    }

    /// Reads the key again. Returns whether it has changed.
    async fn refresh_key(&self, old: Option<&ApiKey>, deadline: Instant) -> bool {
        *self.cached_key() = None;
        self.secret(deadline).await.is_ok_and(|secret| secret.as_ref() != old)
    }

    /// Adds the target and the number of attempts to an error, and masks secrets in its message.
    pub(crate) fn annotate(
        &self,
        error: ProviderError,
        n_attempts: u32,
        secret: Option<&ApiKey>,
    ) -> ProviderError {
        let key = secret.map(|secret| secret.reveal().to_owned());
        let error = SecretMask::new(key.into_iter().chain(self.provider_url.secrets())).mask_error(error);
        let target = RequestTarget {
            address: self.provider_url.display(),
            model: self.endpoint.model.clone(),
            credential: self.endpoint.key.describe(),
        };
        ProviderError { target: Box::new(target), n_attempts, ..error }
    }

    /// Runs a future on a thread of its own, so that the caller may be inside of an async runtime.
    pub(crate) fn block_on<T, F>(&self, request: impl FnOnce() -> F + Send) -> Result<T, ProviderError>
    where
        T: Send,
        F: Future<Output = Result<T, ProviderError>>,
    {
        let connection_error =
            |message: String| self.annotate(ProviderError::new(ErrorClass::Connection, message), 0, None);
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(request()),
                Err(error) => Err(connection_error(format!("cannot start an async runtime: {error}"))),
            }
        };
        let joined = std::thread::scope(|scope| {
            let thread =
                std::thread::Builder::new().name("fanfold-provider".to_owned()).spawn_scoped(scope, run);
            thread.map(|thread| thread.join())
        });
        match joined {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(connection_error("the request panicked; this is a bug in fanfold".to_owned())),
            Err(error) => Err(connection_error(format!("cannot start a thread: {error}"))),
        }
    }

    /// The timeouts of the endpoint.
    pub(crate) fn timeouts(&self) -> &Timeouts {
        &self.endpoint.timeouts
    }
}

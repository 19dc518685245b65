//! A client of one endpoint: asks, waits, asks again where that makes sense, within one deadline.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::again;
use crate::endpoint::{Endpoint, Timeouts};
use crate::exchange::{Listener, Request, cause_of};
use crate::fault::{Asked, Class, Fault};
use crate::hearing::Answer;
use crate::key::Secret;
use crate::prompt::{self, Manner, Prompt};
use crate::route::{AddressError, Route};
use crate::veil::Veil;

/// A key that a command made is taken for good so long.
const KEPT: Duration = Duration::from_secs(300);

/// Asks one model at one address.
pub struct Client {
    pub(crate) endpoint: Endpoint,
    pub(crate) route: Route,
    pub(crate) sender: reqwest::Client,
    /// Guards how the server wants to be asked; whole values go in and out.
    manner: Mutex<Manner>,
    /// Guards the key that was read last, and when.
    key: Mutex<Option<(Secret, Instant)>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Client {
    /// A client of an endpoint. Nothing is sent yet, and no key is read.
    pub fn new(endpoint: Endpoint) -> Result<Client, AddressError> {
        let route = Route::parse(&endpoint.url, endpoint.style)?;
        // Whoever was first has chosen; all that matters is that there is one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(endpoint.timeouts.connect)
            .pool_idle_timeout(Duration::from_secs(60))
            .tcp_nodelay(true)
            // A key is sent to the address that was written, and to no other.
            .redirect(reqwest::redirect::Policy::none());
        if route.is_near() {
            builder = builder.no_proxy();
        }
        if route.is_near() && route.is_plain() {
            // A local server needs no certificates, and a small container has none.
            builder = builder.tls_certs_only([]);
        }
        let sender = builder
            .build()
            .map_err(|error| AddressError::NoSender { address: route.shown(), why: cause_of(&error) })?;
        Ok(Client { endpoint, route, sender, manner: Mutex::default(), key: Mutex::default() })
    }

    /// What it asks.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Asks, and waits for the whole answer on this thread. It may be called from anywhere.
    pub fn ask(&self, prompt: &Prompt) -> Result<Answer, Fault> {
        self.block_on(|| self.send(prompt))
    }

    /// Asks, and gives the whole answer.
    pub async fn send(&self, prompt: &Prompt) -> Result<Answer, Fault> {
        self.converse(prompt, &mut |_| {}, false).await
    }

    /// Asks, and tells the words of the answer as they come. What was told is not taken back: an answer that breaks off
    /// is not asked for again.
    pub async fn stream(&self, prompt: &Prompt, mut on: impl FnMut(&str) + Send) -> Result<Answer, Fault> {
        self.converse(prompt, &mut on, true).await
    }

    async fn converse(&self, prompt: &Prompt, on: Listener<'_>, is_heard: bool) -> Result<Answer, Fault> {
        let until = Instant::now() + self.endpoint.timeouts.total;
        let mut n_tries = 0;
        let mut n_retries = 0;
        let mut is_key_renewed = false;
        let mut is_begun = false;
        loop {
            let secret = match self.secret(until).await {
                Ok(secret) => secret,
                Err(fault) => return Err(self.named(fault, n_tries, None)),
            };
            let manner = *self.manner();
            n_tries += 1;
            let mut heard = |piece: &str| {
                is_begun = true;
                on(piece);
            };
            let fault = match self.request(prompt, manner, secret.as_ref(), until).run(&mut heard).await {
                Ok(answer) => return Ok(answer),
                Err(fault) => fault,
            };
            if is_heard && is_begun {
                return Err(self.named(fault, n_tries, secret.as_ref()));
            }
            if self.learn(manner, &fault) {
                continue;
            }
            // A key that a command made may have run out since.
            if fault.class == Class::Auth && self.endpoint.key.is_made() && !is_key_renewed {
                is_key_renewed = true;
                if self.renew(secret.as_ref(), until).await {
                    continue;
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            let pause = again::pause(&fault, n_retries, left).filter(|_| n_retries < self.endpoint.n_retries);
            let Some(pause) = pause else { return Err(self.named(fault, n_tries, secret.as_ref())) };
            n_retries += 1;
            sleep(pause).await;
        }
    }

    fn request<'a>(
        &'a self,
        prompt: &Prompt,
        manner: Manner,
        secret: Option<&'a Secret>,
        until: Instant,
    ) -> Request<'a> {
        let Endpoint { style, model, timeouts, .. } = &self.endpoint;
        Request {
            sender: &self.sender,
            style: *style,
            is_azure: self.route.is_azure(),
            url: self.route.asking(manner.is_as_written),
            secret,
            body: prompt::body(*style, model, prompt, manner),
            timeouts,
            until,
        }
    }

    /// Takes the lesson of a refusal, and says whether there is something new to try.
    fn learn(&self, asked: Manner, fault: &Fault) -> bool {
        let lesson = fault.lesson.filter(|lesson| match lesson {
            crate::fault::Lesson::AsWritten => self.route.has_other(),
            _ => true,
        });
        let Some(next) = lesson.and_then(|lesson| asked.after(lesson)) else { return false };
        *self.manner() = next;
        true
    }

    fn manner(&self) -> MutexGuard<'_, Manner> {
        self.manner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, Option<(Secret, Instant)>> {
        self.key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key, if there is one: as it was read last, or anew.
    pub(crate) async fn secret(&self, until: Instant) -> Result<Option<Secret>, Fault> {
        let kept = self.kept().clone().filter(|(_, at)| self.endpoint.key.is_made() && at.elapsed() < KEPT);
        if let Some((secret, _)) = kept {
            return Ok(Some(secret));
        }
        let read = timeout_at(until, self.endpoint.key.read()).await;
        let late =
            || Fault::new(Class::Timeout, format!("{} did not come in time", self.endpoint.key.told()));
        let secret = read.map_err(|_| late())??;
        *self.kept() = secret.clone().map(|secret| (secret, Instant::now()));
        Ok(secret)
    }

    /// Reads the key anew, and says whether it is another one.
    async fn renew(&self, old: Option<&Secret>, until: Instant) -> bool {
        *self.kept() = None;
        self.secret(until).await.is_ok_and(|secret| secret.as_ref() != old)
    }

    /// A fault with all that a person has to know, and nothing that nobody may.
    pub(crate) fn named(&self, fault: Fault, n_tries: u32, secret: Option<&Secret>) -> Fault {
        let key = secret.map(|secret| secret.reveal().to_owned());
        let fault = Veil::new(key.into_iter().chain(self.route.secrets())).over_fault(fault);
        let asked = Asked {
            place: self.route.shown(),
            model: self.endpoint.model.clone(),
            credential: self.endpoint.key.told(),
        };
        Fault { asked: Box::new(asked), n_tries, ..fault }
    }

    /// Waits on a thread of its own, so that who calls may be inside of a runtime.
    pub(crate) fn block_on<T, F>(&self, work: impl FnOnce() -> F + Send) -> Result<T, Fault>
    where
        T: Send,
        F: Future<Output = Result<T, Fault>>,
    {
        let failed = |words: String| self.named(Fault::new(Class::Connection, words), 0, None);
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

//! A body that came, read on a blocking thread: unpacked, and looked at for its model and for what is remembered. All of
//! that is our own work, so it has the same deadline and the same places as a fold.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanfold_engine::Mode;
use fanfold_wire::Format;
use http::HeaderMap;

use crate::admission::body_quota::Space;
use crate::pipeline::Shared;
use crate::prepare::memory::Minded;
use crate::prepare::prepared_body::Reason;
use crate::receive::encoding::{self, Packed};
use crate::receive::model::model;

/// A body as it came.
#[derive(Clone)]
pub(crate) struct Unread {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) format: Format,
    /// The session that the client named.
    pub(crate) named: Option<String>,
}

/// A body that was read.
pub(crate) struct Read {
    /// The body, unpacked.
    pub(crate) body: Bytes,
    /// Where it is held, if unpacking made it larger.
    pub(crate) space: Arc<Space>,
    /// The model that it names.
    pub(crate) model: Option<String>,
    /// What is remembered for it.
    pub(crate) minded: Option<Minded>,
    /// What that took of its deadline.
    pub(crate) took: Duration,
}

impl Shared {
    /// Reads a body, or says why it leaves as it came.
    pub(crate) async fn read(self: &Arc<Shared>, unread: Unread) -> Result<Read, Reason> {
        let began = Instant::now();
        let work = async {
            let mut space = Space::default();
            if encoding::is_packed(&unread.headers) {
                // How large it becomes is known before any of it is held.
                let (packed, limit) = (unread.clone(), self.limits.body);
                let measure = move || encoding::measure(&packed.headers, &packed.body, limit);
                let n_bytes = self.at_a_place(measure).await??;
                self.shelf.grow(&mut space, n_bytes).await;
            }
            let shared = Arc::clone(self);
            self.at_a_place(move || shared.read_now(&unread, space, began)).await?
        };
        tokio::time::timeout(self.limits.deadline, work).await.unwrap_or(Err(Reason::Deadline))
    }

    fn read_now(&self, unread: &Unread, space: Space, began: Instant) -> Result<Read, Reason> {
        let body = encoding::unpack(&unread.headers, &unread.body, self.limits.body)?;
        let text = std::str::from_utf8(&body).ok();
        let memory = self.memory.as_ref().filter(|_| self.folder.mode() == Mode::Fold);
        let minded = memory.zip(text).and_then(|(memory, text)| {
            let (named, deadline) = (unread.named.as_deref(), self.limits.deadline);
            memory.minded(text, unread.format, named, deadline, &self.meter)
        });
        let model = text.and_then(model);
        Ok(Read { body, space: Arc::new(space), model, minded, took: began.elapsed() })
    }

    /// Does something that takes a while, on a thread of its own. If it is late, it keeps its place until it is done.
    async fn at_a_place<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Reason> {
        let place = Arc::clone(&self.folder.places).acquire_owned().await.map_err(|_| Reason::Deadline)?;
        let work = move || {
            let done = work();
            drop(place);
            done
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| Reason::Panicked)
    }
}

impl From<Packed> for Reason {
    fn from(packed: Packed) -> Reason {
        match packed {
            Packed::TooLarge => Reason::TooLarge,
            Packed::Unknown | Packed::Broken => Reason::Packed,
        }
    }
}

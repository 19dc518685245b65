//! The background worker: runs jobs for a provider one by one, in order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::Receiver;

use crate::client::event::MemoryEvent;
use crate::client::state::ClientState;
use crate::provider::connection::ProviderConnection;
use crate::provider::error::MemoryError;

/// Maximum number of attempts of a write while the provider is unreachable.
const MAX_ATTEMPTS: usize = 3;
/// Delay before the next attempt, unless the provider is in a backoff of its own.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A queued job.
#[derive(Debug)]
pub(crate) enum MemoryJob {
    /// Store the prompt and the answer of a turn.
    Sync { conversation: String, user: String, assistant: String },
    /// Search for text that the next turn may need.
    Prefetch { conversation: String, query: String },
    /// Offer folded text.
    Offer { conversation: String, texts: Vec<String> },
    /// End a conversation.
    End { conversation: String },
}

impl MemoryJob {
    pub(crate) fn kind(&self) -> JobKind {
        match self {
            MemoryJob::Sync { .. } | MemoryJob::Offer { .. } => JobKind::Write,
            MemoryJob::Prefetch { .. } => JobKind::Prefetch,
            MemoryJob::End { .. } => JobKind::End,
        }
    }
}

/// How a job is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobKind {
    /// A job whose loss loses data.
    Write,
    /// A job whose loss only costs time.
    Prefetch,
    /// A notification, which is not counted.
    End,
}

/// Runs jobs until the queue is closed. While it is empty, idle conversations are ended.
pub(crate) async fn run_worker(state: Arc<ClientState>, mut jobs: Receiver<MemoryJob>) {
    let idle = state.limits.idle;
    loop {
        let time_to_idle = state.locked().conversations.time_to_idle(idle, Instant::now());
        let job = match tokio::time::timeout(time_to_idle, jobs.recv()).await {
            Ok(Some(job)) => job,
            Ok(None) => break,
            Err(_) => {
                // End one conversation, then look at the queue again.
                let idle_conversation = state.locked().conversations.take_idle(idle, Instant::now());
                if let Some(conversation) = idle_conversation {
                    run_job(&state, MemoryJob::End { conversation }).await;
                }
                continue;
            }
        };
        let kind = job.kind();
        let is_useless = state.is_stopping() && kind == JobKind::Prefetch;
        if !is_useless {
            run_job(&state, job).await;
            state.job_finished(kind);
        }
    }
    let left = state.locked().conversations.take_all();
    for conversation in left {
        run_job(&state, MemoryJob::End { conversation }).await;
    }
}

async fn run_job(state: &Arc<ClientState>, job: MemoryJob) {
    let Some(provider) = &state.provider else { return };
    let event = match &job {
        MemoryJob::Prefetch { conversation, query } => {
            if let Ok(text) = provider.search(conversation, query).await {
                state.store_fallback(conversation, Some(text).filter(|text| !text.is_empty()));
            }
            return;
        }
        MemoryJob::End { conversation } => {
            let _ = provider.end(conversation).await;
            return;
        }
        MemoryJob::Sync { .. } => MemoryEvent::Synced,
        MemoryJob::Offer { .. } => MemoryEvent::Offered,
    };
    match write_with_retry(state, provider, &job).await {
        Ok(()) => {
            state.report_success();
            state.count(event);
        }
        Err(error) => {
            state.report_error(&error);
            state.count(MemoryEvent::WriteFailed);
        }
    }
}

/// Writes, and retries if the connection failed.
async fn write_with_retry(
    state: &ClientState,
    provider: &ProviderConnection,
    job: &MemoryJob,
) -> Result<(), MemoryError> {
    let mut n_attempts = 1;
    loop {
        let result = match job {
            MemoryJob::Sync { conversation, user, assistant } => {
                provider.sync(conversation, user, assistant).await
            }
            MemoryJob::Offer { conversation, texts } => provider.offer(conversation, texts).await,
            MemoryJob::Prefetch { .. } | MemoryJob::End { .. } => Ok(()),
        };
        let Err(error) = result else { return Ok(()) };
        let delay = match &error {
            MemoryError::BackingOff(delay) => *delay,
            error if error.is_connection_error() => RETRY_DELAY,
            _ => return Err(error),
        };
        if n_attempts == MAX_ATTEMPTS || delay > state.limits.call {
            return Err(error);
        }
        state.report_error(&error);
        n_attempts += 1;
        tokio::time::sleep(delay).await;
    }
}

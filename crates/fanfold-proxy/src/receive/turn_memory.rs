//! Memory of a turn: a lookup when its first request arrives, and a record of the answer after it.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use fanfold_core::{Handle, Tokens};
use fanfold_engine::SessionEngine;
use fanfold_memory::{MemoryClient, MemoryTurn, PendingRecall};
use fanfold_redact::redact_within;
use fanfold_store::SessionId;
use fanfold_wire::{Incoming, accepts_memory_block, user_prompts};

use crate::meter::Meter;

/// Memory for conversations that pass through the proxy.
#[derive(Clone)]
pub struct ProxyMemory {
    /// The connection to the memory provider. Its owner closes it.
    pub client: Arc<MemoryClient>,
    /// Maximum size of a memory block.
    pub max_tokens: Tokens,
}

/// A request whose turn is remembered.
#[derive(Clone)]
pub(crate) struct TurnMemory {
    proxy_memory: ProxyMemory,
    meter: Arc<Meter>,
    turn: MemoryTurn,
    lookup: PendingRecall,
}

impl ProxyMemory {
    /// Starts the lookup for a request, with half of its deadline. Returns `None` if it has no user prompt.
    pub(crate) fn start_turn(
        &self,
        body: &Incoming,
        session_name: Option<&str>,
        deadline: Duration,
        meter: &Arc<Meter>,
    ) -> Option<TurnMemory> {
        if !accepts_memory_block(body.text(), body.format()) {
            return None;
        }
        let turn = MemoryTurn::from_prompts(&user_prompts(body.text(), body.format()), session_name)?;
        let lookup = self.client.recall(&turn, deadline / 2);
        Some(TurnMemory { proxy_memory: self.clone(), meter: Arc::clone(meter), turn, lookup })
    }
}

impl TurnMemory {
    /// Maximum size of the memory block.
    pub(crate) fn max_tokens(&self) -> Tokens {
        self.proxy_memory.max_tokens
    }

    /// The text that was found. This blocks until the lookup ends or its deadline passes.
    pub(crate) fn text(&self) -> Option<String> {
        self.proxy_memory.client.recalled_text(&self.lookup)
    }

    /// Offers newly folded originals to the memory provider.
    pub(crate) fn offer(&self, engine: &SessionEngine, session: &SessionId, handles: &[Handle]) {
        if handles.is_empty() {
            return;
        }
        // Secrets are redacted in the whole text: a part may not show that it belongs to a secret.
        let originals = engine.with_cached(session, |followed| {
            let wholes = handles.iter().filter_map(|handle| followed.session.recall_in_context(*handle).ok());
            let clean = |parts: Vec<(String, Range<usize>)>| -> String {
                parts.iter().map(|(whole, part)| redact_within(whole, part.clone())).collect()
            };
            wholes.map(clean).collect::<Vec<String>>()
        });
        self.proxy_memory.client.offer_folded(&self.turn, &originals.unwrap_or_default());
    }

    /// Records the answer of the turn.
    pub(crate) fn record_answer(&self, answer: &str) {
        self.proxy_memory.client.turn_answered(&self.turn, answer);
    }

    /// Counts an answer after removal of quoted memory.
    pub(crate) fn count_scrubbed(&self) {
        self.meter.count_memory("scrubbed");
    }
}

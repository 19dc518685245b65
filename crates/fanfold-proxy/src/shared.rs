//! State shared by all requests of a proxy.

use std::sync::Arc;

use axum::Router;
use fanfold_http::{Token, WebAccess};
use tokio_util::task::TaskTracker;

use crate::admission::body_quota::BodyQuota;
use crate::admission::fold_slots::FoldSlots;
use crate::config::{Config, Limits};
use crate::local::api;
use crate::meter::Meter;
use crate::prepare::folding::Folder;
use crate::prepare::provider_quirks::ProviderQuirks;
use crate::prepare::window_probe::WindowProbes;
use crate::receive::pending_recalls::PendingRecalls;
use crate::receive::turn_memory::ProxyMemory;
use crate::receive::upstream::Upstreams;
use crate::reconnecting_engine::ReconnectingEngine;
use crate::send::http_clients::HttpClients;
use crate::server::ServeError;

pub(crate) struct Shared {
    pub(crate) upstreams: Upstreams,
    pub(crate) http: HttpClients,
    pub(crate) engine: Arc<ReconnectingEngine>,
    pub(crate) fold_slots: FoldSlots,
    pub(crate) folder: Folder,
    /// Recalls that providers wait for.
    pub(crate) pending_recalls: PendingRecalls,
    pub(crate) quirks: Arc<ProviderQuirks>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) window_probes: Arc<WindowProbes>,
    pub(crate) memory: Option<ProxyMemory>,
    pub(crate) mcp: Option<Router>,
    pub(crate) api: Router,
    pub(crate) token: Option<Token>,
    pub(crate) web_access: WebAccess,
    pub(crate) limits: Limits,
    pub(crate) body_quota: BodyQuota,
    /// Name of this proxy in `via` headers, to detect forwarding loops.
    pub(crate) via_name: String,
    /// Work that continues after a response was sent.
    pub(crate) tasks: TaskTracker,
}

impl Shared {
    pub(crate) fn new(config: &Config) -> Result<Shared, ServeError> {
        let quirks = Arc::<ProviderQuirks>::default();
        let engine = Arc::new(ReconnectingEngine::new(Arc::clone(&config.host)));
        let for_api = Arc::clone(&engine);
        Ok(Shared {
            upstreams: config.upstreams.clone(),
            http: HttpClients::new(&config.limits, config.ca.as_deref(), &config.upstreams)?,
            folder: Folder::new(config, &engine, &quirks),
            engine,
            fold_slots: FoldSlots::new(config.limits.concurrent_folds),
            pending_recalls: PendingRecalls::default(),
            quirks,
            meter: Arc::clone(&config.meter),
            window_probes: Arc::default(),
            memory: config.memory.clone(),
            mcp: config.mcp.clone(),
            api: api::router(Arc::new(move || Ok(for_api.get()))),
            token: config.token.clone(),
            web_access: config.web_access.clone(),
            limits: config.limits,
            body_quota: BodyQuota::new(config.limits.buffered_bytes),
            via_name: format!("fanfold-{:016x}", fastrand::u64(..)),
            tasks: TaskTracker::new(),
        })
    }
}

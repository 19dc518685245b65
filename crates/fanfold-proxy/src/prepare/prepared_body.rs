//! A body that is ready to be sent.

use std::time::{Duration, Instant};

use bytes::Bytes;
use fanfold_core::Tokens;
use fanfold_store::SessionId;

use crate::meter::FoldSnapshot;
use crate::outcome::{BypassReason, ProxyOutcome};
use crate::prepare::provider_quirks::Form;

/// A body that is ready to be sent, with all edits. Nothing changes it afterwards.
#[derive(Debug, Clone)]
pub(crate) struct PreparedBody {
    /// The body; `None` for the received body.
    pub(crate) body: Option<Bytes>,
    /// The body before the rules of the provider were applied; `None` for the received body.
    pub(crate) unruled: Option<Bytes>,
    /// The form that the provider accepts, as far as it is known.
    pub(crate) form: Form,
    pub(crate) session: Option<SessionId>,
    pub(crate) outcome: ProxyOutcome,
    /// True if the body has the recall tool.
    pub(crate) has_tool: bool,
    /// True if the recall tool was removed because the provider rejects it.
    pub(crate) lost_tool: bool,
    pub(crate) counted: Option<LocalCount>,
    /// Sizes and folds, for the meter.
    pub(crate) snapshot: Option<FoldSnapshot>,
    /// Timed parts of the work, for spans.
    pub(crate) timings: Vec<Timing>,
}

/// A timed part of the work on a request.
pub(crate) type Timing = (&'static str, Instant, Duration);

/// The size of a body by the local token counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LocalCount {
    pub(crate) tokens: Tokens,
    pub(crate) window: Tokens,
}

impl PreparedBody {
    /// The received body, sent unchanged for a reason.
    pub(crate) fn unchanged(reason: BypassReason) -> PreparedBody {
        PreparedBody {
            body: None,
            unruled: None,
            form: Form::AsMade,
            session: None,
            outcome: ProxyOutcome::Unchanged(reason),
            has_tool: false,
            lost_tool: false,
            counted: None,
            snapshot: None,
            timings: Vec::new(),
        }
    }
}

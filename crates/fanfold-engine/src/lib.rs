//! One request from start to end: messages are stored, folds are recorded, then the view is sent.
//!
//! The engine orders effects and takes no decision about content. A session's view is a function of its messages and
//! its event log. Both are in the store; the cached sessions only save the time of a replay.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

mod clock; //        the current time, and sleeping
mod lease; //        named locks in the store that expire
mod log; //          the events of a session, and which of them are in force
mod follow; //       conversations and sessions in memory
mod engine; //       a store, a clock and the cached sessions
mod outage; //       sessions continue in memory while the store fails
mod sessions; //     titles, checkpoints, forks, retention
mod recall; //       originals recalled from the store alone
mod request; //      a request from the client's body to the bytes to send
mod summary_jobs; // summaries written by a model in the background
mod io; //           export and import

pub use clock::{Clock, MachineClock};
pub use engine::{OpError, SessionEngine, store_hint, store_message};
pub use follow::folded_conversation::{
    FoldOptions, FoldedConversation, Sizes, count_changes, decode, messages_of,
};
pub use follow::parallel::Threads;
pub use follow::terms::Terms;
pub use io::duplicates::ImportedIds;
pub use io::import::{Import, ImportOutcome};
pub use io::opening_words::opening_words;
pub use log::backoff::Backoff;
pub use log::body_edits::{BodyEdits, ProviderRules};
pub use log::events::{
    FoldRecord, HiddenRecall, HiddenRecallRecord, LoggedEvent, MoveReason, NewTerms, SentRequest,
    SessionEvent, SummaryRecord, TipMove,
};
pub use log::message_styles::MessageStyles;
pub use log::recall_offer::RecallOffer;
pub use recall::any_session::{FoundOriginal, HandleSearch};
pub use recall::handle_text::{HandleTextError, find_handle};
pub use recall::handles::{OpenError, nearest_handles};
pub use request::memory_block::MemoryRecall;
pub use request::pipeline::{FoldOutcome, Mode, RequestError, RequestInput, RequestOutcome};
pub use request::provider_reports::LengthRefusal;
pub use request::rebuild::{RebuiltRequest, RestoreTerms};
pub use request::recognise::{RecognisedBody, SessionMatch};
pub use request::resend::{BodyForm, RefusedBody, Resend};
pub use sessions::checkpoints::{Checkpoint, MoveOutcome, RewindTarget};
pub use sessions::labels::clean_title;
pub use sessions::last_window::RecordedTerms;
pub use sessions::retention::{PruneReport, Retention};
pub use sessions::status::SessionOverview;
pub use summary_jobs::{
    JobOutcome, ModelFailure, PendingSummary, SummaryModel, SummaryModels, SummaryProgress, SummaryTask,
    SummaryWriter, WrittenSummary, summarise_unstored,
};

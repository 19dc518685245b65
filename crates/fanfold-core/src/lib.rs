//! Fits a conversation into a token budget without losing a word of it.

mod model; //     the data
mod notation; //  the text notation for conversations
mod text; //      text analysis and condensers
mod actions; //   the actions of tool calls
mod facts; //     what steps stated and did
mod select; //    selects the lines that are kept
mod record; //    the readable account of folded steps
mod fold; //      decides what to fold
mod presets; //   policies
mod output; //    views, checks, recalls, metrics
mod session; //   a transcript and its ledger
pub mod summary; // summaries written by a model
mod engine; //    the interface of an engine
#[cfg(test)]
mod examples; //  the examples in headers

pub use actions::tool_rule::{ToolFold, ToolRule};
pub use actions::{Verb, Verdict, call_status, describe_call, overtakes, parse_action};
pub use engine::{
    Engine, EngineFactory, EngineSetup, EngineStatus, FoldAdvice, FoldRequest, SessionTransition,
};
pub use fold::economy::Economy;
pub use fold::ledger::Ledger;
pub use fold::originals::Original;
pub use fold::policy::Policy;
pub use fold::receipt::{Contributor, FoldTarget, FoldedItem, Notice, Overflow, Reason, Receipt};
pub use fold::segment::Segment;
pub use fold::step::{StepInput, step};
pub use model::budget::{Budget, Cadence, Pressure, Quality, Strategy};
pub use model::event::Event;
pub use model::handle::{Handle, HandleError};
pub use model::location::Place;
pub use model::parallel::{ParallelMap, Sequential, Task, parallel_map};
pub use model::prices::{CacheBoundary, PriceCliff, Prices};
pub use model::summary::Summary;
pub use model::tokens::{Count, FrameCosts, Tokens, Words, thousands};
pub use model::transcript::{
    Body, Call, CallId, Entry, EntryId, Media, NO_RESULT, OPENING, Origin, Outcome, Prompt, Speaker, Step,
    Transcript,
};
pub use model::usage::ProviderUsage;
pub use model::view::{Edit, Item, View, Voice};
pub use notation::{parse, print_entries, print_view};
pub use output::check::{ViewFault, check, check_deeply};
pub use output::feedback::{Feedback, FoldReport, FoldStatus, SummaryStatus};
pub use output::metrics::Metrics;
pub use output::pressure::new_pressure_level;
pub use output::recall::{Extent, RecallError, find_by_content, open_original, recall};
pub use output::recount::recount;
pub use output::search::{search_entries, search_folded};
pub use output::working_context::{WorkingContext, working_context};
pub use presets::{ALL_PASSES, Rules};
pub use record::layout::{RecordEntry, RecordText};
pub use record::state::StateSection;
pub use select::analysis::Analysis;
pub use session::{Session, ViewError};
pub use text::condense::{
    CondenseOptions, ContentKind, FileExcerpt, condense, condense_input, default_room, detect_kind,
};

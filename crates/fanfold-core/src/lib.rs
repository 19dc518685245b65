//! Fits a conversation into a token budget without losing a word of it.

mod tokens; //     what text costs
mod parallel; //   parallel execution, provided by the host
mod transcript; // what was said, exactly as it was said
mod notation; //   how a conversation is written down for people
mod budget; //     how much room there is
mod prices; //     what a provider charges
mod event; //      what matters but was not said
mod handle; //     how an original is named
mod deed; //       what a call did
mod condense; //   long texts made short by what they are
mod atoms; //      names, paths and ids in a text
mod value; //      how likely they are to be used again
mod economy; //    when a fold pays
mod account; //    what requests have cost
mod need; //       what is recalled when it is mentioned
pub mod summary; // what a model writes beside the digest
mod policy; //     what may be folded, from when on, in which order
mod edges; //      the oldest and the newest, which stay
mod slices; //     large originals in parts
mod spacing; //    arguments in one spacing
mod draft; //      which parts are being folded away
mod scan; //       entries taken apart once
mod words; //      the words of texts and names
mod copies; //     which of their lines may be copied
mod counted; //    texts whose lines are counted one by one
mod candidates; // which could stay, and what they are worth
mod choice; //     which of them do
mod changed; //    which lines of a file were worked on
mod stretch; //    what one handle opens
mod segment; //    folded steps as a few lines
mod shown; //      lines that stand in view
mod gist; //       the lines of one result worth most
mod passes; //     who decides that, and in which order
mod ledger; //     what was folded
mod overflow; //   why no view fits
mod step; //       one step of the fold over a conversation
mod view; //       what will be sent
mod check; //      what must hold for everything sent
mod recount; //    counts a view without trusting the ledger
mod recall; //     gives originals back
mod report; //     what each fold did and why
mod metrics; //    the same in numbers
mod feedback; //   what a person hears of a fold they asked for
mod session; //    a conversation being followed
mod working; //    what the agent has seen and done
mod engine; //     the contract by which an engine can be replaced

pub use budget::{Budget, Cadence, CadenceError, Pressure, Strategy, StrategyError};
pub use check::{Fault, check, check_deeply};
pub use condense::{FileShown, Kind, Outlines, Wish, condense, condense_written, kind_of, usual_room};
pub use deed::{
    Deed, Ending, LineRange, Lines, Sight, TestCounts, Verb, Verdict, deed_of, ending_of, line_of, overtakes,
};
pub use draft::Draft;
pub use economy::{Economy, Verdict as EconomyVerdict, Weighed};
pub use engine::{Ask, Engine, SessionChange, Should, Status, ToolOffer, Usage};
pub use event::Event;
pub use feedback::{Asked, Ended, Feedback, Written};
pub use handle::{Handle, HandleError};
pub use ledger::{Fold, Ledger, Original};
pub use metrics::Metrics;
pub use need::{Excerpt, Need};
pub use notation::{NotationError, parse, print_entries, print_view};
pub use parallel::{ParallelMap, Sequential, Task, parallel_map};
pub use passes::{ALL as ALL_PASSES, Pass};
#[doc(hidden)]
pub use policy::{Choice, Scorer};
pub use policy::{
    Digest, Head, LateSystem, Policy, Reach, Rules, Stage, SummaryCounts, Tail, ToolFold, ToolRule, Users,
};
pub use prices::{CacheEnds, PriceCliff, Prices};
pub use recall::{Extent, RecallError, find_by_content, open, recall, recall_within};
pub use recount::recount;
pub use report::{Contributor, Left, Notice, Overflow, PassReport, Reason, Receipt, What};
pub use segment::{Segment, SegmentPart};
pub use session::{Refusal, Session};
pub use step::{Moment, Outlook, step};
pub use summary::Summary;
pub use tokens::{Count, Frame, Tokens, Words, thousands};
pub use transcript::{
    Body, Call, CallId, Entry, EntryId, Media, NO_RESULT, OPENING, Origin, Outcome, Prompt, Speaker, Step,
    Transcript, Turn,
};
#[doc(hidden)]
pub use value::study;
pub use view::{Edit, Item, Place, View, Voice, assemble};
pub use working::{FileSeen, WorkingContext, working_context};

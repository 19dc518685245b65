//! What a person has set, from flags, environment and files, each read once.

mod size; //    numbers as people write them
mod summary; // who writes summaries
mod options; // everything that can be set
mod file; //    from files
mod env; //     from the environment
mod merge; //   which comes first

pub(crate) use file::{PROJECT_FILE, TEMPLATE, nearest, project_file, unknown_key, user_file};
pub(crate) use merge::{Settings, Shown, read};
pub(crate) use options::{
    Chain, CliffOptions, Color, FoldTool, MatchRule, MemoryOptions, Options, PriceOptions, ResultKind,
    ServeOptions, ToolOptions, UserText,
};
pub(crate) use size::{Share, Size};
pub(crate) use summary::{MainOptions, SummaryOptions, SummaryStyle};

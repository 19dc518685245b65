//! Settings from flags, environment and files. Each source is read once.

mod numbers; //     sizes, shares and amounts
mod declaration; // the macro behind the declaration
mod options; //     every setting
mod tables; //      tables and lists of a settings file
mod file; //        settings files
mod environment; // FANFOLD_* variables
mod sources; //     precedence, and where each value came from
mod template; //    what `config init` writes

pub(crate) use declaration::SettingDefault;
pub(crate) use file::{PROJECT_FILE, nearest, project_file, unknown_key, user_file};
pub(crate) use numbers::Size;
pub(crate) use options::{Color, ColorFlag, FoldFlags, Options, StoreFlags, UserText};
pub(crate) use sources::{DEFAULT_LISTEN, SettingValue, Settings, read};
pub(crate) use tables::{
    CliffOptions, FoldTool, MainOptions, MatchRule, MemoryOptions, PriceOptions, SummaryOptions,
    SummaryServer, ToolOptions,
};
pub(crate) use template::template;

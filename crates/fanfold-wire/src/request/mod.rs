//! Edits of requests, and questions about them, in any dialect.

pub(crate) mod recall_tool;
mod hidden_recalls;
mod memory_block;
mod alternating_roles;
mod edit_check;
mod summary_request;

pub use alternating_roles::alternate_roles;
pub use edit_check::{EditFault, check_edits};
pub use hidden_recalls::{HiddenRecalls, insert_hidden_recalls};
pub(crate) use memory_block::max_output;
pub use memory_block::{FENCE, FENCE_END, accepts_memory_block, append_memory_block, fence, user_prompts};
pub use recall_tool::{
    RECALL_TOOL, RecallRequest, accepts_recall_tool, add_recall_tool, recall_tool, remove_recall_tool,
};
pub use summary_request::is_summary_request;

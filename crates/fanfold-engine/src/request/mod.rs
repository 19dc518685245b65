//! A request, from the client's body to the bytes to send, and the reports of its provider.

pub(crate) mod recognise; //   the session that a body belongs to
mod common_messages; //        messages shared by a body and a session
mod hidden_recalls; //         recalls answered by fanfold, inserted into later bodies
pub(crate) mod receive; //     decoding, from the cached state where possible
pub(crate) mod append_batch; // the batch of a request
pub(crate) mod append; //      messages and changed settings written to the store
pub(crate) mod fold_lock; //   the lease that a process needs to record folds
pub(crate) mod resend; //      a refused request in another form
pub(crate) mod memory_block; // recalled memory at the end of a body
pub(crate) mod pipeline; //    the stages in order
pub(crate) mod provider_reports; // refusals and token counts
mod model_limits; //           context windows reported in refusals
pub(crate) mod rebuild; //     sent requests and views rebuilt from the store

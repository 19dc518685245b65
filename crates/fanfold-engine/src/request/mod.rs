//! A request, from the client's body to the bytes to send, and what its provider reports back.

pub(crate) mod recognise; //   the session that a body belongs to
mod common_messages; //        messages shared by a body and a session
mod hidden_recalls; //         recalls answered inside the proxy, put back into later bodies
pub(crate) mod receive; //     decoding, from the cached state where possible
pub(crate) mod append_batch; // the batch of a request
pub(crate) mod append; //      messages and changed settings written to the store
pub(crate) mod fold_lock; //   the lease that a process needs to record folds
pub(crate) mod body_edits; //  edits of an encoded body, recorded with its hash
pub(crate) mod memory_block; // recalled memory at the end of a body
pub(crate) mod pipeline; //    the stages in order
pub(crate) mod provider_reports; // refusals and token counts
mod model_limits; //           context windows learnt from refusals
pub(crate) mod rebuild; //     a sent request rebuilt from the store

//! Files: conversations read, outputs written.

pub(crate) mod input; //      reads a file or stdin
pub(crate) mod output; //     writes files atomically
pub(crate) mod size_limit; // makes the file size limit an ordinary error

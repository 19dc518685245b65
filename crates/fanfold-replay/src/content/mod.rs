//! The contents of a recorded conversation: its messages, and the parts of earlier messages that each reply uses.

pub(crate) mod text; //         words and boundaries
pub(crate) mod message; //      a parsed chat message
pub(crate) mod contents; //     each distinct message once
pub(crate) mod atoms; //        paths, identifiers and values in a reply
pub(crate) mod copied_spans; // longer copies from earlier messages
pub(crate) mod analysis; //     everything that does not depend on the policy
pub(crate) mod readability; //  decides whether an atom can be read in rewritten text

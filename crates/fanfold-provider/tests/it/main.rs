//! The contract of the client, over real sockets, against a provider with scripted faults.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod setup; //         a scripted provider and a client for it
mod answers; //       requests and answers
mod error_classes; // every error class, in a real exchange
mod timeouts; //      every timeout
mod retries; //       which errors are retried
mod adaptations; //   servers that require other request options
mod keys; //          keys are sent and masked
mod windows; //       context windows of servers

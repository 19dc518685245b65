//! Summaries by a model: whatever the provider does, nothing is lost, and what a person reads says what happened.

mod stage; //    a session that is folded, and two models over HTTP
mod tree; //     each way in which it may fail
mod rests; //    who is left alone after a failure, and until when
mod kept; //     summaries in the store: requests made again, forks, rewinds, two processes
mod secrets; //  what leaves, and what comes back
mod corpus; //   every kind of secret, in every setting
mod any; //      any sequence of faults

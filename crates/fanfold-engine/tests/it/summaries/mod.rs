//! Summaries by a model. No failure of a provider loses data, and every outcome is reported.

mod fixture; //       a folded session, and two models over HTTP
mod failures; //      each kind of failure
mod backoff; //       which models are skipped after a failure, and until when
mod stored; //        summaries in the store: rebuilt requests, forks, rewinds, two processes
mod redaction; //     secrets in prompts and answers
mod secret_corpus; // every kind of secret, in every setting
mod random_faults; // random sequences of faults

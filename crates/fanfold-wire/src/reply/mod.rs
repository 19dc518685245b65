//! What comes back from a provider: read as it passes, and never held up by the reading.

pub mod sse; // a stream of bytes to events

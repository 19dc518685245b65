//! Exports for other programs: counts for Prometheus, and spans for a collector.

pub(crate) mod prometheus; // the counts
pub(crate) mod trace; //      W3C trace context and spans
pub(crate) mod exporter; //   spans sent to a collector

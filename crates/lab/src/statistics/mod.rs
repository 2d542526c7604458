//! Numbers about samples.

//! A model of TCP with TLS 1.3: numbers without content.

pub mod segment;

pub use segment::Segment;

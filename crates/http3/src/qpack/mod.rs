//! QPACK (RFC 9204): field sections, both static and with the dynamic table.
//!
//! [`decode`] and [`Encoder`] are for sections that stand for themselves. [`Tables`] is the state of a connection whose
//! sections refer to dynamic tables: the peer's, which this end's decoder keeps, and this end's, which the peer's keeps.

mod decode;
mod decoder;
mod encode;
mod encoder;
mod huffman;
mod integer;
mod policy;
mod static_table;
mod table;
mod tables;

pub use decode::{DecodeError, Field, decode};
pub use encode::Encoder;
pub use tables::{Due, Tables, Takes};

pub(crate) use policy::is_secret;

use crate::limits::{MAX_ENCODER_TABLE, MAX_UNACKNOWLEDGED_SECTIONS, MAX_UNSENT_INSTRUCTIONS};

#[cfg(test)]
mod tests;

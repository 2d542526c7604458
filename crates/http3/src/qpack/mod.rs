//! QPACK (RFC 9204) without a dynamic table: its capacity is 0 in both directions, so every field section stands for
//! itself and no stream ever waits for another.

mod decode;
mod encode;
mod huffman;
mod instructions;
mod integer;
mod static_table;

pub use decode::{DecodeError, Field, decode};
pub use encode::Encoder;
pub use instructions::{DecoderStream, EncoderStream};

#[cfg(test)]
mod tests;

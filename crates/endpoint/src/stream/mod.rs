//! The two halves of a stream.

mod receive;
mod send;

pub use receive::RecvStream;
pub use send::SendStream;

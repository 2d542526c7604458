//! The two halves of a stream.

mod receive;
mod send;

pub use receive::RecvStream;
pub use send::SendStream;
pub(crate) use send::write_all;

//! The interface between the lab and the stacks that it drives: [`peer::Peer`], the packets between two peers, and the
//! segments of the TCP model.

pub mod packet;
pub mod peer;
pub mod segment;
pub mod spans;

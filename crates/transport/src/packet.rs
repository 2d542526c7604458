//! Packets and the frames in them: packet number spaces, building datagrams in place, the record of each frame sent, and
//! the interface of frame owners.

pub(crate) mod builder;
pub(crate) mod datagram;
pub(crate) mod early_spaces;
pub(crate) mod ecn;
pub(crate) mod fixed_bit;
pub(crate) mod frame_owner;
pub(crate) mod frame_writer;
pub(crate) mod retry;
pub(crate) mod sent_frame;
pub(crate) mod space;

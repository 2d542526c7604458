//! Who has frames for the peer in 1-RTT and 0-RTT packets. A further kind of frame is a further owner in the list
//! in `connection.rs`.

use crate::packet::frame_writer::FrameWriter;
use crate::packet::sent_frame::SentFrame;

/// A part of a connection that sends frames of its own among the application's data.
pub(crate) trait FrameOwner {
    /// True if it has a frame to send.
    fn has_unsent(&self) -> bool;

    /// Writes what fits into the packet.
    fn write(&mut self, writer: &mut FrameWriter<'_>);

    /// The peer has acknowledged a frame; false if it is another owner's.
    fn on_acked(&mut self, frame: &SentFrame) -> bool;

    /// A frame was lost; false if it is another owner's.
    fn on_lost(&mut self, frame: &SentFrame) -> bool;
}

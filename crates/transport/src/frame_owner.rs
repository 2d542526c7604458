//! Who has frames for the peer in 1-RTT and 0-RTT packets. A further kind of frame is a further owner in the list.

use crate::connection::Connection;
use crate::frame_writer::FrameWriter;
use crate::sent_frame::SentFrame;

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

impl Connection {
    /// The owners in the order in which their frames stand in a packet. Data come last: messages and streams.
    pub(crate) fn frame_owners(&mut self) -> [&mut dyn FrameOwner; 8] {
        let yields = self.datagrams.yields();
        let (datagrams, streams): (&mut dyn FrameOwner, &mut dyn FrameOwner) =
            (&mut self.datagrams, &mut self.streams);
        let (first, last) = if yields { (streams, datagrams) } else { (datagrams, streams) };
        [
            &mut self.local_ids,
            &mut self.remote_ids,
            &mut self.ack_requests,
            &mut self.grouping,
            &mut self.new_tokens,
            &mut self.eliciting,
            first,
            last,
        ]
    }

    /// True if an owner has a frame to send. Streams are asked first: they mostly have.
    pub(crate) fn has_owned_frames(&mut self) -> bool {
        self.fit_datagrams();
        self.frame_owners().into_iter().rev().any(|owner| owner.has_unsent())
    }
}

//! The owners of a connection's frames.

use crate::connection::Connection;
use crate::packet::frame_owner::FrameOwner;

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
            &mut self.acks.requests,
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

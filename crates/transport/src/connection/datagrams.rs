//! Messages of a connection, as its user sees them.

use bytes::Bytes;

use crate::connection::Connection;
use crate::datagrams::{DatagramOrder, PACKET_OVERHEAD, SendDatagramError, WhenFull};
use crate::packet::frame_owner::FrameOwner;

impl Connection {
    /// The most bytes that a message may have now ([`Self::send_datagram`]): what fits into one packet of the path in
    /// use, and what the peer takes. `None` if the peer takes none, or its transport parameters are not known yet. It
    /// changes with the path, and may fall.
    pub fn max_datagram_size(&self) -> Option<usize> {
        let overhead = PACKET_OVERHEAD + self.remote_ids.current().len();
        self.datagrams.largest(self.path.max_datagram_size().saturating_sub(overhead))
    }

    /// Sends a message in one DATAGRAM frame (RFC 9221) as soon as window and pacer let it out. It may be lost, and is
    /// not sent again; messages may arrive in another order.
    ///
    /// # Errors
    /// [`SendDatagramError`] if it cannot be sent; nothing has been queued then.
    pub fn send_datagram(&mut self, message: Bytes, when_full: WhenFull) -> Result<(), SendDatagramError> {
        if self.is_closed() {
            return Err(SendDatagramError::Closed);
        }
        // spec: rfc9221 5 one-frame-each
        let max = self.max_datagram_size().ok_or(SendDatagramError::Unsupported)?;
        if message.len() > max {
            return Err(SendDatagramError::TooLarge { max });
        }
        self.datagrams.send(message, when_full)
    }

    /// The next message of the peer's. At most 1,024 messages and 1 MiB wait; more make the oldest go, as
    /// [`DatagramStats::dropped_unread`](crate::DatagramStats::dropped_unread) counts.
    pub fn receive_datagram(&mut self) -> Option<Bytes> {
        self.datagrams.received.pop()
    }

    /// Ranks messages against stream data. Default: messages first.
    pub fn set_datagram_order(&mut self, order: DatagramOrder) {
        self.datagrams.order = order;
    }

    /// The path's datagrams may have become smaller since a message was taken.
    pub(crate) fn fit_datagrams(&mut self) {
        if self.datagrams.has_unsent() {
            let largest = self.max_datagram_size().unwrap_or(0);
            self.datagrams.drop_longer_than(largest);
        }
    }
}

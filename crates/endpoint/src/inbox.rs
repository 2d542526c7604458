//! Datagrams that have been received and that the transport has not been given yet.
//!
//! A batch may hold datagrams of many peers, and requests on many streams. The driver hands it on in parts, so that the
//! first requests are answered before the last are looked at.

use std::net::Ipv4Addr;

use bytes::BytesMut;
use posthaste_transport::DatagramInfo;
use quinn_udp::RecvMeta;

use crate::receive_buffers::{Arenas, ReceiveBuffers, Run};
use crate::socket;

/// Parts that a batch is handed on in at most. Each costs turns of the tasks and sends of its own: with eight, a request
/// takes 5 % more CPU time than with four, and no more of them are answered per second.
pub(crate) const PARTS: usize = 4;

/// The last batch of a socket, as far as it has not been handed on.
pub(crate) struct Inbox {
    /// Empty when the next batch is taken.
    buffers: ReceiveBuffers,
    arenas: Arenas,
    /// Receptions of the batch that are in `run` or have been.
    begun: usize,
    /// The rest of the reception at hand, and where it came from.
    run: Run,
    info: DatagramInfo,
    /// Datagrams that are left.
    left: usize,
    /// Datagrams of a part.
    part: usize,
    /// The socket has been replaced since.
    is_late: bool,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self {
            buffers: ReceiveBuffers::new(),
            arenas: Arenas::new(),
            begun: 0,
            run: Run::default(),
            info: DatagramInfo { remote: (Ipv4Addr::UNSPECIFIED, 0).into(), local_ip: None, ecn: None },
            left: 0,
            part: 1,
            is_late: false,
        }
    }

    /// Where the socket puts the next batch, once the last one [is handed on](Self::is_empty). Then call
    /// [`Self::begin`].
    pub(crate) fn buffers(&mut self) -> &mut ReceiveBuffers {
        &mut self.buffers
    }

    /// A batch has been received.
    pub(crate) fn begin(&mut self) {
        let stride = |meta: &RecvMeta| if meta.stride == 0 { meta.len } else { meta.stride };
        let datagrams = |(meta, data): (&RecvMeta, &[u8])| data.len().div_ceil(stride(meta).max(1));
        self.left = self.buffers.receptions().map(datagrams).sum();
        self.part = self.left.div_ceil(PARTS).max(1);
        (self.begun, self.is_late) = (0, false);
    }

    /// Nothing is left of the batch.
    pub(crate) fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Datagrams of a part: after these, tasks may answer before the next are handed on.
    pub(crate) fn part(&self) -> usize {
        self.part
    }

    /// Gives back memory that nobody needs any more.
    pub(crate) fn trim(&mut self) {
        self.arenas.trim();
    }

    /// What is left came by a socket that has been replaced since: where it came to is history.
    pub(crate) fn set_late(&mut self) {
        self.is_late = true;
        self.info.local_ip = None;
    }

    /// Where the datagram came from that [`Self::take`] gave last.
    pub(crate) fn info(&self) -> &DatagramInfo {
        &self.info
    }

    /// The next datagram.
    pub(crate) fn take(&mut self) -> Option<BytesMut> {
        while self.left > 0 {
            if let Some(datagram) = self.run.next() {
                self.left -= 1;
                return Some(datagram);
            }
            self.begin_reception();
        }
        None
    }

    /// Goes on with the next reception; none should be missing while datagrams are left.
    fn begin_reception(&mut self) {
        let Some((meta, data)) = self.buffers.receptions().nth(self.begun) else {
            self.left = 0;
            return;
        };
        self.begun += 1;
        let ecn = meta.ecn.map(socket::from_udp);
        self.info = DatagramInfo { remote: meta.addr, local_ip: meta.dst_ip.filter(|_| !self.is_late), ecn };
        self.run = self.arenas.place(data, meta.stride);
    }
}

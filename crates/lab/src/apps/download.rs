//! One exchange at a client: the part that all client applications share.

use bytes::Bytes;
use posthaste_units::Time;

use super::{Exchange, RESPONSE_HEADER_LENGTH, Request, is_content};
use crate::peer::{Peer, Read, StreamKey};

/// A response being read, every byte of it checked.
#[derive(Debug, Clone)]
pub(crate) struct Download {
    object: usize,
    stream: StreamKey,
    requested: Time,
    first_byte: Option<Time>,
    /// What the stack has not yet taken of the request; `None` once it is finished.
    request: Option<Bytes>,
    /// Header and body.
    length: u64,
    read: u64,
}

/// What reading has led to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// More is to come.
    Open,
    /// All is there.
    Done(Exchange),
    /// The response is wrong, and why.
    Failed(String),
}

impl Download {
    /// Requests `bytes` of body on a new stream, or `None` if the peer permits no stream now. `requested` is when
    /// the application wanted it. [`Self::pump`] must follow: only a read that finds nothing makes the stack tell
    /// when there is something.
    pub(crate) fn begin(
        now: Time,
        requested: Time,
        object: usize,
        bytes: u64,
        peer: &mut dyn Peer,
    ) -> Option<Self> {
        let stream = peer.open(now)?;
        let request = Request { body: bytes }.encode();
        Some(Self::on(now, requested, stream, object, (bytes, request), peer))
    }

    /// The same on one of the peer's connections, in a request of `request` bytes.
    pub(crate) fn begin_on(
        now: Time,
        requested: Time,
        leg: usize,
        object: usize,
        (bytes, request): (u64, usize),
        peer: &mut dyn Peer,
    ) -> Option<Self> {
        let stream = peer.open_on(now, leg)?;
        let request = Request { body: bytes }.encode_in(request);
        Some(Self::on(now, requested, stream, object, (bytes, request), peer))
    }

    fn on(
        now: Time,
        requested: Time,
        stream: StreamKey,
        object: usize,
        (bytes, request): (u64, Bytes),
        peer: &mut dyn Peer,
    ) -> Self {
        let request = Some(request);
        let length = RESPONSE_HEADER_LENGTH as u64 + bytes;
        let mut download = Self { object, stream, requested, first_byte: None, request, length, read: 0 };
        download.write_request(now, peer);
        download
    }

    /// The stream that it came on.
    pub(crate) fn stream(&self) -> StreamKey {
        self.stream
    }

    /// Index of the object.
    pub(crate) fn object(&self) -> usize {
        self.object
    }

    /// Bytes read so far, the header among them.
    pub(crate) fn read(&self) -> u64 {
        self.read
    }

    /// Body bytes read so far.
    pub(crate) fn body_read(&self) -> u64 {
        self.read.saturating_sub(RESPONSE_HEADER_LENGTH as u64)
    }

    fn write_request(&mut self, now: Time, peer: &mut dyn Peer) {
        let Some(request) = &mut self.request else { return };
        peer.write(now, self.stream, request);
        if request.is_empty() {
            self.request = None;
            peer.finish(now, self.stream);
        }
    }

    /// Writes what is left of the request, then reads at most `max` bytes.
    pub(crate) fn pump(&mut self, now: Time, peer: &mut dyn Peer, max: u64) -> Step {
        self.write_request(now, peer);
        let until = self.read.saturating_add(max).min(self.length);
        while self.read < until || self.read == self.length {
            // After the last byte only the end is wanted: it costs nothing.
            let wanted = usize::try_from((until - self.read).max(1)).unwrap_or(usize::MAX);
            match peer.read(now, self.stream, wanted) {
                Read::Data(data) => {
                    if let Err(reason) = self.take(now, &data) {
                        return Step::Failed(reason);
                    }
                }
                Read::Blocked => return Step::Open,
                Read::Finished => return self.finish(now),
                Read::Reset => return Step::Failed("the stream was reset".to_owned()),
            }
        }
        Step::Open
    }

    /// Checks and counts what was read.
    fn take(&mut self, now: Time, data: &[u8]) -> Result<(), String> {
        if self.read + data.len() as u64 > self.length {
            return Err(format!("more than {} bytes", self.length));
        }
        if !is_content(self.read, data) {
            return Err(format!("wrong bytes near {}", self.read));
        }
        self.first_byte.get_or_insert(now);
        self.read += data.len() as u64;
        Ok(())
    }

    fn finish(&self, now: Time) -> Step {
        if self.read != self.length {
            let (read, length) = (self.read, self.length);
            return Step::Failed(format!("{read} bytes instead of {length}"));
        }
        Step::Done(Exchange {
            object: self.object,
            requested: self.requested,
            first_byte: self.first_byte.unwrap_or(now),
            finished: now,
            bytes: self.body_read(),
        })
    }
}

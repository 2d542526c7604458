//! One datagram under construction: coalescing, padding, sealing (RFC 9000 sections 12.2 and 14.1).
//!
//! Packets stay open until the datagram is finished, because only then is it known which packet is the last
//! and takes the padding. Nothing is copied: headers, frames and tags are written where they will be sent.

use posthaste_wire::ConnectionId;
use posthaste_wire::packet::header::{self, LongLayout};
use posthaste_wire::packet::{PacketType, TruncatedNumber};
use smallvec::SmallVec;

use crate::crypto::{TAG_LEN, min_payload_len};
use crate::packet::frame_writer::FrameWriter;
use crate::packet::sent_frame::SentFrames;
use crate::packet::space::PacketSpace;

/// Datagrams that carry Initial packets or path validation frames are at least this long (RFC 9000
/// sections 14.1 and 8.2.1).
pub(crate) const MIN_INITIAL_DATAGRAM: usize = 1200;

/// A packet whose frames are written and which is not sealed yet.
pub(crate) struct OpenPacket {
    /// Its packet number space.
    pub(crate) space: PacketSpace,
    /// True for a 0-RTT packet.
    pub(crate) is_early: bool,
    /// Its packet number.
    pub(crate) number: u64,
    start: usize,
    number_at: usize,
    header_len: usize,
    length_at: Option<usize>,
    end: usize,
    /// What it carries.
    pub(crate) frames: SentFrames,
    /// True if the peer must acknowledge it.
    pub(crate) ack_eliciting: bool,
    /// True if it counts as in flight.
    pub(crate) in_flight: bool,
}

/// How a packet's header is to look.
pub(crate) struct HeaderFields<'a> {
    /// The connection's version.
    pub(crate) version: u32,
    /// The packet's space; names the header's form.
    pub(crate) space: PacketSpace,
    /// True for a 0-RTT packet, which is of the 1-RTT packets' space.
    pub(crate) is_early: bool,
    /// The packet number, in full.
    pub(crate) number: u64,
    /// The packet number, as sent.
    pub(crate) truncated: TruncatedNumber,
    /// The peer's ID.
    pub(crate) destination: &'a ConnectionId,
    /// This end's ID, for long headers.
    pub(crate) source: &'a ConnectionId,
    /// The address token, for Initials.
    pub(crate) token: &'a [u8],
    /// False to clear the fixed bit of a short header (RFC 9287).
    pub(crate) fixed_bit: bool,
    /// The key phase, for short headers.
    pub(crate) key_phase: bool,
}

/// Where in the buffer a finished packet stands.
pub(crate) struct Sealable<'a> {
    /// Header, payload and room for the tag.
    pub(crate) bytes: &'a mut [u8],
    /// Position of the packet number.
    pub(crate) number_at: usize,
    /// Length of the header, packet number included.
    pub(crate) header_len: usize,
}

impl OpenPacket {
    /// Its size in bytes, once its datagram is finished.
    pub(crate) fn size(&self) -> usize {
        self.end - self.start
    }
}

/// The packets of a datagram; after the handshake it is one.
pub(crate) type Packets = SmallVec<[OpenPacket; 1]>;

/// One datagram under construction at the end of a buffer that may hold others.
pub(crate) struct DatagramBuilder<'a> {
    buffer: &'a mut Vec<u8>,
    start: usize,
    limit: usize,
    pad_to: usize,
    packets: Packets,
}

impl<'a> DatagramBuilder<'a> {
    /// A datagram of at most `max_len` bytes that begins at the end of `buffer`.
    pub(crate) fn new(buffer: &'a mut Vec<u8>, max_len: usize) -> Self {
        let start = buffer.len();
        Self { buffer, start, limit: start + max_len, pad_to: 0, packets: SmallVec::new() }
    }

    /// Adds a packet whose frames `fill` writes. A packet without a frame leaves no trace; false then.
    ///
    /// Also false if the datagram has no room for a packet of any use.
    pub(crate) fn packet(
        &mut self,
        fields: &HeaderFields<'_>,
        fill: impl FnOnce(&mut FrameWriter<'_>),
    ) -> bool {
        let start = self.buffer.len();
        let header_room = match long_type(fields) {
            None => header::short_header_len(fields.destination, fields.truncated),
            Some(packet_type) => header::long_header_len(
                packet_type,
                fields.destination,
                fields.source,
                fields.token,
                fields.truncated,
            ),
        };
        // The least useful packet: a PING, padded for the header protection sample.
        if start + header_room + TAG_LEN + 4 > self.limit {
            return false;
        }
        let (number_at, length_at) = self.write_header(fields);
        let header_end = self.buffer.len();
        let mut writer = FrameWriter::new(self.buffer, self.limit - TAG_LEN);
        fill(&mut writer);
        let (frames, ack_eliciting, in_flight) = writer.finish();
        // spec: rfc9000 12.4 some-frame-sent
        if self.buffer.len() == header_end {
            self.buffer.truncate(start);
            return false;
        }
        let number_len = usize::from(fields.truncated.len);
        let least = header_end + min_payload_len(number_len);
        if self.buffer.len() < least {
            self.buffer.resize(least, 0);
        }
        self.buffer.resize(self.buffer.len() + TAG_LEN, 0);
        if fields.space == PacketSpace::Initial {
            // spec: rfc9000 14.1 client-expands, 14.1 server-expands, 8.1 client-pads-initials, 14 least-path
            // spec: rfc9001 9.3 hello-padded, rfc9002 6.2.2.1 client-sends-initial
            self.pad_to(MIN_INITIAL_DATAGRAM);
        }
        self.packets.push(OpenPacket {
            space: fields.space,
            is_early: fields.is_early,
            number: fields.number,
            start,
            number_at: number_at - start,
            header_len: header_end - start,
            length_at: length_at.map(|at| at - start),
            end: self.buffer.len(),
            frames,
            ack_eliciting,
            in_flight,
        });
        true
    }

    fn write_header(&mut self, fields: &HeaderFields<'_>) -> (usize, Option<usize>) {
        let Some(packet_type) = long_type(fields) else {
            // spec: rfc9000 17.4 spin-off, 17.4 spin-switch, 17.4 spin-ignored
            // The spin bit stays off: it tells observers the RTT (RFC 9000 section 17.4 permits that).
            let (start, phase) = (self.buffer.len(), fields.key_phase);
            let number_at =
                header::write_short(self.buffer, false, phase, fields.destination, fields.truncated);
            if !fields.fixed_bit {
                header::clear_fixed_bit(self.buffer, start);
            }
            return (number_at, None);
        };
        let LongLayout { length_at, number_at } = header::write_long(
            self.buffer,
            packet_type,
            fields.version,
            fields.destination,
            fields.source,
            fields.token,
            fields.truncated,
        );
        (number_at, Some(length_at))
    }

    /// The datagram will be padded to `len` bytes if its limit permits.
    pub(crate) fn pad_to(&mut self, len: usize) {
        self.pad_to = self.pad_to.max(len);
    }

    /// Pads the last packet so that `room` bytes are left for another. False if there are fewer.
    pub(crate) fn pad_last(&mut self, room: usize) -> bool {
        let target = self.limit.saturating_sub(room);
        if self.buffer.len() > target {
            return false;
        }
        self.extend_last(target);
        true
    }

    /// Pads, completes the headers, and hands each packet to `seal`, in order. Returns the datagram's length
    /// (0 without packets) and the packets.
    ///
    /// # Errors
    /// What `seal` returns; the buffer is then as it was before the datagram.
    pub(crate) fn finish<E>(
        mut self,
        mut seal: impl FnMut(&OpenPacket, Sealable<'_>) -> Result<(), E>,
    ) -> Result<(usize, Packets), E> {
        self.pad();
        for packet in &self.packets {
            let Some(bytes) = self.buffer.get_mut(packet.start..packet.end) else { continue };
            if let Some(length_at) = packet.length_at {
                let length = bytes.len() - packet.number_at;
                header::patch_length(bytes, length_at, length);
            }
            let sealable = Sealable { bytes, number_at: packet.number_at, header_len: packet.header_len };
            if let Err(error) = seal(packet, sealable) {
                self.buffer.truncate(self.start);
                return Err(error);
            }
        }
        let len = self.buffer.len() - self.start;
        Ok((len, self.packets))
    }

    /// Extends the last packet with PADDING frames, which count as in flight (RFC 9002 section 2).
    fn pad(&mut self) {
        self.extend_last((self.start + self.pad_to).min(self.limit));
    }

    fn extend_last(&mut self, target: usize) {
        let Some(last) = self.packets.last_mut() else { return };
        if self.buffer.len() < target {
            // The room for the tag is all zeros, as PADDING is: the packet just grows.
            self.buffer.resize(target, 0);
            last.end = target;
            last.in_flight = true;
        }
    }
}

/// The type of a long header; `None` for a short one.
const fn long_type(fields: &HeaderFields<'_>) -> Option<PacketType> {
    match fields.space {
        PacketSpace::Initial => Some(PacketType::Initial),
        PacketSpace::Handshake => Some(PacketType::Handshake),
        PacketSpace::Data if fields.is_early => Some(PacketType::ZeroRtt),
        PacketSpace::Data => None,
    }
}

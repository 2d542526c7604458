//! What the model's ends exchange.

use posthaste_units::Time;

use crate::spans::Span;

/// IPv4 and TCP headers with the timestamps option, in bytes.
pub const TCP_HEADERS: u64 = 20 + 20 + 12;

/// The same of a SYN: also MSS, SACK-permitted and window scale (RFC 9293, RFC 2018, RFC 7323).
pub const SYN_HEADERS: u64 = 20 + 40;

/// Blocks that fit beside the timestamps option (RFC 2018 3).
pub const MAX_SACK_BLOCKS: usize = 3;

/// What a segment is besides its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// An acknowledgement, with or without data.
    #[default]
    Plain,
    /// The client's first.
    Syn,
    /// The server's answer.
    SynAck,
    /// The end of everything: this end has no state any more.
    Reset,
}

/// A TCP segment. Sequence numbers are byte offsets of 64 bits from the first byte of data: the model never wraps,
/// and SYN takes none. Content travels beside (see `tape.rs`).
#[derive(Debug, Clone, Default)]
pub struct Segment {
    /// Which of the host pair's connections: stands for the ports.
    pub connection: u16,
    /// Flags.
    pub kind: Kind,
    /// Offset of the first payload byte.
    pub sequence: u64,
    /// Payload bytes.
    pub length: u64,
    /// All bytes before this one have arrived.
    pub acknowledged: u64,
    /// Bytes beyond `acknowledged` that may be sent.
    pub window: u64,
    /// The timestamps option's value. Its clock ticks once a nanosecond instead of once a millisecond.
    pub sent_at: Time,
    /// The timestamps option's echo.
    pub echo: Time,
    /// What has arrived beyond `acknowledged`; the first may be a D-SACK (RFC 2883).
    pub sack: SackBlocks,
    /// Set by a link that flipped a bit: the receiver's checksum fails.
    pub is_corrupted: bool,
}

/// At most [`MAX_SACK_BLOCKS`] spans.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [Span; MAX_SACK_BLOCKS],
    count: u8,
}

impl SackBlocks {
    /// Adds a block behind the others, unless there is no room.
    pub fn push(&mut self, block: Span) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.count)) {
            *slot = block;
            self.count += 1;
        }
    }

    /// The blocks in their order.
    pub fn as_slice(&self) -> &[Span] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Bytes of the option, padded to a multiple of four.
    pub fn length(&self) -> u64 {
        if self.count == 0 { 0 } else { 4 + 8 * u64::from(self.count) }
    }
}

impl Segment {
    /// Bytes on the wire from the IP header on.
    pub fn wire_length(&self) -> u64 {
        match self.kind {
            Kind::Syn | Kind::SynAck => SYN_HEADERS,
            Kind::Plain | Kind::Reset => TCP_HEADERS + self.sack.length() + self.length,
        }
    }

    /// Hands every field to `mix`, for the trace hash.
    pub fn digest(&self, mix: &mut dyn FnMut(u64)) {
        let flags = self.kind as u64 | u64::from(self.is_corrupted) << 8 | u64::from(self.sack.count) << 16;
        mix(flags | u64::from(self.connection) << 32);
        for word in [self.sequence, self.length, self.acknowledged, self.window] {
            mix(word);
        }
        mix(self.sent_at.as_nanos());
        mix(self.echo.as_nanos());
        for block in self.sack.as_slice() {
            mix(block.start);
            mix(block.end);
        }
    }
}

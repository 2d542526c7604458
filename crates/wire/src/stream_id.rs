//! Stream identifiers (RFC 9000 section 2.1).

use std::fmt;

/// Role of an end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// The end that opened the connection.
    Client,
    /// The end that accepted it.
    Server,
}

impl Side {
    /// The other end.
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// Direction of a stream: both ways, or only from its initiator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// Both ends send.
    Bidirectional,
    /// Only the initiator sends.
    Unidirectional,
}

impl Direction {
    /// 0 for bidirectional, 1 for unidirectional: an index into per-direction arrays.
    pub const fn index(self) -> usize {
        match self {
            Self::Bidirectional => 0,
            Self::Unidirectional => 1,
        }
    }
}

/// A stream identifier: 62 bits, the two lowest naming initiator and direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(u64);

impl StreamId {
    /// The `index`-th stream (from 0) that `initiator` opens in `direction`.
    pub const fn new(initiator: Side, direction: Direction, index: u64) -> Self {
        let initiator_bit = match initiator {
            Side::Client => 0,
            Side::Server => 1,
        };
        let direction_bit = match direction {
            Direction::Bidirectional => 0,
            Direction::Unidirectional => 2,
        };
        Self(index << 2 | direction_bit | initiator_bit)
    }

    /// The stream with this identifier on the wire.
    pub const fn from_wire(id: u64) -> Self {
        Self(id)
    }

    /// The identifier on the wire.
    pub const fn to_wire(self) -> u64 {
        self.0
    }

    /// The end that opened the stream.
    pub const fn initiator(self) -> Side {
        if self.0 & 1 == 0 { Side::Client } else { Side::Server }
    }

    /// Bidirectional or unidirectional.
    pub const fn direction(self) -> Direction {
        if self.0 & 2 == 0 { Direction::Bidirectional } else { Direction::Unidirectional }
    }

    /// Position among the streams of the same initiator and direction, from 0.
    pub const fn index(self) -> u64 {
        self.0 >> 2
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream {}", self.0)
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

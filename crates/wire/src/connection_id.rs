//! Connection IDs (RFC 9000 section 5.1) and stateless reset tokens (section 10.3).

use std::fmt;

/// Most bytes that a version 1 connection ID may have (RFC 9000 section 17.2).
pub const MAX_CONNECTION_ID_LEN: usize = 20;

/// A connection ID of 0 to 20 bytes, stored inline.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ConnectionId {
    len: u8,
    bytes: [u8; MAX_CONNECTION_ID_LEN],
}

impl ConnectionId {
    /// The zero-length connection ID.
    pub const EMPTY: Self = Self { len: 0, bytes: [0; MAX_CONNECTION_ID_LEN] };

    /// A connection ID of these bytes, or `None` if there are more than 20.
    pub fn new(id: &[u8]) -> Option<Self> {
        // spec: rfc9000 17.2 destination-id-length, 17.2 source-id-length
        let mut bytes = [0; MAX_CONNECTION_ID_LEN];
        bytes.get_mut(..id.len())?.copy_from_slice(id);
        Some(Self { len: id.len() as u8, bytes })
    }

    /// The bytes of the ID.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Length in bytes, 0 to 20.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// True for the zero-length ID.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl AsRef<[u8]> for ConnectionId {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ConnectionId {
    /// Lower-case hexadecimal, as qlog writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The 16 bytes that end a stateless reset (RFC 9000 section 10.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ResetToken(pub [u8; 16]);

impl fmt::Debug for ResetToken {
    /// Hidden: who knows the token can end the connection.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetToken")
    }
}

//! By which sockets a client is heard, and under which of its server's connection IDs. A client that moves of itself
//! takes an ID that was not used before (RFC 9000 section 9.5); one whose NAT forgot it keeps the old.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use posthaste_wire::packet::Invariants;

/// Sockets that are followed.
const MAX_SOCKETS: usize = 16;
/// IDs of one socket that are kept.
const MAX_IDS: usize = 64;

/// What was seen of a client's sockets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moves {
    /// Length of the server's connection IDs.
    id_len: usize,
    /// In order of appearance.
    pub(crate) sockets: Vec<Socket>,
}

/// One of them.
#[derive(Debug, Clone)]
pub(crate) struct Socket {
    pub(crate) address: SocketAddr,
    /// Destinations of its packets with short headers.
    pub(crate) ids: BTreeSet<Vec<u8>>,
    /// Datagrams to it.
    pub(crate) down: u64,
}

impl Moves {
    /// A datagram from the client's socket at `address`.
    pub(crate) fn up(&mut self, address: SocketAddr, datagram: &[u8]) {
        let id_len = self.id_len;
        let Some(socket) = self.socket(address) else { return };
        let is_short = datagram.first().is_some_and(|first| first & 0x80 == 0);
        if let Some(id) =
            datagram.get(1..1 + id_len).filter(|id| is_short && !id.is_empty() && socket.ids.len() < MAX_IDS)
        {
            socket.ids.insert(id.to_vec());
        }
    }

    /// A datagram to the client's socket at `address`.
    pub(crate) fn down(&mut self, address: SocketAddr, datagram: &[u8]) {
        if let Ok(invariants) = Invariants::parse(datagram, 0)
            && invariants.is_long
        {
            self.id_len = invariants.scid.as_slice().len();
        }
        if let Some(socket) = self.socket(address) {
            socket.down += 1;
        }
    }

    fn socket(&mut self, address: SocketAddr) -> Option<&mut Socket> {
        let index = match self.sockets.iter().position(|socket| socket.address == address) {
            Some(index) => index,
            None if self.sockets.len() < MAX_SOCKETS => {
                self.sockets.push(Socket { address, ids: BTreeSet::new(), down: 0 });
                self.sockets.len() - 1
            }
            None => return None,
        };
        self.sockets.get_mut(index)
    }
}

#[cfg(test)]
#[path = "moves_tests.rs"]
mod tests;

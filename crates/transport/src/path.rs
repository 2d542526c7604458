//! Network paths: their addresses, whether the peer's is validated, their datagram size and their control state.
//!
//! A connection uses one path ([`Path`]) and may have others in memory ([`OtherPaths`]): the last that worked, and
//! those from which the peer probes. `connection/migration.rs` moves a connection between them, and
//! `connection/path_probing.rs` writes what is sent on them besides data.

pub(crate) mod history;
pub(crate) mod mtu;
mod validate;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use posthaste_units::Time;
use posthaste_wire::ConnectionId;

use crate::control::PathControl;
use crate::limits;
use crate::packet::builder::MIN_INITIAL_DATAGRAM;

use mtu::Mtu;
use validate::Validation;

/// One path of a connection.
pub(crate) struct Path {
    /// The peer's address.
    pub(crate) remote: SocketAddr,
    /// The local address that the peer reached, to answer from.
    pub(crate) local_ip: Option<IpAddr>,
    /// How fast.
    pub(crate) control: PathControl,
    /// How large datagrams are.
    pub(crate) mtu: Mtu,
    /// Whether the peer can be reached.
    pub(crate) validation: Validation,
    /// What the peer's last packet on it was sent to.
    pub(crate) peer_destination: Option<ConnectionId>,
    /// While the path is not in use: the sequence number of the peer's ID that is lent to it.
    pub(crate) id_sequence: Option<u64>,
    /// The peer came to it knowingly: it sends to another ID than before, as nobody else could make it do.
    pub(crate) is_chosen: bool,
    /// Of the paths not in use, the one to return to.
    pub(crate) is_fallback: bool,
    /// When the peer was last heard on it.
    pub(crate) heard_at: Time,
    /// When the peer was followed to it.
    pub(crate) came_at: Time,
    received: u64,
    sent: u64,
    pub(crate) responses: VecDeque<[u8; 8]>,
}

impl Path {
    /// A path to `remote`. A client's path needs no validation: the client chose it.
    pub(crate) fn new(remote: SocketAddr, control: PathControl, mtu: Mtu, is_validated: bool) -> Self {
        Self {
            remote,
            local_ip: None,
            control,
            mtu,
            validation: Validation::new(is_validated),
            peer_destination: None,
            id_sequence: None,
            is_chosen: false,
            is_fallback: false,
            heard_at: Time::ZERO,
            came_at: Time::ZERO,
            received: 0,
            sent: 0,
            responses: VecDeque::new(),
        }
    }

    /// Counts bytes received on the path.
    pub(crate) fn on_received(&mut self, bytes: usize) {
        self.received = self.received.saturating_add(bytes as u64);
    }

    /// The peer's port has changed within the handshake; `bytes` came from the new one. What was proved of the old one
    /// does not hold for it; what is counted goes on, because it is the same host's.
    pub(crate) fn change_port(&mut self, remote: SocketAddr, bytes: usize) {
        self.remote = remote;
        if self.validation.is_valid() {
            self.validation = Validation::new(false);
            (self.received, self.sent) = (0, 0);
        }
        self.on_received(bytes);
    }

    /// Counts bytes sent on the path.
    pub(crate) fn on_sent(&mut self, bytes: usize) {
        self.sent = self.sent.saturating_add(bytes as u64);
    }

    /// Bytes that may still be sent under the anti-amplification limit (RFC 9000 sections 8.1 and 9.3.1).
    pub(crate) fn amplification_budget(&self) -> usize {
        if self.validation.is_valid() {
            return usize::MAX;
        }
        let limit = self.received.saturating_mul(limits::AMPLIFICATION_FACTOR);
        usize::try_from(limit.saturating_sub(self.sent)).unwrap_or(usize::MAX)
    }

    /// True if the limit leaves no room for another datagram.
    pub(crate) fn is_amplification_blocked(&self) -> bool {
        self.amplification_budget() < self.datagram_limit()
    }

    /// Size of the next datagram at most. Before the address is validated it is the least that a handshake may
    /// use: three such datagrams are just what one full Initial permits.
    pub(crate) fn datagram_limit(&self) -> usize {
        if self.validation.is_valid() {
            self.max_datagram_size()
        } else {
            MIN_INITIAL_DATAGRAM.min(self.max_datagram_size())
        }
    }

    /// Size of the datagrams sent on the validated path.
    pub(crate) fn max_datagram_size(&self) -> usize {
        self.mtu.current()
    }

    /// The datagram size has changed: the controller must know.
    pub(crate) fn on_mtu_change(&mut self) {
        self.control.set_max_datagram_size(self.mtu.current().into());
    }

    /// Owes the peer an answer to its `PATH_CHALLENGE`; a flood makes the oldest be forgotten.
    pub(crate) fn challenge_received(&mut self, data: [u8; 8]) {
        if self.responses.len() >= limits::PENDING_PATH_RESPONSES {
            self.responses.pop_front();
        }
        self.responses.push_back(data);
    }
}

/// The paths of a connection besides the one in use.
#[derive(Default)]
pub(crate) struct OtherPaths {
    paths: Vec<Path>,
}

impl OtherPaths {
    /// The path to this address.
    pub(crate) fn get_mut(&mut self, remote: SocketAddr) -> Option<&mut Path> {
        self.paths.iter_mut().find(|path| path.remote == remote)
    }

    pub(crate) fn get(&self, remote: SocketAddr) -> Option<&Path> {
        self.paths.iter().find(|path| path.remote == remote)
    }

    pub(crate) fn take(&mut self, remote: SocketAddr) -> Option<Path> {
        self.take_first(|path| path.remote == remote)
    }

    pub(crate) fn take_fallback(&mut self) -> Option<Path> {
        self.take_first(|path| path.is_fallback)
    }

    pub(crate) fn take_first(&mut self, test: impl Fn(&Path) -> bool) -> Option<Path> {
        let index = self.paths.iter().position(test)?;
        Some(self.paths.remove(index))
    }

    /// Takes the ID away from the path to which the peer sends by this name.
    pub(crate) fn take_id_of(&mut self, peer_destination: Option<ConnectionId>) -> Option<u64> {
        let mut same = self.paths.iter_mut().filter(|path| path.peer_destination == peer_destination);
        same.find_map(|path| path.id_sequence.take())
    }

    /// Adds a path; the one that had to go for it: never the one to return to, and one that no ID is lent to before those
    /// that would cost the peer's next packet there another.
    pub(crate) fn add(&mut self, path: Path) -> Option<Path> {
        self.paths.push(path);
        if self.paths.len() < limits::PATHS {
            return None;
        }
        let newest = self.paths.len() - 1;
        let expendable = self.paths.iter().take(newest).enumerate().filter(|(_, path)| !path.is_fallback);
        let index = expendable
            .min_by_key(|(_, path)| (path.id_sequence.is_some(), path.heard_at))
            .map(|(index, _)| index)?;
        Some(self.paths.remove(index))
    }

    /// True if there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.paths.iter_mut()
    }
}

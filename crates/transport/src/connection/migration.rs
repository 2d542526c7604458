//! Moving between paths: a peer that is followed (RFC 9000 section 9.3), and an own move (section 9.2).

use std::net::IpAddr;

use posthaste_units::{ByteCount, Duration, Time};
use posthaste_wire::{ConnectionId, Side};

use super::roaming::{Move, fresh_control};
use crate::connection::Connection;
use crate::control::PathControl;
use crate::error::LocalError;
use crate::packet::datagram::{Arrived, PacketContext};
use crate::packet::space::PacketSpace;
use crate::path::Path;

/// Probe timeouts for which a path that is not in use is remembered after its peer was last heard on it.
const LINGER_PROBE_TIMEOUTS: u64 = 3;

/// Probe timeouts in a row after which a client that has moved takes the server to have lost sight of it.
const LOST_SIGHT_PROBE_TIMEOUTS: u32 = 3;

/// Packets of a handshake's flight in one space that are sent again to a port that has changed.
const FLIGHT_PACKETS: usize = 8;

impl Connection {
    /// Counts a datagram for the path that it came on. False if it must be dropped.
    pub(crate) fn admit(&mut self, arrived: &Arrived) -> bool {
        let Arrived { info, len } = *arrived;
        if self.path.remote == info.remote {
            // spec: rfc9000 8.1 all-bytes-count
            self.path.on_received(len);
            return true;
        }
        // Until its address is validated, a path must not let others raise what may be sent to that address. A
        // client takes nothing from elsewhere at all (RFC 9000 section 9).
        // spec: rfc9000 9 unknown-server-dropped
        if self.side() == Side::Client {
            return false;
        }
        if !self.handshake.is_confirmed() {
            return self.path.remote.ip() == info.remote.ip();
        }
        if let Some(other) = self.roaming.others.get_mut(info.remote) {
            other.on_received(len);
        }
        true
    }

    /// The path that a packet came on. One that is not known is added: the packet was authentic.
    fn path_of(&mut self, context: &PacketContext) -> Option<&mut Path> {
        let remote = context.arrived.info.remote;
        if remote == self.path.remote {
            return Some(&mut self.path);
        }
        if self.side() == Side::Client || !self.handshake.is_confirmed() {
            return None;
        }
        if self.roaming.others.get(remote).is_none() {
            let path = self.new_path(context);
            self.remember_path(path);
        }
        let path = self.roaming.others.get_mut(remote)?;
        path.heard_at = context.now;
        Some(path)
    }

    /// The connection is no member of a group any more; the window that it had as one.
    pub(crate) fn leave_group(&mut self) -> Option<ByteCount> {
        // After a move it is not the path in use that was the member's.
        let others = self.roaming.others.iter_mut().map(|path| &mut path.control);
        std::iter::once(&mut self.path.control).chain(others).filter_map(PathControl::leave_group).last()
    }

    /// The control state of a further path.
    fn fresh_control(&mut self, datagram_size: usize) -> PathControl {
        let mut control = fresh_control(&self.config, datagram_size, self.chance.rng());
        control.on_connections(self.roaming.neighbours);
        control
    }

    /// Told how many live connections there are with the peer's host.
    pub(crate) fn set_neighbours(&mut self, count: u32) {
        self.roaming.neighbours = count;
        self.path.control.on_connections(count);
    }

    /// How many it was told of last.
    pub(crate) fn neighbours(&self) -> u32 {
        self.roaming.neighbours
    }

    fn new_path(&mut self, context: &PacketContext) -> Path {
        let Arrived { info, len } = context.arrived;
        let mtu = self.path.mtu.anew();
        let control = self.fresh_control(mtu.current());
        let mut path = Path::new(info.remote, control, mtu, false);
        path.local_ip = info.local_ip;
        path.heard_at = context.now;
        path.peer_destination = Some(context.destination);
        path.on_received(len);
        path
    }

    /// Keeps a path that is not in use, and forgets another if they are too many.
    fn remember_path(&mut self, path: Path) {
        if let Some(forgotten) = self.roaming.others.add(path) {
            self.forget_path(&forgotten);
        }
    }

    /// The peer asks whether it can be reached: the answer goes out on the same path (section 8.2.2).
    pub(crate) fn on_path_challenge(&mut self, context: &PacketContext, data: [u8; 8]) {
        if let Some(path) = self.path_of(context) {
            // spec: rfc9000 8.2.2 response-echoes, 8.2.2 response-on-same-path, 19.17 challenge-answered
            path.challenge_received(data);
            if self.side() == Side::Client {
                // The answer is not sent again if it is lost, and a server without it goes back to an address where this
                // end may not be any more. What is probed for until it arrives makes the server follow again.
                self.eliciting.ping();
            }
        }
    }

    /// The peer has answered a challenge. An answer to none is ignored (section 19.18 permits that).
    pub(crate) fn on_path_response(&mut self, now: Time, data: [u8; 8]) {
        let Some(answer) = self.path.validation.on_response(now, data) else {
            // spec: rfc9000 8.2.2 any-path-validates
            for other in self.roaming.others.iter_mut() {
                other.validation.on_response(now, data);
            }
            return;
        };
        self.path.control.rtt.seed(answer.rtt);
        if self.side() == Side::Client {
            self.roaming.claims_end_at = Some(now + self.path_memory() * 2);
        }
        self.roaming.is_newly_valid |= answer.is_news;
        if answer.is_news || self.side() == Side::Client {
            // What was under way on the old path is lost, most likely: a probe timeout would tell much later.
            self.recovery.requeue_other_paths(self.path.control.id, self.outcome.get_or_insert_default());
            self.settle_outcome(now);
        }
        if self.path.is_chosen && !self.path.validation.is_running() {
            // The peer has left the old path for good: its ID is retired, so that the next move finds a fresh one. Where
            // it has been heard since, it may have gone on to.
            let came_at = self.path.came_at;
            let is_left = |path: &Path| path.is_fallback || path.heard_at < came_at;
            while let Some(path) = self.roaming.others.take_first(is_left) {
                self.forget_path(&path);
            }
        }
    }

    /// The peer's newest packet, with more than probing frames in it, has come: data goes where it came from
    /// (section 9.3).
    pub(crate) fn on_newest_packet(&mut self, context: &PacketContext) {
        let remote = context.arrived.info.remote;
        if remote == self.path.remote {
            self.path.peer_destination = Some(context.destination);
            self.path.heard_at = context.now;
            return;
        }
        if self.side() == Side::Client || !self.handshake.is_confirmed() {
            return;
        }
        let known = self.roaming.others.take(remote);
        let mut path = known.unwrap_or_else(|| self.new_path(context));
        path.heard_at = context.now;
        path.peer_destination = Some(context.destination);
        path.is_chosen = path.peer_destination != self.present_destination();
        if !self.name_path(&mut path) {
            // Without a fresh ID, both paths would show who they belong to (section 9.5). The peer will give one.
            self.remember_path(path);
            return;
        }
        // spec: rfc9000 9.3 follows-the-peer, 9 forbidden-move-tolerated
        self.follow(context.now, path);
    }

    /// On a server, before the handshake is confirmed: a new packet of the client's has come. RFC 9000 section 9 relies on
    /// clients that stay where they are until then, but a NAT may give another port to a client that pauses, and answers to
    /// the old one would reach nobody. So the newest packet of its number space is answered where it came from, if that is
    /// the same host; what the host may be sent in all does not grow by that.
    pub(crate) fn follow_port(&mut self, context: &PacketContext, number: u64) {
        let Arrived { info, len } = context.arrived;
        // 0-RTT packets may have waited for their keys, and tell where the client was.
        let is_newest =
            context.space != PacketSpace::Data && self.acks.received[context.space].largest() == Some(number);
        if self.handshake.is_confirmed() || info.remote == self.path.remote || !is_newest {
            return;
        }
        self.path.change_port(info.remote, len);
        self.roaming.moves += 1;
        self.recovery.restart_probing();
        for space in [PacketSpace::Initial, PacketSpace::Handshake] {
            if self.recovery.frames_of_flight(space, FLIGHT_PACKETS, self.outcome.get_or_insert_default()) {
                self.eliciting.owe_probe(space);
            }
        }
        self.settle_outcome(context.now);
    }

    /// What the peer sends to on the path in use.
    fn present_destination(&self) -> Option<ConnectionId> {
        self.path.peer_destination.or_else(|| Some(self.local_ids.handshake_id()))
    }

    /// Finds an ID to send to on a path that is not in use; false if there is none.
    ///
    /// The peer's choices are mirrored, one ID of its for each of ours that it sends to. To an address that it came to
    /// without another name, it was moved by the network and does not know it: it may be answered by the ID that it is
    /// known by already (RFC 9000 section 9.5), or each rebinding would use up an ID that the peer's own moves need.
    pub(super) fn name_path(&mut self, path: &mut Path) -> bool {
        if path.id_sequence.is_some_and(|sequence| self.remote_ids.lent(sequence).is_some()) {
            return true;
        }
        path.id_sequence = None;
        if self.remote_ids.current().is_empty() || path.peer_destination == self.present_destination() {
            return true;
        }
        let known = self.roaming.others.take_id_of(path.peer_destination);
        let known = known.filter(|sequence| self.remote_ids.lent(*sequence).is_some());
        path.id_sequence = known.or_else(|| self.remote_ids.lend());
        path.id_sequence.is_some()
    }

    /// Goes on with the path that the peer is on now.
    fn follow(&mut self, now: Time, mut path: Path) {
        path.came_at = now;
        let before = self.probe_timeout();
        let mut old = self.switch(now, path);
        let probe_timeout = before.max(self.probe_timeout());
        // spec: rfc9000 9 changed-address-validated, 9.3 new-address-validated
        if !self.path.validation.is_valid() {
            self.path.validation.begin(now, probe_timeout);
        }
        // Somebody may have only passed the peer's packet on from elsewhere: if the peer still is where it was, its
        // next packets come from there (section 9.3.3).
        // spec: rfc9000 9.3.3 old-path-challenged
        old.validation.begin(now, probe_timeout);
        if old.validation.is_valid() {
            for other in self.roaming.others.iter_mut() {
                other.is_fallback = false;
            }
            old.is_fallback = true;
        }
        self.remember_path(old);
    }

    /// Makes `path` the one in use; the one that was.
    fn switch(&mut self, now: Time, mut path: Path) -> Path {
        self.roaming.moves += 1;
        self.roaming.has_moved = true;
        path.is_fallback = false;
        let lent = path.id_sequence.take().and_then(|sequence| self.remote_ids.activate(sequence));
        let is_same_host = path.remote.ip() == self.path.remote.ip();
        let mut old = std::mem::replace(&mut self.path, path);
        old.id_sequence = lent;
        // spec: rfc9000 9.4 new-path-starts-anew
        if is_same_host {
            self.keep_speed(&mut old);
        }
        self.begin_path(now, &mut old);
        old
    }

    /// Only the port has changed: what is known of the path holds on (section 9.4). Whether it carries marks is seen
    /// anew (section 13.4.2): the validation stays with its path, for [`Self::begin_path`] to go on from.
    fn keep_speed(&mut self, old: &mut Path) {
        std::mem::swap(&mut self.path.control, &mut old.control);
        std::mem::swap(&mut self.path.control.ecn, &mut old.control.ecn);
        std::mem::swap(&mut self.path.mtu, &mut old.mtu);
    }

    fn begin_path(&mut self, now: Time, old: &mut Path) {
        self.path.control.id = self.roaming.next_id;
        self.roaming.next_id += 1;
        self.path.control.forget_flight(now);
        self.path.control.ecn.begin_after(&mut old.control.ecn);
        self.recovery.on_path_change();
    }

    /// Returns the ID of a path that is forgotten.
    fn forget_path(&mut self, path: &Path) {
        if let Some(sequence) = path.id_sequence {
            self.remote_ids.give_back(sequence);
        }
    }

    /// A challenge, the end of a validation or the end of a path's memory is due.
    pub(crate) fn on_path_timeout(&mut self, now: Time) {
        if self.roaming.claims_end_at.is_some_and(|at| at <= now) {
            self.roaming.claims_end_at = None;
            self.local_ids.release_claims();
            // A server whose challenges were all lost has gone back by now to where this end was, and knows no better.
            self.eliciting.ping();
        }
        if self.path.validation.has_failed(now) {
            self.on_failed_path(now);
        }
        for path in self.roaming.others.iter_mut() {
            let _ = path.validation.has_failed(now);
        }
        let (linger, present) = (self.path_memory(), PathInUse::of(&self.path));
        let is_over = |path: &Path| path.expires_at(linger, present).is_some_and(|at| at <= now);
        while let Some(path) = self.roaming.others.take_first(is_over) {
            self.forget_path(&path);
        }
    }

    /// A probe timeout has expired. A server that has forgotten where a client has moved to may lack an ID to find it
    /// again, even if it has confirmed the path.
    pub(crate) fn look_for_lost_server(&mut self) {
        if self.side() == Side::Client
            && self.roaming.moves > 0
            && self.recovery.pto_count() == LOST_SIGHT_PROBE_TIMEOUTS
        {
            self.local_ids.replace_all();
        }
        self.local_ids.on_probe();
    }

    /// No answer has come on the path in use.
    fn on_failed_path(&mut self, now: Time) {
        if self.side() == Side::Client {
            // The server may lack an ID for where this end is now, and cannot say so.
            self.local_ids.replace_all();
        }
        if self.path.validation.is_valid() {
            return;
        }
        let Some(mut fallback) = self.roaming.others.take_fallback() else { return };
        if !self.name_path(&mut fallback) {
            // Its ID has been retired since: the path in use is asked on.
            self.remember_path(fallback);
            let probe_timeout = self.probe_timeout();
            self.path.validation.begin(now, probe_timeout);
            return;
        }
        // spec: rfc9000 9.3.2 falls-back
        // Section 9.3.2: back to the last path that worked. The one that failed is remembered with its ID: if the peer
        // is there all the same, its next packet must not cost another.
        let failed = self.switch(now, fallback);
        self.remember_path(failed);
        self.recovery.requeue_other_paths(self.path.control.id, self.outcome.get_or_insert_default());
        self.settle_outcome(now);
    }

    fn path_memory(&self) -> Duration {
        self.probe_timeout() * LINGER_PROBE_TIMEOUTS
    }

    /// When [`Self::on_path_timeout`] is due.
    pub(crate) fn path_deadline(&self, now: Time) -> Option<Time> {
        let own = self.path.validation.next_time(now).into_iter().chain(self.roaming.claims_end_at).min();
        if self.roaming.others.is_empty() {
            return own;
        }
        let (linger, present) = (self.path_memory(), PathInUse::of(&self.path));
        let others = self.roaming.others.iter().flat_map(|path| {
            [path.validation.next_time(now), path.expires_at(linger, present)].into_iter().flatten()
        });
        own.into_iter().chain(others).min()
    }

    /// On a client: the server's datagrams reach another local address than before, so the system has moved this end
    /// to another network without asking.
    pub(crate) fn note_local_ip(&mut self, now: Time, local_ip: Option<IpAddr>) {
        let Some(local_ip) = local_ip.map(|ip| ip.to_canonical()) else { return };
        let before = self.roaming.local_ip.replace(local_ip);
        if before.is_some_and(|before| before != local_ip)
            && self.migrate(now, Move::Network) == Err(LocalError::NoConnectionId)
        {
            // It has happened all the same, as it does behind a NAT. The next datagram from the server sees whether
            // there is an ID by then.
            self.roaming.local_ip = before;
        }
    }

    /// On a client: this end's datagrams leave from another local address from now on, as the caller has seen to.
    ///
    /// The peer is then sent to by a connection ID that it has not seen used, so that nobody on the way can tell the
    /// two addresses to be of one connection, and told at once, so that it follows. What was under way to the old
    /// address is sent again.
    ///
    /// # Errors
    /// [`LocalError::TooEarly`] before the handshake is confirmed; [`LocalError::MigrationForbidden`] at a server and
    /// where the server forbids it (RFC 9000 section 18.2); [`LocalError::NoConnectionId`] while the server has given
    /// no spare one, or has itself none left to answer by, as after several moves within one round trip;
    /// [`LocalError::Closed`]. Nothing has changed then. If the datagrams leave from another address all the same, the
    /// server follows as it does where a NAT has rebound it: the connection lives, and its two addresses can be linked.
    pub fn migrate(&mut self, now: Time, to: Move) -> Result<(), LocalError> {
        self.check_migration()?;
        let mtu = self.path.mtu.anew();
        let control = self.fresh_control(mtu.current());
        let mut path = Path::new(self.path.remote, control, mtu, true);
        path.id_sequence = self.remote_ids.lend();
        let before = self.probe_timeout();
        let lent = path.id_sequence.take().and_then(|sequence| self.remote_ids.activate(sequence));
        let mut old = std::mem::replace(&mut self.path, path);
        old.id_sequence = lent;
        if to == Move::Port {
            self.keep_speed(&mut old);
        }
        self.roaming.moves += 1;
        self.roaming.local_ip = None;
        self.roaming.claims_end_at = None;
        self.local_ids.claim();
        self.begin_path(now, &mut old);
        self.forget_path(&old);
        let probe_timeout = before.max(self.probe_timeout());
        self.path.validation.begin(now, probe_timeout);
        // A challenge alone would not make the server follow (section 9.1).
        self.ping();
        self.update_timers(now);
        Ok(())
    }

    /// Whether [`Self::migrate`] is possible now.
    ///
    /// # Errors
    /// As there.
    pub fn check_migration(&self) -> Result<(), LocalError> {
        if self.is_closed() {
            return Err(LocalError::Closed);
        }
        // spec: rfc9000 9 wish-to-stay-respected, 18.2 stays-if-asked
        if self.side() == Side::Server || self.roaming.is_forbidden {
            return Err(LocalError::MigrationForbidden);
        }
        // spec: rfc9000 9 not-before-confirmed
        if !self.handshake.is_confirmed() {
            return Err(LocalError::TooEarly);
        }
        let may_be_renamed = self.remote_ids.has_spare() || self.remote_ids.current().is_empty();
        if may_be_renamed && self.local_ids.has_unclaimed() {
            return Ok(());
        }
        Err(LocalError::NoConnectionId)
    }
}

/// What the others' memory depends on.
#[derive(Clone, Copy)]
struct PathInUse {
    is_settled: bool,
    heard_at: Time,
}

impl PathInUse {
    fn of(path: &Path) -> Self {
        Self { is_settled: path.validation.is_valid(), heard_at: path.heard_at }
    }
}

impl Path {
    /// When a path that is not in use may be forgotten; `None` as long as it is needed: while it may have to be
    /// returned to, and while the peer has not been heard elsewhere since.
    fn expires_at(&self, linger: Duration, present: PathInUse) -> Option<Time> {
        let is_needed = self.validation.is_running()
            || self.is_fallback && !present.is_settled
            || self.heard_at >= present.heard_at;
        (!is_needed).then(|| self.heard_at + linger)
    }
}

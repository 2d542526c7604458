//! A relay beside the server that reads headers, counts, and does what no emulated path does: it harms handshake and
//! transfer differently, falls silent on time, and gives the client a new port or address as a NAT does.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use posthaste_units::Rng;
use posthaste_wire::packet::{PacketType, split};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use super::hello::Hellos;
use super::moves::Moves;
use super::shuffled::ShuffledSchedule;

/// The largest UDP payload.
const MAX_DATAGRAM: usize = 65_535;
/// Clients at once.
const MAX_CLIENTS: usize = 16;
/// Where a client moves to whose address changes. All of 127/8 is loopback on Linux.
const OTHER_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// What happens to datagrams; the default lets all pass.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Plan {
    /// To datagrams that begin with a long header.
    pub(crate) handshake: Harm,
    /// To all others.
    pub(crate) transfer: Harm,
    /// Nothing passes for the second time, over and over, after something did for the first.
    pub(crate) silence: Option<(Duration, Duration)>,
    /// The client's side changes once, in the midst of the transfer.
    pub(crate) rebinding: Option<Rebinding>,
    /// Nothing but the client's first datagram passes until so long after the server's first, and without one for twice as
    /// long: the server must wait, too.
    pub(crate) mute_client: Option<Duration>,
    /// After so many datagrams down, nothing passes by way of the client's first socket any more.
    pub(crate) first_socket_dies: Option<u64>,
}

/// How many of how many datagrams, in each direction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Harm {
    /// Lost.
    pub(crate) loss: Share,
    /// Delivered with one bit flipped.
    pub(crate) corruption: Share,
}

/// So many of each so many.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Share(pub(crate) usize, pub(crate) usize);

/// What a NAT that forgets its client gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rebinding {
    /// Another port.
    Port,
    /// Another address.
    Address,
}

/// Datagrams from the server before the client's side changes.
const BEFORE_REBINDING: u64 = 300;

/// One direction's counts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Flow {
    pub(crate) datagrams: u64,
    /// UDP payloads that were let through.
    pub(crate) bytes: u64,
    pub(crate) handshake_lost: u64,
    pub(crate) transfer_lost: u64,
    pub(crate) handshake_corrupted: u64,
    pub(crate) transfer_corrupted: u64,
    pub(crate) silenced: u64,
    /// Passed since the client's side changed.
    pub(crate) after_rebinding: u64,
}

/// What the recorder has seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) up: Flow,
    pub(crate) down: Flow,
    /// Packets by version and kind, upwards and downwards.
    pub(crate) sent_by_client: BTreeMap<(u32, PacketType), u64>,
    pub(crate) sent_by_server: BTreeMap<(u32, PacketType), u64>,
    /// Initial packets of clients that carried a token.
    pub(crate) tokens: u64,
    /// The most that a server had sent for a byte received, before it had a Handshake packet of the client.
    pub(crate) amplification: f64,
    pub(crate) rebindings: u64,
    /// What servers have chosen, a connection each.
    pub(crate) hellos: Hellos,
    /// The sockets that clients came from.
    pub(crate) moves: Moves,
}

impl Seen {
    /// Packets of a kind from the client, of any version.
    pub(crate) fn of_client(&self, kind: PacketType) -> u64 {
        count(&self.sent_by_client, kind)
    }

    /// Packets of a kind from the server, of any version.
    pub(crate) fn of_server(&self, kind: PacketType) -> u64 {
        count(&self.sent_by_server, kind)
    }
}

fn count(packets: &BTreeMap<(u32, PacketType), u64>, wanted: PacketType) -> u64 {
    packets.iter().filter(|((_, kind), _)| *kind == wanted).map(|(_, count)| count).sum()
}

/// The draws of one direction.
struct Draws {
    handshake: [ShuffledSchedule; 2],
    transfer: [ShuffledSchedule; 2],
    rng: Rng,
}

impl Draws {
    fn new(plan: &Plan, rng: &mut Rng) -> Self {
        let mut schedule = |share: Share| ShuffledSchedule::new(share.0, share.1, rng.fork());
        Self {
            handshake: [schedule(plan.handshake.loss), schedule(plan.handshake.corruption)],
            transfer: [schedule(plan.transfer.loss), schedule(plan.transfer.corruption)],
            rng: rng.fork(),
        }
    }
}

struct State {
    seen: Seen,
    up: Draws,
    down: Draws,
    /// Since the first datagram.
    began: Option<Instant>,
    /// When the server's first datagram came.
    answered: Option<Instant>,
}

struct Shared {
    plan: Plan,
    listener: UdpSocket,
    upstream: SocketAddr,
    state: Mutex<State>,
}

/// Where a datagram goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Notes a datagram and decides: false if it goes no further; it may come out changed.
    fn judge(&mut self, plan: &Plan, way: Way, datagram: &mut [u8], now: Instant) -> bool {
        let since = now - *self.began.get_or_insert(now);
        let Some(&first) = datagram.first() else { return false };
        let (flow, draws) = match way {
            Way::Up => (&mut self.seen.up, &mut self.up),
            Way::Down => (&mut self.seen.down, &mut self.down),
        };
        flow.datagrams += 1;
        if way == Way::Down {
            self.answered.get_or_insert(now);
        }
        let muted = plan.mute_client.is_some_and(|span| {
            let is_early = self.answered.map_or(since < span * 2, |at| now - at < span);
            way == Way::Up && flow.datagrams > 1 && is_early
        });
        let silent =
            plan.silence.is_some_and(|(on, off)| since.as_nanos() % (on + off).as_nanos() >= on.as_nanos());
        if muted || silent {
            flow.silenced += 1;
            return false;
        }
        let is_handshake = first & 0x80 != 0;
        let [losses, corruptions] = if is_handshake { &mut draws.handshake } else { &mut draws.transfer };
        let (is_lost, is_corrupted) = (losses.draw(), corruptions.draw());
        if is_lost {
            *(if is_handshake { &mut flow.handshake_lost } else { &mut flow.transfer_lost }) += 1;
            return false;
        }
        flow.bytes += datagram.len() as u64;
        flow.after_rebinding += u64::from(self.seen.rebindings > 0);
        if is_handshake {
            self.note(way, datagram);
        }
        self.note_amplification(way);
        if is_corrupted {
            let (flow, draws) = match way {
                Way::Up => (&mut self.seen.up, &mut self.up),
                Way::Down => (&mut self.seen.down, &mut self.down),
            };
            let bit = draws.rng.below(datagram.len() as u64 * 8) as usize;
            datagram[bit / 8] ^= 1 << (bit % 8);
            *(if is_handshake { &mut flow.handshake_corrupted } else { &mut flow.transfer_corrupted }) += 1;
        }
        true
    }

    /// True if what comes from or goes to this socket of the client's is lost, whatever it is.
    fn is_dead(&self, plan: &Plan, client: SocketAddr) -> bool {
        let first = self.seen.moves.sockets.first().filter(|first| first.address == client);
        first.is_some_and(|first| plan.first_socket_dies.is_some_and(|after| first.down >= after))
    }

    fn note(&mut self, way: Way, datagram: &[u8]) {
        let packets = match way {
            Way::Up => &mut self.seen.sent_by_client,
            Way::Down => &mut self.seen.sent_by_server,
        };
        // What no longer parses was harmed or is none of QUIC's: nothing is proved by it. A short header at the end
        // is not looked into, so its ID's length does not matter.
        for packet in split(BytesMut::from(datagram), 0).taking_any_fixed_bit(true).flatten() {
            let kind = packet.header.packet_type();
            match way {
                Way::Up => self.seen.hellos.client(&packet),
                Way::Down => self.seen.hellos.server(&packet),
            }
            if let Some(version) = packet.header.version() {
                *packets.entry((version, kind)).or_default() += 1;
            }
            let has_token = kind == PacketType::Initial && !packet.token().is_empty();
            self.seen.tokens += u64::from(way == Way::Up && has_token);
        }
    }

    /// Until a server has a Handshake packet it does not know that the client receives (RFC 9000 section 8.1).
    fn note_amplification(&mut self, way: Way) {
        let is_validated = self.seen.of_client(PacketType::Handshake) > 0 || self.seen.tokens > 0;
        if way == Way::Down && !is_validated && self.seen.up.bytes > 0 {
            let ratio = self.seen.down.bytes as f64 / self.seen.up.bytes as f64;
            self.seen.amplification = self.seen.amplification.max(ratio);
        }
    }
}

/// A running recorder; dropping it stops it.
pub(crate) struct Recorder {
    local: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Recorder {
    /// Listens on a free port of `ip`, in front of `upstream`.
    pub(crate) async fn start(ip: IpAddr, upstream: SocketAddr, plan: Plan, seed: u64) -> io::Result<Self> {
        let listener = UdpSocket::bind((ip, 0)).await?;
        let local = listener.local_addr()?;
        let mut rng = Rng::from_test_seed(seed);
        let (up, down) = (Draws::new(&plan, &mut rng), Draws::new(&plan, &mut rng));
        let state = Mutex::new(State { seen: Seen::default(), up, down, began: None, answered: None });
        let shared = Arc::new(Shared { plan, listener, upstream, state });
        let task = tokio::spawn(carry(Arc::clone(&shared)));
        Ok(Self { local, shared, task })
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    pub(crate) fn seen(&self) -> Seen {
        self.shared.state().seen.clone()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One client's way to the server, from the client's own address; dropping it closes the socket and with it the way back.
struct Binding {
    socket: Arc<UdpSocket>,
    back: JoinHandle<()>,
}

impl Drop for Binding {
    fn drop(&mut self) {
        self.back.abort();
    }
}

async fn bind(shared: &Arc<Shared>, client: SocketAddr, ip: IpAddr) -> io::Result<Binding> {
    let socket = Arc::new(UdpSocket::bind((ip, 0)).await?);
    socket.connect(shared.upstream).await?;
    let back = tokio::spawn(carry_back(Arc::clone(shared), Arc::clone(&socket), client));
    Ok(Binding { socket, back })
}

async fn carry(shared: Arc<Shared>) {
    let mut bindings: BTreeMap<SocketAddr, Binding> = BTreeMap::new();
    let mut buffer = vec![0; MAX_DATAGRAM];
    loop {
        // Errors are those of clients that went away.
        let Ok((length, client)) = shared.listener.recv_from(&mut buffer).await else { continue };
        if !bindings.contains_key(&client) {
            if bindings.len() >= MAX_CLIENTS {
                continue;
            }
            let Ok(binding) = bind(&shared, client, client.ip()).await else { continue };
            bindings.insert(client, binding);
        }
        if let Some(rebinding) = rebinding_due(&shared) {
            let ip = if rebinding == Rebinding::Port { client.ip() } else { OTHER_ADDRESS };
            let Ok(binding) = bind(&shared, client, ip).await else { continue };
            bindings.insert(client, binding);
            shared.state().seen.rebindings += 1;
        }
        if shared.state().is_dead(&shared.plan, client) {
            continue;
        }
        let passes = shared.state().judge(&shared.plan, Way::Up, &mut buffer[..length], Instant::now());
        if passes && let Some(binding) = bindings.get(&client) {
            shared.state().seen.moves.up(client, &buffer[..length]);
            let _ = binding.socket.send(&buffer[..length]).await;
        }
    }
}

fn rebinding_due(shared: &Shared) -> Option<Rebinding> {
    let state = shared.state();
    let is_due = state.seen.rebindings == 0 && state.seen.down.datagrams >= BEFORE_REBINDING;
    shared.plan.rebinding.filter(|_| is_due)
}

async fn carry_back(shared: Arc<Shared>, socket: Arc<UdpSocket>, client: SocketAddr) {
    let mut buffer = vec![0; MAX_DATAGRAM];
    loop {
        // Errors are those of a server that went away; the next receive waits.
        let Ok(length) = socket.recv(&mut buffer).await else { continue };
        if shared.state().is_dead(&shared.plan, client) {
            continue;
        }
        let passes = shared.state().judge(&shared.plan, Way::Down, &mut buffer[..length], Instant::now());
        if passes {
            shared.state().seen.moves.down(client, &buffer[..length]);
            let _ = shared.listener.send_to(&buffer[..length], client).await;
        }
    }
}

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod tests;

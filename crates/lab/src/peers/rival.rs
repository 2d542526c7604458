//! What the adapters of noq-proto and quinn-proto share: settings, seeds, and how times and packets cross over.
//!
//! Settings that differ from the stacks' own defaults, so that cells compare:
//! - datagrams are [`Settings::max_datagram_size`] bytes from the first to the last, for all stacks alike: MTU
//!   discovery is off, and the least MTU is the same size, or else a burst of loss would look like a black hole;
//! - windows ([`receive_windows`], [`SEND_WINDOW`]), [`MAX_STREAMS`], and an idle timeout of an hour;
//! - connection IDs, the reset key and the endpoint's generator come from the run's seed.
//!
//! # Receive windows and gaps
//! Both keep what has arrived of a stream as one chunk a frame. On more than 2,048 chunks they merge what they can,
//! and if more than 1,024 are left they close the connection ("too many gaps in stream buffer"). All that comes
//! after one lost packet, or that a slow application has not read, is chunks. A resent packet adds two: the rest of
//! one lost frame and the beginning of the next. So each adapter bounds the window of a stream below what can come
//! to this when every second packet of a window is lost, as when slow start overflows a queue (a packet carries
//! 1,217 stream bytes):
//! - noq-proto does not merge neighbours that fill their packets. N packets of window make N/2 chunks and their
//!   repair N more: N < 1,366, 1.66 MB. Bound: [`super::noq::STREAM_WINDOW`], 1.6 MB. With 2.4 MB it has closed
//!   connections of slow readers on a path without random loss.
//! - quinn-proto merges them, so 1,025 chunks must stay apart: N/2 - r with r packets repaired, while N/2 + 2r
//!   exceed 2,048: N < 2,731, 3.32 MB. Bound: [`super::quinn::STREAM_WINDOW`], 3 MB. With 8 MB it has closed
//!   connections after slow start.
//!
//! The defaults of both are 1.25 MB: `noq:cubic/default` and its like have those, and the stacks' send windows.
//!
//! So flow control can hold a rival back where a sender would have more than that beyond the first gap. A path of
//! 100 Mbit/s and 188 ms holds 2.35 MB: noq-proto comes to 68 Mbit/s at most; quinn-proto fills it as long as nothing
//! is lost, but with a loss one stream waits for its repair a round trip and more, and would need two to four times
//! as much. Only quinn-proto's BBR gets there: at 8 % loss on this path it takes 3.9 s for 10 MB, and 2.8 s with a window of
//! 16 MB (means of 40 runs).
//!
//! # Else
//! All else is as each stack has it: ECN, acknowledgement, pacing, initial windows. Both are given
//! [`MAX_SEGMENTS`] datagrams a call, as their own drivers do.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Instant;

use aws_lc_rs::hmac;
use posthaste_transport::EcnCodepoint;
use posthaste_units::{ByteCount, Duration, Rng, Time};

use super::buffers::Buffers;
use super::{OWN_WINDOWS, Settings, Stack};
use crate::packet::Packet;
use crate::peer::PeerEvent;

/// How a rival is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rival {
    /// Its congestion controller.
    pub controller: RivalController,
    /// Its receive and send windows are its own defaults, 1.25 MB a stream, instead of the lab's larger ones.
    pub has_own_windows: bool,
}

impl Rival {
    /// The part of the stack's name behind the colon; `bbr` is what the stack calls its BBR.
    pub(super) fn name(self, bbr: &'static str) -> String {
        let controller = match self.controller {
            RivalController::NewReno => "newreno",
            RivalController::Cubic => "cubic",
            RivalController::Bbr => bbr,
        };
        format!("{controller}{}", if self.has_own_windows { OWN_WINDOWS } else { "" })
    }
}

/// A rival's congestion controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RivalController {
    /// New Reno (RFC 9002).
    NewReno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// The stack's BBR: version 1 in quinn-proto, 3 in noq-proto.
    Bbr,
}

/// The stack of this name, such as `noq:bbr3` or `quinn:cubic/default`.
pub(super) fn parse(name: &str) -> Option<Stack> {
    let base = name.strip_suffix(OWN_WINDOWS);
    let (stack, controller) = base.unwrap_or(name).split_once(':')?;
    let controller = match (stack, controller) {
        (_, "newreno") => RivalController::NewReno,
        (_, "cubic") => RivalController::Cubic,
        ("noq", "bbr3") | ("quinn", "bbr") => RivalController::Bbr,
        _ => return None,
    };
    let rival = Rival { controller, has_own_windows: base.is_some() };
    match stack {
        "noq" => Some(Stack::Noq(rival)),
        "quinn" => Some(Stack::Quinn(rival)),
        _ => None,
    }
}

/// Datagrams that both stacks' own drivers take at once.
pub(super) const MAX_SEGMENTS: NonZeroUsize = NonZeroUsize::new(10).expect("ten is not zero");

/// Streams that a client may open at once, as for our transport.
pub(super) const MAX_STREAMS: u32 = 256;

/// Stream data that a sender may hold unacknowledged: above every receive window, so that it never decides.
pub(super) const SEND_WINDOW: u64 = 64 << 20;

/// [`Settings::idle_timeout`] as both take it.
pub(super) fn idle_timeout(settings: &Settings) -> std::time::Duration {
    std::time::Duration::from_nanos(settings.idle_timeout.as_nanos())
}

/// Length of connection IDs, in bytes: the default of both.
pub(super) const ID_LENGTH: usize = 8;

/// The datagram size in bytes that a rival uses: QUIC allows no less than 1,200 (RFC 9000 section 14).
pub(super) fn datagram_size(settings: &Settings) -> u16 {
    settings.max_datagram_size.max(1200)
}

/// Receive windows of a stream and of the connection, in bytes: what the settings say, a stream's at most `bound`.
pub(super) fn receive_windows(settings: &Settings, bound: ByteCount) -> (u32, u32) {
    let bytes = |count: ByteCount| u32::try_from(count.get()).unwrap_or(u32::MAX);
    (bytes(settings.stream_window.min(bound)), bytes(settings.connection_window))
}

/// Where packets of the end that is a client, or is not, come from.
pub(super) fn remote_of(is_client: bool) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, if is_client { 1 } else { 2 }], 443))
}

/// Virtual time as the rivals count it: they need an [`Instant`] to start from, and look at differences alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    base: Instant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the stacks count in Instants: only a base is needed")]
    pub(super) fn new() -> Self {
        Self { base: Instant::now() }
    }

    pub(super) fn instant(self, time: Time) -> Instant {
        self.base + std::time::Duration::from_nanos(time.as_nanos())
    }

    pub(super) fn time(self, instant: Instant) -> Time {
        Time::ZERO + duration(instant.saturating_duration_since(self.base))
    }
}

/// A span as the lab counts it.
pub(super) fn duration(span: std::time::Duration) -> Duration {
    Duration::from_nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

/// Everything random in one endpoint.
pub(super) struct Seeds {
    /// The endpoint's generator.
    pub(super) endpoint: [u8; 32],
    /// Signs stateless resets.
    pub(super) reset_key: hmac::Key,
    /// Draws connection IDs.
    pub(super) ids: Rng,
    /// The destination ID of a client's first packet.
    pub(super) first_destination: [u8; 20],
}

impl Seeds {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let mut rng = rng.fork();
        let (mut endpoint, mut key, mut first_destination) = ([0; 32], [0; 64], [0; 20]);
        rng.fill(&mut endpoint);
        rng.fill(&mut key);
        rng.fill(&mut first_destination);
        let reset_key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        Self { endpoint, reset_key, ids: rng.fork(), first_destination }
    }
}

/// What waits for the world.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pub(super) packets: VecDeque<Packet>,
    pub(super) events: VecDeque<PeerEvent>,
    buffers: Buffers,
    is_closed: bool,
}

impl Outbox {
    /// Adds the datagrams of one buffer, each of `segment` bytes but the last.
    pub(super) fn send(&mut self, datagrams: &[u8], segment: usize, ecn: Option<EcnCodepoint>) {
        for datagram in datagrams.chunks(segment) {
            self.packets.push_back(Packet::udp(self.buffers.datagram(datagram), ecn));
        }
    }

    /// Tells the application once that the connection is over.
    pub(super) fn close(&mut self, reason: Option<String>) {
        if !std::mem::replace(&mut self.is_closed, true) {
            self.events.push_back(PeerEvent::Closed(reason));
        }
    }
}

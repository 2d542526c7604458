//! A model of TCP as Linux 6.18 has it by default, with TLS 1.3 and HTTP on it.
//!
//! What it is: segments without content on the lab's paths, sequence numbers of 64 bits, and every decision that
//! the kernel makes about them. SACK (RFC 2018, D-SACK RFC 2883), RACK with tail loss probes (RFC 8985), PRR (RFC
//! 9937), F-RTO (RFC 5682) and undo by timestamps and D-SACK, timers of RFC 6298 with Linux's bounds, an initial
//! window of ten segments, CUBIC with HyStart or New Reno counted in segments delivered and not paced, BBR version 1
//! paced in bursts of a millisecond, delayed acknowledgements with Linux's quick and interactive modes and compressed SACKs, receive buffer auto-tuning,
//! window probes. TLS's flights have their real lengths; each HTTP/2 frame is one record.
//!
//! What it is not: bursts of offloaded segments (TSO, GRO, and the acks that they merge), the send buffer's limit,
//! what the kernel's structures take of the receive buffer, ticks of its clocks, ECN, SYN cookies, FIN (an end
//! that closes sends one reset), HTTP/2's window updates, and the 9 bytes that part a HEADERS frame from the DATA
//! behind it.
//!
//! Files by owned state: `host` streams and connections of a host pair, `channel` TLS on a connection and its
//! `tape`s, `stream` buffers, `connection` the TCP handshake and segments, `sender`, `receiver`.

mod channel;
mod connection;
pub mod handshake;
mod host;
mod receiver;
mod sender;
mod stream;
mod tape;

use std::rc::Rc;

use posthaste_lab_peer::packet::UDP_HEADERS;
use posthaste_lab_peer::peer::Pair;
use posthaste_lab_peer::{packet, peer, segment, spans};
use posthaste_units::{ByteCount, Rng};

use connection::Parameters;
use host::Host;
use tape::SharedTapes;

/// The TCP model's congestion controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpController {
    /// New Reno (RFC 5681, RFC 6582) with SACK.
    NewReno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// BBR version 1, as in Linux.
    Bbr,
}

/// How exchanges map to TCP connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpVersion {
    /// Six connections a host, one exchange at a time on each.
    Http11,
    /// One connection a host, exchanges interleaved in 16 KiB frames.
    Http2,
}

/// Both ends of the connections of one host pair. IP packets are as large as those that carry `max_datagram_size` bytes
/// of UDP payload. Only BBR has something random, where its cycle begins: it comes from `rng`.
pub fn pair(
    controller: TcpController,
    version: HttpVersion,
    max_datagram_size: u16,
    receive_window: ByteCount,
    rng: &mut Rng,
) -> Pair {
    let packet = u64::from(max_datagram_size) + u64::from(UDP_HEADERS);
    let parameters = Parameters {
        mss: packet - segment::TCP_HEADERS,
        receive_window: receive_window.get(),
        controller,
        seed: if controller == TcpController::Bbr { rng.fork().next_u64() } else { 0 },
    };
    let tapes = SharedTapes::default();
    Pair {
        client: Box::new(Host::new(true, version, parameters, Rc::clone(&tapes))),
        server: Box::new(Host::new(false, version, parameters, tapes)),
    }
}

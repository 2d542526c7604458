//! What every pair has to do.

use std::time::Duration;

use posthaste_path::{Bottleneck, PathConfig, Reordering};
use posthaste_units::{ByteCount, Rate};

use super::content::Files;
use super::recorder::{Harm, Plan, Rebinding, Share};
use crate::Result;

/// A case.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "a table of independent marks, written once for each case")]
pub(crate) struct Case {
    /// On the command line and in tables.
    pub(crate) name: &'static str,
    /// What happens, for people.
    pub(crate) about: &'static str,
    /// What is fetched.
    pub(crate) files: Files,
    /// Requests in flight at once.
    pub(crate) parallel: usize,
    /// Each direction of the relay between client and server, if there is one.
    pub(crate) path: Option<fn() -> PathConfig>,
    /// What the recorder beside the server does, if there is one.
    pub(crate) recorder: Option<Plan>,
    /// Bound for the client.
    pub(crate) timeout: Duration,
    /// Over `::1`.
    pub(crate) ipv6: bool,
    /// The server's certificate is longer than three datagrams.
    pub(crate) large_certificate: bool,
    /// Our side writes a qlog trace for the proof.
    pub(crate) qlog: bool,
    /// Part of `--quick`.
    pub(crate) quick: bool,
    /// What must have happened for the cell to pass.
    pub(crate) proof: Proof,
}

/// What shows that what the case names has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The files are whole, which is checked for every case.
    Files,
    /// The relay lost and reordered.
    LossAndReordering,
    /// It took two round trips at least.
    RoundTrips(Duration),
    /// The recorder lost of the handshake.
    HandshakeLoss,
    /// The recorder lost of the transfer.
    TransferLoss,
    /// The recorder corrupted of both.
    Corruption,
    /// The recorder was silent in the midst of it.
    Silence,
    /// The client's side changed, and the transfer went on over the new one; our server has validated it.
    Rebinding,
    /// The server sent a Retry, the client came back with its token.
    Retry,
    /// The server had more to send than it was allowed to, and kept to it.
    Amplification,
    /// Our side has found that the path carries ECN marks and the peer reports them.
    Ecn,
    /// The second connection went on from the first one's session.
    Resumption,
    /// The request of the second connection came with its first packets and was taken.
    ZeroRtt,
    /// Our side's keys were updated at the peer's wish.
    KeyUpdate,
    /// The peer has followed our side's key updates.
    KeyUpdateByUs,
    /// All packets with long headers were of version 2.
    Version2,
    /// The server chose ChaCha20-Poly1305.
    ChaCha20,
    /// The client went to another socket under a connection ID of its own, and the transfer with it.
    Migration,
    /// Messages came back, and our trace has the frames.
    Datagrams,
}

impl Proof {
    /// Connections that a client makes, one after the other.
    pub(crate) fn connections(self) -> usize {
        if matches!(self, Self::Resumption | Self::ZeroRtt) { 2 } else { 1 }
    }
}

/// Nothing out of the ordinary.
pub(crate) const PLAIN: Case = Case {
    name: "",
    about: "",
    files: Files::One("small.bin"),
    parallel: 1,
    path: None,
    recorder: None,
    timeout: Duration::from_secs(60),
    ipv6: false,
    large_certificate: false,
    qlog: false,
    quick: true,
    proof: Proof::Files,
};

const TEN_MEGABYTES: Files = Files::One("ten-megabytes.bin");
const ONE_MEGABYTE: Files = Files::One("one-megabyte.bin");
const THIRTY_PERCENT: Share = Share(3, 10);
const TWO_PERCENT: Share = Share(1, 50);
const NONE: Share = Share(0, 0);
const NO_HARM: Harm = Harm { loss: NONE, corruption: NONE };
const WATCH: Plan = Plan {
    handshake: NO_HARM,
    transfer: NO_HARM,
    silence: None,
    rebinding: None,
    mute_client: None,
    first_socket_dies: None,
};

/// All of them.
pub(crate) const CASES: [Case; 24] = [
    Case { name: "handshake", about: "one file of 1 kB", timeout: Duration::from_secs(20), ..PLAIN },
    Case { name: "transfer", about: "one file of 10 MB", files: TEN_MEGABYTES, ..PLAIN },
    Case {
        name: "parallel",
        about: "100 small files at once over one connection",
        files: Files::Hundred,
        parallel: 100,
        ..PLAIN
    },
    Case {
        name: "lossy",
        about: "1 MB, 20 ms round trip, 5 % lost and 5 % reordered both ways",
        files: ONE_MEGABYTE,
        path: Some(lossy_path),
        timeout: Duration::from_secs(90),
        proof: Proof::LossAndReordering,
        ..PLAIN
    },
    Case {
        name: "multiplexing",
        about: "2,000 small files over one connection, 100 at once",
        files: Files::TwoThousand,
        parallel: 100,
        timeout: Duration::from_secs(90),
        quick: false,
        ..PLAIN
    },
    Case {
        name: "retry",
        about: "the server asks for proof of the address first",
        recorder: Some(WATCH),
        proof: Proof::Retry,
        ..PLAIN
    },
    Case { name: "ipv6", about: "1 kB over ::1", ipv6: true, ..PLAIN },
    Case {
        name: "longrtt",
        about: "a round trip of 750 ms",
        path: Some(long_path),
        proof: Proof::RoundTrips(Duration::from_millis(750)),
        ..PLAIN
    },
    Case {
        name: "handshakeloss",
        about: "30 % of the handshake's datagrams are lost both ways",
        recorder: Some(Plan { handshake: Harm { loss: THIRTY_PERCENT, corruption: NONE }, ..WATCH }),
        proof: Proof::HandshakeLoss,
        ..PLAIN
    },
    Case {
        name: "transferloss",
        about: "1 MB, 30 ms round trip, 2 % lost both ways",
        files: ONE_MEGABYTE,
        path: Some(short_path),
        recorder: Some(Plan { transfer: Harm { loss: TWO_PERCENT, corruption: NONE }, ..WATCH }),
        proof: Proof::TransferLoss,
        ..PLAIN
    },
    Case {
        name: "corruption",
        about: "1 MB; one bit is flipped in 30 % of the handshake's and 2 % of the transfer's datagrams",
        files: ONE_MEGABYTE,
        recorder: Some(Plan {
            handshake: Harm { loss: NONE, corruption: THIRTY_PERCENT },
            transfer: Harm { loss: NONE, corruption: TWO_PERCENT },
            ..WATCH
        }),
        proof: Proof::Corruption,
        ..PLAIN
    },
    Case {
        name: "blackhole",
        about: "10 MB at 10 Mbit/s; nothing passes for 2 s after each 5 s",
        files: TEN_MEGABYTES,
        path: Some(slow_path),
        recorder: Some(Plan { silence: Some((Duration::from_secs(5), Duration::from_secs(2))), ..WATCH }),
        quick: false,
        proof: Proof::Silence,
        ..PLAIN
    },
    Case {
        name: "rebind-port",
        about: "10 MB; the client's port changes in the midst of it",
        files: TEN_MEGABYTES,
        path: Some(fast_path),
        recorder: Some(Plan { rebinding: Some(Rebinding::Port), ..WATCH }),
        qlog: true,
        proof: Proof::Rebinding,
        ..PLAIN
    },
    Case {
        name: "rebind-address",
        about: "10 MB; the client's address changes in the midst of it",
        files: TEN_MEGABYTES,
        path: Some(fast_path),
        recorder: Some(Plan { rebinding: Some(Rebinding::Address), ..WATCH }),
        qlog: true,
        proof: Proof::Rebinding,
        ..PLAIN
    },
    Case {
        name: "amplification",
        about: "a long certificate for a client that is not heard for 1 s after its first datagram",
        recorder: Some(Plan { mute_client: Some(Duration::from_secs(1)), ..WATCH }),
        large_certificate: true,
        proof: Proof::Amplification,
        ..PLAIN
    },
    Case {
        name: "ecn",
        about: "1 MB with ECN marks",
        files: ONE_MEGABYTE,
        qlog: true,
        proof: Proof::Ecn,
        ..PLAIN
    },
    Case {
        name: "keyupdate",
        about: "10 MB, the peer updates its keys meanwhile",
        files: TEN_MEGABYTES,
        qlog: true,
        proof: Proof::KeyUpdate,
        ..PLAIN
    },
    Case {
        name: "resumption",
        about: "1 kB twice, the second time with a ticket",
        recorder: Some(WATCH),
        proof: Proof::Resumption,
        ..PLAIN
    },
    Case {
        name: "zerortt",
        about: "1 kB twice, the second time asked for with the first packets; 30 ms round trip",
        // Without a round trip worth the name, a busy machine completes the handshake before a client has asked.
        path: Some(short_path),
        recorder: Some(WATCH),
        qlog: true,
        proof: Proof::ZeroRtt,
        ..PLAIN
    },
    Case {
        name: "keyupdate-by-us",
        about: "10 MB, our side updates its keys meanwhile, again and again",
        files: TEN_MEGABYTES,
        path: Some(near_path),
        qlog: true,
        proof: Proof::KeyUpdateByUs,
        ..PLAIN
    },
    Case {
        name: "v2",
        about: "1 MB over QUIC version 2, from the first packet on",
        files: ONE_MEGABYTE,
        recorder: Some(WATCH),
        proof: Proof::Version2,
        ..PLAIN
    },
    Case {
        name: "chacha20",
        about: "1 MB under TLS_CHACHA20_POLY1305_SHA256, the only cipher that our side agrees to",
        files: ONE_MEGABYTE,
        recorder: Some(WATCH),
        proof: Proof::ChaCha20,
        ..PLAIN
    },
    Case {
        name: "migration",
        about: "10 MB; the client moves to another address (Chromium: to another port) after the first megabyte",
        files: TEN_MEGABYTES,
        recorder: Some(WATCH),
        qlog: true,
        proof: Proof::Migration,
        ..PLAIN
    },
    Case {
        name: "datagrams",
        about: "210 messages in DATAGRAM frames, sent back by the server",
        timeout: Duration::from_secs(30),
        proof: Proof::Datagrams,
        ..PLAIN
    },
];

impl Case {
    /// What the recorder does to this client. Chromium cannot be told to move: it takes another port when its path does not
    /// answer any more.
    pub(crate) fn recorder_for(&self, client: &str) -> Option<Plan> {
        let dies = self.proof == Proof::Migration && client == "chromium";
        self.recorder.map(|plan| Plan { first_socket_dies: dies.then_some(1_000), ..plan })
    }
}

/// Bytes that a client that migrates fetches before.
pub(crate) const MOVE_AFTER: &str = "1000000";
/// Where it goes then.
pub(crate) const MOVE_TO: &str = "127.0.0.2";

/// The case called `name`.
pub(crate) fn find(name: &str) -> Result<&'static Case> {
    CASES.iter().find(|case| case.name == name).ok_or_else(|| {
        let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        format!("no case {name:?}; there are {}", names.join(", ")).into()
    })
}

/// 20 ms there and back, 5 % loss, 5 % overtaken.
fn lossy_path() -> PathConfig {
    PathConfig {
        loss: 0.05,
        reordering: Reordering {
            probability: 0.05,
            extra_delay: posthaste_units::Duration::from_millis(5),
            ..Reordering::default()
        },
        ..delay(10)
    }
}

fn long_path() -> PathConfig {
    delay(375)
}

fn short_path() -> PathConfig {
    delay(15)
}

/// 10 Mbit/s and 30 ms there and back: 10 MB take 8 s.
fn slow_path() -> PathConfig {
    limited(10)
}

/// 50 Mbit/s: a transfer that is long enough for something to happen meanwhile.
fn fast_path() -> PathConfig {
    limited(50)
}

/// 25 Mbit/s and a short round trip: keys may be updated again after three probe timeouts, here some 250 packets.
fn near_path() -> PathConfig {
    let rate = Rate::from_bits_per_second(25_000_000);
    PathConfig { bottleneck: Some(Bottleneck::new(rate, ByteCount::new(64_000))), ..delay(1) }
}

fn limited(megabits: u64) -> PathConfig {
    let rate = Rate::from_bits_per_second(megabits * 1_000_000);
    PathConfig { bottleneck: Some(Bottleneck::new(rate, ByteCount::new(256_000))), ..delay(15) }
}

fn delay(milliseconds: u64) -> PathConfig {
    PathConfig { delay: posthaste_units::Duration::from_millis(milliseconds), ..PathConfig::default() }
}

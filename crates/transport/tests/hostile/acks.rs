//! Clients that acknowledge everything at once, never, or in reverse: what a server with the profile `mobile` sends them.

use bytes::Bytes;
use posthaste_transport::{Direction, StreamId, TransportConfig};
use posthaste_units::Duration;
use posthaste_wire::Frame;
use posthaste_wire::frame::AckFrame;
use posthaste_wire::packet::PacketType;

use crate::support::arena::Arena;
use crate::support::rogue::proper;
use crate::support::tls;

/// The round trip.
const RTT: Duration = Duration::from_millis(40);

/// How the client acknowledges what a round trip has brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Habit {
    /// In one ACK frame.
    AtOnce,
    Never,
    /// One packet after the other, the newest first.
    Reverse,
}

/// A server with this profile that has something to send, and its client.
struct Download {
    arena: Arena,
    stream: StreamId,
    data: Bytes,
    /// Packets that have been acknowledged.
    acked: usize,
}

impl Download {
    fn new(profile: &str) -> Self {
        let profile = posthaste_schemes::named(profile).expect("it is built in");
        let transport = TransportConfig { profile, ..crate::support::defaults() };
        let config = tls::server_config(1).with_transport(transport.into());
        let mut arena = Arena::server_with(config, proper());
        // Every answer takes a round trip.
        for _ in 0..6 {
            for datagram in arena.rogue.flight() {
                arena.inject(&datagram);
            }
            arena.drain();
            arena.now += RTT;
        }
        assert!(arena.rogue.is_connected());
        arena.rogue.is_acking = false;
        let acked = arena.rogue.received(PacketType::Short).len();
        let stream = arena.connection().open(Direction::Unidirectional).expect("streams may be opened");
        Self { arena, stream, data: Bytes::from(vec![7; 32 << 20]), acked }
    }

    /// A round trip; the datagrams that leave in it.
    fn round(&mut self, habit: Habit) -> usize {
        let before = self.arena.sent.len();
        if !self.data.is_empty() {
            // As much as the send buffer has room for.
            let _ = self.arena.connection().write(self.stream, &mut self.data);
        }
        self.arena.run_for(RTT);
        let all: Vec<u64> = self.arena.rogue.received(PacketType::Short).iter().copied().collect();
        let new = all.get(self.acked..).unwrap_or_default();
        self.acked = all.len();
        match habit {
            Habit::Never => {}
            Habit::AtOnce => {
                let ack = self.arena.rogue.ack(PacketType::Short).expect("something has come");
                self.arena.send(PacketType::Short, &[ack]);
            }
            Habit::Reverse => {
                for number in new.iter().rev() {
                    let ack = AckFrame { ranges: vec![*number..=*number], delay: 0, ecn: None };
                    self.arena.send(PacketType::Short, &[Frame::Ack(ack)]);
                }
            }
        }
        self.arena.sent.len() - before
    }
}

/// The datagrams of each of 14 round trips, and the packets declared lost.
fn rounds(profile: &str, habit: Habit) -> (Vec<usize>, u64) {
    let mut download = Download::new(profile);
    let rounds = (0..14).map(|_| download.round(habit)).collect();
    assert_eq!(download.arena.close_code(), None, "{profile}, {habit:?}");
    (rounds, download.arena.connection().stats().packets_lost)
}

#[test]
fn a_client_that_never_acknowledges_gets_one_flight_and_probes() {
    let (rounds, _) = rounds("mobile", Habit::Never);
    assert!((10..=200).contains(&rounds[0]), "{rounds:?}");
    assert!(rounds[1..].iter().all(|count| *count <= 2), "{rounds:?}");
}

#[test]
fn a_client_that_acknowledges_everything_at_once_is_sent_three_times_as_much_at_most() {
    let (rounds, lost) = rounds("mobile", Habit::AtOnce);
    assert_eq!(lost, 0);
    // And the few that an answer to an acknowledgement takes.
    assert!(rounds.windows(2).all(|pair| pair[1] <= 3 * pair[0] + 2), "{rounds:?}");
    assert!(rounds.iter().sum::<usize>() > 1_000, "it goes on: {rounds:?}");
}

/// All but the newest look lost, and then it turns out that they had arrived.
#[test]
fn a_client_that_acknowledges_in_reverse_is_sent_no_more_than_the_draft_would() {
    let ((mobile, lost), (draft, _)) = (rounds("mobile", Habit::Reverse), rounds("bbr", Habit::Reverse));
    assert!(lost > 0, "{mobile:?}");
    let later = |rounds: &[usize]| rounds[1..].iter().sum::<usize>();
    assert!(later(&mobile) > 0 && later(&mobile) <= later(&draft), "{mobile:?} {draft:?}");
}

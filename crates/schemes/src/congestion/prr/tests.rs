//! Byte counts in these tests are in datagrams of 1,000 bytes.

use proptest::prelude::*;

use super::*;

const MSS: u64 = 1000;

fn bytes(datagrams: u64) -> ByteCount {
    ByteCount::new(datagrams * MSS)
}

/// A sender that always has data, and a path that acknowledges one datagram at a time.
struct Sender {
    period: Prr,
    in_flight: u64,
    sent: u64,
}

impl Sender {
    /// `flight` datagrams were in flight; the ack of one of them has revealed `lost`.
    fn begin(target: u64, flight: u64, lost: u64) -> Self {
        let in_flight = flight - 1 - lost;
        let delivery = Delivery { newly: bytes(1), in_flight: bytes(in_flight) };
        let mut sender =
            Self { period: Prr::begin(bytes(target), bytes(flight), delivery, bytes(1)), in_flight, sent: 0 };
        sender.send();
        sender
    }

    fn send(&mut self) {
        while bytes(self.in_flight + 1) <= self.period.window() {
            self.period.on_sent(bytes(1));
            self.in_flight += 1;
            self.sent += 1;
        }
    }

    /// One datagram arrives; answers with how many leave.
    fn deliver(&mut self) -> u64 {
        self.in_flight -= 1;
        self.period.on_ack(Delivery { newly: bytes(1), in_flight: bytes(self.in_flight) });
        let before = self.sent;
        self.send();
        self.sent - before
    }
}

#[test]
fn one_loss_of_twenty_shrinks_the_flight_evenly_to_the_target() {
    // RFC 9937 section 6: with a target of 0.7 the sends are spread over the round trip, seven for ten arrivals.
    let mut sender = Sender::begin(14, 20, 1);
    assert_eq!(sender.sent, 1, "the retransmission leaves at once");
    let sends: Vec<u64> = (0..18).map(|_| sender.deliver()).collect();
    assert!(sends.iter().all(|count| *count <= 1), "never a burst: {sends:?}");
    let longest_silence = sends.split(|count| *count > 0).map(<[u64]>::len).max();
    assert!(longest_silence <= Some(2), "never a silence: {sends:?}");
    // ceil(19 x 14 / 20) were sent for the nineteen that arrived.
    assert_eq!((sender.sent, sender.in_flight), (14, 14));
}

#[test]
fn a_flight_below_the_target_is_kept_and_refilled_by_one_datagram_an_ack() {
    // Fifteen of twenty lost: four are left, of a target of ten.
    let mut sender = Sender::begin(10, 20, 15);
    assert_eq!((sender.sent, sender.in_flight), (1, 5), "conservation: one arrived, one leaves");
    assert_eq!(sender.deliver(), 2, "slow start towards the target");
    assert_eq!(sender.in_flight, 6);
    for _ in 0..8 {
        sender.deliver();
    }
    assert_eq!(sender.in_flight, 10, "and not beyond it");
}

#[test]
fn an_ack_that_finds_more_losses_earns_conservation_only() {
    let mut sender = Sender::begin(10, 20, 10);
    sender.in_flight -= 3;
    let delivery = Delivery { newly: bytes(1), in_flight: bytes(sender.in_flight + 2) };
    sender.period.on_ack(delivery);
    let safe = sender.period.window();
    sender.period.on_loss(Delivery { newly: bytes(1), in_flight: bytes(sender.in_flight) });
    assert_eq!(sender.period.window(), bytes(sender.in_flight + 1));
    assert!(sender.period.window() < safe);
}

#[test]
fn a_loss_found_by_a_timer_still_sends_its_retransmission() {
    let delivery = Delivery { newly: ByteCount::ZERO, in_flight: ByteCount::ZERO };
    let period = Prr::begin(bytes(2), bytes(4), delivery, bytes(1));
    assert_eq!(period.window(), bytes(1));
    let delivery = Delivery { newly: ByteCount::ZERO, in_flight: bytes(30) };
    assert_eq!(Prr::begin(bytes(28), bytes(40), delivery, bytes(1)).window(), bytes(31));
}

proptest! {
    /// RFC 9937 section 4: never beyond the target by more than the first retransmission, never more sent than has
    /// been delivered and one datagram an ack, and no stall.
    #[test]
    fn whatever_is_lost_the_flight_stays_between_conservation_and_the_target(
        flight in 2..200_u64, part in 1..=100_u64, lost in 0..198_u64, later in prop::collection::vec(0..4_u64, 0..50),
    ) {
        let target = (flight * part / 100).max(2);
        let mut sender = Sender::begin(target, flight, lost.min(flight - 2));
        let mut arrived = 1;
        for lost in later {
            if sender.in_flight == 0 {
                break;
            }
            sender.in_flight -= 1;
            arrived += 1;
            let delivery = Delivery { newly: bytes(1), in_flight: bytes(sender.in_flight) };
            sender.period.on_ack(delivery);
            if lost > 0 {
                sender.in_flight -= lost.min(sender.in_flight);
                sender.period.on_loss(Delivery { in_flight: bytes(sender.in_flight), ..delivery });
            }
            let conserved = sender.in_flight + 1 + u64::from(sender.sent == 0);
            sender.send();
            prop_assert!(sender.in_flight <= conserved.max(target));
            prop_assert!(sender.sent <= 2 * arrived, "{} sent for {arrived}", sender.sent);
            prop_assert!(sender.in_flight > 0, "one that arrives lets one leave");
        }
    }
}

//! The thread that carries one direction's packets.
//!
//! It works in rounds: take what the sender's namespace has sent and put it on the path; hand over everything that is
//! due, each packet at its time and none before; wait for the next.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as StdDuration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use posthaste_path::{Path, PathStats};
use posthaste_units::{ByteCount, Duration, Time};

use std::os::fd::AsFd;

use super::device::Handed;
use super::interface::Interface;
use super::ip_packet::IpPacket;
use super::log::{Direction, Event, PacketLog, Record};
use super::precision::{Pause, RunDelay, prefer_real_time};
use super::shared::{Counts, Shared};
use crate::clock::Clock;

/// The largest IP packet.
const MAX_PACKET: usize = 65_535;

/// Packets taken in a round: what is due must not wait for a flood to end.
const RECEIVED_PER_ROUND: usize = 64;

/// Where there is nothing to do it looks this often whether it is to stop.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// What the thread owns.
pub(super) struct Carrier {
    pub(super) direction: Direction,
    pub(super) path: Path<IpPacket>,
    pub(super) from: Arc<Interface>,
    pub(super) to: Arc<Interface>,
    pub(super) clock: Clock,
    pub(super) shared: Arc<Shared>,
    pub(super) log: Option<PacketLog>,
    pub(super) is_stopped: Arc<AtomicBool>,
}

/// What changes from round to round.
struct Round {
    buffer: Vec<u8>,
    run_delay: RunDelay,
    /// The last moment at which nothing is known to have waited in the interface.
    empty_at: Time,
    /// No packet may enter before this: something that happened then is over.
    settled: Time,
    /// Sums of delays between arrival and departure, packet by packet, since the last publication.
    lateness: Vec<Duration>,
    refused: u64,
    undeliverable: u64,
}

impl Carrier {
    pub(super) fn run(mut self) {
        self.shared.counts(self.direction).is_real_time = prefer_real_time();
        let mut round = Round {
            buffer: vec![0; MAX_PACKET],
            run_delay: RunDelay::of_this_thread(),
            empty_at: self.clock.now(),
            settled: Time::ZERO,
            lateness: Vec::new(),
            refused: 0,
            undeliverable: 0,
        };
        while !self.is_stopped.load(Ordering::Relaxed) {
            let result = self.receive(&mut round).and_then(|is_empty| {
                self.hand_over(&mut round);
                self.publish(&mut round);
                if is_empty { self.wait(&mut round) } else { Ok(()) }
            });
            if let Err(error) = result {
                tracing::error!(%error, "the emulated path breaks off");
                self.shared.counts(self.direction).failure = Some(error.to_string());
                break;
            }
        }
        self.publish(&mut round);
    }

    /// Takes what has been sent. True if nothing is left.
    fn receive(&mut self, round: &mut Round) -> io::Result<bool> {
        for _ in 0..RECEIVED_PER_ROUND {
            let received = self.from.receive(&mut round.buffer)?;
            let now = self.clock.now();
            let Some(length) = received else {
                round.empty_at = now;
                return Ok(true);
            };
            round.settled = round.settled.max(now);
            let before = self.path.stats();
            let waited = waited(&mut self.path, round.settled, round.empty_at);
            self.path.on_packet(round.settled, IpPacket::new(&round.buffer[..length], waited));
            self.record(Event::Arrival, round.settled, length, Duration::ZERO);
            self.record_fates(&before, round.settled, length);
        }
        Ok(false)
    }

    /// Steps from one of the path's times to the next, so that each packet's own is known.
    fn hand_over(&mut self, round: &mut Round) {
        let now = self.clock.now();
        while let Some(due) = self.path.next_timeout().filter(|&due| due <= now) {
            round.settled = round.settled.max(due);
            let before = self.path.stats();
            while let Some(packet) = self.path.poll(due) {
                let lateness = self.clock.now().since(due) + packet.waited;
                round.lateness.push(lateness);
                match self.to.send(packet.bytes()) {
                    Handed::Over => {}
                    Handed::ToNobody => round.undeliverable += 1,
                    Handed::Refused => round.refused += 1,
                }
                self.record(Event::Departure, due, packet.bytes().len(), lateness);
            }
            self.record_fates(&before, due, 0);
        }
    }

    /// Waits until there is something to do.
    fn wait(&self, round: &mut Round) -> io::Result<()> {
        let now = self.clock.now();
        let due = self.path.next_timeout().map_or(LONGEST_WAIT, |due| due.since(now));
        let timeout = StdDuration::from(due.min(LONGEST_WAIT));
        round.run_delay.since_last();
        let mut sources = [PollFd::new(self.from.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut sources, Some(TimeSpec::from_duration(timeout)), None) {
            Ok(_) => {
                let pause = round.run_delay.since_last();
                round.empty_at = empty_at(round.empty_at, self.clock.now(), pause);
            }
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn publish(&self, round: &mut Round) {
        let mut counts = self.shared.counts(self.direction);
        let Counts { stats, queue, refused, undeliverable, lateness, .. } = &mut *counts;
        *stats = self.path.stats();
        *queue = self.path.queue_bytes();
        *refused += std::mem::take(&mut round.refused);
        *undeliverable += std::mem::take(&mut round.undeliverable);
        round.lateness.drain(..).for_each(|late| lateness.record(late));
    }

    fn record(&mut self, event: Event, at: Time, length: usize, late: Duration) {
        if let Some(log) = &mut self.log {
            log.write(Record {
                at,
                direction: self.direction,
                event,
                length,
                queue: self.path.queue_bytes(),
                late,
            });
        }
    }

    /// Writes down what the path has done to packets since `before`.
    fn record_fates(&mut self, before: &PathStats, at: Time, length: usize) {
        if self.log.is_none() {
            return;
        }
        let news = self.path.stats().since(before);
        let fates = [
            (Event::Overflow, news.overflowed),
            (Event::Managed, news.managed),
            (Event::Mark, news.marked),
            (Event::Loss, news.lost),
            (Event::Corruption, news.corrupted),
            (Event::Duplicate, news.duplicated),
            (Event::Reordering, news.reordered),
        ];
        for (event, count) in fates {
            for _ in 0..count {
                self.record(event, at, if event == Event::Overflow { length } else { 0 }, Duration::ZERO);
            }
        }
    }
}

/// How late a packet that is read at `now` may be, at most, because it waited for that. Who finds others waiting leaves
/// when it is its turn, however late it was read.
fn waited(path: &mut Path<IpPacket>, now: Time, empty_at: Time) -> Duration {
    // What has left the queue since the path was last told the time waits no more.
    path.advance(now);
    if path.queue_bytes() == ByteCount::ZERO { now.since(empty_at) } else { Duration::ZERO }
}

/// The last moment at which nothing is known to have waited in the interface, after a wait that ended at `now`.
fn empty_at(before: Time, now: Time, pause: Pause) -> Time {
    if pause.has_slept {
        // What woke the thread came at most so long ago as it then was kept from running.
        now - pause.kept_waiting
    } else {
        // It came before the thread could sleep: at any time since the interface was last seen empty.
        before
    }
}

#[cfg(test)]
mod tests {
    use posthaste_path::{Bottleneck, PathConfig};
    use posthaste_units::{Rate, Rng};

    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// A byte a microsecond, and room for ten packets of a millisecond each.
    fn path() -> Path<IpPacket> {
        let bottleneck = Bottleneck::new(Rate::from_bits_per_second(8_000_000), ByteCount::new(10_000));
        let config = PathConfig { bottleneck: Some(bottleneck), ..PathConfig::default() };
        Path::new(config, Rng::from_test_seed(1)).unwrap()
    }

    fn packet() -> IpPacket {
        IpPacket::new(&[0x45; 1_000], Duration::ZERO)
    }

    #[test]
    fn a_queue_that_has_drained_meanwhile_excuses_nobody() {
        let mut path = path();
        for _ in 0..3 {
            path.on_packet(at(0), packet());
        }
        assert_eq!(waited(&mut path, at(1), at(0)), Duration::ZERO, "one still waits");
        // The thread was away for 20 ms, in which the queue came to its end.
        assert_eq!(waited(&mut path, at(21), at(1)), Duration::from_millis(20));
    }

    #[test]
    fn looking_at_the_queue_changes_no_packets_fate() {
        let [mut looked_at, mut other] = [path(), path()];
        let mut arrivals = [Vec::new(), Vec::new()];
        for millis in 0..40 {
            // Bursts of three on a link that takes one a millisecond: it overflows and drains, again and again.
            for _ in 0..if millis % 20 < 8 { 3 } else { 0 } {
                let _ = waited(&mut looked_at, at(millis), at(0));
                looked_at.on_packet(at(millis), packet());
                other.on_packet(at(millis), packet());
            }
            for (path, arrivals) in [&mut looked_at, &mut other].into_iter().zip(&mut arrivals) {
                while let Some(due) = path.next_timeout().filter(|&due| due <= at(millis)) {
                    while path.poll(due).is_some() {
                        arrivals.push(due);
                    }
                }
            }
        }
        assert!(looked_at.stats().overflowed > 0 && arrivals[0].len() > 20, "{:?}", looked_at.stats());
        assert_eq!((looked_at.stats(), &arrivals[0]), (other.stats(), &arrivals[1]));
    }

    #[test]
    fn who_could_not_sleep_knows_no_more_than_before() {
        let pause = |has_slept| Pause { has_slept, kept_waiting: Duration::from_millis(3) };
        assert_eq!(empty_at(at(10), at(50), pause(true)), at(47));
        assert_eq!(empty_at(at(10), at(50), pause(false)), at(10));
    }
}

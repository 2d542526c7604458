//! What the world sees of a run: packets that leave and arrive, and gauges over time.

use posthaste_units::{Duration, Time};

use crate::packet::Packet;
use crate::peer::Snapshot;
use crate::result::{DirectionResult, Gauge, Series};
use crate::world::World;

/// Samples at most, so that a long run's series stays small enough to draw.
const MAX_SAMPLES: usize = 20_000;

/// What one host has sent and what of it has arrived.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    packets_sent: u64,
    bytes_sent: u64,
    packets_received: u64,
    originals_received: u64,
    bytes_received: u64,
    delays: Vec<u64>,
    /// When the first and the last packet left.
    sending: Option<(Time, Time)>,
    window: WindowMean,
}

/// The means over time of a congestion window, and of it over the round-trip time.
#[derive(Debug, Clone, Copy, Default)]
struct WindowMean {
    /// Window in bytes and rate in bits a second since when.
    now: Option<(f64, f64, Time)>,
    byte_seconds: f64,
    bits: f64,
    seconds: f64,
}

impl WindowMean {
    fn look(&mut self, now: Time, snapshot: &Snapshot) {
        if let Some((window, rate, since)) = self.now {
            let seconds = now.since(since).as_secs_f64();
            self.byte_seconds += window * seconds;
            self.bits += rate * seconds;
            self.seconds += seconds;
        }
        let known = snapshot.window.zip(snapshot.rtt).filter(|(_, rtt)| !rtt.is_zero());
        self.now = known.map(|(window, rtt)| {
            let window = window.get() as f64;
            (window, window * 8.0 / rtt.as_secs_f64(), now)
        });
    }
}

impl Arrivals {
    pub(crate) fn on_sent(&mut self, now: Time, packet: &Packet) {
        self.packets_sent += 1;
        self.bytes_sent += packet.wire_length();
        self.sending = Some((self.sending.map_or(now, |(first, _)| first), now));
    }

    /// The host has sent what its window and pacer permit.
    pub(crate) fn on_settled(&mut self, now: Time, snapshot: &Snapshot) {
        self.window.look(now, snapshot);
    }

    pub(crate) fn on_arrival(&mut self, now: Time, packet: &Packet) {
        self.packets_received += 1;
        self.originals_received += u64::from(!packet.tag.is_copy);
        self.bytes_received += packet.wire_length();
        self.delays.push(now.since(packet.tag.sent_at).as_nanos());
    }

    pub(crate) fn bytes_received(&self) -> u64 {
        self.bytes_received
    }

    /// The sum over several connections of one direction; counters are the caller's to fill in.
    pub(crate) fn summarise<'a>(all: impl Iterator<Item = &'a Self>) -> DirectionResult {
        let mut result = DirectionResult::default();
        let mut delays: Vec<u64> = Vec::new();
        let mut sending: Option<(Time, Time)> = None;
        let mut window = WindowMean::default();
        for arrivals in all {
            result.packets_sent += arrivals.packets_sent;
            result.bytes_sent += arrivals.bytes_sent;
            result.packets_received += arrivals.packets_received;
            result.originals_received += arrivals.originals_received;
            result.bytes_received += arrivals.bytes_received;
            delays.extend(&arrivals.delays);
            if let Some((first, last)) = arrivals.sending {
                sending = Some(sending.map_or((first, last), |(from, to)| (from.min(first), to.max(last))));
            }
            window.byte_seconds += arrivals.window.byte_seconds;
            window.bits += arrivals.window.bits;
            window.seconds += arrivals.window.seconds;
        }
        result.sending_seconds = sending.map_or(0.0, |(first, last)| last.since(first).as_secs_f64());
        if window.seconds > 0.0 {
            result.window_mean_bytes = Some(window.byte_seconds / window.seconds);
            result.window_rate = Some(window.bits / window.seconds);
        }
        delays.sort_unstable();
        if let (Some(least), Some(greatest)) = (delays.first(), delays.last()) {
            let milliseconds = |nanos: u64| nanos as f64 / 1e6;
            let sum: u128 = delays.iter().map(|&nanos| u128::from(nanos)).sum();
            result.delay_mean_ms = sum as f64 / delays.len() as f64 / 1e6;
            result.delay_p95_ms = milliseconds(delays[(delays.len() * 95).div_ceil(100) - 1]);
            result.delay_max_ms = milliseconds(*greatest);
            result.queueing_mean_ms = result.delay_mean_ms - milliseconds(*least);
            result.queueing_p95_ms = result.delay_p95_ms - milliseconds(*least);
        }
        result
    }
}

/// Samples gauges at fixed intervals of virtual time.
#[derive(Debug)]
pub(crate) struct Sampler {
    interval: Duration,
    next: Time,
    times: Vec<f64>,
    /// A column a host gauge, then a column a link.
    columns: Vec<Vec<Option<f64>>>,
    /// Bytes that had arrived of each host's packets at the last sample.
    arrived: Vec<u64>,
}

/// The gauges of a host, in the order of its columns.
const HOST_GAUGES: [&str; 7] = ["window", "in_flight", "credit", "pacing", "rtt", "delivery", "blocked"];

impl Sampler {
    pub(crate) fn new(interval: Duration) -> Self {
        Self { interval, next: Time::ZERO, times: Vec::new(), columns: Vec::new(), arrived: Vec::new() }
    }

    /// The next sampling time, if it is before `until` and there is room for its samples.
    pub(crate) fn due_before(&self, until: Time) -> Option<Time> {
        (self.next < until && self.times.len() < MAX_SAMPLES).then_some(self.next)
    }

    /// Samples the state at the next sampling time.
    pub(crate) fn sample(&mut self, world: &World) {
        self.times.push(self.next.as_secs_f64());
        let mut row: Vec<Option<f64>> = Vec::with_capacity(self.columns.len());
        self.arrived.resize(world.hosts.len(), 0);
        for (host, arrived) in world.hosts.iter().zip(&mut self.arrived) {
            let snapshot = host.peer.snapshot();
            let bytes = |count: Option<posthaste_units::ByteCount>| count.map(|count| count.get() as f64);
            let news =
                host.arrivals.bytes_received() - std::mem::replace(arrived, host.arrivals.bytes_received());
            row.extend([
                bytes(snapshot.window),
                bytes(snapshot.in_flight),
                bytes(snapshot.credit),
                snapshot.pacing.map(|rate| rate.as_bits_per_second() as f64),
                snapshot.rtt.map(Duration::as_secs_f64),
                Some(news as f64 * 8.0 / self.interval.as_secs_f64()),
                snapshot.is_blocked.map(f64::from),
            ]);
        }
        row.extend(world.links.iter().map(|link| Some(link.path.queue_bytes().get() as f64)));
        self.columns.resize(row.len(), Vec::new());
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(value);
        }
        self.next += self.interval;
    }

    /// The series; `host_names` and `link_names` name the columns' owners, `None` leaves a host out.
    pub(crate) fn into_series(self, host_names: &[Option<String>], link_names: &[String]) -> Series {
        let mut columns = self.columns.into_iter();
        let mut gauges = Vec::new();
        for name in host_names {
            for (quantity, values) in HOST_GAUGES.iter().zip(columns.by_ref()) {
                let Some(name) = name else { continue };
                if values.iter().any(Option::is_some) {
                    gauges.push(Gauge { of: name.clone(), quantity: (*quantity).to_owned(), values });
                }
            }
        }
        for (name, values) in link_names.iter().zip(columns) {
            gauges.push(Gauge { of: name.clone(), quantity: "queue".to_owned(), values });
        }
        Series { times: self.times, gauges }
    }
}

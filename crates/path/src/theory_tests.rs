//! The bottleneck against queueing theory.

use posthaste_units::{ByteCount, Duration, Rate, Rng, Time};

use crate::test_support::{Probe, batch_mean, probe, probe_path};
use crate::{Bottleneck, PathConfig};

/// Service of a packet: 1000 bytes at 8 Mbit/s.
const SERVICE: Duration = Duration::from_millis(1);

/// What Poisson arrivals have met: waits and the queue that arrivals found, in units of a service and a packet.
struct Met {
    waits: Vec<f64>,
    found: Vec<f64>,
}

fn poisson_arrivals(load: f64, packets: u64) -> Met {
    let rate = Rate::from_bits_per_second(8_000_000);
    let bottleneck = Some(Bottleneck::new(rate, ByteCount::new(1 << 40)));
    let config = PathConfig { bottleneck, capacity: ByteCount::new(1 << 40), ..PathConfig::default() };
    let mut path = probe_path(config);
    let mut rng = Rng::from_test_seed(11);
    let mut met = Met { waits: Vec::new(), found: Vec::new() };
    let take = |met: &mut Met, due: Time, packet: &Probe| {
        let wait = due.since(packet.sent).saturating_sub(SERVICE);
        met.waits.push(wait.as_secs_f64() / SERVICE.as_secs_f64());
    };
    let mut now = Time::ZERO;
    for number in 0..packets {
        let gap = -libm::log(1.0 - rng.unit_f64()) / load;
        now += Duration::from_secs_f64(gap * SERVICE.as_secs_f64());
        while let Some(due) = path.next_timeout().filter(|&due| due <= now) {
            while let Some(packet) = path.poll(due) {
                take(&mut met, due, &packet);
            }
        }
        met.found.push(path.queue_bytes().as_f64() / 1_000.0);
        path.on_packet(now, probe(number, now, 1_000));
    }
    met
}

/// M/D/1 (Pollaczek and Khinchine with constant service): the mean wait is `load / (2 (1 - load))` services, and by
/// Little's law the mean number of waiting packets is `load` times that, which is what Poisson arrivals find.
///
/// The tolerance is the sample's own 99 % interval from the means of 30 batches, since waits depend on their
/// neighbours; at the highest load a batch of 20,000 services is still a hundred times as long as a queue remembers
/// (about `1 / (1 - load)²` services). The interval must be within 7 % of the value, so that the test means something:
/// a random service of the same mean would double the wait.
#[test]
fn poisson_arrivals_wait_as_long_as_theory_says() {
    for (load, packets) in [(0.5, 150_000), (0.7, 300_000), (0.9, 600_000)] {
        let met = poisson_arrivals(load, packets);
        let wait = load / (2.0 * (1.0 - load));
        for (samples, expected, what) in [(&met.waits, wait, "wait"), (&met.found, load * wait, "found")] {
            let (mean, half_width) = batch_mean(samples);
            println!("load {load}: {what} {mean:.4} +- {half_width:.4}, theory {expected:.4}");
            assert!((mean - expected).abs() < half_width, "{load}: {what} {mean} +- {half_width}");
            assert!(half_width < 0.07 * expected, "{load}: {what} +- {half_width}");
        }
    }
}

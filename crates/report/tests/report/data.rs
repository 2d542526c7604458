//! Results made up for the page: shaped as real ones are, with heavy tails, runs that never finish, and gauges.

use posthaste_report::counters::Counters;
use posthaste_report::experiment_result::{Axis, CellResult, ExperimentResult, Limit, Published};
use posthaste_report::result::{DirectionResult, FlowResult, Gauge, LinkResult, Outcome, RunResult, Series};
use posthaste_units::Rng;

pub(crate) const STACKS: [&str; 9] = [
    "standard",
    "cubic",
    "noq:newreno",
    "noq:cubic",
    "noq:bbr3",
    "quinn:newreno",
    "quinn:cubic",
    "quinn:bbr",
    "tcp:cubic",
];

/// A path: name, RTT in seconds, loss.
const PATHS: [(&str, f64, f64); 3] = [("good", 0.038, 0.01), ("average", 0.05, 0.02), ("bad", 0.188, 0.08)];
const RATE: f64 = 100e6;

pub(crate) fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

pub(crate) fn axis(name: &str, values: &[&str]) -> Axis {
    Axis { name: name.to_owned(), values: strings(values) }
}

/// Nearly normal, by the sum of uniforms.
fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.unit_f64()).sum::<f64>() - 6.0
}

/// A run that took `completion` seconds, or met a deadline of 300 s.
pub(crate) fn run(seed: u64, stack: &str, bytes: u64, completion: Option<f64>, loss: f64) -> RunResult {
    let packets = bytes / 1200 + 10;
    let sent = (packets as f64 / (1.0 - loss)) as u64;
    let seconds = completion.unwrap_or(300.0);
    let direction = |sent: u64, received: u64, size: u64| DirectionResult {
        packets_sent: sent,
        bytes_sent: sent * size,
        packets_received: received,
        originals_received: received,
        packets_lost: sent - received,
        bytes_received: received * size,
        delay_mean_ms: 26.0,
        delay_p95_ms: 31.0,
        delay_max_ms: 40.0,
        queueing_mean_ms: 1.0,
        queueing_p95_ms: 6.0,
        counters: Counters {
            lost: Some(sent - received),
            resent_bytes: (!stack.starts_with("tcp")).then_some((sent - received) * 1200),
            acks_sent: Some(packets / 2),
            ..Counters::default()
        },
        blocked_seconds: None,
        ..DirectionResult::default()
    };
    let flow = FlowResult {
        name: "fetch".to_owned(),
        stack: stack.to_owned(),
        completion,
        connect: Some(0.05),
        first_byte: Some(0.1),
        bytes,
        goodput: bytes as f64 * 8.0 / seconds,
        down: direction(sent, packets, 1280),
        up: direction(packets / 2, packets / 2, 80),
        ..FlowResult::default()
    };
    RunResult {
        seed,
        outcome: if completion.is_some() { Outcome::Completed } else { Outcome::Deadline },
        virtual_seconds: seconds,
        limit: None,
        trace_hash: format!("{seed:016x}"),
        packets: sent + packets / 2,
        flows: vec![flow],
        links: vec![LinkResult {
            name: "down".to_owned(),
            offered: sent,
            delivered: packets,
            ..LinkResult::default()
        }],
        series: None,
    }
}

/// How well a made-up stack does: its part of the time that loss costs.
fn quality(stack: &str) -> f64 {
    match stack {
        "noq:bbr3" => 0.10,
        "quinn:bbr" => 0.13,
        "cubic" => 0.80,
        "noq:cubic" => 0.86,
        "quinn:cubic" => 0.90,
        "tcp:cubic" => 1.05,
        "standard" => 1.20,
        "noq:newreno" => 1.25,
        _ => 1.30,
    }
}

/// A sender's gauges: slow start, then a sawtooth, over a queue.
fn series(rng: &mut Rng, stack: &str, rtt: f64, seconds: f64) -> Series {
    let steps = ((seconds / 0.01) as usize).clamp(10, 4000);
    let names = ["delivery", "pacing", "window", "in_flight", "rtt", "credit"];
    let mut columns: Vec<Vec<Option<f64>>> = vec![Vec::new(); names.len() + 1];
    let mut window: f64 = 12_000.0;
    let is_bbr = stack.contains("bbr");
    let top = RATE / 8.0 * rtt * if is_bbr { 1.6 } else { 0.5 + 0.3 * rng.unit_f64() };
    for step in 0..steps {
        let growth = if window < top * 0.6 { 1.0 + 0.007 / rtt } else { 1.0 + 0.0006 / rtt };
        window *= growth;
        if window > top || (!is_bbr && rng.chance(0.01)) {
            window *= if is_bbr { 0.9 } else { 0.7 };
        }
        let rate = (window * 8.0 / rtt).min(RATE);
        let queue = (window - RATE / 8.0 * rtt).max(0.0);
        let known = |is_known: bool, value: f64| is_known.then_some(value);
        let noise = 0.8 + 0.4 * rng.unit_f64();
        let values = [
            known(true, if step < 8 { 0.0 } else { (rate * noise).min(RATE) }),
            known(!stack.starts_with("tcp"), if step == 0 { 4e9 } else { rate * 1.2 }),
            known(true, window),
            known(true, window * 0.95 * noise.min(1.0)),
            known(step > 4, rtt + queue * 8.0 / RATE + 0.001 * normal(rng)),
            known(!stack.starts_with("tcp"), 1e7 + 1e6 * noise),
            known(true, queue),
        ];
        for (column, value) in columns.iter_mut().zip(values) {
            column.push(value);
        }
    }
    let queue = columns.pop().unwrap_or_default();
    let gauge =
        |of: &str, quantity: &str, values| Gauge { of: of.to_owned(), quantity: quantity.to_owned(), values };
    let mut gauges: Vec<Gauge> =
        names.iter().zip(columns).map(|(name, values)| gauge("fetch", name, values)).collect();
    gauges.push(gauge("down", "queue", queue));
    Series { times: (0..steps).map(|step| step as f64 * 0.01).collect(), gauges }
}

/// Good, average and bad paths, 1 and 10 MB, nine stacks.
pub(crate) fn simple(seeds: u64) -> ExperimentResult {
    let mut cells = Vec::new();
    for (path, rtt, loss) in PATHS {
        for (object, bytes) in [("1MB", 1_000_000), ("10MB", 10_000_000)] {
            for stack in STACKS {
                cells.push(cell(path, (rtt, loss), object, bytes, stack, seeds));
            }
        }
    }
    ExperimentResult {
        name: "hs-simple".to_owned(),
        title: "Completion time over good, average and bad paths".to_owned(),
        question: "How far is each stack and controller from the physical limit where loss is random and nobody else \
                   sends?"
            .to_owned(),
        source: "history start (light-weight latency reduction), section 5.1: simple topology".to_owned(),
        command: "posthaste lab run hs-simple --seeds 50".to_owned(),
        note: Some("Made-up figures: this page shows the design, nothing else.".to_owned()),
        baseline: Some("cubic".to_owned()),
        subject: None,
        axes: vec![
            axis("path", &["good", "average", "bad"]),
            axis("object", &["1MB", "10MB"]),
            axis("stack", &STACKS),
        ],
        metrics: strings(&["completion", "goodput", "loss", "retransmission", "rtr"]),
        seeds,
        cells,
    }
}

fn cell(
    path: &str,
    (rtt, loss): (f64, f64),
    object: &str,
    bytes: u64,
    stack: &str,
    seeds: u64,
) -> CellResult {
    let limit = 2.0 * rtt + bytes as f64 * 1.05 * 8.0 / (RATE * (1.0 - loss));
    let cost = 0.6 * bytes as f64 * 8.0 / (1200.0 * 8.0 * 1.22 / rtt / loss.sqrt() * 4.0);
    let mut rng = Rng::from_test_seed(7 + bytes + (loss * 1e3) as u64);
    let mut runs: Vec<RunResult> = (0..seeds)
        .map(|seed| {
            // The seed's luck is shared by all stacks, as in real runs.
            let luck = (0.25 * normal(&mut rng)).exp2();
            let mut own = Rng::from_test_seed(seed * 31 + stack.len() as u64);
            let seconds = limit * 1.1 + cost * quality(stack) * luck * (1.0 + 0.05 * normal(&mut own));
            let is_lost = stack == "quinn:newreno" && path == "bad" && own.chance(0.08);
            run(seed + 1, stack, bytes, (!is_lost).then_some(seconds), loss)
        })
        .collect();
    let seconds = runs[0].virtual_seconds;
    let mut own = Rng::from_test_seed(stack.bytes().map(u64::from).sum());
    runs[0].series = Some(series(&mut own, stack, rtt, seconds.min(40.0)));
    let published = (stack == "cubic" && path == "average" && object == "1MB").then(|| Published {
        metric: "completion.mean".to_owned(),
        value: 0.52,
        unit: "s".to_owned(),
        source: "history_start.csv, row 2".to_owned(),
        verdict: Some("not reproduced: faster than a sender that backs off on each loss can be".to_owned()),
    });
    CellResult {
        coordinates: strings(&[path, object, stack]),
        command: format!("posthaste lab run hs-simple --cell path={path},object={object},stack={stack}"),
        limit: Some(Limit {
            seconds: limit,
            terms: format!(
                "2 RTT x {:.0} ms + {bytes} B x (1 + 5.0 % headers) x 8 / (100 Mbit/s x (1 - {loss:.4} loss))",
                rtt * 1e3
            ),
            rate: Some(RATE),
        }),
        published: published.into_iter().collect(),
        runs,
    }
}

/// Three flows that share a link, few runs, no limit: what an experiment about fairness looks like.
pub(crate) fn fairness() -> ExperimentResult {
    let stacks = ["cubic", "modquic-cubic"];
    let cells = stacks.iter().map(|stack| {
        let runs = (1..=5).map(|seed| {
            let mut rng = Rng::from_test_seed(seed + stack.len() as u64);
            let mut run = run(seed, stack, 3_000_000, Some(8.0 + rng.unit_f64()), 0.0);
            let first = run.flows[0].clone();
            for (index, name) in ["fetch", "second", "third"].iter().enumerate() {
                let goodput = 3e6 * (1.0 + 0.3 * rng.unit_f64() * index as f64);
                let flow = FlowResult { name: (*name).to_owned(), goodput, ..first.clone() };
                if index == 0 { run.flows[0] = flow } else { run.flows.push(flow) }
            }
            if seed == 1 {
                let mut all = Series::default();
                for name in ["fetch", "second", "third"] {
                    let one = series(&mut rng, stack, 0.02, 8.0);
                    all.times = one.times;
                    all.gauges.extend(
                        one.gauges
                            .into_iter()
                            .filter(|gauge| gauge.of == "fetch")
                            .map(|gauge| Gauge { of: name.to_owned(), ..gauge }),
                    );
                }
                run.series = Some(all);
            }
            run
        });
        CellResult {
            coordinates: strings(&[stack]),
            command: format!("posthaste lab run wa-fair --cell stack={stack}"),
            runs: runs.collect(),
            ..CellResult::default()
        }
    });
    ExperimentResult {
        name: "wa-fair".to_owned(),
        title: "Three flows on one link".to_owned(),
        question: "Do three flows of one kind share 10 Mbit/s evenly?".to_owned(),
        source: "window on ack (ModQUIC), section 3.6".to_owned(),
        command: "posthaste lab run wa-fair".to_owned(),
        axes: vec![axis("stack", &stacks)],
        metrics: strings(&["jain", "max-min-share", "goodput"]),
        seeds: 5,
        cells: cells.collect(),
        ..ExperimentResult::default()
    }
}

/// A page over losses and delays: an axis of numbers.
pub(crate) fn along_loss() -> ExperimentResult {
    let (losses, delays, stacks) =
        (["0", "2", "5", "10"], ["0ms", "200ms"], ["cubic", "quicming", "tcp:cubic"]);
    let mut cells = Vec::new();
    for delay in delays {
        for loss in losses {
            for (index, stack) in stacks.iter().enumerate() {
                let mut rng = Rng::from_test_seed(index as u64);
                let percent: f64 = loss.parse().expect("a number");
                let base = 7.0 + percent * [0.6, 0.2, 1.6][index] + if delay == "0ms" { 0.0 } else { 3.0 };
                let runs = (1..=20).map(|seed| {
                    let is_lost = *stack == "tcp:cubic" && percent > 9.0 && rng.chance(0.7);
                    let seconds = (!is_lost).then(|| base * (1.0 + 0.06 * normal(&mut rng)));
                    run(seed, stack, 1_311_000, seconds, percent / 100.0)
                });
                cells.push(CellResult {
                    coordinates: strings(&[delay, loss, stack]),
                    command: format!(
                        "posthaste lab run gr-page --cell delay={delay},loss={loss},stack={stack}"
                    ),
                    runs: runs.collect(),
                    ..CellResult::default()
                });
            }
        }
    }
    ExperimentResult {
        name: "gr-page".to_owned(),
        title: "A page over delay and loss".to_owned(),
        question: "What does a guaranteed rate save where packets are lost?".to_owned(),
        command: "posthaste lab run gr-page".to_owned(),
        axes: vec![axis("delay", &delays), axis("loss, %", &losses), axis("stack", &stacks)],
        metrics: strings(&["completion", "saving"]),
        seeds: 20,
        cells,
        ..ExperimentResult::default()
    }
}

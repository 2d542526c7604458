//! One drawn case: stacks, path, weather, traffic. Everything follows from its seed.

use std::fmt;
use std::str::FromStr;

use posthaste_path::{Bottleneck, Distribution, GilbertElliott, Jitter, PathConfig, Reordering};
use posthaste_schemes::selection::every;
use posthaste_units::{ByteCount, Duration, Rate, Rng, Time};

use super::traffic::{Plan, Transfer};
use super::weather::{Outage, Weather};
use crate::peers::{Settings, Stack};

/// Whom our stack meets. Ours is one end of every case; with a rival, each role is ours in half of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rival {
    /// Ours.
    Ours,
    /// noq-proto.
    Noq,
    /// quinn-proto.
    Quinn,
}

impl Rival {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ours, Self::Noq, Self::Quinn];
}

impl fmt::Display for Rival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ours => "ours",
            Self::Noq => "noq",
            Self::Quinn => "quinn",
        })
    }
}

/// No rival has the name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no stack {0:?}; there are ours, noq, quinn")]
pub struct UnknownRival(String);

impl FromStr for Rival {
    type Err = UnknownRival;

    fn from_str(name: &str) -> Result<Self, UnknownRival> {
        let named = Self::ALL.into_iter().find(|rival| rival.to_string() == name);
        named.ok_or_else(|| UnknownRival(name.to_owned()))
    }
}

/// What a case is about: the worst thing in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Theme {
    /// A little of everything.
    Mixed,
    /// Up to 30 % of all packets are lost.
    Loss,
    /// 30 % of the first packets are lost, and often 30 % of these are corrupted.
    Handshake,
    /// Up to 30 % of all packets are corrupted.
    Corruption,
    /// Packets overtake each other and come twice.
    Disorder,
    /// The path is out for seconds, again and again.
    Outage,
    /// The path ends for good: the idle timeout must tell.
    Dead,
}

impl Theme {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Mixed,
        Self::Loss,
        Self::Handshake,
        Self::Corruption,
        Self::Disorder,
        Self::Outage,
        Self::Dead,
    ];
}

impl fmt::Display for Theme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Mixed => "mixed",
            Self::Loss => "loss",
            Self::Handshake => "handshake",
            Self::Corruption => "corruption",
            Self::Disorder => "disorder",
            Self::Outage => "outage",
            Self::Dead => "dead",
        })
    }
}

/// One run to be.
#[derive(Debug, Clone)]
pub struct Case {
    /// What it follows from.
    pub seed: u64,
    /// What it is about.
    pub theme: Theme,
    /// Whom our stack meets.
    pub rival: Rival,
    /// Whether our stack is the client (true where both ends are).
    pub is_client_ours: bool,
    /// The client's stack.
    pub client: Stack,
    /// The server's stack.
    pub server: Stack,
    /// Client to server.
    pub up: PathConfig,
    /// Server to client.
    pub down: PathConfig,
    /// At both ends.
    pub weather: Weather,
    /// What the ends do.
    pub plan: Plan,
    /// Of both ends.
    pub idle_timeout: Duration,
    /// Of both ends, in bytes.
    pub max_datagram_size: u16,
    /// Virtual time by which the run must have ended.
    pub deadline: Time,
}

/// Where nothing may time out: as the lab has it.
const NO_TIMEOUT: Duration = Duration::from_secs(3600);

/// Two hours: more than any backoff, and an idle timeout shows before.
const DEADLINE: Time = Time::from_nanos(7_200_000_000_000);

impl Case {
    /// The case of a seed; with `only`, against that stack, the rest as without it.
    pub fn draw(seed: u64, only: Option<Rival>) -> Self {
        let mut rng = Rng::from_test_seed(seed ^ 0xAD5E_25E0);
        let (mut stacks, mut paths, mut traffic) = (rng.fork(), rng.fork(), rng.fork());
        let theme = Theme::ALL[rng.below(Theme::ALL.len() as u64) as usize];
        let rival = only.unwrap_or(Rival::ALL[stacks.below(3) as usize]);
        let is_client_ours = rival == Rival::Ours || stacks.chance(0.5);
        let (ours, theirs) = (our_stack(&mut stacks), rival_stack(rival, &mut stacks));
        let (client, server) = if is_client_ours { (ours, theirs) } else { (theirs, ours) };
        let up = path(theme, &mut paths);
        // The round trip is halved between both; the rest of the directions differ.
        let down = PathConfig { delay: up.delay, ..path(theme, &mut paths) };
        let weather = weather(theme, &mut paths);
        let is_short = theme == Theme::Dead || (theme != Theme::Outage && paths.chance(0.25));
        let idle_timeout = if is_short { Duration::from_secs(5 + paths.below(26)) } else { NO_TIMEOUT };
        let loss = up.mean_loss().max(down.mean_loss()).max(weather.corruption);
        let mut plan = plan(&mut traffic, if loss > 0.05 { 200_000 } else { 1_500_000 });
        if is_short {
            // Who has everything and reads it slowly hears nothing meanwhile: that would be no fault of the path.
            plan.lazy = None;
        }
        Self {
            seed,
            theme,
            rival,
            is_client_ours,
            client,
            server,
            up,
            down,
            weather,
            plan,
            idle_timeout,
            max_datagram_size: [1200, 1252, 1452][paths.below(3) as usize],
            deadline: DEADLINE,
        }
    }

    /// Whether an idle timeout may end it.
    pub fn may_time_out(&self) -> bool {
        self.idle_timeout < NO_TIMEOUT
    }

    /// What both ends are built with.
    pub(super) fn settings(&self) -> Settings {
        Settings {
            max_datagram_size: self.max_datagram_size,
            idle_timeout: self.idle_timeout,
            ..Settings::default()
        }
    }
}

fn our_stack(rng: &mut Rng) -> Stack {
    let profiles = every().expect("built-in profiles");
    let profile = &profiles[rng.below(profiles.len() as u64) as usize];
    Stack::profile(profile.build().expect("it has what it needs"), 1)
}

/// One of the rival's controllers whose runs repeat.
fn rival_stack(rival: Rival, rng: &mut Rng) -> Stack {
    let draw = rng.below(3) as usize;
    let name = match rival {
        Rival::Ours => return our_stack(rng),
        Rival::Noq => ["noq:newreno", "noq:cubic", "noq:cubic"][draw],
        Rival::Quinn => ["quinn:newreno", "quinn:cubic", "quinn:bbr"][draw],
    };
    name.parse().expect("a name of the list")
}

/// Uniform from `low` to `high`.
fn uniform(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low + (high - low) * rng.unit_f64()
}

/// With probability `chance` uniform up to `high`, else zero.
fn sometimes(rng: &mut Rng, chance: f64, high: f64) -> f64 {
    if rng.chance(chance) { uniform(rng, 0.0, high) } else { 0.0 }
}

/// Uniform in the logarithm from `low` to `high`.
fn spread(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low * libm::pow(high / low, rng.unit_f64())
}

fn path(theme: Theme, rng: &mut Rng) -> PathConfig {
    let delay = Duration::from_secs_f64(spread(rng, 0.001, 0.375));
    let (most_loss, most_disorder) = match theme {
        Theme::Loss => (0.3, 0.05),
        Theme::Disorder => (0.02, 0.4),
        Theme::Handshake | Theme::Corruption => (0.02, 0.05),
        Theme::Mixed | Theme::Outage | Theme::Dead => (0.05, 0.1),
    };
    let (chance, burst) = (if theme == Theme::Loss { 1.0 } else { 0.5 }, rng.chance(0.3));
    let loss = sometimes(rng, chance, most_loss);
    let burst_length = uniform(rng, 1.5, 4.0);
    let burst_loss =
        burst.then(|| GilbertElliott::from_mean(loss, burst_length).expect("a loss of 30 % at most"));
    let extra_delay = Duration::from_secs_f64(spread(rng, 0.001, 0.1));
    let reordering =
        Reordering { probability: sometimes(rng, 0.5, most_disorder), correlation: 0.0, extra_delay };
    let jitter = rng.chance(0.4).then(|| Jitter {
        distribution: if rng.chance(0.5) { Distribution::Normal } else { Distribution::Pareto },
        deviation: Duration::from_secs_f64(delay.as_secs_f64() * uniform(rng, 0.01, 0.4)),
        interval: Duration::from_millis(rng.below(3) * 20),
        may_reorder: rng.chance(0.5),
    });
    let bottleneck = rng.chance(0.6).then(|| {
        let rate = Rate::from_bits_per_second(spread(rng, 500e3, 100e6) as u64);
        Bottleneck::new(rate, ByteCount::new(spread(rng, 8e3, 300e3) as u64))
    });
    PathConfig {
        delay,
        jitter,
        loss: if burst { 0.0 } else { loss },
        burst_loss,
        reordering,
        duplication: sometimes(rng, 0.5, most_disorder),
        bottleneck,
        ..PathConfig::default()
    }
}

fn weather(theme: Theme, rng: &mut Rng) -> Weather {
    let is_handshake = theme == Theme::Handshake;
    let corruption = match theme {
        Theme::Corruption => uniform(rng, 0.0, 0.3),
        _ => sometimes(rng, 0.3, 0.02),
    };
    let mut seconds = |low, high| Duration::from_secs_f64(uniform(rng, low, high));
    let outage = match theme {
        Theme::Outage => Outage::Periodic { up: seconds(3.0, 8.0), down: seconds(0.5, 1.5) },
        // From before the first packet to some seconds later.
        Theme::Dead => Outage::From(Time::ZERO + seconds(-0.5, 3.0)),
        _ => Outage::None,
    };
    Weather {
        first_packets: if is_handshake { 8 + rng.below(25) as u32 } else { 0 },
        first_loss: 0.3,
        first_corruption: if rng.chance(0.5) { 0.3 } else { 0.0 },
        corruption,
        outage,
    }
}

fn plan(rng: &mut Rng, most: u64) -> Plan {
    let size = |rng: &mut Rng, high: u64| spread(rng, 1.0, high as f64) as u64;
    let (mut transfers, mut parallel) = (Vec::new(), 1);
    match rng.below(6) {
        // One large transfer: there, back, or both at once.
        0 => transfers.push(Transfer { is_clients: true, forth: 100, back: most / 2 + rng.below(most / 2) }),
        1 => transfers.push(Transfer { is_clients: true, forth: most / 2 + rng.below(most / 2), back: 100 }),
        2 => {
            let half = most / 2;
            transfers.push(Transfer { is_clients: true, forth: rng.below(half), back: rng.below(half) });
            transfers.push(Transfer { is_clients: false, forth: rng.below(half), back: rng.below(half) });
        }
        // Small streams, more than a peer permits at once.
        3 => {
            parallel = 1 + rng.below(400) as usize;
            for _ in 0..50 + rng.below(350) {
                let (forth, back) = (rng.below(400), rng.below(most / 800));
                transfers.push(Transfer { is_clients: rng.chance(0.9), forth, back });
            }
        }
        // One exchange after another.
        4 => {
            for _ in 0..3 + rng.below(15) {
                transfers.push(Transfer { is_clients: true, forth: 300, back: size(rng, most / 20) });
            }
        }
        // Streams of all sizes, some empty.
        _ => {
            parallel = 1 + rng.below(12) as usize;
            for _ in 0..2 + rng.below(24) {
                let sizes = (size(rng, most / 12) - 1, size(rng, most / 12) - 1);
                transfers.push(Transfer { is_clients: rng.chance(0.5), forth: sizes.0, back: sizes.1 });
            }
        }
    }
    let lazy = rng.chance(0.25).then(|| {
        let pause = Duration::from_secs_f64(spread(rng, 0.001, 0.05));
        (1000 + rng.below(30_000), pause)
    });
    Plan { transfers, parallel, is_polite: rng.chance(0.5), lazy }
}

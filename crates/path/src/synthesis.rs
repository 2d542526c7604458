//! Capacity traces of radio links, made up from published statistics: anybody can make the same ones again.
//!
//! Recordings of real links are mostly not free to copy, and none says what it is typical of. These are draws from
//! models whose parameters others have measured; the constants name them. What was our choice is called so.

use posthaste_units::Rng;

use crate::distribution::normal;
use crate::trace::{OpportunityTrace, RateTrace};

/// How long the traces are; they then begin again.
const SECONDS: u64 = 120;

/// Steps of both models: the tick of Sprout's inference.
const STEP_MILLIS: u64 = 20;

/// A step in seconds.
const STEP: f64 = STEP_MILLIS as f64 / 1e3;

/// Steps of a trace.
const STEPS: u64 = SECONDS * 1000 / STEP_MILLIS;

/// Deliveries of 1500 bytes on a cellular link while its user moves.
///
/// Winstein, Sivaraman and Balakrishnan (Sprout, NSDI 2013, section 3.1) describe what they recorded on commercial
/// LTE and 3G links as a Poisson process whose rate is in Brownian motion, and sticks at zero in outages.
pub(crate) fn cellular(mut rng: Rng) -> OpportunityTrace {
    /// Greatest rate, packets a second.
    const MOST: f64 = 1000.0;
    /// Standard deviation of the rate's change in a second.
    const WANDER: f64 = 200.0;
    /// Outages end at this rate, a second.
    const ESCAPES: f64 = 1.0;

    // Anywhere is as likely: the motion forgets in half a minute.
    let mut rate = rng.unit_f64() * MOST;
    let mut stamps = Vec::new();
    for step in 0..STEPS {
        let begin = (step * STEP_MILLIS) as f64;
        let mut at = gap(&mut rng, rate);
        while at < STEP {
            stamps.push((begin + at * 1e3) as u32);
            at += gap(&mut rng, rate);
        }
        let is_out = rate <= 0.0 && !rng.chance(1.0 - libm::exp(-ESCAPES * STEP));
        if !is_out {
            rate += WANDER * libm::sqrt(STEP) * normal(&mut rng);
        }
        // At the top it is reflected, at the bottom it sticks.
        rate = if rate > MOST { (2.0 * MOST - rate).max(0.0) } else { rate.max(0.0) };
    }
    // The last stamp is the trace's length.
    stamps.push((SECONDS * 1000) as u32);
    OpportunityTrace::from_stamps(stamps)
}

/// Seconds until the next event of a Poisson process; infinite where its rate is zero.
fn gap(rng: &mut Rng, rate: f64) -> f64 {
    let draw = -libm::log(1.0 - rng.unit_f64());
    if rate > 0.0 { draw / rate } else { f64::INFINITY }
}

/// Rates of an 802.11n link to somebody who walks about in an office.
///
/// Shadowing is log-normal with an exponential autocorrelation over distance (Gudmundson 1991); its deviation and
/// distance are those of 3GPP TR 38.901 for indoor offices with line of sight (tables 7.4.1-1 and 7.5-6). It
/// moves the link among the rates of 802.11n (two streams, 40 MHz, short guard interval), between which lie the
/// receiver sensitivities that the standard demands (table 20-23). While a station roams, nothing passes: scanning
/// takes 50 to 400 ms (Mishra, Shin, Arbaugh 2003).
///
/// Our choices: the mean level, a walk of 1.4 m/s, roaming once in 30 s, and that the share of the air which this
/// link gets is constant, such that the mean rate is `mean` bits a second. Fading that is faster than a step is left
/// out: many carriers and two antennas average it.
pub(crate) fn wifi(rng: Rng, mean: f64) -> RateTrace {
    /// What each rate needs above what the slowest does, in decibels, and megabits a second.
    const RATES: [(f64, f64); 8] = [
        (0.0, 30.0),
        (3.0, 60.0),
        (5.0, 90.0),
        (8.0, 120.0),
        (12.0, 180.0),
        (16.0, 240.0),
        (17.0, 270.0),
        (18.0, 300.0),
    ];
    let walk = Walk {
        deviation: 3.0,
        decorrelation: 10.0,
        speed: 1.4,
        gaps: 1.0 / 30.0,
        gap: (0.05, 0.4),
        // The fifth of eight rates has some to spare.
        level: 14.0,
    };
    walk.trace(rng, &RATES, mean)
}

/// Rates of a 5G cell to a car in a town.
///
/// Shadowing is log-normal over distance as in [`wifi`], with 3GPP TR 38.901's figures for urban micro cells without
/// line of sight (tables 7.4.1-1 and 7.5-6). It moves the link among the spectral efficiencies of TS 38.214 (table
/// 5.2.2.1-3, up to 256 QAM).
///
/// Our choices: 2 dB between neighbouring efficiencies, the mean level, 30 km/h, a handover in 20 s that stops
/// everything for 40 to 150 ms, and a share of the cell such that the mean rate is `mean` bits a second.
pub(crate) fn five_g(rng: Rng, mean: f64) -> RateTrace {
    const EFFICIENCIES: [f64; 15] = [
        0.1523, 0.377, 0.877, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223, 3.9023, 4.5234, 5.1152, 5.5547, 6.2266,
        6.9141, 7.4063,
    ];
    let mut rates = [(0.0, 0.0); 15];
    for (index, (rate, efficiency)) in rates.iter_mut().zip(EFFICIENCIES).enumerate() {
        *rate = (2.0 * index as f64, efficiency);
    }
    let walk = Walk {
        deviation: 7.82,
        decorrelation: 13.0,
        speed: 8.3,
        gaps: 1.0 / 20.0,
        gap: (0.04, 0.15),
        level: 16.0,
    };
    walk.trace(rng, &rates, mean)
}

/// A walk through shadows, over a ladder of rates.
struct Walk {
    /// Of the shadowing, in decibels.
    deviation: f64,
    /// In metres.
    decorrelation: f64,
    /// In metres a second.
    speed: f64,
    /// Gaps a second, and the seconds that one takes, at least and at most.
    gaps: f64,
    gap: (f64, f64),
    /// Decibels above what the slowest rate needs, on average.
    level: f64,
}

impl Walk {
    /// The trace over `rates`: what each needs above what the slowest does, in decibels, and how fast it is in any unit,
    /// for all are scaled to `mean` bits a second.
    fn trace(&self, mut rng: Rng, rates: &[(f64, f64)], mean: f64) -> RateTrace {
        let kept = libm::exp(-self.speed * STEP / self.decorrelation);
        let mut shadow = self.deviation * normal(&mut rng);
        let mut silent = 0.0;
        let physical: Vec<f64> = (0..STEPS)
            .map(|_| {
                shadow = kept * shadow + self.deviation * libm::sqrt(1.0 - kept * kept) * normal(&mut rng);
                if silent <= 0.0 && rng.chance(self.gaps * STEP) {
                    silent = self.gap.0 + (self.gap.1 - self.gap.0) * rng.unit_f64();
                }
                let is_silent = silent > 0.0;
                silent -= STEP;
                let found = rates.iter().rev().find(|(needed, _)| self.level + shadow >= *needed);
                if is_silent { 0.0 } else { found.map_or(0.0, |(_, rate)| *rate) }
            })
            .collect();
        scaled(&physical, mean)
    }
}

/// Rates of a satellite terminal whose route changes every 15 s.
///
/// Our choices, of the size of what is reported (see the path `starlink`): the rate of a route is log-normal with a
/// deviation of 0.35, and moves by another log-normal factor of 0.15 every 200 ms.
pub(crate) fn starlink(mut rng: Rng, mean: f64) -> RateTrace {
    /// Steps of a route: 15 s, as the path's handovers.
    const ROUTE: u64 = 15_000 / STEP_MILLIS;
    /// Steps for which a factor holds.
    const HOLD: u64 = 200 / STEP_MILLIS;

    let (mut route, mut factor) = (1.0, 1.0);
    let physical: Vec<f64> = (0..STEPS)
        .map(|step| {
            if step % ROUTE == 0 {
                route = libm::exp(0.35 * normal(&mut rng));
            }
            if step % HOLD == 0 {
                factor = libm::exp(0.15 * normal(&mut rng));
            }
            route * factor
        })
        .collect();
    scaled(&physical, mean)
}

/// A trace of these steps, scaled to `mean` bits a second.
fn scaled(physical: &[f64], mean: f64) -> RateTrace {
    let share = mean * STEPS as f64 / physical.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    RateTrace::from_steps(STEP_MILLIS, physical.iter().map(|rate| (rate * share) as u64))
}

#[cfg(test)]
mod tests;

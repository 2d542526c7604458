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
pub(crate) fn wifi(mut rng: Rng, mean: f64) -> RateTrace {
    /// Decibels.
    const DEVIATION: f64 = 3.0;
    /// Metres.
    const DECORRELATION: f64 = 10.0;
    /// Metres a second.
    const WALK: f64 = 1.4;
    /// Roams a second.
    const ROAMS: f64 = 1.0 / 30.0;
    /// Seconds that roaming takes, at least and at most.
    const SCAN: (f64, f64) = (0.05, 0.4);
    /// Decibels above what the slowest rate needs, on average: the fifth of eight rates has some to spare.
    const LEVEL: f64 = 14.0;
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

    let kept = libm::exp(-WALK * STEP / DECORRELATION);
    let mut shadow = DEVIATION * normal(&mut rng);
    let mut silent = 0.0;
    let physical: Vec<f64> = (0..STEPS)
        .map(|_| {
            shadow = kept * shadow + DEVIATION * libm::sqrt(1.0 - kept * kept) * normal(&mut rng);
            if silent <= 0.0 && rng.chance(ROAMS * STEP) {
                silent = SCAN.0 + (SCAN.1 - SCAN.0) * rng.unit_f64();
            }
            let is_silent = silent > 0.0;
            silent -= STEP;
            let found = RATES.iter().rev().find(|(needed, _)| LEVEL + shadow >= *needed);
            if is_silent { 0.0 } else { found.map_or(0.0, |(_, rate)| *rate) }
        })
        .collect();
    let share = mean * STEPS as f64 / physical.iter().sum::<f64>().max(1.0);
    RateTrace::from_steps(STEP_MILLIS, physical.into_iter().map(|rate| (rate * share) as u64))
}

#[cfg(test)]
mod tests;

//! Draws from other distributions than the uniform one, bit for bit the same on every machine.

use posthaste_units::Rng;

/// A draw from the standard normal distribution, by the method of Box and Muller.
pub(crate) fn normal(rng: &mut Rng) -> f64 {
    // In (0, 1], since the logarithm of zero is not finite.
    let radius = 1.0 - rng.unit_f64();
    let angle = rng.unit_f64() * std::f64::consts::TAU;
    libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(angle)
}

/// A draw from the Pareto distribution of shape 3, moved and scaled to mean 0 and standard deviation 1.
///
/// The shape is the one of netem's table: of the moments, mean and variance are finite. With scale 1 the mean is
/// 3/2 and the deviation sqrt(3)/2, hence no draw is below `-1 / sqrt(3)`, about -0.577.
pub(crate) fn pareto(rng: &mut Rng) -> f64 {
    let uniform = 1.0 - rng.unit_f64();
    (1.0 / libm::cbrt(uniform) - 1.5) / PARETO_DEVIATION
}

/// A draw of Wi-Fi's delays, moved and scaled to mean 0 and standard deviation 1: see [`crate::Distribution::Wifi`].
///
/// In milliseconds: retries N1 of a Poisson distribution of mean 1, each of 1 ms, less a uniform part of one of them; with
/// probability 1/14 a suspension of N2 steps of 7.5 ms, N2 Poisson of mean 12, less a uniform part of a step.
pub(crate) fn wifi(rng: &mut Rng) -> f64 {
    let steps =
        |count: u32, step: f64, part: f64| if count > 0 { (f64::from(count) - part) * step } else { 0.0 };
    let (retries, part) = (poisson(rng, 1.0), rng.unit_f64());
    let mut delay = steps(retries, 1.0, part);
    if rng.chance(WIFI_SUSPENSIONS) {
        let (count, part) = (poisson(rng, 12.0), rng.unit_f64());
        delay += steps(count, 7.5, part);
    }
    (delay - WIFI_MEAN) / WIFI_DEVIATION
}

/// A draw from a Poisson distribution: how many exponential gaps fit into `mean`.
fn poisson(rng: &mut Rng, mean: f64) -> u32 {
    let (mut count, mut at) = (0, 0.0);
    loop {
        at -= libm::log(1.0 - rng.unit_f64());
        if at > mean {
            return count;
        }
        count += 1;
    }
}

/// What C4's simulator has for a mean jitter of 7 ms: (7 - 1) / 84.
const WIFI_SUSPENSIONS: f64 = 1.0 / 14.0;

/// Mean in milliseconds: 1 - (1 - 1/e) / 2 of retries and 86.25 / 14 of suspensions.
const WIFI_MEAN: f64 = 6.844_655_652_071_172;

/// Standard deviation of the same draw, in milliseconds.
const WIFI_DEVIATION: f64 = 23.295_905_618_368_8;

/// sqrt(3) / 2.
const PARETO_DEVIATION: f64 = 0.866_025_403_784_438_6;

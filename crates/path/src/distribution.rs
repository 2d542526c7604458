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

/// sqrt(3) / 2.
const PARETO_DEVIATION: f64 = 0.866_025_403_784_438_6;

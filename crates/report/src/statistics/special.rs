//! The two special functions that intervals need, by series that give the same bits on every machine.

/// Terms of the continued fraction at most; it needs fewer than the root of its greater parameter times a few.
const MAX_TERMS: usize = 10_000;

/// The regularised incomplete beta function `I_x(a, b)` (DLMF 8.17), by its continued fraction (8.17.22) with the
/// method of Lentz; good to about 1e-13 for positive `a` and `b`.
pub(super) fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast only below the mean; above it use the symmetry I_x(a, b) = 1 - I_(1-x)(b, a).
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let scale =
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * libm::log(x) + b * libm::log1p(-x);
    libm::exp(scale) / a * fraction(a, b, x)
}

fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut numerator = 1.0;
    let mut denominator = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut result = denominator;
    for term in 1..MAX_TERMS {
        let m = term as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut step = 1.0;
        for coefficient in [even, odd] {
            denominator = 1.0 / away_from_zero(1.0 + coefficient * denominator);
            numerator = away_from_zero(1.0 + coefficient / numerator);
            step = denominator * numerator;
            result *= step;
        }
        if (step - 1.0).abs() < 1e-15 {
            break;
        }
    }
    result
}

/// The `t` that Student's distribution with `degrees` of freedom exceeds, in either direction, with probability
/// `outside`.
pub(super) fn student_t(degrees: f64, outside: f64) -> f64 {
    let is_too_small = |t: f64| incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t)) > outside;
    let mut high = 2.0;
    while is_too_small(high) && high < 1e9 {
        high *= 2.0;
    }
    let mut low = 0.0;
    // Bisection: 60 halvings are exact to the last bits, and this runs a few times a table.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if is_too_small(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The probability of at most `successes` in `n` throws of a fair coin.
pub(super) fn fair_coin_at_most(successes: usize, n: usize) -> f64 {
    if successes >= n {
        return 1.0;
    }
    incomplete_beta((n - successes) as f64, successes as f64 + 1.0, 0.5)
}

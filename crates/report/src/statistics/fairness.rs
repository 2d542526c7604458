//! How evenly something is shared, and how alike two series are.

/// Jain's index: `(sum x)^2 / (n sum x^2)`, from `1/n` (one has all) to 1 (all have the same); `None` if there is
/// nothing to share.
pub fn jain(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    let index = sum * sum / (values.len() as f64 * squares);
    index.is_finite().then_some(index)
}

/// The smallest of the values over their mean: 1 if all have the same, 0 if one starves; `None` if there is nothing
/// to share.
pub fn smallest_share(values: &[f64]) -> Option<f64> {
    let least = values.iter().copied().reduce(f64::min)?;
    let share = least * values.len() as f64 / values.iter().sum::<f64>();
    share.is_finite().then_some(share)
}

/// The square of the correlation of two series of equal length; `None` if one does not vary or they differ in
/// length.
pub fn r_squared(first: &[f64], second: &[f64]) -> Option<f64> {
    let (a, b) = (super::mean(first)?, super::mean(second)?);
    if first.len() != second.len() {
        return None;
    }
    let mut products = (0.0, 0.0, 0.0);
    for (x, y) in first.iter().zip(second) {
        products.0 += (x - a) * (y - b);
        products.1 += (x - a) * (x - a);
        products.2 += (y - b) * (y - b);
    }
    let result = products.0 * products.0 / (products.1 * products.2);
    result.is_finite().then_some(result)
}

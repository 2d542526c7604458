//! What `xtask` and `campaigns` share: where things are, builds of the command-line program, and third-party peers.

pub mod peers;
pub mod workspace;

use std::process::ExitCode;

/// Errors end the command with a message.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// What a command's outcome means for its caller: whether what was judged is as it must be, or why it could not be judged,
/// which is printed.
pub fn exit_code(outcome: Result<bool>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The middle value, or the mean of the two middle ones; zero of none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        count => f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    #[expect(clippy::float_cmp, reason = "the inputs are exact")]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median([]), 0.0);
    }
}

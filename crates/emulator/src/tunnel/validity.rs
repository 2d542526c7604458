//! Whether a run shows the path, or the machine that was to be the path.

use posthaste_units::Duration;

use super::{DirectionReport, TunnelReport};

/// A run whose 99th percentile of lateness is above this shows more of the machine than of the path.
pub const LATENESS_BOUND: Duration = Duration::from_millis(1);

/// Why a run's figures are worthless; empty if they are not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validity {
    /// One sentence each.
    pub faults: Vec<String>,
}

impl Validity {
    /// Judges a run.
    pub fn of(report: &TunnelReport) -> Self {
        let mut faults = Vec::new();
        for (name, direction) in [("down", &report.down), ("up", &report.up)] {
            faults.extend(faults_of(direction).map(|fault| format!("{name}: {fault}")));
        }
        Self { faults }
    }

    /// The same with a second path into the namespace.
    #[must_use]
    pub fn and_second(mut self, report: &TunnelReport) -> Self {
        self.faults.extend(Self::of(report).faults.into_iter().map(|fault| format!("second path, {fault}")));
        self
    }

    /// True if nothing speaks against the figures.
    pub fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }
}

fn faults_of(direction: &DirectionReport) -> impl Iterator<Item = String> {
    let p99 = direction.lateness.p99;
    let late = (p99 > LATENESS_BOUND).then(|| {
        format!("packets were {:.2} ms late at the 99th percentile, 1 ms is allowed", p99.as_millis_f64())
    });
    let lost = (direction.unaccounted > 0)
        .then(|| format!("interfaces dropped {} packets outside the model", direction.unaccounted));
    let broken = direction.failure.as_ref().map(|failure| format!("the path broke off: {failure}"));
    [late, lost, broken].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_voids_a_run() {
        let faults = |change: fn(&mut TunnelReport)| {
            let mut report = TunnelReport::default();
            change(&mut report);
            Validity::of(&report).faults.join("; ")
        };
        assert_eq!(faults(|_| ()), "");
        assert_eq!(faults(|report| report.down.lateness.p99 = LATENESS_BOUND), "");
        let late = faults(|report| report.up.lateness.p99 = Duration::from_micros(1_010));
        assert!(late.starts_with("up: packets were 1.01 ms late"), "{late}");
        assert!(faults(|report| report.down.unaccounted = 3).contains("dropped 3 packets"));
        let mut second = TunnelReport::default();
        second.down.unaccounted = 3;
        let both = Validity::default().and_second(&second);
        assert_eq!(both.faults, ["second path, down: interfaces dropped 3 packets outside the model"]);
        second.down = DirectionReport { undeliverable: 3, ..DirectionReport::default() };
        assert!(Validity::of(&second).is_valid(), "who takes an interface down wants what comes of it");
        assert!(faults(|report| report.up.failure = Some("x".to_owned())).ends_with("broke off: x"));
    }
}

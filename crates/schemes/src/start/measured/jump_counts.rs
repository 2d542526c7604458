//! Counts jumps, and those that met congestion: figures for people, on which no decision depends.

use posthaste_policy::Jumps;
use posthaste_units::{Duration, Time};

/// The jumps of a path.
#[derive(Debug, Default)]
pub(super) struct JumpCounts {
    jumps: Jumps,
    /// The round trip behind the last jump. Congestion that packets of it meet undoes the jump, as in RFC 9959's unvalidated
    /// phase (section 3.3).
    unproven: Option<(Time, Time)>,
}

impl JumpCounts {
    /// The window has been raised at `now`, on a path of this round trip.
    pub(super) fn on_jump(&mut self, now: Time, round_trip: Duration) {
        self.jumps.taken += 1;
        self.unproven = Some((now, now + round_trip));
    }

    /// Packets that left at these times have met congestion.
    pub(super) fn on_congestion(&mut self, sent_at: impl IntoIterator<Item = Time>) {
        let Some((from, to)) = self.unproven else { return };
        if sent_at.into_iter().any(|at| (from..=to).contains(&at)) {
            self.jumps.undone += 1;
            self.unproven = None;
        }
    }

    /// What packets of the earlier path met says nothing of this one.
    pub(super) fn on_path_change(&mut self) {
        self.unproven = None;
    }

    pub(super) fn jumps(&self) -> Jumps {
        self.jumps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(50);

    #[test]
    fn congestion_undoes_the_jump_that_it_follows_within_a_round_trip_once() {
        let jump = Time::ZERO + Duration::from_secs(1);
        for (sent_at, undone) in [
            (jump - Duration::from_millis(1), 0),
            (jump, 1),
            (jump + ROUND_TRIP, 1),
            (jump + ROUND_TRIP + Duration::from_millis(1), 0),
        ] {
            let mut counts = JumpCounts::default();
            counts.on_congestion([sent_at]);
            assert_eq!(counts.jumps(), Jumps::default(), "nobody has jumped");
            counts.on_jump(jump, ROUND_TRIP);
            for _ in 0..2 {
                counts.on_congestion([Time::ZERO, sent_at]);
                assert_eq!(counts.jumps(), Jumps { taken: 1, undone }, "{sent_at:?}");
            }
        }
    }
}

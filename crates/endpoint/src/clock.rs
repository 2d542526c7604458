//! The one clock: nothing else in the crate reads the time.

use std::sync::OnceLock;
use std::time::Instant;

use posthaste_units::{Duration, Time};

/// When the process first asked for the time. All endpoints of a process share it, so that their traces and
/// statistics can be laid side by side.
static EPOCH: OnceLock<Instant> = OnceLock::new();

/// The monotonic time since the process's epoch.
pub(crate) fn now() -> Time {
    let now = instant();
    let epoch = *EPOCH.get_or_init(|| now);
    Time::ZERO + Duration::from(now.saturating_duration_since(epoch))
}

/// The point on tokio's clock that is `span` from now.
pub(crate) fn deadline(span: Duration) -> tokio::time::Instant {
    tokio::time::Instant::from_std(instant() + std::time::Duration::from(span.min(LONGEST_SLEEP)))
}

/// The time since the Unix epoch, as the system has it: for what must be dated beyond the process's end.
pub(crate) fn unix_time() -> std::time::Duration {
    #[expect(clippy::disallowed_methods, reason = "the endpoint is where the time comes from")]
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

/// The time since the Unix epoch at [`Time::ZERO`].
pub(crate) fn offset() -> std::time::Duration {
    unix_time().saturating_sub(now().since(Time::ZERO).into())
}

/// No timer is set further ahead, so that a deadline "never" cannot overflow the platform's clock.
pub(crate) const LONGEST_SLEEP: Duration = Duration::from_secs(86_400);

/// The monotonic time as the system has it: for threads that wait.
#[expect(clippy::disallowed_methods, reason = "the endpoint is where the time comes from")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_goes_back_and_far_deadlines_do_not_overflow() {
        let first = now();
        assert!(now() >= first);
        assert!(deadline(Duration::MAX) > deadline(Duration::from_secs(3600)));
    }
}

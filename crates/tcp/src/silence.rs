//! How long a connection may be silent.

use std::time::Duration;

use tokio::time::Instant;

use crate::activity::Activity;
use crate::options::TcpOptions;

/// Time for a connection without requests to end when it has been asked to.
const GOODBYE: Duration = Duration::from_secs(1);

/// Judges the silence of one connection, looked at from time to time.
pub(crate) struct Silence<'a> {
    activity: &'a Activity,
    idle: Duration,
    stall: Duration,
    /// The progress that was seen last, and when it was new.
    seen: (u64, Instant),
    /// When the connection was asked to end.
    asked: Option<Instant>,
}

/// What is to be done about a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fine,
    /// It has no requests: ask it to end.
    Idle,
    /// It was asked, or a response waits for its client: end it.
    Over,
}

impl<'a> Silence<'a> {
    pub(crate) fn new(options: &TcpOptions, activity: &'a Activity, now: Instant) -> Self {
        let (idle, stall) = (options.idle_timeout, options.stall_timeout);
        Self { activity, idle, stall, seen: (activity.progress(), now), asked: None }
    }

    /// How often to look.
    pub(crate) fn tick(&self) -> Duration {
        (self.idle.min(self.stall) / 4).clamp(Duration::from_millis(10), GOODBYE)
    }

    /// The connection has been asked to end: without requests it has little time.
    pub(crate) fn hurry(&mut self, now: Instant) {
        self.asked.get_or_insert(now);
    }

    pub(crate) fn judge(&mut self, now: Instant) -> Verdict {
        let progress = self.activity.progress();
        if progress != self.seen.0 {
            self.seen = (progress, now);
        }
        let silent = now.duration_since(self.seen.1);
        if self.activity.is_waiting() {
            return if silent > self.stall { Verdict::Over } else { Verdict::Fine };
        }
        if self.activity.open() > 0 {
            return Verdict::Fine;
        }
        match self.asked {
            // Its last answer may be on its way still: that is progress, too.
            Some(asked) if now.duration_since(asked).min(silent) > GOODBYE => Verdict::Over,
            None if silent > self.idle => {
                self.asked = Some(now);
                Verdict::Idle
            }
            _ => Verdict::Fine,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::activity::Open;

    const SECOND: Duration = Duration::from_secs(1);

    fn options() -> TcpOptions {
        TcpOptions { idle_timeout: 60 * SECOND, stall_timeout: 30 * SECOND, ..TcpOptions::default() }
    }

    #[tokio::test]
    async fn a_client_must_take_what_it_asked_for() {
        let (activity, start) = (Arc::<Activity>::default(), Instant::now());
        let mut silence = Silence::new(&options(), &activity, start);
        let request = Open::new(&activity);
        assert_eq!(silence.judge(start), Verdict::Fine);
        assert_eq!(silence.judge(start + 100 * SECOND), Verdict::Fine, "the service takes its time");
        request.set_waiting(true);
        assert_eq!(silence.judge(start + 101 * SECOND), Verdict::Fine);
        assert_eq!(silence.judge(start + 131 * SECOND), Verdict::Fine);
        request.set_waiting(true);
        assert_eq!(silence.judge(start + 132 * SECOND), Verdict::Fine, "it took something");
        assert_eq!(silence.judge(start + 163 * SECOND), Verdict::Over);
    }

    #[tokio::test]
    async fn a_connection_without_requests_ends() {
        let (activity, start) = (Arc::<Activity>::default(), Instant::now());
        let mut silence = Silence::new(&options(), &activity, start);
        assert_eq!(silence.judge(start + 60 * SECOND), Verdict::Fine);
        assert_eq!(silence.judge(start + 61 * SECOND), Verdict::Idle);
        assert_eq!(silence.judge(start + 62 * SECOND), Verdict::Fine);
        assert_eq!(silence.judge(start + 63 * SECOND), Verdict::Over);
    }
}

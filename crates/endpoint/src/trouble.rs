//! When a socket that reports errors is tried again, and when it is replaced.

use posthaste_units::{Duration, Time};

/// Errors in a row after each of which the socket is tried again at once: each of them may concern one datagram.
const AT_ONCE: u32 = 64;

/// The first wait after that; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(1);

/// Doublings of the wait at most: half a second.
const DOUBLINGS: u32 = 9;

/// After nothing but errors for this long, the socket is replaced.
const REPLACE_AFTER: Duration = Duration::from_secs(10);

/// Errors that are further apart have nothing to do with one another.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(5);

/// The errors of one direction of a socket since something last went right.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    since: Option<Time>,
    last: Time,
    in_row: u32,
}

/// What to do about an error.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Try again.
    Retry,
    /// Try again then.
    Wait(Time),
    /// Try another socket.
    Replace,
}

impl Trouble {
    /// Something was received, or sent.
    pub(crate) fn on_success(&mut self) {
        self.since = None;
    }

    /// An error instead.
    pub(crate) fn on_error(&mut self, now: Time) -> Remedy {
        let since = self.since.filter(|_| now.since(self.last) <= FORGOTTEN_AFTER);
        if since.is_none() {
            self.in_row = 0;
        }
        let since = since.unwrap_or(now);
        (self.since, self.last) = (Some(since), now);
        self.in_row = self.in_row.saturating_add(1);
        if now.since(since) >= REPLACE_AFTER {
            self.since = None;
            return Remedy::Replace;
        }
        match self.in_row.checked_sub(AT_ONCE) {
            None | Some(0) => Remedy::Retry,
            Some(further) => Remedy::Wait(now + FIRST_WAIT * (1 << (further - 1).min(DOUBLINGS))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_backed_off_and_after_ten_seconds_the_socket_is_replaced() {
        let (mut trouble, mut now, mut errors) = (Trouble::default(), Time::ZERO, 0);
        loop {
            errors += 1;
            match trouble.on_error(now) {
                Remedy::Retry => assert!(errors <= 64),
                Remedy::Wait(at) => {
                    assert!(at > now && at.since(now) <= Duration::from_millis(512));
                    now = at;
                }
                Remedy::Replace => break,
            }
        }
        assert!(now.since(Time::ZERO) < Duration::from_millis(10_513), "{now:?}");
        assert!(errors < 110, "{errors} attempts in ten seconds");
        assert_eq!(trouble.on_error(now), Remedy::Retry, "the new socket begins anew");
    }

    #[test]
    fn a_success_and_a_pause_make_it_forget() {
        let at = |seconds: u64| Time::ZERO + Duration::from_secs(seconds);
        let mut trouble = Trouble::default();
        for second in 0..9 {
            trouble.on_error(at(second));
        }
        trouble.on_success();
        assert_eq!(trouble.on_error(at(11)), Remedy::Retry);
        assert_eq!(trouble.on_error(at(17)), Remedy::Retry, "more than five seconds later");
        assert_eq!(trouble.on_error(at(22)), Remedy::Retry);
        assert_eq!(trouble.on_error(at(27)), Remedy::Replace);
    }
}

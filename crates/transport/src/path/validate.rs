//! Whether the peer can be reached on a path: `PATH_CHALLENGE` and `PATH_RESPONSE` (RFC 9000 section 8.2).

use posthaste_units::{Duration, Rng, Time};
use smallvec::SmallVec;

/// Challenges of one validation, a probe timeout apart.
const MAX_CHALLENGES: usize = 3;

/// Probe timeouts after which a validation has failed (section 8.2.4).
const FAILED_AFTER: u64 = 3;

/// A challenge that has been sent.
#[derive(Debug, Clone, Copy)]
struct Challenge {
    data: [u8; 8],
    sent_at: Time,
    is_full: bool,
}

/// A validation under way.
#[derive(Debug)]
struct Running {
    challenges: SmallVec<[Challenge; MAX_CHALLENGES]>,
    /// When the next challenge is to be sent; `None` if no more are.
    next_at: Option<Time>,
    probe_timeout: Duration,
    fails_at: Time,
}

/// What a response has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Time from the challenge to its answer.
    pub(crate) rtt: Duration,
    /// The peer's address is validated by this and was not before.
    pub(crate) is_news: bool,
}

/// Whether one path is validated.
#[derive(Debug)]
pub(crate) struct Validation {
    /// The peer is known to receive at its address.
    is_valid: bool,
    running: Option<Box<Running>>,
}

impl Validation {
    /// A path whose peer is known to receive at its address, or not.
    pub(crate) fn new(is_valid: bool) -> Self {
        Self { is_valid, running: None }
    }

    /// True if the peer is known to receive at its address: the anti-amplification limit is lifted.
    pub(crate) fn is_valid(&self) -> bool {
        self.is_valid
    }

    /// The peer has shown by other means that it receives at its address (section 8.1).
    pub(crate) fn set_valid(&mut self) {
        self.is_valid = true;
    }

    /// True while an answer is awaited.
    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Begins, or begins anew; `probe_timeout` is the larger of the present path's and the new one's (section 8.2.4).
    pub(crate) fn begin(&mut self, now: Time, probe_timeout: Duration) {
        self.running = Some(Box::new(Running {
            challenges: SmallVec::new(),
            next_at: Some(now),
            probe_timeout,
            fails_at: now + probe_timeout * FAILED_AFTER,
        }));
    }

    /// True if a challenge should be sent.
    pub(crate) fn wants_challenge(&self, now: Time) -> bool {
        self.running.as_ref().and_then(|running| running.next_at).is_some_and(|at| at <= now)
    }

    /// The data of a challenge that is about to leave: unpredictable, and new each time (section 8.2.1). `is_full`
    /// says that its datagram has the size that every path must carry.
    pub(crate) fn challenge(&mut self, now: Time, is_full: bool, rng: &mut Rng) -> Option<[u8; 8]> {
        let running = self.running.as_mut()?;
        // spec: rfc9000 8.2.1 challenge-unpredictable
        let mut data = [0; 8];
        rng.fill(&mut data);
        running.challenges.push(Challenge { data, sent_at: now, is_full });
        // spec: rfc9000 9.4 challenge-timer
        running.next_at = (running.challenges.len() < MAX_CHALLENGES).then_some(now + running.probe_timeout);
        Some(data)
    }

    /// A response with this data has come, on whatever path (section 8.2.3); `None` if it answers no challenge of
    /// this one.
    pub(crate) fn on_response(&mut self, now: Time, data: [u8; 8]) -> Option<Answer> {
        let running = self.running.as_mut()?;
        let challenge = *running.challenges.iter().find(|challenge| challenge.data == data)?;
        let answer = Answer { rtt: now.since(challenge.sent_at), is_news: !self.is_valid };
        self.is_valid = true;
        if challenge.is_full {
            self.running = None;
        } else {
            // spec: rfc9000 8.2.1 mtu-validated-later, 8.2.3 small-success-repeated
            // The address is valid, but not yet that the path carries datagrams of use (section 8.2.1).
            let probe_timeout = running.probe_timeout;
            self.begin(now, probe_timeout);
        }
        Some(answer)
    }

    /// True if the validation has failed by now; it is then over.
    pub(crate) fn has_failed(&mut self, now: Time) -> bool {
        let has_failed = self.running.as_ref().is_some_and(|running| running.fails_at <= now);
        if has_failed {
            self.running = None;
        }
        has_failed
    }

    /// When the next challenge or the end is due. A challenge that is due by `now` needs no timer: it leaves as soon
    /// as the anti-amplification limit lets it.
    pub(crate) fn next_time(&self, now: Time) -> Option<Time> {
        let running = self.running.as_ref()?;
        Some(running.next_at.filter(|at| *at > now).map_or(running.fails_at, |at| at.min(running.fails_at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(1);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_full_challenge_validates_and_a_small_one_only_the_address() {
        // spec: rfc9000 8.2.1 mtu-validated-later, 8.2.3 small-success-repeated, 8.2.1 challenge-unpredictable
        let mut rng = Rng::from_test_seed(1);
        let mut validation = Validation::new(false);
        validation.begin(at(0), TIMEOUT);
        let small = validation.challenge(at(0), false, &mut rng).expect("one is due");
        assert_eq!(validation.on_response(at(40), [0; 8]), None);
        assert!(!validation.is_valid());
        let answer = validation.on_response(at(50), small).expect("an answer");
        assert_eq!(answer, Answer { rtt: Duration::from_millis(50), is_news: true });
        assert!(validation.is_valid() && validation.is_running() && validation.wants_challenge(at(50)));
        assert_eq!(validation.on_response(at(60), small), None, "the first validation is over");
        let full = validation.challenge(at(60), true, &mut rng).expect("one is due");
        assert_ne!(small, full);
        assert!(!validation.on_response(at(90), full).expect("an answer").is_news);
        assert!(!validation.is_running());
    }

    #[test]
    fn challenges_are_few_and_without_an_answer_it_fails() {
        // spec: rfc9000 9.4 challenge-timer
        let mut rng = Rng::from_test_seed(1);
        let mut validation = Validation::new(false);
        validation.begin(at(0), TIMEOUT);
        let mut sent = Vec::new();
        for time in (0..=3000).map(at) {
            assert_eq!(validation.has_failed(time), time == at(3000));
            if validation.wants_challenge(time) {
                sent.extend(validation.challenge(time, true, &mut rng));
            }
        }
        assert_eq!(sent.len(), 3, "at 0, 1 and 2 s");
        assert_eq!(validation.on_response(at(3001), sent[0]), None, "too late");
        assert_eq!(validation.next_time(at(3001)), None);
    }
}

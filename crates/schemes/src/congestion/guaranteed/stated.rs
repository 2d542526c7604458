//! The client's word for a guaranteed rate, and what the server makes of it: it grants the lesser of what is stated and
//! its own bound, to all connections of a host together.

use posthaste_units::Rate;

/// Lower rates are no floor: a datagram would take more than a second.
const LEAST: Rate = Rate::from_bits_per_second(10_000);
/// Connections of one host from which on none has a floor of the client's: more are not counted (they are told of 64).
const TOO_MANY: u32 = 64;

/// What a client may state, what it has stated, and what has become of that.
#[derive(Debug, Clone)]
pub(super) struct Stated {
    /// The operator's own promise, which holds whatever the client says.
    own: Rate,
    most: Option<Rate>,
    /// What all connections of the client's host have, once it has stated something.
    granted: Option<Rate>,
    connections: u32,
    notice: Option<String>,
}

impl Stated {
    /// Nothing has been stated yet. `own` is promised anyway, `most` is the bound; `None` takes no statement.
    pub(super) fn new(own: Option<Rate>, most: Option<Rate>) -> Self {
        Self { own: own.unwrap_or(Rate::ZERO), most, granted: None, connections: 1, notice: None }
    }

    /// The client states `rate`; the floor from now on, if that changes anything.
    pub(super) fn on_stated(&mut self, rate: Rate) -> Option<Rate> {
        let most = self.most?;
        if rate < LEAST {
            self.notice = Some(format!("the client states {rate}: less than {LEAST} is no floor"));
            return None;
        }
        if rate > most {
            self.notice = Some(format!("the client states {rate}: {most} at most are granted"));
        }
        self.granted = Some(rate.min(most));
        Some(self.floor()).filter(|floor| *floor > self.own)
    }

    /// There are so many live connections with the client's host; the floor from now on, if that changes it.
    pub(super) fn on_connections(&mut self, count: u32) -> Option<Rate> {
        let before = self.floor();
        self.connections = count.max(1);
        let after = self.floor();
        (after != before).then_some(after)
    }

    /// The operator's promise, or this connection's part of the client's if that is more; zero for no floor.
    fn floor(&self) -> Rate {
        let part = |granted: Rate| granted.mul_ratio(1, u64::from(self.connections));
        let granted = self.granted.filter(|_| self.connections < TOO_MANY).map(part);
        granted.filter(|part| *part >= LEAST).map_or(self.own, |part| part.max(self.own))
    }

    pub(super) fn take_notice(&mut self) -> Option<String> {
        self.notice.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbit(rate: u64) -> Rate {
        Rate::from_bits_per_second(rate * 1_000_000)
    }

    #[test]
    fn without_a_bound_nothing_is_granted() {
        for rate in [Rate::from_bytes_per_second(1), mbit(1), Rate::MAX] {
            let mut stated = Stated::new(Some(mbit(1)), None);
            assert_eq!(stated.on_stated(rate), None);
            assert_eq!((stated.on_connections(5), stated.take_notice()), (None, None));
        }
    }

    #[test]
    fn what_is_stated_is_granted_up_to_the_bound() {
        let granted = |rate| Stated::new(None, Some(mbit(5))).on_stated(rate);
        assert_eq!(granted(mbit(2)), Some(mbit(2)));
        assert_eq!(granted(mbit(5)), Some(mbit(5)));
        assert_eq!(granted(mbit(1_000_000)), Some(mbit(5)));
        assert_eq!(granted(Rate::MAX), Some(mbit(5)));
        assert_eq!(granted(Rate::from_bits_per_second(9_999)), None);
        let mut stated = Stated::new(None, Some(mbit(5)));
        stated.on_stated(mbit(1_000_000));
        let notice = stated.take_notice().unwrap();
        assert!(notice.contains("1.00 Tbit/s") || notice.contains("1000"), "{notice}");
        assert!(notice.contains("5.00 Mbit/s at most"), "{notice}");
    }

    #[test]
    fn the_operators_promise_stands_below_the_clients() {
        let mut stated = Stated::new(Some(mbit(2)), Some(mbit(5)));
        assert_eq!(stated.on_stated(mbit(1)), None);
        let mut stated = Stated::new(Some(mbit(2)), Some(mbit(5)));
        assert_eq!(stated.on_stated(mbit(4)), Some(mbit(4)));
        assert_eq!(stated.on_connections(4), Some(mbit(2)));
        assert_eq!(stated.on_connections(5), None);
    }

    #[test]
    fn all_connections_of_a_host_have_no_more_than_one() {
        let mut stated = Stated::new(None, Some(mbit(6)));
        assert_eq!(stated.on_stated(mbit(60)), Some(mbit(6)));
        for count in 2..TOO_MANY {
            let part = stated.on_connections(count).unwrap();
            assert!(part > Rate::ZERO && part.mul_ratio(u64::from(count), 1) <= mbit(6), "{count}: {part}");
        }
        assert_eq!(stated.on_connections(TOO_MANY), Some(Rate::ZERO));
        assert_eq!(stated.on_connections(1), Some(mbit(6)));
        let mut little = Stated::new(None, Some(Rate::from_bits_per_second(15_000)));
        assert!(little.on_stated(mbit(1)).is_some());
        assert_eq!(little.on_connections(2), Some(Rate::ZERO), "half of it is less than a floor may be");
    }
}

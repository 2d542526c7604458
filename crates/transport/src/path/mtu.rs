//! How large datagrams may be: packetization-layer path MTU discovery (RFC 8899 with RFC 9000 section 14.3).
//!
//! All sizes are UDP payloads in bytes. A probe is a packet of PING and PADDING of the size that is tried; it goes
//! out only between full datagrams, for nobody else would gain from larger ones.

use posthaste_units::{Duration, Time};

use crate::packet::builder::MIN_INITIAL_DATAGRAM;

/// Where a search begins: `BASE_PLPMTU` of RFC 8899 section 5.1.2 less some common tunnels. It fits an IPv6 path of
/// 1,300 bytes.
pub(crate) const BASE: usize = 1252;

/// Losses of probes of one size that show it to be too large (`MAX_PROBES`, RFC 8899 section 5.1.2).
const MAX_PROBES: u8 = 3;

/// A search ends when less than this is to be gained.
const WORTH_WHILE: usize = 16;

/// A search that has ended below the bound is taken up again after this time (`PMTU_RAISE_TIMER`, RFC 8899
/// section 5.1.1).
const RAISE_AFTER: Duration = Duration::from_secs(600);

/// A search is taken up again this long after a black hole: paths that broke once may be changing still.
const RAISE_AFTER_BLACK_HOLE: Duration = Duration::from_secs(60);

/// Times in a row that large packets, and no other of their size, were lost, which show a black hole (RFC 8899
/// section 4.3).
const MAX_SUSPICIONS: u8 = 3;

/// Probe timeouts in a row after which smaller datagrams are tried.
pub(crate) const MAX_PROBE_TIMEOUTS: u32 = 3;

/// What the search is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Search {
    /// A probe of `size` is due or under way; `too_large` is known not to pass.
    Trying { size: usize, too_large: Option<usize>, losses: u8, is_under_way: bool },
    /// Over until the time.
    Resting { until: Time },
    /// Over for good: nothing larger is permitted.
    Complete,
}

/// Large packets whose fate one step of loss recovery has settled.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LargeFates {
    /// Number of the newest that was acknowledged.
    pub(crate) acked: Option<u64>,
    /// Number of the newest that was lost.
    pub(crate) lost: Option<u64>,
}

/// The datagram size of one path.
#[derive(Debug)]
pub(crate) struct Mtu {
    current: usize,
    /// What every path that QUIC can use carries.
    floor: usize,
    /// What both ends permit.
    ceiling: usize,
    is_on: bool,
    /// A full datagram has left since the last probe: larger ones would be of use.
    is_useful: bool,
    search: Search,
    suspicions: u8,
}

impl Mtu {
    /// A path of which nothing is known. With discovery, the search begins at [`BASE`] and ends at most at `ceiling`;
    /// without, `ceiling` is the size of all datagrams.
    pub(crate) fn new(ceiling: usize, is_on: bool) -> Self {
        let current = if is_on { BASE.min(ceiling) } else { ceiling };
        let mut mtu = Self {
            current,
            floor: MIN_INITIAL_DATAGRAM.min(ceiling),
            ceiling,
            is_on,
            is_useful: false,
            search: Search::Complete,
            suspicions: 0,
        };
        mtu.begin();
        mtu
    }

    /// The same for a path that nothing is known of.
    pub(crate) fn anew(&self) -> Self {
        Self::new(self.ceiling, self.is_on)
    }

    /// Size of the datagrams sent.
    pub(crate) fn current(&self) -> usize {
        self.current
    }

    /// The peer takes no larger datagrams (`max_udp_payload_size`, RFC 9000 section 18.2).
    pub(crate) fn limit(&mut self, largest: usize) {
        self.ceiling = self.ceiling.min(largest);
        self.floor = self.floor.min(self.ceiling);
        self.current = self.current.min(self.ceiling);
        self.begin();
    }

    fn begin(&mut self) {
        self.search = if self.is_on && self.current < self.ceiling {
            // The bound first: most paths carry it.
            Search::Trying { size: self.ceiling, too_large: None, losses: 0, is_under_way: false }
        } else {
            Search::Complete
        };
    }

    /// A datagram of the current size has left.
    pub(crate) fn on_full_datagram(&mut self) {
        self.is_useful = true;
    }

    /// The size of the probe that should leave now.
    pub(crate) fn next_probe(&mut self, now: Time) -> Option<usize> {
        if !self.is_useful {
            return None;
        }
        if let Search::Resting { until } = self.search
            && until <= now
        {
            self.begin();
        }
        match self.search {
            Search::Trying { size, is_under_way: false, .. } => Some(size),
            _ => None,
        }
    }

    /// The probe that [`Self::next_probe`] asked for has left.
    pub(crate) fn on_probe_sent(&mut self) {
        self.is_useful = false;
        if let Search::Trying { is_under_way, .. } = &mut self.search {
            *is_under_way = true;
        }
    }

    /// A probe of this size has arrived, even if it was believed lost. True if datagrams grow with it.
    pub(crate) fn on_probe_acked(&mut self, now: Time, acked: usize) -> bool {
        let too_large = match self.search {
            Search::Trying { too_large, .. } => too_large.filter(|size| *size > acked),
            _ => None,
        };
        if acked <= self.current || acked > self.ceiling {
            return false;
        }
        self.current = acked;
        self.suspicions = 0;
        self.narrow(now, too_large);
        true
    }

    /// A probe of this size was lost. That is no sign of congestion (RFC 9000 section 14.4).
    pub(crate) fn on_probe_lost(&mut self, now: Time, lost: usize) {
        let Search::Trying { size, losses, is_under_way, .. } = &mut self.search else { return };
        if *size != lost {
            return;
        }
        *is_under_way = false;
        *losses += 1;
        if *losses >= MAX_PROBES {
            self.narrow(now, Some(lost));
        }
    }

    /// Chooses the next size between the one that passes and the one that does not.
    fn narrow(&mut self, now: Time, too_large: Option<usize>) {
        let end = too_large.unwrap_or(self.ceiling);
        self.search = if self.current >= self.ceiling {
            Search::Complete
        } else if end.saturating_sub(self.current) < WORTH_WHILE {
            Search::Resting { until: now + RAISE_AFTER }
        } else {
            let size = if too_large.is_some() { self.current.midpoint(end) } else { self.ceiling };
            Search::Trying { size, too_large, losses: 0, is_under_way: false }
        };
    }

    /// True if a packet of so many bytes counts for [`Self::on_fates`].
    pub(crate) fn is_large(&self, bytes: u64) -> bool {
        bytes > self.floor as u64
    }

    /// Looks for a black hole: a path that has ceased to carry what it did (RFC 8899 section 4.3). True if one is
    /// found, and datagrams shrink.
    pub(crate) fn on_fates(&mut self, now: Time, fates: LargeFates) -> bool {
        match (fates.acked, fates.lost) {
            (None, None) => return false,
            (acked, Some(lost)) if acked.is_none_or(|acked| acked < lost) => self.suspicions += 1,
            _ => self.suspicions = 0,
        }
        self.suspicions >= MAX_SUSPICIONS && self.fall_back(now)
    }

    /// The peer has been silent for `count` probe timeouts: perhaps because nothing of this size gets through. True
    /// if datagrams shrink.
    pub(crate) fn on_probe_timeouts(&mut self, now: Time, count: u32) -> bool {
        count >= MAX_PROBE_TIMEOUTS && self.fall_back(now)
    }

    fn fall_back(&mut self, now: Time) -> bool {
        self.suspicions = 0;
        if !self.is_on || self.current <= self.floor {
            return false;
        }
        self.current = self.floor;
        self.search = Search::Resting { until: now + RAISE_AFTER_BLACK_HOLE };
        true
    }
}

#[cfg(test)]
mod tests;

//! Which connection fetches which bytes of an object: no connections, no clock, only the arithmetic.
//!
//! Every byte belongs to a part that is being fetched, lies in a free range, or has arrived. A lane (a connection) whose
//! bytes are all under way takes a free range; if there is none, it takes the second half of the largest part of another
//! lane that is not under way yet (of a slower lane's more, of a faster one's less, so that both end together). So ranges
//! are as large as each lane is fast, and the last one is nobody's alone.

use std::collections::BTreeMap;
use std::ops::Range;

/// An object is divided among no more lanes than it has parts of this size: a lane costs a handshake and a round trip,
/// in which the others bring as much.
pub(super) const LEAST_PART: u64 = 256 * 1024;

/// Less is not taken from another lane, nor less than arrives there in a round trip: it would be there as soon.
pub(super) const LEAST_THEFT: u64 = 16 * 1024;

/// Parts that a lane has at most: one that arrives, one that is asked for while the last bytes of the first are under way.
const PARTS_A_LANE: usize = 2;

/// Names a part, in the order of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PartId(u64);

/// What one response is to bring.
#[derive(Debug)]
struct Part {
    lane: usize,
    /// Up to here its bytes have arrived.
    next: u64,
    /// The byte after the last that is wanted of it.
    end: u64,
    /// Where the response ends: behind `end` if another lane has taken the rest.
    reach: u64,
}

/// What to do with bytes that have arrived.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arrived {
    /// Where the first of them belongs.
    pub(super) offset: u64,
    /// So many are new; the rest has been left to others.
    pub(super) kept: u64,
    /// Nothing more is wanted of the response.
    pub(super) is_over: bool,
}

/// What was done, for reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    /// Responses that were asked for.
    pub(super) parts: u64,
    /// How many of them took over what another lane had asked for.
    pub(super) steals: u64,
    /// Bytes that arrived though they had been left to others.
    pub(super) surplus: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Plan {
    length: u64,
    arrived: u64,
    /// Nobody's: beginnings and ends.
    free: BTreeMap<u64, u64>,
    parts: BTreeMap<PartId, Part>,
    /// By lane: what arrives of it in a round trip, so that a request to stop would come too late for it.
    under_way: Vec<u64>,
    counts: Counts,
}

impl Plan {
    /// An object of `length` bytes, the first `reach` of which lane 0 has asked for already.
    pub(super) fn new(length: u64, reach: u64, lanes: usize) -> (Self, PartId) {
        let reach = reach.min(length);
        let mut plan = Self {
            length,
            arrived: 0,
            free: BTreeMap::new(),
            parts: BTreeMap::new(),
            under_way: vec![0; lanes],
            counts: Counts::default(),
        };
        let first = plan.begin(0, 0..reach);
        plan.release(reach..length);
        plan.divide(first, lanes as u64);
        (plan, first)
    }

    /// There are so many lanes from now on, if that is more: the new ones take from the others.
    pub(super) fn add_lanes(&mut self, lanes: usize) {
        if lanes > self.under_way.len() {
            self.under_way.resize(lanes, 0);
        }
    }

    /// Bytes that have arrived, and those that are still to come.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.arrived, self.length - self.arrived)
    }

    /// Leaves lane 0 its share, and the shares of the others to whoever comes first. The first response goes on through
    /// them if nobody comes.
    fn divide(&mut self, first: PartId, lanes: u64) {
        let Some(part) = self.parts.get_mut(&first) else { return };
        let share = self.length / lanes.max(1);
        part.end = part.end.min(share.max(1));
        let mut start = part.end;
        self.free.clear();
        for place in 2..=lanes.max(2) {
            let end = if place >= lanes { self.length } else { share * place };
            if end > start {
                self.free.insert(start, end);
                start = end;
            }
        }
    }

    fn begin(&mut self, lane: usize, range: Range<u64>) -> PartId {
        let id = PartId(self.counts.parts);
        self.counts.parts += 1;
        self.parts.insert(id, Part { lane, next: range.start, end: range.end, reach: range.end });
        id
    }

    /// What the lane is to ask for now, if anything.
    pub(super) fn assign(&mut self, lane: usize) -> Option<(PartId, Range<u64>)> {
        let under_way = self.under_way.get(lane).copied().unwrap_or_default();
        let own = || self.parts.values().filter(|part| part.lane == lane);
        // A response that goes on behind its end would be in the way of the next until it is stopped.
        let is_busy = |part: &Part| part.end - part.next > under_way || part.reach > part.end;
        if own().count() >= PARTS_A_LANE || own().any(is_busy) {
            return None;
        }
        let range = match self.free.pop_first() {
            Some((start, end)) => start..end,
            None => self.steal(lane)?,
        };
        Some((self.begin(lane, range.clone()), range))
    }

    /// Takes the second half of what another lane has to bring most of.
    fn steal(&mut self, thief: usize) -> Option<Range<u64>> {
        let speed = |lane: usize| self.under_way.get(lane).copied().unwrap_or_default();
        let mut best: Option<(u64, PartId)> = None;
        let mut seen = vec![false; self.under_way.len()];
        for (id, part) in &self.parts {
            // Only what the lane sends first is under way.
            let is_first = seen.get_mut(part.lane).is_some_and(|seen| !std::mem::replace(seen, true));
            let under_way = speed(part.lane);
            let rest = (part.end - part.next).saturating_sub(if is_first { under_way } else { 0 });
            let booty = share(rest, speed(thief), under_way);
            let is_worth_it = part.lane != thief && booty >= LEAST_THEFT.max(under_way);
            if is_worth_it && best.is_none_or(|(most, _)| booty > most) {
                best = Some((booty, *id));
            }
        }
        let (booty, id) = best?;
        let part = self.parts.get_mut(&id)?;
        let end = part.end;
        part.end -= booty;
        self.counts.steals += 1;
        Some(part.end..end)
    }

    /// The response to a part's request ends before `reach`.
    pub(super) fn set_reach(&mut self, id: PartId, reach: u64) {
        let Some(part) = self.parts.get_mut(&id) else { return };
        part.reach = reach.max(part.next);
        if part.reach < part.end {
            let missing = part.reach..part.end;
            part.end = part.reach;
            if part.end <= part.next {
                self.parts.remove(&id);
            }
            self.release(missing);
        }
    }

    /// The next `count` bytes of a part's response are here.
    pub(super) fn on_arrived(&mut self, id: PartId, count: u64) -> Arrived {
        let Some(part) = self.parts.get_mut(&id) else {
            self.counts.surplus += count;
            return Arrived { offset: 0, kept: 0, is_over: true };
        };
        let offset = part.next;
        let mut left = count;
        let is_over = loop {
            let step = left.min(part.end - part.next);
            part.next += step;
            left -= step;
            if part.next < part.end {
                break false;
            }
            // What nobody has taken up meanwhile comes with this response anyway.
            let Some(free_end) = self.free.get(&part.end).copied().filter(|_| part.reach > part.end) else {
                break true;
            };
            self.free.remove(&part.end);
            part.end = free_end.min(part.reach);
            if part.end < free_end {
                self.free.insert(part.end, free_end);
            }
        };
        let kept = count - left;
        if is_over {
            self.parts.remove(&id);
        }
        self.arrived += kept;
        self.counts.surplus += left;
        Arrived { offset, kept, is_over }
    }

    /// What the lane was to bring is for others to fetch; gives its parts' names.
    pub(super) fn retire(&mut self, lane: usize) -> Vec<PartId> {
        let is_its = |(id, part): (&PartId, &Part)| (part.lane == lane).then_some(*id);
        let ids: Vec<PartId> = self.parts.iter().filter_map(is_its).collect();
        for id in &ids {
            if let Some(part) = self.parts.remove(id) {
                self.release(part.next..part.end);
            }
        }
        if let Some(under_way) = self.under_way.get_mut(lane) {
            *under_way = 0;
        }
        ids
    }

    /// A range that is nobody's from now on; it joins those beside it.
    fn release(&mut self, mut range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        if let Some((start, end)) =
            self.free.range(..range.start).next_back().map(|(start, end)| (*start, *end))
            && end == range.start
        {
            self.free.remove(&start);
            range.start = start;
        }
        if let Some(end) = self.free.remove(&range.end) {
            range.end = end;
        }
        self.free.insert(range.start, range.end);
    }

    /// So many bytes arrive on the lane in a round trip.
    pub(super) fn set_under_way(&mut self, lane: usize, bytes: u64) {
        if let Some(under_way) = self.under_way.get_mut(lane) {
            *under_way = bytes;
        }
    }

    /// True if the lane has something to bring.
    pub(super) fn is_at_work(&self, lane: usize) -> bool {
        self.parts.values().any(|part| part.lane == lane)
    }

    /// Whose part it is.
    pub(super) fn lane(&self, id: PartId) -> Option<usize> {
        self.parts.get(&id).map(|part| part.lane)
    }

    /// True once every byte has arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.arrived == self.length
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }
}

/// What a lane takes of `rest` bytes of another's so that both end together: half, if it is not known how fast they are.
fn share(rest: u64, thief: u64, victim: u64) -> u64 {
    if thief == 0 || victim == 0 {
        return rest / 2;
    }
    let share = u128::from(rest) * u128::from(thief) / (u128::from(thief) + u128::from(victim));
    u64::try_from(share).unwrap_or(rest)
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

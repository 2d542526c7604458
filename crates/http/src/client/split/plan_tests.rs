use proptest::prelude::*;

use super::*;

/// A server that knows ranges, the lanes' responses, and what has been written.
struct World {
    plan: Plan,
    /// Of each lane: part, position in the object, end of the response.
    responses: Vec<Vec<(PartId, u64, u64)>>,
    is_dead: Vec<bool>,
    written: Vec<u8>,
}

impl World {
    fn new(length: u64, lanes: usize) -> Self {
        let (plan, first) = Plan::new(length, length, lanes);
        let mut responses = vec![Vec::new(); lanes];
        responses[0].push((first, 0, length));
        Self { plan, responses, is_dead: vec![false; lanes], written: vec![0; length as usize] }
    }

    /// Every byte is written once at most, wanted by one part at most, and free or wanted or written.
    fn check(&self) {
        let mut owners: Vec<u8> = self.written.clone();
        for (start, end) in &self.plan.free {
            assert!(start < end);
            (*start..*end).for_each(|byte| owners[byte as usize] += 1);
        }
        for part in self.plan.parts.values() {
            assert!(part.next < part.end && part.end <= part.reach, "{part:?}");
            (part.next..part.end).for_each(|byte| owners[byte as usize] += 1);
        }
        assert!(owners.iter().all(|count| *count == 1), "a byte of nobody or of two");
    }

    fn ask(&mut self, lane: usize) {
        if !self.is_dead[lane]
            && let Some((id, range)) = self.plan.assign(lane)
        {
            self.responses[lane].push((id, range.start, range.end));
        }
    }

    fn bring(&mut self, lane: usize, count: u64) {
        let Some((id, position, end)) = self.responses[lane].first_mut() else { return };
        let count = count.min(*end - *position);
        let arrived = self.plan.on_arrived(*id, count);
        if arrived.kept > 0 {
            assert_eq!(arrived.offset, *position);
        }
        for byte in arrived.offset..arrived.offset + arrived.kept {
            self.written[byte as usize] += 1;
        }
        *position += count;
        if arrived.is_over || position == end {
            assert!(arrived.is_over, "a response does not end before its part");
            self.responses[lane].remove(0);
        }
    }

    fn die(&mut self, lane: usize) {
        if self.is_dead.iter().filter(|dead| !**dead).count() > 1 && !self.is_dead[lane] {
            self.is_dead[lane] = true;
            self.responses[lane].clear();
            self.plan.retire(lane);
        }
    }

    /// Whoever lives brings the rest; gives the steps that it took.
    fn finish(&mut self, chunk: u64) -> u64 {
        let mut steps = 0;
        while !self.plan.is_complete() {
            for lane in 0..self.responses.len() {
                self.ask(lane);
                self.bring(lane, chunk);
            }
            steps += 1;
            assert!(steps < 100_000, "it does not end: {:?}", self.plan);
        }
        assert!(self.written.iter().all(|count| *count == 1));
        assert!(self.plan.parts.is_empty() && self.plan.free.is_empty());
        steps
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_byte_once_whatever_happens(
        length in 1_u64..600_000,
        lanes in 1_usize..7,
        steps in prop::collection::vec((0_u8..10, 0_usize..7, 0_u64..200_000), 0..60),
    ) {
        let mut world = World::new(length, lanes);
        world.check();
        for (what, lane, amount) in steps {
            let lane = lane % lanes;
            match what {
                0 => world.die(lane),
                1 => world.plan.set_under_way(lane, amount),
                2..5 => world.ask(lane),
                _ => world.bring(lane, amount),
            }
            world.check();
        }
        world.finish(50_000);
    }

    #[test]
    fn shorter_responses_than_asked_for_leave_the_rest_to_others(
        length in 1_u64..600_000, reach in 1_u64..1_000_000, lanes in 1_usize..5,
    ) {
        let (plan, first) = Plan::new(length, reach, lanes);
        let mut responses = vec![Vec::new(); lanes];
        responses[0].push((first, 0, reach.min(length)));
        let written = vec![0; length as usize];
        let mut world = World { plan, responses, is_dead: vec![false; lanes], written };
        world.check();
        if lanes > 1 {
            world.ask(1);
            if let Some((id, start, end)) = world.responses[1].pop() {
                // The server sends half of it.
                let half = start + (end - start) / 2;
                world.plan.set_reach(id, half);
                world.check();
                if half > start {
                    world.responses[1].push((id, start, half));
                }
            }
        }
        world.finish(100_000);
    }
}

#[test]
fn lanes_begin_with_equal_shares() {
    let (mut plan, _) = Plan::new(3_000_000, 3_000_000, 3);
    assert_eq!(plan.assign(1).unwrap().1, 1_000_000..2_000_000);
    assert_eq!(plan.assign(2).unwrap().1, 2_000_000..3_000_000);
    assert_eq!(plan.assign(0), None, "it is at work");
    assert_eq!(plan.assign(1), None);
}

#[test]
fn the_first_response_goes_on_where_nobody_comes() {
    let mut world = World::new(3_000_000, 3);
    world.is_dead = vec![false, true, true];
    world.finish(100_000);
    assert_eq!(world.plan.counts(), Counts { parts: 1, steals: 0, surplus: 0 }, "one request, nothing twice");
}

#[test]
fn an_idle_lane_takes_half_of_the_largest_rest_behind_what_is_under_way() {
    let mut world = World::new(3_000_000, 3);
    for lane in 1..3 {
        world.ask(lane);
    }
    world.bring(0, 400_000);
    world.plan.set_under_way(0, 100_000);
    world.bring(2, 1_000_000);
    // Lane 0 misses 600,000 of which 500,000 may be taken; lane 1 misses 1,000,000.
    assert_eq!(world.plan.assign(2).unwrap().1, 1_500_000..2_000_000);
    world.bring(1, 500_000);
    assert_eq!(world.plan.assign(1).unwrap().1, 750_000..1_000_000);
    assert_eq!(world.plan.counts().steals, 2);
    // The response of lane 1 was asked for to 2,000,000: what comes of it now was left to others.
    assert_eq!(world.responses[1], []);
}

#[test]
fn a_stolen_from_response_is_cut_and_its_surplus_dropped() {
    let (mut plan, first) = Plan::new(1_000_000, 1_000_000, 2);
    let (second, range) = plan.assign(1).unwrap();
    assert_eq!(range, 500_000..1_000_000);
    assert_eq!(plan.on_arrived(first, 499_000), Arrived { offset: 0, kept: 499_000, is_over: false });
    assert_eq!(plan.on_arrived(first, 1_500), Arrived { offset: 499_000, kept: 1_000, is_over: true });
    assert_eq!(plan.on_arrived(first, 100), Arrived { offset: 0, kept: 0, is_over: true });
    assert_eq!(plan.counts().surplus, 600);
    assert!(plan.on_arrived(second, 500_000).is_over && plan.is_complete());
}

#[test]
fn the_next_part_is_asked_for_while_the_last_bytes_are_under_way() {
    let mut world = World::new(4_000_000, 2);
    world.ask(1);
    world.plan.set_under_way(1, 50_000);
    world.bring(1, 1_949_999);
    assert_eq!(world.plan.assign(1), None);
    world.bring(1, 1);
    assert_eq!(world.plan.assign(1).unwrap().1, 1_000_000..2_000_000);
    assert_eq!(world.plan.assign(1), None, "two at most");
}

#[test]
fn crumbs_are_not_taken() {
    let mut world = World::new(2 * LEAST_THEFT, 2);
    world.ask(1);
    world.bring(0, 1);
    world.bring(1, LEAST_THEFT);
    assert_eq!(world.plan.assign(1), None);
    world.finish(1000);
}

/// One lane ten times as slow as the other two: without theft it alone would take a third of 3 MB at its pace.
#[test]
fn a_slow_lane_is_no_straggler() {
    let mut world = World::new(3_000_000, 3);
    let mut rounds = 0;
    while !world.plan.is_complete() {
        for (lane, pace) in [(0, 20_000), (1, 20_000), (2, 2_000)] {
            world.plan.set_under_way(lane, pace);
            world.ask(lane);
            world.bring(lane, pace);
        }
        rounds += 1;
        assert!(rounds < 1000);
    }
    // 3,000,000 / 42,000 = 72 rounds at the best; a lane alone with its third would take 500.
    assert!(rounds <= 82, "{rounds} rounds");
    assert!(world.written.iter().all(|count| *count == 1));
}

use super::*;

fn framer(failure: f64) -> Framer {
    let config =
        RadioFrames { interval: Duration::from_millis(1), failure, repeat: Duration::from_millis(8) };
    Framer::new(config, Rng::from_test_seed(5))
}

fn micros(micros: u64) -> Time {
    Time::from_nanos(micros * 1000)
}

#[test]
fn a_block_arrives_at_the_end_of_its_interval() {
    let mut framer = framer(0.0);
    let handed_on: Vec<Time> = [100, 900, 1000, 1001, 5300].map(|at| framer.hand_on(micros(at))).to_vec();
    assert_eq!(handed_on, [1000, 1000, 1000, 2000, 6000].map(micros));
}

#[test]
fn a_failed_block_comes_again_and_what_is_behind_it_waits() {
    let mut framer = framer(0.1);
    let (mut late, mut before) = (0, Time::ZERO);
    for block in 0..20_000u64 {
        // Blocks 40 ms apart do not wait for each other.
        let end = micros(40_000 * block + 1000);
        let at = framer.hand_on(end);
        assert!(at >= before && at.since(end).as_nanos().is_multiple_of(8_000_000));
        late += u64::from(at > end);
        before = at;
    }
    // 10 %, within four standard deviations of 20,000 draws.
    assert!((1_830..2_170).contains(&late), "{late}");
    let mut dense = self::framer(0.1);
    let gaps: Vec<u64> = (1..2_000u64)
        .map(|block| dense.hand_on(micros(1000 * block)).as_nanos() / 1_000_000)
        .collect::<Vec<_>>()
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .collect();
    assert!(gaps.iter().any(|&gap| gap >= 8) && gaps.iter().filter(|&&gap| gap == 0).count() > 500);
}

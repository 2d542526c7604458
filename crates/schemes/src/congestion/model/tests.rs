use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn the_maximum_is_that_of_the_window(steps in prop::collection::vec((0..3_u64, 0..100_u32), 1..200), length in 1..12_u64) {
        let (mut filter, mut seen, mut time) = (WindowedMax::default(), Vec::new(), 0);
        for (step, value) in steps {
            time += step;
            let value = f64::from(value);
            seen.push((time, value));
            filter.update(time, length, value);
            let expected = seen.iter().filter(|(at, _)| time - at < length).map(|(_, value)| *value).fold(0.0, f64::max);
            prop_assert!((filter.get() - expected).abs() < 1e-9, "{} {expected}", filter.get());
        }
    }
}

//! The value of a Priority field, a structured dictionary: no panic, an urgency in range, and what is read out of noise is
//! what it is without the noise.

#![no_main]

use libfuzzer_sys::fuzz_target;
use posthaste_http3::{Priority, PriorityParameters};

fuzz_target!(|value: &[u8]| {
    let Some(parameters) = PriorityParameters::parse(value) else { return };
    let priority = parameters.over(Priority::default());
    assert!(priority.urgency <= 7, "{priority:?}");
    let clean = format!("u={}{}", priority.urgency, if priority.incremental { ", i" } else { "" });
    let again = PriorityParameters::parse(clean.as_bytes()).expect("a dictionary");
    assert_eq!(again.over(Priority::default()), priority, "{clean}");
});

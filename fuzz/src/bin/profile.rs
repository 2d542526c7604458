//! The text of a profile's file: no panic, and an error that says something, or a profile that can be described.

#![no_main]

use libfuzzer_sys::fuzz_target;
use posthaste_schemes::Definition;

fuzz_target!(|text: &str| {
    match Definition::from_toml("fuzzed", text).and_then(|definition| {
        let _ = definition.describe();
        definition.build()
    }) {
        Ok(profile) => assert_eq!(profile.name(), "fuzzed"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

//! Rows of a history of paths as a file or a token may have them: no panic, only rows that survive being written again, and
//! a history of them that keeps its rules. Records of one byte for the key's length, the key, and a record.

#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libfuzzer_sys::fuzz_target;
use posthaste_policy::history::{
    Average, History, HistoryRules, MAX_PATHS, PathKey, PathRecord, RECORD_LEN, Scope,
};
use posthaste_policy::sample::PathHistory;
use posthaste_units::{ByteCount, Duration};

fuzz_target!(|input: &[u8]| {
    let Some((choice, mut rest)) = input.split_first() else { return };
    let scope = match choice % 3 {
        0 => Scope::Everyone,
        1 => Scope::Prefix { ipv4: choice / 3 % 33, ipv6: choice % 129 },
        _ => Scope::Address,
    };
    let average = [Average::Latest, Average::Moving, Average::Mean][usize::from(choice / 3 % 3)];
    let lifetime = Duration::from_secs(1 << (choice / 8));
    let rules =
        HistoryRules { scope, has_fallback: choice & 64 != 0, average, lifetime, is_exclusive: false };
    let mut history = History::new(rules);
    let mut latest = Duration::ZERO;
    while let Some((length, after)) = rest.split_first() {
        let (key, after) = after.split_at(usize::from(*length % 20).min(after.len()));
        let (record, after) = after.split_at(RECORD_LEN.min(after.len()));
        rest = after;
        let (Some(key), Some(record)) = (PathKey::from_bytes(key), PathRecord::from_bytes(record)) else {
            continue;
        };
        assert_eq!(PathKey::from_bytes(&key.to_bytes()), Some(key));
        assert_eq!(PathRecord::from_bytes(&record.to_bytes()), Some(record));
        latest = latest.max(record.measured_at());
        history.restore(latest, key, record);
    }
    let clients: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    for client in clients {
        if let Some(known) = history.recall(latest, client) {
            assert!(known.age <= lifetime, "{known:?}");
            let sample = PathHistory { window: known.window + ByteCount::new(1), ..known };
            assert!(!history.record(latest, client, &sample).is_empty());
            history.forget(client);
        }
    }
    assert!(history.len() <= MAX_PATHS);
    history.iter().for_each(|(key, record)| {
        assert_eq!(PathRecord::from_bytes(&record.to_bytes()).as_ref(), Some(record), "{key}");
    });
});

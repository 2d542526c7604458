//! Keys, ages, bounds, and bytes that a hostile disk or client may hand in.

use std::net::IpAddr;

use proptest::prelude::*;

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn sample(window: u64) -> PathHistory {
    PathHistory {
        window: ByteCount::new(window),
        min_rtt: Duration::from_millis(40),
        age: Duration::ZERO,
        continues: false,
        loss: PathLoss::new(1_000, 80),
    }
}

fn safe() -> History {
    History::new(HistoryRules {
        scope: Scope::Address,
        has_fallback: false,
        average: Average::Latest,
        lifetime: Duration::from_secs(3600),
        is_exclusive: true,
    })
}

/// The rules of the paper's form: averages, which several connections may use at once.
fn paper(scope: Scope) -> HistoryRules {
    HistoryRules {
        scope,
        has_fallback: scope != Scope::Everyone,
        average: Average::Moving,
        lifetime: Duration::from_secs(24 * 3600),
        is_exclusive: false,
    }
}

fn by_prefix() -> History {
    History::new(paper(Scope::Prefix { ipv4: 24, ipv6: 48 }))
}

fn window(history: &History, at: u64, client: &str) -> Option<u64> {
    history.recall(seconds(at), ip(client)).map(|known| known.window.get())
}

#[test]
fn the_safe_form_knows_a_client_by_its_address_alone() {
    // spec: rfc9959 3.1 one-set-each, 3.1 updated
    let mut history = safe();
    history.record(seconds(100), ip("192.0.2.7"), &sample(90_000));
    assert_eq!(window(&history, 100, "192.0.2.7"), Some(90_000));
    assert_eq!(window(&history, 100, "::ffff:192.0.2.7"), Some(90_000), "whatever socket it comes to");
    assert_eq!(window(&history, 100, "192.0.2.8"), None, "no neighbour gains or suffers");
    history.record(seconds(101), ip("192.0.2.7"), &sample(50_000));
    assert_eq!(window(&history, 101, "192.0.2.7"), Some(50_000), "the latest replaces what was saved");
    assert_eq!(history.forget(ip("192.0.2.7")).len(), 1);
    assert_eq!(history.forget(ip("192.0.2.7")).len(), 0);
    assert_eq!(window(&history, 101, "192.0.2.7"), None);
    assert!(history.is_empty());
}

#[test]
fn the_papers_form_has_one_average_or_one_a_network_with_a_fallback() {
    let mut one = History::new(paper(Scope::Everyone));
    one.record(seconds(1), ip("192.0.2.7"), &sample(80_000));
    assert_eq!(window(&one, 1, "2001:db8::1"), Some(80_000));
    one.record(seconds(1), ip("2001:db8::1"), &sample(160_000));
    assert_eq!(window(&one, 1, "198.51.100.1"), Some(90_000), "80 + (160 - 80) / 8");
    assert_eq!(one.len(), 1);

    let mut networks = by_prefix();
    networks.record(seconds(1), ip("192.0.2.7"), &sample(80_000));
    networks.record(seconds(1), ip("2001:db8:1:2::1"), &sample(160_000));
    assert_eq!(window(&networks, 1, "192.0.2.200"), Some(80_000), "its /24");
    assert_eq!(window(&networks, 1, "2001:db8:1:3::9"), Some(160_000), "its /48");
    assert_eq!(window(&networks, 1, "192.0.3.1"), Some(90_000), "nothing known: all clients'");
    networks.forget(ip("192.0.2.1"));
    assert_eq!(window(&networks, 1, "192.0.2.200"), Some(90_000));
}

#[test]
fn what_is_too_old_is_neither_used_nor_kept() {
    let mut history = safe();
    history.record(seconds(1000), ip("192.0.2.7"), &sample(90_000));
    assert_eq!(window(&history, 1000 + 3600, "192.0.2.7"), Some(90_000));
    let age = history.recall(seconds(1000 + 60), ip("192.0.2.7")).map(|known| known.age);
    assert_eq!(age, Some(Duration::from_secs(60)), "who uses it later can tell how old it is");
    assert_eq!(window(&history, 1000 + 3601, "192.0.2.7"), None);
    assert_eq!(window(&history, 999, "192.0.2.7"), None, "a clock that was put back");
    let changes = history.record(seconds(5000), ip("192.0.2.9"), &sample(70_000));
    assert_eq!(changes.len(), 2);
    assert!(matches!(changes[0], (PathKey::Network { address, .. }, None) if address == ip("192.0.2.7")));
    assert_eq!(history.len(), 1);
    // An average does not outlive its age either.
    let mut averaged = by_prefix();
    averaged.record(seconds(1), ip("192.0.2.7"), &sample(80_000));
    averaged.record(seconds(1 + 24 * 3600 + 1), ip("192.0.2.7"), &sample(16_000));
    assert_eq!(window(&averaged, 86_500, "192.0.2.7"), Some(16_000));
}

#[test]
fn no_number_of_clients_makes_it_grow_beyond_its_bound() {
    let mut history = safe();
    for number in 0..MAX_PATHS as u32 + 100 {
        let client = IpAddr::V4(Ipv4Addr::from_bits(number));
        let changes =
            history.record(seconds(1000) + Duration::from_nanos(number.into()), client, &sample(50_000));
        assert!(changes.len() <= 2);
    }
    assert_eq!(history.len(), MAX_PATHS);
    assert_eq!(history.by_age.len(), MAX_PATHS);
    assert_eq!(window(&history, 1001, "0.0.0.99"), None, "the oldest went");
    assert_eq!(window(&history, 1001, "0.0.0.100"), Some(50_000));
}

#[test]
fn records_are_restored_where_they_belong() {
    let mut from = by_prefix();
    from.record(seconds(50), ip("192.0.2.7"), &sample(80_000));
    let mut to = by_prefix();
    for (key, record) in from.iter() {
        let key = PathKey::from_bytes(&key.to_bytes()).unwrap();
        let record = PathRecord::from_bytes(&record.to_bytes()).unwrap();
        assert!(to.restore(seconds(60), key, record));
        assert!(!safe().restore(seconds(60), key, record), "{key}: of another scope");
        assert!(!by_prefix().restore(seconds(200_000), key, record), "{key}: too old");
    }
    assert!(from.iter().eq(to.iter()));
    let keys: Vec<String> = to.iter().map(|(key, _)| key.to_string()).collect();
    assert_eq!(keys, ["all clients", "192.0.2.0/24"]);
}

#[test]
fn nonsense_is_no_key_and_no_record() {
    for bytes in [
        &[][..],
        &[1],
        &[0, 0],
        &[4, 24, 192, 0, 2],
        &[4, 33, 192, 0, 2, 1],
        &[4, 24, 192, 0, 2, 1],
        &[6, 48, 1],
        &[5, 24, 192, 0, 2, 0],
    ] {
        assert_eq!(PathKey::from_bytes(bytes), None, "{bytes:?}");
    }
    let good = PathRecord::after(None, Average::Latest, seconds(9), &sample(70_000)).to_bytes();
    assert!(PathRecord::from_bytes(&good).is_some());
    for (at, field) in [
        (0, f64::NAN.to_bits()),
        (0, (-1.0f64).to_bits()),
        (0, 1e300f64.to_bits()),
        (8, u64::MAX),
        (16, 0),
        (32, u64::MAX),
        (32, 1),
    ] {
        let mut bad = good;
        bad[at..at + 8].copy_from_slice(&field.to_be_bytes());
        assert_eq!(PathRecord::from_bytes(&bad), None, "{at}: {field:x}");
    }
}

#[test]
fn a_record_from_before_the_loss_was_kept_is_read_without_one() {
    let record = PathRecord::after(None, Average::Latest, seconds(9), &sample(70_000));
    let old = PathRecord::from_bytes(&record.to_bytes()[..32]).unwrap();
    assert_eq!((old.window(), old.min_rtt()), (record.window(), record.min_rtt()));
    assert_eq!((record.loss(), old.loss()), (PathLoss::new(1_000, 80), PathLoss::UNKNOWN));
    for length in [31, 33, 39, 41] {
        let mut bytes = record.to_bytes().to_vec();
        bytes.resize(length, 0);
        assert_eq!(PathRecord::from_bytes(&bytes), None, "{length} bytes");
    }
}

#[test]
fn loss_is_counted_on_so_many_packets_and_the_latest_count_first() {
    assert_eq!(PathLoss::new(10, 11), PathLoss::UNKNOWN);
    let many = PathLoss::new(100_000, 8_000);
    assert_eq!((many.settled(), many.lost()), (PathLoss::MOST, 163));
    let both = PathLoss::new(1_000, 10).after(PathLoss::new(1_000, 80));
    assert_eq!((both.settled(), both.lost()), (2_000, 90));
    let full = PathLoss::new(1_024, 0).after(many);
    assert_eq!((full.settled(), full.lost()), (PathLoss::MOST, 81), "the older half is gone");
    assert_eq!(PathLoss::new(PathLoss::MOST, 0).after(many).lost(), 0);
}

proptest! {
    #[test]
    fn keys_and_records_survive_as_bytes(
        address in any::<u128>(),
        ipv4 in any::<bool>(),
        bits in any::<u8>(),
        window in any::<u64>(),
        rtt in any::<u64>(),
        at in any::<u64>(),
        settled in any::<u32>(),
        lost in any::<u32>(),
    ) {
        let client: IpAddr =
            if ipv4 { Ipv4Addr::from_bits(address as u32).into() } else { Ipv6Addr::from_bits(address).into() };
        let key = PathKey::of(Scope::Prefix { ipv4: bits, ipv6: bits }, client);
        prop_assert_eq!(PathKey::from_bytes(&key.to_bytes()), Some(key));
        let sample = PathHistory {
            window: ByteCount::new(window),
            min_rtt: Duration::from_nanos(rtt),
            age: Duration::ZERO,
            continues: false,
            loss: PathLoss::new(settled, lost),
        };
        let record = PathRecord::after(None, Average::Moving, Duration::from_nanos(at), &sample);
        prop_assert_eq!(PathRecord::from_bytes(&record.to_bytes()), Some(record));
        prop_assert!(record.loss().lost() <= record.loss().settled());
        prop_assert!(record.loss().settled() <= PathLoss::MOST);
        let both = record.loss().after(PathLoss::new(lost, settled));
        prop_assert!(both.lost() <= both.settled() && both.settled() <= PathLoss::MOST);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..48)) {
        if let Some(record) = PathRecord::from_bytes(&bytes) {
            prop_assert!(record.window().as_f64() <= GREATEST_WINDOW);
        }
        let _ = PathKey::from_bytes(&bytes);
    }
}

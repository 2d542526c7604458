use posthaste_units::Rng;
use proptest::prelude::{any, prop, prop_assert, proptest};

use super::*;

const VERSION: u32 = 1;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(1_800_000_000 + seconds)
}

fn bearer(remote: &str, seconds: u64) -> Bearer {
    Bearer { at: at(seconds), remote: remote.parse().unwrap(), version: VERSION }
}

fn sealer() -> TokenSealer {
    TokenSealer::new(&[7; 32], TokenTimes::default())
}

fn id(byte: u8) -> ConnectionId {
    ConnectionId::new(&[byte; 8]).unwrap()
}

fn retry_token(remote: &str) -> Vec<u8> {
    sealer().for_retry(&bearer(remote, 0), &id(1), &id(2), &mut Rng::from_test_seed(1)).unwrap()
}

fn new_token(remote: &str, payload: &[u8]) -> Vec<u8> {
    sealer().for_next_time(&bearer(remote, 0), payload, &mut Rng::from_test_seed(1)).unwrap()
}

#[test]
fn a_retrys_token_is_good_for_address_and_port_id_version_and_time_that_it_was_made_for() {
    // spec: rfc9369 5 servers-tokens
    // spec: rfc9000 8.1.3 retry-token-not-kept
    let token = retry_token("192.0.2.1:1000");
    let open = |bearer: Bearer, destination| sealer().open(&token, &bearer, &destination);
    let good = Verdict::Retry { original: id(1) };
    assert_eq!(open(bearer("192.0.2.1:1000", 0), id(2)), good);
    assert_eq!(open(bearer("192.0.2.1:1000", 15), id(2)), good);
    assert_eq!(open(bearer("[::ffff:192.0.2.1]:1000", 1), id(2)), good, "the same address on another socket");
    for (remote, seconds, destination, why) in [
        ("192.0.2.1:1001", 0, id(2), "another port"),
        ("192.0.2.2:1000", 0, id(2), "another address"),
        ("192.0.2.1:1000", 16, id(2), "too late"),
        ("192.0.2.1:1000", 0, id(1), "another connection ID"),
    ] {
        assert_eq!(open(bearer(remote, seconds), destination), Verdict::BadRetry, "{why}");
    }
    let other_version = Bearer { version: 2, ..bearer("192.0.2.1:1000", 0) };
    assert_eq!(open(other_version, id(2)), Verdict::BadRetry);
    let before = Bearer { at: at(0).saturating_sub(Duration::from_nanos(1)), ..bearer("192.0.2.1:1000", 0) };
    assert_eq!(open(before, id(2)), Verdict::BadRetry, "made in the future");
}

#[test]
fn a_new_token_is_good_from_any_port_for_its_lifetime_and_carries_its_payload() {
    // spec: rfc9369 5 servers-tokens
    // spec: rfc9000 8.1.4 token-names-address
    let token = new_token("192.0.2.1:1000", b"what the path was like");
    let open = |remote: &str, seconds| sealer().open(&token, &bearer(remote, seconds), &id(9));
    for (remote, seconds) in [("192.0.2.1:1000", 0), ("192.0.2.1:9", 24 * 3600)] {
        let Verdict::Known { made_at, payload, .. } = open(remote, seconds) else {
            panic!("{remote} {seconds}")
        };
        assert_eq!((made_at, payload.as_slice()), (at(0), &b"what the path was like"[..]));
    }
    assert_eq!(open("192.0.2.2:1000", 0), Verdict::Void, "another address");
    assert_eq!(open("192.0.2.1:1000", 24 * 3600 + 1), Verdict::Void, "too late");
    let other_version = Bearer { version: 2, ..bearer("192.0.2.1:1000", 0) };
    assert_eq!(sealer().open(&token, &other_version, &id(9)), Verdict::Void, "another version's");
    let other = TokenSealer::new(&[8; 32], TokenTimes::default());
    assert_eq!(other.open(&token, &bearer("192.0.2.1:1000", 0), &id(9)), Verdict::Void, "another server's");
}

#[test]
fn the_key_changes_and_the_one_before_still_opens() {
    let times = TokenTimes {
        key_rotation: std::time::Duration::from_secs(3600),
        new_token: std::time::Duration::from_secs(100 * 3600),
        ..TokenTimes::default()
    };
    let sealer = TokenSealer::new(&[7; 32], times);
    let begin = 3600 - at(0).as_nanos() / 1_000_000_000 % 3600;
    let mut rng = Rng::from_test_seed(1);
    let made = bearer("192.0.2.1:1", begin + 1800);
    let token = sealer.for_next_time(&made, &[], &mut rng).unwrap();
    let later = sealer.for_next_time(&bearer("192.0.2.1:1", begin + 3600), &[], &mut rng).unwrap();
    assert_ne!(token[0], later[0], "another key");
    let is_good = |seconds| {
        matches!(sealer.open(&token, &bearer("192.0.2.1:1", seconds), &id(9)), Verdict::Known { .. })
    };
    assert!(is_good(begin + 1800) && is_good(begin + 3600) && is_good(begin + 1800 + 3600));
    assert!(!is_good(begin + 1800 + 3601), "no token outlives its key, whatever its lifetime is set to");
    // 128 rotations later the name of the key is the same, and the key is not.
    assert!(!is_good(begin + 1800 + 128 * 3600));
}

#[test]
fn payloads_are_cut_at_their_bound() {
    let token = new_token("192.0.2.1:1", &[5; 100]);
    let verdict = sealer().open(&token, &bearer("192.0.2.1:1", 0), &id(9));
    assert!(matches!(verdict, Verdict::Known { payload, .. } if payload == [5; 64]));
    assert!(token.len() < 200, "{} bytes", token.len());
}

#[test]
fn tokens_cut_or_changed_anywhere_are_worthless() {
    // spec: rfc9000 8.1.4 token-unguessable
    // spec: rfc9000 8.1.4 token-sealed
    for (token, worthless) in [
        (retry_token("192.0.2.1:1000"), Verdict::BadRetry),
        (new_token("192.0.2.1:1000", b"payload"), Verdict::Void),
    ] {
        let open = |token: &[u8]| sealer().open(token, &bearer("192.0.2.1:1000", 1), &id(2));
        for len in 1..token.len() {
            assert_eq!(open(&token[..len]), worthless, "{len} bytes");
        }
        for at in 1..token.len() {
            let mut forged = token.clone();
            forged[at] ^= 0x10;
            assert_eq!(open(&forged), worthless, "byte {at}");
        }
        // With the kind changed, or the key's name.
        for bit in 0..8 {
            let mut forged = token.clone();
            forged[0] ^= 1 << bit;
            assert!(matches!(open(&forged), Verdict::BadRetry | Verdict::Void), "bit {bit}");
        }
    }
    assert_eq!(sealer().open(&[], &bearer("192.0.2.1:1", 0), &id(2)), Verdict::Void);
}

proptest! {
    #[test]
    fn noise_is_never_a_token(noise in prop::collection::vec(any::<u8>(), 0..300)) {
        let verdict = sealer().open(&noise, &bearer("192.0.2.1:1", 0), &id(2));
        prop_assert!(matches!(verdict, Verdict::BadRetry | Verdict::Void));
    }
}

use posthaste_units::Duration;

use super::*;

fn id(number: u64) -> ConnectionId {
    ConnectionId::new(&number.to_be_bytes()).unwrap()
}

fn new_id(sequence: u64, retire_prior_to: u64) -> NewConnectionId {
    NewConnectionId {
        sequence,
        retire_prior_to,
        id: id(sequence),
        reset_token: ResetToken([sequence as u8; 16]),
    }
}

fn retirements(ids: &mut RemoteIds) -> Vec<u64> {
    std::iter::from_fn(|| {
        let next = ids.next_retirement();
        ids.on_retirement_sent();
        next
    })
    .collect()
}

#[test]
fn ids_are_issued_in_order_and_hold_until_they_are_retired() {
    // spec: rfc9000 5.1.1 sequence-rises-by-one, 5.1.1 issued-ids-work, 19.15 retires-earlier-only
    let mut ids = LocalIds::new(id(0));
    ids.set_peer_limit(3);
    for number in 1..=2 {
        assert!(ids.wants_more());
        ids.issue(id(number), ResetToken([7; 16]));
        let frame = ids.next_unsent().unwrap();
        assert_eq!((frame.sequence, frame.retire_prior_to, frame.id), (number, 0, id(number)));
        ids.on_sent();
    }
    assert!(!ids.wants_more() && ids.next_unsent().is_none());
    assert_eq!(ids.take_changes(), [RouteChange::Add(id(1)), RouteChange::Add(id(2))]);
    ids.retire(Time::ZERO, 1, &id(0)).unwrap();
    assert_eq!(ids.take_changes(), [RouteChange::Remove(id(1))]);
    assert_eq!(ids.all().collect::<Vec<_>>(), [id(0), id(2)]);
    ids.issue(id(3), ResetToken([3; 16]));
    assert_eq!(ids.next_unsent().map(|frame| frame.sequence), Some(3), "no number comes twice");
}

#[test]
fn moves_are_counted_against_the_ids_that_the_peer_has_left() {
    let mut ids = LocalIds::new(id(0));
    ids.set_peer_limit(3);
    ids.issue(id(1), ResetToken([1; 16]));
    ids.issue(id(2), ResetToken([2; 16]));
    ids.claim();
    assert!(ids.has_unclaimed());
    ids.claim();
    assert!(!ids.has_unclaimed(), "one for each of two moves, and the one from before");
    ids.retire(Time::ZERO, 0, &id(1)).unwrap();
    assert!(!ids.has_unclaimed(), "it is to be replaced first");
    ids.issue(id(3), ResetToken([3; 16]));
    assert!(ids.has_unclaimed());
    ids.claim();
    ids.release_claims();
    assert!(ids.has_unclaimed());
}

#[test]
fn a_peer_without_ids_gets_as_many_others_but_not_for_ever() {
    // spec: rfc9000 5.1.1 within-peers-id-limit, 19.15 retires-earlier-only
    let mut ids = LocalIds::new(id(0));
    let mut peer = RemoteIds::new(id(0));
    ids.set_peer_limit(limits::LOCAL_CONNECTION_IDS);
    let mut issued = 0;
    for _ in 0..100 {
        while ids.wants_more() {
            issued += 1;
            ids.issue(id(issued), ResetToken([issued as u8; 16]));
        }
        ids.replace_all();
    }
    assert_eq!(ids.all().count() as u64, limits::UNRETIRED_IDS);
    // The frames arrive the last first, and each twice: never more than the peer keeps, never less than one.
    let mut frames: Vec<_> = std::iter::from_fn(|| {
        let frame = ids.next_unsent();
        ids.on_sent();
        frame
    })
    .collect();
    frames.reverse();
    for frame in frames.iter().flat_map(|frame| [frame, frame]) {
        assert!(frame.retire_prior_to <= frame.sequence);
        peer.on_new(Time::ZERO, frame).unwrap();
    }
    assert!(peer.has_spare());
    let retired = retirements(&mut peer);
    assert_eq!(retired.len() as u64, limits::UNRETIRED_IDS - limits::LOCAL_CONNECTION_IDS);
    for sequence in retired {
        ids.retire(Time::ZERO, sequence, peer.current()).unwrap();
    }
    assert_eq!(ids.all().count() as u64, limits::LOCAL_CONNECTION_IDS);
}

#[test]
fn repeated_and_outdated_offers_are_no_errors() {
    // spec: rfc9000 19.15 repeats-tolerated, 19.15 lower-retirement-void, 19.15 late-id-retired
    let mut ids = RemoteIds::new(id(0));
    for frame in [new_id(2, 0), new_id(2, 0), new_id(3, 2), new_id(3, 2), new_id(2, 0)] {
        ids.on_new(Time::ZERO, &frame).unwrap();
    }
    assert_eq!(retirements(&mut ids), [0]);
    ids.on_new(Time::ZERO, &new_id(4, 1)).unwrap();
    assert_eq!(retirements(&mut ids), [] as [u64; 0], "a lower number retires nothing and revives nothing");
    ids.on_new(Time::ZERO, &new_id(1, 0)).unwrap();
    assert_eq!(retirements(&mut ids), [1], "it comes too late");
    ids.on_new(Time::ZERO, &new_id(1, 0)).unwrap();
    assert_eq!(retirements(&mut ids), [] as [u64; 0], "once is enough");
    assert_eq!(*ids.current(), id(2));
}

#[test]
fn an_id_is_no_longer_sent_to_once_it_is_to_be_retired() {
    // spec: rfc9000 19.16 not-the-one-in-use, 5.1.2 retirement-obeyed, 5.1.2 none-forgotten
    let mut ids = RemoteIds::new(id(0));
    ids.on_new(Time::ZERO, &new_id(1, 0)).unwrap();
    let lent = ids.lend().unwrap();
    ids.on_new(Time::ZERO, &new_id(2, 2)).unwrap();
    assert_eq!(*ids.current(), id(2));
    assert_eq!(ids.lent(lent), None);
    let mut retired = retirements(&mut ids);
    retired.sort_unstable();
    assert_eq!(retired, [0, 1]);
}

#[test]
fn a_late_copy_of_an_offer_does_not_bring_a_retired_id_back() {
    // spec: rfc9000 5.1.2 retirement-obeyed, 19.15 repeats-tolerated
    let mut ids = RemoteIds::new(id(0));
    for round in 1..1000 {
        ids.on_new(Time::ZERO + Duration::from_secs(round), &new_id(round, 0)).unwrap();
        let lent = ids.lend().unwrap();
        ids.give_back(lent);
        assert_eq!(retirements(&mut ids), [round]);
        ids.on_retirement_acked();
        ids.on_new(Time::ZERO + Duration::from_secs(round), &new_id(round, 0)).unwrap();
        assert!(!ids.has_spare() && ids.next_retirement().is_none());
        assert!(ids.retired.len() <= limits::REMEMBERED_RETIREMENTS);
    }
}

#[test]
fn a_peer_with_the_empty_id_has_no_other() {
    // spec: rfc9000 19.15 from-empty-id-closes
    let mut ids = RemoteIds::new(ConnectionId::EMPTY);
    let error = ids.on_new(Time::ZERO, &new_id(1, 0)).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
}

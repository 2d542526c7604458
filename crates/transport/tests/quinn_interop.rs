//! Our client against quinn-proto's server, and our server against its client: in memory, in virtual time, over clean
//! and poor links. TLS is the default one, post-quantum key share included.

#[path = "support/quinn.rs"]
mod quinn;

use std::collections::{BTreeMap, BTreeSet};

use crate::support::Link;
use crate::support::transfer::{Readers, Writers, pattern_bytes};
use bytes::Bytes;
use posthaste_transport::{
    CloseReason, Direction, EcnCodepoint, Event, Side, StreamId, TransportConfig, WhenFull,
};
use posthaste_units::{ByteCount, Duration};
use quinn::{Mixed, Who};
use quinn_proto::{ConnectionError, Dir, VarInt};

const BOTH: [Who; 2] = [Who::Ours, Who::Quinns];

const BAD: Link = Link {
    loss: 0.05,
    reorder: 0.05,
    duplicate: 0.03,
    corrupt: 0.01,
    delay: Duration::from_millis(10),
    ..Link::CLEAN
};

fn to_quinn(id: StreamId) -> quinn_proto::StreamId {
    VarInt::from_u64(id.to_wire()).expect("small").into()
}

fn from_quinn(id: quinn_proto::StreamId) -> StreamId {
    StreamId::from_wire(VarInt::from(id).into_inner())
}

/// Quinn's side of transfers: writes and reads the same patterns as [`Writers`] and [`Readers`].
#[derive(Default)]
struct QuinnStreams {
    writing: BTreeMap<quinn_proto::StreamId, (u64, u64)>,
    reading: BTreeMap<quinn_proto::StreamId, u64>,
    finished: BTreeMap<StreamId, u64>,
}

impl QuinnStreams {
    fn pump(&mut self, connection: &mut quinn_proto::Connection) {
        for direction in [Dir::Bi, Dir::Uni] {
            while let Some(id) = connection.streams().accept(direction) {
                self.reading.insert(id, 0);
            }
        }
        self.writing.retain(|id, (written, len)| {
            let mut stream = connection.send_stream(*id);
            while written < len {
                let chunk = pattern_bytes(from_quinn(*id), *written, (*written + 4096).min(*len));
                match stream.write(&chunk) {
                    Ok(taken) => *written += taken as u64,
                    Err(quinn_proto::WriteError::Blocked) => return true,
                    Err(error) => panic!("{id}: {error}"),
                }
            }
            stream.finish().expect("not ended before");
            false
        });
        let finished = &mut self.finished;
        self.reading.retain(|id, offset| {
            let mut stream = connection.recv_stream(*id);
            let mut chunks = stream.read(true).expect("readable");
            let is_open = loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => {
                        let end = *offset + chunk.bytes.len() as u64;
                        assert_eq!(chunk.bytes, pattern_bytes(from_quinn(*id), *offset, end), "{id}");
                        *offset = end;
                    }
                    Ok(None) => {
                        finished.insert(from_quinn(*id), *offset);
                        break false;
                    }
                    Err(quinn_proto::ReadError::Blocked) => break true,
                    Err(error) => panic!("{id}: {error}"),
                }
            };
            let _ = chunks.finalize();
            is_open
        });
    }
}

/// We open `streams` and send `up` bytes on each; quinn answers with `down` bytes on each.
fn transfer(mixed: &mut Mixed, streams: u64, up: u64, down: u64, mut each_step: impl FnMut(&mut Mixed)) {
    mixed.establish();
    let (mut writers, mut readers) = (Writers::default(), Readers::default());
    let mut theirs = QuinnStreams::default();
    let mut opened = 0;
    let mut answered = BTreeSet::new();
    mixed.run_until(|mixed| {
        while opened < streams {
            let Ok(id) = mixed.ours().open(Direction::Bidirectional) else { break };
            writers.add(id, up);
            readers.add(id);
            opened += 1;
        }
        writers.pump(mixed.ours());
        theirs.pump(mixed.theirs());
        for id in theirs.finished.keys() {
            if answered.insert(*id) {
                theirs.writing.insert(to_quinn(*id), (0, down));
            }
        }
        theirs.pump(mixed.theirs());
        let now = mixed.now;
        readers.pump(now, mixed.ours(), usize::MAX);
        each_step(mixed);
        readers.finished.len() as u64 == streams
    });
    assert!(theirs.finished.values().all(|len| *len == up));
    assert!(readers.finished.values().all(|len| *len == down));
    assert_eq!(mixed.quinn.lost, [], "quinn has nothing to complain of");
    assert!(!mixed.ours().is_closed());
}

#[test]
fn the_handshake_completes_with_a_post_quantum_client_hello_of_two_datagrams() {
    for client in BOTH {
        let mut mixed = Mixed::new(1, client);
        mixed.establish();
        assert_eq!(mixed.now.as_nanos() / 1_000_000, if client == Who::Ours { 40 } else { 30 }, "{client:?}");
        let side = if client == Who::Ours { Side::Client } else { Side::Server };
        assert_eq!(mixed.ours().side(), side);
        assert_eq!(mixed.ours().alpn(), Some(crate::support::tls::ALPN));
        assert!(!mixed.theirs().is_handshaking());
        let hello = mixed.sent.iter().take_while(|(who, _)| *who == client).count();
        assert_eq!(hello, 2, "the ClientHello takes two datagrams");
        assert_eq!(mixed.ours().stats().probe_timeouts, 0);
    }
}

#[test]
fn the_handshake_completes_over_bad_links() {
    // spec: rfc9001 4 resent-under-same-keys, 4.9 crypto-at-its-level
    let worse = Link { loss: 0.2, reorder: 0.3, duplicate: 0.1, corrupt: 0.05, ..BAD };
    for client in BOTH {
        for seed in 0..30 {
            let mut mixed = Mixed::new(seed, client);
            (mixed.there, mixed.back) = (worse, worse);
            mixed.establish();
        }
    }
}

#[test]
fn ten_megabytes_up_and_down() {
    // spec: rfc9001 5.2 initial-by-hkdf-label, 8.2 parameters-sent, rfc9000 7.2 server-takes-first-id
    // spec: rfc9000 7.2 client-renames-once
    for client in BOTH {
        let mut mixed = Mixed::new(2, client);
        transfer(&mut mixed, 1, 10_000_000, 10_000_000, |_| {});
        assert_eq!(mixed.ours().stats().packets_lost, 0);
    }
}

#[test]
fn ten_megabytes_up_and_down_over_bad_links() {
    for client in BOTH {
        let mut mixed = Mixed::new(3, client);
        (mixed.there, mixed.back) = (BAD, BAD);
        transfer(&mut mixed, 4, 2_500_000, 2_500_000, |_| {});
        assert!(mixed.ours().stats().packets_lost > 100, "the links are bad");
    }
}

#[test]
fn a_peer_without_codes_gets_none_and_takes_the_parameter() {
    let profile = posthaste_schemes::named("mobile").expect("a profile");
    assert!(profile.repair().codes());
    for client in BOTH {
        let ours = TransportConfig { profile: profile.clone(), ..crate::support::defaults() };
        let mut mixed = Mixed::with_transport(5, client, ours);
        (mixed.there, mixed.back) = (BAD, BAD);
        transfer(&mut mixed, 2, 100_000, 100_000, |_| {});
        let stats = mixed.ours().stats();
        assert!(stats.packets_lost > 0 && stats.packets_copied > 0, "copies take the place of the code");
        assert_eq!((stats.packets_coded, stats.bytes_restored.get()), (0, 0));
    }
}

#[test]
fn hundreds_of_streams() {
    for client in BOTH {
        let mut mixed = Mixed::new(4, client);
        mixed.back.loss = 0.02;
        // More than quinn permits at once (100): its MAX_STREAMS must reach us.
        transfer(&mut mixed, 300, 10_000, 20_000, |_| {});
        mixed.run_until(|mixed| mixed.ours().open_streams() == 0);
    }
}

#[test]
fn streams_that_quinn_opens() {
    for client in BOTH {
        let mut mixed = Mixed::new(5, client);
        (mixed.there, mixed.back) = (BAD, BAD);
        mixed.establish();
        let mut theirs = QuinnStreams::default();
        for _ in 0..30 {
            let id = mixed.theirs().streams().open(Dir::Uni).expect("a stream");
            theirs.writing.insert(id, (0, 30_000));
        }
        let mut readers = Readers::default();
        mixed.run_until(|mixed| {
            theirs.pump(mixed.theirs());
            let now = mixed.now;
            readers.pump(now, mixed.ours(), 3000);
            readers.finished.len() == 30
        });
        assert!(readers.finished.values().all(|len| *len == 30_000));
    }
}

#[test]
fn keys_are_updated_by_quinn_and_by_us_while_data_flow() {
    for client in BOTH {
        for seed in 6..9 {
            let mut mixed = Mixed::new(seed, client);
            (mixed.there.loss, mixed.back.loss, mixed.there.reorder) = (0.02, 0.02, 0.05);
            let mut step = 0_u64;
            transfer(&mut mixed, 2, 2_000_000, 2_000_000, |mixed| {
                step += 1;
                if step.is_multiple_of(50) {
                    mixed.theirs().force_key_update();
                }
                if step.is_multiple_of(70) {
                    let _ = mixed.ours().update_keys();
                }
            });
            assert!(mixed.ours().key_updates() >= 3, "{}", mixed.ours().key_updates());
        }
    }
}

#[test]
fn marks_reach_the_sender_and_both_ends_validate_ecn() {
    // spec: rfc9000 13.4.1 marks-reported
    for client in BOTH {
        let mut mixed = Mixed::new(10, client);
        (mixed.there.mark, mixed.back.mark) = (0.02, 0.02);
        transfer(&mut mixed, 1, 3_000_000, 3_000_000, |_| {});
        for who in BOTH {
            let of = |ecn| mixed.sent.iter().filter(|sent| **sent == (who, ecn)).count();
            let (marked, bare) = (of(Some(EcnCodepoint::Ect0)), of(None));
            assert!(marked > 10 * bare.max(1), "{who:?}: {marked} with ECT(0), {bare} without");
        }
        let events = mixed.theirs().stats().path.congestion_events;
        assert!(events > 0, "our ACKs tell quinn of its marks");
        assert_eq!(mixed.ours().stats().packets_lost, 0);
        let window = mixed.ours().stats().congestion.window;
        assert!(window < ByteCount::new(3_000_000), "quinn's ACKs tell us of ours: {window:?}");
    }
}

#[test]
fn an_application_close_carries_its_code_and_reason_both_ways() {
    for client in BOTH {
        let mut mixed = Mixed::new(11, client);
        mixed.establish();
        let now = mixed.now;
        mixed.ours().close(now, 77, Bytes::from_static(b"enough"));
        mixed.run_until(|mixed| !mixed.quinn.lost.is_empty());
        let ConnectionError::ApplicationClosed(close) = &mixed.quinn.lost[0] else {
            panic!("{:?}", mixed.quinn.lost)
        };
        assert_eq!((close.error_code.into_inner(), &close.reason[..]), (77, &b"enough"[..]));
        mixed.run_until(|mixed| mixed.ours.connections() == 0 && mixed.quinn.connections.is_empty());

        let mut mixed = Mixed::new(12, client);
        mixed.establish();
        let at = mixed.now;
        let instant = mixed.instant();
        mixed.theirs().close(instant, VarInt::from_u32(78), Bytes::from_static(b"bye"));
        mixed.run_until(|mixed| mixed.ours.connections() == 0 && mixed.quinn.connections.is_empty());
        let expected = CloseReason::PeerApplication { error_code: 78, reason: Bytes::from_static(b"bye") };
        assert!(mixed.events.contains(&Event::Closed(expected)), "{:?}", mixed.events);
        assert!(mixed.now.since(at) < Duration::from_secs(5));
    }
}

#[test]
fn resets_and_stops_pass_both_ways() {
    // spec: rfc9000 3.5 stop-answered-by-reset
    for client in BOTH {
        let mut mixed = Mixed::new(13, client);
        mixed.establish();
        // We open, write and reset; quinn answers by stopping another stream of ours.
        let reset = mixed.ours().open(Direction::Unidirectional).expect("a stream");
        let stopped = mixed.ours().open(Direction::Unidirectional).expect("a stream");
        for id in [reset, stopped] {
            let mut data = pattern_bytes(id, 0, 100_000);
            let _ = mixed.ours().write(id, &mut data).expect("an open stream");
        }
        mixed.run_until(|mixed| {
            let mut accepted = 0;
            while mixed.theirs().streams().accept(Dir::Uni).is_some() {
                accepted += 1;
            }
            accepted > 0
        });
        mixed.ours().reset(reset, 5).expect("an open stream");
        mixed.theirs().recv_stream(to_quinn(stopped)).stop(VarInt::from_u32(6)).expect("an open stream");
        mixed.run_until(|mixed| {
            let stop = posthaste_transport::StreamEvent::Stopped { id: stopped, error_code: 6 };
            mixed.events.contains(&Event::Stream(stop))
        });
        mixed.run_until(|mixed| {
            let mut stream = mixed.theirs().recv_stream(to_quinn(reset));
            let mut chunks = stream.read(true).expect("readable");
            let code = loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("the stream was reset"),
                    Err(quinn_proto::ReadError::Reset(code)) => break Some(code.into_inner()),
                    Err(quinn_proto::ReadError::Blocked) => break None,
                }
            };
            let _ = chunks.finalize();
            assert!(code.is_none_or(|code| code == 5));
            code.is_some()
        });
        mixed.run_until(|mixed| mixed.ours().open_streams() == 0);
    }
}

#[test]
fn an_idle_connection_ends_at_both_ends() {
    for client in BOTH {
        let mut mixed = Mixed::new(14, client);
        mixed.establish();
        mixed.run_until(|mixed| mixed.ours.connections() == 0 && mixed.quinn.connections.is_empty());
        assert!(mixed.events.contains(&Event::Closed(CloseReason::IdleTimeout)), "{:?}", mixed.events);
        assert_eq!(mixed.quinn.lost, [ConnectionError::TimedOut]);
        assert!(!mixed.step(), "no timer is left");
    }
}

#[test]
fn a_retry_of_either_is_answered_by_the_other() {
    for client in BOTH {
        for seed in 0..20 {
            let mut mixed = Mixed::with_retry(seed, client, true);
            if seed > 0 {
                (mixed.there, mixed.back) = (BAD, BAD);
            }
            transfer(&mut mixed, 1, 10_000, 10_000, |_| {});
            let retries = if client == Who::Ours {
                mixed.quinn.retries_sent
            } else {
                mixed.ours.stats().retries_sent as usize
            };
            assert!(retries >= 1, "{client:?} {seed}");
            // The ClientHello takes two datagrams, each of which is answered.
            assert!(seed > 0 || retries <= 2, "{retries}");
            assert_eq!(mixed.ours.stats().invalid_tokens, 0);
        }
    }
}

#[test]
fn quinn_comes_back_with_our_token_and_needs_no_retry() {
    let mut mixed = Mixed::with_retry(1, Who::Quinns, true);
    for visit in 0..3 {
        mixed.establish();
        // At first, one for each datagram of the ClientHello.
        assert_eq!(mixed.ours.stats().retries_sent, 2, "visit {visit}");
        mixed.run_for(Duration::from_millis(200));
        mixed.part(Who::Quinns);
        mixed.connect(Who::Quinns);
    }
    let stats = mixed.ours.stats();
    assert_eq!((stats.retries_sent, stats.validated_by_token), (2, 3));
}

#[test]
fn early_data_of_our_client_are_read_by_quinn() {
    for has_retry in [false, true] {
        let mut mixed = Mixed::with_retry(1, Who::Ours, has_retry);
        mixed.establish();
        mixed.run_for(Duration::from_millis(200));
        mixed.part(Who::Ours);
        mixed.connect(Who::Ours);
        assert!(mixed.ours().may_send_early());
        let (mut writers, mut theirs) = (Writers::default(), QuinnStreams::default());
        let id = mixed.ours().open(Direction::Bidirectional).expect("streams were permitted last time");
        writers.add(id, 20_000);
        let begun = mixed.now;
        let mut first_at = None;
        mixed.run_until(|mixed| {
            writers.pump(mixed.ours());
            if !mixed.quinn.connections.is_empty() {
                theirs.pump(mixed.theirs());
            }
            if !theirs.reading.is_empty() {
                first_at.get_or_insert(mixed.now);
            }
            theirs.finished.contains_key(&id)
        });
        assert!(mixed.events.contains(&Event::EarlyDataAccepted), "{:?}", mixed.events);
        assert!(!mixed.events.contains(&Event::EarlyDataRejected));
        let first = first_at.expect("it was read").since(begun);
        assert_eq!(first, Duration::from_millis(if has_retry { 30 } else { 10 }));
        assert_eq!(mixed.ours().stats().packets_lost, 0);
    }
}

#[test]
fn early_data_of_quinn_are_read_by_us() {
    for has_retry in [false, true] {
        let mut mixed = Mixed::with_retry(1, Who::Quinns, has_retry);
        mixed.establish();
        mixed.run_for(Duration::from_millis(200));
        mixed.part(Who::Quinns);
        mixed.connect(Who::Quinns);
        assert!(mixed.theirs().has_0rtt());
        let mut theirs = QuinnStreams::default();
        let id = mixed.theirs().streams().open(Dir::Bi).expect("streams were permitted last time");
        theirs.writing.insert(id, (0, 20_000));
        let begun = mixed.now;
        let mut readers = Readers::default();
        let mut first_at = None;
        mixed.run_until(|mixed| {
            theirs.pump(mixed.theirs());
            if mixed.our_handle.is_some() {
                let now = mixed.now;
                readers.pump(now, mixed.ours(), usize::MAX);
            }
            if !readers.open.is_empty() {
                first_at.get_or_insert(mixed.now);
            }
            readers.finished.contains_key(&from_quinn(id))
        });
        assert!(mixed.events.contains(&Event::EarlyDataAccepted), "{:?}", mixed.events);
        mixed.run_until(|mixed| mixed.is_connected());
        assert!(mixed.theirs().accepted_0rtt());
        // It has our token, so that even a server that asks for one does not cost it a round trip.
        assert_eq!(first_at.expect("it was read").since(begun), Duration::from_millis(10));
    }
}

#[test]
fn datagrams_go_both_ways() {
    let config = TransportConfig { max_datagram_frame_size: 65_535, ..crate::support::defaults() };
    for client in BOTH {
        let mut mixed = Mixed::with_transport(9, client, config.clone());
        mixed.establish();
        let ours = mixed.ours().max_datagram_size().expect("quinn takes datagrams");
        let theirs = mixed.theirs().datagrams().max_size().expect("we take datagrams");
        for len in [0, 1, 100, 1_000] {
            let up = Bytes::from(vec![3; len]);
            mixed.ours().send_datagram(up.clone(), WhenFull::Refuse).expect("there is room");
            mixed.theirs().datagrams().send(Bytes::from(vec![4; len]), false).expect("there is room");
            let (mut at_theirs, mut at_ours) = (None, None);
            mixed.run_until(|mixed| {
                at_theirs = at_theirs.take().or_else(|| mixed.theirs().datagrams().recv());
                at_ours = at_ours.take().or_else(|| mixed.ours().receive_datagram());
                at_theirs.is_some() && at_ours.is_some()
            });
            assert_eq!((at_theirs, at_ours), (Some(up), Some(Bytes::from(vec![4; len]))));
        }
        assert!(ours > 1_150 && theirs > 1_150, "{ours} {theirs}");
        let largest = Bytes::from(vec![5; ours]);
        mixed.ours().send_datagram(largest.clone(), WhenFull::Refuse).expect("there is room");
        let mut got = None;
        mixed.run_until(|mixed| {
            got = mixed.theirs().datagrams().recv();
            got.is_some()
        });
        assert_eq!(got, Some(largest));
    }
}

#[test]
fn quinn_sends_no_datagrams_where_none_were_announced() {
    let mut mixed = Mixed::with_transport(10, Who::Quinns, crate::support::defaults());
    mixed.establish();
    assert_eq!(mixed.theirs().datagrams().max_size(), None, "we have announced none");
}

//! What tasks do with an endpoint, and what must come of it in every order.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use posthaste_endpoint::tls;
use posthaste_transport::{ClientConfig, DatagramInfo, Misplaced, ServerConfig, TransportConfig};
use posthaste_units::ByteCount;
use rustls::RootCertStore;
use rustls::pki_types::PrivateKeyDer;
use shuttle::future::{JoinHandle, block_on, spawn};
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, MaxSteps, Runner};

use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::error::{ReadError, WriteError};
use crate::stream::{RecvStream, SendStream};
use crate::workers::Seat;
use crate::workers::mailbox::Mailbox;
use crate::{clock, network};

/// Schedules drawn for each scene; another number by the environment variable `SCHEDULES`.
const SCHEDULES: usize = 150;
/// Decisions of one schedule at most: a hundred times what a scene needs.
const MAX_STEPS: usize = 1_000_000;
/// Of a task. A handshake needs more than shuttle's default.
const STACK: usize = 1 << 20;
/// Streams that a peer may have open at once: fewer than are wanted.
const STREAMS: u64 = 2;
/// Bytes that a stream takes before it makes writers wait.
const UNSENT: u64 = 4_000;
/// Bytes of a message: several times that.
pub(crate) const MESSAGE: usize = 20_000;

pub(crate) const SERVER: ([u8; 4], u16) = ([127, 0, 0, 1], 443);

/// TLS identities, which every schedule uses again.
static TLS: LazyLock<(Arc<rustls::ServerConfig>, Arc<rustls::ClientConfig>)> = LazyLock::new(|| {
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(identity.cert.der().clone()).unwrap();
    let key: PrivateKeyDer<'static> = identity.signing_key.serialize_der().try_into().unwrap();
    let server = tls::server_config(vec![identity.cert.into()], key, &[b"test"]).unwrap();
    (server, tls::client_config_with_roots(roots, &[b"test"]).unwrap())
});

/// Runs a scene under many schedules. The seed is the scene's number, so that a failure comes again.
pub(crate) fn explore<F: Future<Output = ()> + 'static>(
    seed: u64,
    scene: impl Fn() -> F + Send + Sync + 'static,
) {
    LazyLock::force(&TLS);
    let mut config = Config::new();
    (config.stack_size, config.max_steps) = (STACK, MaxSteps::FailAfter(MAX_STEPS));
    let schedules = std::env::var("SCHEDULES").ok().map_or(SCHEDULES, |number| number.parse().unwrap());
    Runner::new(RandomScheduler::new_from_seed(seed, schedules), config).run(move || {
        clock::reset();
        block_on(scene());
        network::reset();
    });
}

/// Little credit, and an acknowledgement for each packet: none waits for a timer.
const PROFILE: &str = r#"
[start.initial]
[slow_start.classic]
[congestion.newreno]
[silence.collapse]
[credit.stream.autotune]
initial = "6 KiB"
maximum = "6 KiB"
[credit.connection.autotune]
initial = "10 KiB"
maximum = "10 KiB"
[ack.standard]
packets = 1
max_ack_delay = "25 ms"
"#;

fn transport() -> TransportConfig {
    let profile = posthaste_schemes::from_toml("schedules", PROFILE).unwrap();
    TransportConfig {
        max_concurrent_bidi_streams: STREAMS,
        unsent_limit: ByteCount::new(UNSENT),
        max_datagram_frame_size: 1_000,
        mtu_discovery: false,
        ..TransportConfig::new(profile)
    }
}

pub(crate) struct Pair {
    pub(crate) server: Endpoint,
    pub(crate) client: Endpoint,
    pub(crate) config: ClientConfig,
}

impl Pair {
    pub(crate) fn new() -> Self {
        let server = ServerConfig::new(Arc::clone(&TLS.0), transport());
        Self {
            server: Endpoint::server(SERVER.into(), server).unwrap(),
            client: Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 5_000))).unwrap(),
            config: ClientConfig::new(Arc::clone(&TLS.1), transport()),
        }
    }

    pub(crate) async fn connect(&self) -> Connection {
        self.client.connect(&self.config, SERVER.into(), "localhost").await.unwrap()
    }

    /// Waits until both endpoints have nothing left to do.
    pub(crate) async fn rest(&self) {
        self.client.wait_idle().await;
        self.server.wait_idle().await;
    }

    /// A connection's two ends.
    pub(crate) async fn both(&self) -> (Connection, Connection) {
        let server = self.server.clone();
        let accepting = spawn(async move { server.accept().await.unwrap() });
        let client = self.connect().await;
        (client, accepting.await.unwrap())
    }
}

pub(crate) async fn join<T>(tasks: impl IntoIterator<Item = JoinHandle<T>>) -> Vec<T> {
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}

pub(crate) fn message(seed: usize) -> Vec<u8> {
    (0..MESSAGE).map(|index| (index * 7 + seed) as u8).collect()
}

async fn echo(mut send: SendStream, mut recv: RecvStream) {
    while let Some(chunk) = recv.read_chunk(usize::MAX).await.unwrap() {
        send.write_bytes(chunk).await.unwrap();
    }
    send.finish();
}

#[test]
fn more_streams_than_are_permitted_carry_their_messages_both_ways() {
    explore(1, || async {
        let pair = Pair::new();
        let (client, server) = pair.both().await;
        let serving = spawn(async move {
            while let Ok((send, recv)) = server.accept_bi().await {
                drop(spawn(echo(send, recv)));
            }
            server.closed().await;
        });
        let exchanges = (0..5).map(|seed| {
            let client = client.clone();
            spawn(async move {
                let (mut send, mut recv) = client.open_bi().await.unwrap();
                let writing = spawn(async move {
                    send.write_all(&message(seed)).await.unwrap();
                    send.finish();
                });
                assert!(recv.read_to_end(MESSAGE).await.unwrap() == message(seed));
                writing.await.unwrap();
            })
        });
        join(exchanges.collect::<Vec<_>>()).await;
        client.close(0, b"");
        serving.await.unwrap();
        pair.rest().await;
    });
}

#[test]
fn every_wait_ends_with_the_connection() {
    explore(2, || async {
        let pair = Pair::new();
        let (client, server) = pair.both().await;
        let mut open = Vec::new();
        for _ in 0..STREAMS {
            open.push(client.open_bi().await.unwrap());
        }
        let (mut send, mut recv) = open.pop().unwrap();
        let mut waits = Vec::new();
        for end in [client.clone(), server.clone()] {
            let (bidi, uni, datagrams) = (end.clone(), end.clone(), end.clone());
            waits.push(spawn(async move { while bidi.accept_bi().await.is_ok() {} }));
            waits.push(spawn(async move { assert!(uni.accept_uni().await.is_err()) }));
            waits.push(spawn(async move { assert!(datagrams.receive_datagram().await.is_err()) }));
            waits.push(spawn(async move { drop(end.closed().await) }));
        }
        let (stopped, acknowledged) = (send.stopped(), send.acknowledged());
        waits.push(spawn(async move { assert!(stopped.await.is_err()) }));
        waits.push(spawn(async move { assert!(acknowledged.await.is_err()) }));
        waits.push(spawn(async move { while send.write(&[1; 1_000]).await.is_ok() {} }));
        waits.push(spawn(async move { assert!(recv.read_chunk(1).await.is_err()) }));
        let opening = client.clone();
        waits.push(spawn(async move { assert!(opening.open_bi().await.is_err()) }));
        match thread_rng().gen_range(0..4) {
            0 => client.close(7, b""),
            1 => server.close(7, b""),
            2 => pair.server.close(7, b""),
            _ => pair.client.close(7, b""),
        }
        join(waits).await;
        pair.rest().await;
    });
}

#[test]
fn halves_that_are_dropped_end_their_peers() {
    explore(3, || async {
        let pair = Pair::new();
        let (client, server) = pair.both().await;
        let serving = spawn(async move {
            // A reader that leaves, one that is told that the rest does not come, and one that reads to the end.
            let (_, mut left) = server.accept_bi().await.unwrap();
            left.read_chunk(10).await.unwrap();
            drop(left);
            let mut reset = server.accept_uni().await.unwrap();
            let outcome = loop {
                match reset.read_chunk(usize::MAX).await {
                    Ok(Some(_)) => {}
                    outcome => break outcome,
                }
            };
            assert!(matches!(outcome, Err(ReadError::Reset(9))), "{outcome:?}");
            let mut whole = server.accept_uni().await.unwrap();
            assert_eq!(whole.read_to_end(MESSAGE).await.unwrap(), message(3));
            server
        });
        let (mut send, unread) = client.open_bi().await.unwrap();
        let stopped = send.stopped();
        let writing = spawn(async move {
            loop {
                if let Err(error) = send.write_all(&message(1)).await {
                    assert!(matches!(error, WriteError::Stopped(0)), "{error:?}");
                    return;
                }
            }
        });
        assert_eq!(stopped.await.unwrap(), Some(0));
        writing.await.unwrap();
        let mut reset = client.open_uni().await.unwrap();
        reset.write_all(&message(2)).await.unwrap();
        reset.reset(9);
        let mut whole = client.open_uni().await.unwrap();
        whole.write_all(&message(3)).await.unwrap();
        drop(whole);
        let server = serving.await.unwrap();
        // The last handle of a connection closes it.
        drop((reset, client, unread));
        server.closed().await;
        pair.rest().await;
    });
}

#[test]
fn whoever_accepts_gets_one_also_when_others_give_up() {
    explore(4, || async {
        let pair = Pair::new();
        let (client, server) = pair.both().await;
        // Five tasks wait for the same streams, and one of them gives up at some moment.
        let waits = (0..5).map(|_| {
            let server = server.clone();
            spawn(async move { server.accept_uni().await.map(drop) })
        });
        let waits = waits.collect::<Vec<_>>();
        waits[0].abort();
        for _ in 0..5 {
            client.open_uni().await.unwrap().finish();
        }
        for (index, wait) in waits.into_iter().enumerate() {
            let outcome = wait.await;
            assert!(index == 0 || outcome.is_ok_and(|accepted| accepted.is_ok()));
        }
        // The same for connections; `close` tells those who wait that there will be none.
        let accepting = (0..3).map(|_| {
            let server = pair.server.clone();
            spawn(async move { server.accept().await.map(drop).is_some() })
        });
        let accepting = accepting.collect::<Vec<_>>();
        let others = [pair.connect().await, pair.connect().await];
        pair.server.close(0, b"");
        let accepted = join(accepting).await.into_iter().filter(|accepted| *accepted).count();
        assert!(accepted <= 2);
        join(others.map(|other| spawn(async move { drop(other.closed().await) }))).await;
    });
}

#[test]
fn messages_wait_for_room_and_arrive() {
    explore(5, || async {
        let pair = Pair::new();
        let (client, server) = pair.both().await;
        let sending = (0..3).map(|task: u8| {
            let client = client.clone();
            spawn(async move {
                for number in 0..10 {
                    let content = [&[task, number][..], &[0; 700]].concat();
                    client.send_datagram_wait(Bytes::from(content)).await.unwrap();
                }
            })
        });
        let sending = sending.collect::<Vec<_>>();
        let mut next = [0; 3];
        for _ in 0..30 {
            let received = server.receive_datagram().await.unwrap();
            let task = usize::from(received[0]);
            assert_eq!(received[1], next[task], "those of a task in their order");
            next[task] += 1;
        }
        join(sending).await;
    });
}

#[test]
fn what_is_passed_on_to_another_endpoint_wakes_it() {
    explore(6, || async {
        let mailboxes: Arc<[Mailbox]> = (0..2).map(|_| Mailbox::default()).collect();
        let putting = (0..3).map(|byte: u8| {
            let seat = Seat::among(Arc::clone(&mailboxes), 0);
            spawn(async move {
                let info = DatagramInfo { remote: SERVER.into(), local_ip: None, ecn: None };
                for _ in 0..4 {
                    seat.pass_on(&info, &Misplaced { owner: 1, data: vec![byte].as_slice().into() });
                }
            })
        });
        let putting = putting.collect::<Vec<_>>();
        let (seat, mut taken) = (Seat::among(mailboxes, 1), 0);
        std::future::poll_fn(|cx| {
            loop {
                taken += seat.take().len();
                if taken == 12 {
                    return std::task::Poll::Ready(());
                }
                if !seat.wait(cx.waker()) {
                    return std::task::Poll::Pending;
                }
            }
        })
        .await;
        join(putting).await;
    });
}

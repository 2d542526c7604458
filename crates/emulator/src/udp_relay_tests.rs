use std::net::Ipv4Addr;
use std::time::Duration;

use posthaste_path::{Bottleneck, Discipline, RateModel, Reordering};
use posthaste_units::{ByteCount, Rate};
use tokio::net::UdpSocket;
use tokio::time::Instant;

use super::*;

const PATIENCE: Duration = Duration::from_secs(10);

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

async fn socket() -> UdpSocket {
    UdpSocket::bind(loopback()).await.expect("a loopback port")
}

async fn relay_to(server: &UdpSocket, change: impl FnOnce(&mut RelayConfig)) -> UdpRelay {
    let mut config = RelayConfig {
        listen: loopback(),
        upstream: server.local_addr().expect("bound"),
        down: PathConfig::default(),
        up: PathConfig::default(),
        seed: 1,
        max_clients: 8,
    };
    change(&mut config);
    UdpRelay::start(config).await.expect("a loopback port")
}

async fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = [0; 2048];
    let (length, from) = tokio::time::timeout(PATIENCE, socket.recv_from(&mut buffer))
        .await
        .expect("in time")
        .expect("received");
    (buffer[..length].to_vec(), from)
}

/// Waits until `done` holds for the relay's counts.
async fn counts(relay: &UdpRelay, done: impl Fn(&RelayStats) -> bool) -> RelayStats {
    let wait = async {
        while !done(&relay.stats()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let _ = tokio::time::timeout(PATIENCE, wait).await;
    relay.stats()
}

#[tokio::test]
async fn both_directions_pass_and_each_client_has_its_port() {
    let (server, first, second) = (socket().await, socket().await, socket().await);
    let relay = relay_to(&server, |_| ()).await;
    first.send_to(b"one", relay.local_addr()).await.expect("sent");
    let (payload, first_port) = receive(&server).await;
    assert_eq!(payload, b"one");
    second.send_to(b"two", relay.local_addr()).await.expect("sent");
    let (payload, second_port) = receive(&server).await;
    assert_eq!(payload, b"two");
    assert_ne!(first_port, second_port);

    server.send_to(b"to the second", second_port).await.expect("sent");
    server.send_to(b"to the first", first_port).await.expect("sent");
    assert_eq!(receive(&first).await, (b"to the first".to_vec(), relay.local_addr()));
    assert_eq!(receive(&second).await.0, b"to the second");
    let stats = relay.shutdown().await;
    assert_eq!((stats.clients, stats.up.delivered, stats.down.delivered), (2, 2, 2));
}

#[tokio::test]
async fn the_delay_is_kept() {
    let (server, client) = (socket().await, socket().await);
    let delay = posthaste_units::Duration::from_millis(30);
    let relay = relay_to(&server, |config| config.up.delay = delay).await;
    let sent = Instant::now();
    client.send_to(b"late", relay.local_addr()).await.expect("sent");
    receive(&server).await;
    assert!(sent.elapsed() >= Duration::from_millis(30));
}

/// Real time against the model's: never early, whatever the machine is busy with.
#[tokio::test]
async fn no_packet_is_early_and_lateness_is_measured() {
    let (server, client) = (socket().await, socket().await);
    let delay = posthaste_units::Duration::from_millis(20);
    // 1,028 bytes on the wire take 2.056 ms each.
    let rate = RateModel::Constant(Rate::from_bits_per_second(4_000_000));
    let bottleneck = Bottleneck { rate, queue: ByteCount::new(1 << 20), discipline: Discipline::default() };
    let relay = relay_to(&server, |config| {
        config.up.delay = delay;
        config.up.bottleneck = Some(bottleneck);
    })
    .await;
    let sent = Instant::now();
    for index in 0..20u8 {
        client.send_to(&[index; 1_000], relay.local_addr()).await.expect("sent");
    }
    for index in 0..20u8 {
        assert_eq!(receive(&server).await.0[0], index, "the order is kept");
        let least = Duration::from_micros(20_000 + 2_056 * (u64::from(index) + 1));
        assert!(sent.elapsed() >= least, "packet {index} after {:?}", sent.elapsed());
    }
    let stats = relay.shutdown().await;
    assert_eq!((stats.up.delivered, stats.up.delivered_bytes), (20, 20 * 1_028));
    assert_eq!((stats.lateness.packets, stats.missed), (20, 0));
    assert!(stats.lateness.max >= stats.lateness.p99 && stats.lateness.max >= stats.lateness.mean);
    assert!(!stats.lateness.max.is_zero());
}

#[tokio::test]
async fn the_same_seed_loses_the_same_packets() {
    let run = async |seed| {
        let (server, client) = (socket().await, socket().await);
        let relay = relay_to(&server, |config| {
            config.seed = seed;
            config.up.loss = 0.3;
        })
        .await;
        let mut arrived = Vec::new();
        for index in 0..200u64 {
            client.send_to(&index.to_be_bytes(), relay.local_addr()).await.expect("sent");
            // In step: a full socket buffer must not lose packets of its own.
            let stats = counts(&relay, |stats| stats.up.offered == index + 1).await;
            if stats.up.delivered > arrived.len() as u64 {
                arrived.push(receive(&server).await.0);
            }
        }
        let stats = relay.shutdown().await;
        assert_eq!(stats.up.lost + stats.up.delivered, 200, "{stats:?}");
        assert_eq!(stats.up.delivered, arrived.len() as u64);
        arrived
    };
    let first = run(1).await;
    assert!((100..180).contains(&first.len()), "{}", first.len());
    assert_eq!(first, run(1).await);
    assert_ne!(first, run(2).await);
}

#[tokio::test]
async fn a_held_back_packet_arrives_after_its_successors() {
    let (server, client) = (socket().await, socket().await);
    let relay = relay_to(&server, |config| {
        config.up.reordering = Reordering {
            probability: 0.2,
            extra_delay: posthaste_units::Duration::from_millis(20),
            ..Reordering::default()
        };
    })
    .await;
    for index in 0..60u8 {
        client.send_to(&[index], relay.local_addr()).await.expect("sent");
    }
    let mut order = Vec::new();
    for _ in 0..60 {
        order.push(receive(&server).await.0[0]);
    }
    let stats = relay.shutdown().await;
    assert!(stats.up.reordered > 0);
    assert!(order.windows(2).any(|pair| pair[1] < pair[0]), "{order:?}");
    order.sort_unstable();
    assert!(order.iter().copied().eq(0..60), "nothing is lost");
}

#[tokio::test]
async fn places_are_bounded() {
    let (server, first, second) = (socket().await, socket().await, socket().await);
    let relay = relay_to(&server, |config| config.max_clients = 1).await;
    first.send_to(b"one", relay.local_addr()).await.expect("sent");
    receive(&server).await;
    second.send_to(b"two", relay.local_addr()).await.expect("sent");
    let stats = counts(&relay, |stats| stats.refused == 1).await;
    assert_eq!((stats.clients, stats.refused), (1, 1));
    first.send_to(b"three", relay.local_addr()).await.expect("sent");
    assert_eq!(receive(&server).await.0, b"three");
}

#[tokio::test]
async fn a_dead_server_does_not_end_the_relay() {
    let server = socket().await;
    let client = socket().await;
    let relay = relay_to(&server, |_| ()).await;
    let address = server.local_addr().expect("bound");
    drop(server);
    client.send_to(b"nobody", relay.local_addr()).await.expect("sent");
    counts(&relay, |stats| stats.socket_errors > 0).await;
    let server = UdpSocket::bind(address).await.expect("the same port");
    client.send_to(b"again", relay.local_addr()).await.expect("sent");
    assert_eq!(receive(&server).await.0, b"again");
}

#[tokio::test]
async fn a_stopped_relay_frees_its_port() {
    let server = socket().await;
    let relay = relay_to(&server, |_| ()).await;
    let address = relay.local_addr();
    relay.shutdown().await;
    UdpSocket::bind(address).await.expect("the port is free at once");

    let relay = relay_to(&server, |_| ()).await;
    let address = relay.local_addr();
    drop(relay);
    let rebind = async {
        while UdpSocket::bind(address).await.is_err() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, rebind).await.expect("a dropped relay frees its port too");
}

#[tokio::test]
async fn a_bad_path_is_refused() {
    let server = socket().await;
    let config = RelayConfig {
        listen: loopback(),
        upstream: server.local_addr().expect("bound"),
        down: PathConfig { loss: 2.0, ..PathConfig::default() },
        up: PathConfig::default(),
        seed: 1,
        max_clients: 1,
    };
    assert_eq!(UdpRelay::start(config).await.expect_err("refused").kind(), io::ErrorKind::InvalidInput);
}

#[cfg(target_os = "linux")]
mod ecn {
    use std::io::{IoSlice, IoSliceMut};
    use std::os::fd::AsRawFd;

    use nix::sys::socket::{
        ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt, sockopt,
    };

    use super::*;

    /// ECT(0) towards the server, marked by nobody.
    #[tokio::test]
    async fn the_mark_passes_through() {
        let server = std::net::UdpSocket::bind(loopback()).expect("a loopback port");
        setsockopt(&server, sockopt::IpRecvTos, &true).expect("Linux can");
        server.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let config = RelayConfig {
            listen: loopback(),
            upstream: server.local_addr().expect("bound"),
            down: PathConfig::default(),
            up: PathConfig::default(),
            seed: 1,
            max_clients: 1,
        };
        let relay = UdpRelay::start(config).await.expect("a loopback port");
        let client = std::net::UdpSocket::bind(loopback()).expect("a loopback port");
        let to = SockaddrStorage::from(relay.local_addr());
        let payload = [IoSlice::new(b"marked")];
        sendmsg(client.as_raw_fd(), &payload, &[ControlMessage::Ipv4Tos(&2)], MsgFlags::empty(), Some(&to))
            .expect("sent");
        let (mut buffer, mut control) = ([0; 16], nix::cmsg_space!(u8));
        let mut slices = [IoSliceMut::new(&mut buffer)];
        let message = recvmsg::<()>(server.as_raw_fd(), &mut slices, Some(&mut control), MsgFlags::empty())
            .expect("in time");
        assert!(message.cmsgs().expect("whole").any(|control| control == ControlMessageOwned::Ipv4Tos(2)));
    }
}

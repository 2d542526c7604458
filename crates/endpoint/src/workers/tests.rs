use std::time::Duration;

use rustls::pki_types::PrivateKeyDer;

use super::*;
use crate::{ClientConfig, default_transport, tls};

const FOUR: NonZeroU16 = NonZeroU16::new(4).unwrap();

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// A server's configuration and that of its clients.
fn configurations() -> (ServerConfig, ClientConfig) {
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key: PrivateKeyDer<'static> = identity.signing_key.serialize_der().try_into().unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(identity.cert.der().clone()).unwrap();
    let server = tls::server_config(vec![identity.cert.into()], key, &[b"test"]).unwrap();
    let client = tls::client_config_with_roots(roots, &[b"test"]).unwrap();
    (ServerConfig::new(server, default_transport()), ClientConfig::new(client, default_transport()))
}

/// A datagram with this ID behind a header of either form.
fn datagram(is_long: bool, id: [u8; 8]) -> Vec<u8> {
    let head: &[u8] = if is_long { &[0xc0, 0, 0, 0, 1, 8] } else { &[0x40] };
    [head, &id, b"the rest"].concat()
}

/// The kernel and [`Steering::owner`] agree, whatever address a datagram comes from.
#[test]
fn the_kernel_hands_each_datagram_to_the_owner_of_its_id() {
    let workers = prepare(loopback(), FOUR, configurations().0).unwrap();
    let address = workers[0].local_addr().unwrap();
    let steering = workers[0].config.steering.unwrap();
    let senders: Vec<UdpSocket> = (0..5).map(|_| UdpSocket::bind(loopback()).unwrap()).collect();
    let mut expected = vec![Vec::new(); 4];
    for number in 0..200_u64 {
        let id = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let sent = datagram(number % 2 == 0, id);
        senders[number as usize % 5].send_to(&sent, address).unwrap();
        expected[usize::from(steering.owner(&id).unwrap())].push(sent);
    }
    for (worker, expected) in workers.iter().zip(expected) {
        worker.socket.set_nonblocking(true).unwrap();
        assert!(expected.len() > 20, "each has its part");
        for datagram in expected {
            let mut buffer = [0; 100];
            let received = worker.socket.recv(&mut buffer).expect("it is there already");
            assert_eq!(buffer[..received], datagram, "in their order: loopback keeps it");
        }
        assert!(worker.socket.recv(&mut [0; 100]).is_err(), "nothing of another's");
    }
}

#[test]
fn a_port_that_workers_share_is_in_use_for_others() {
    let workers = prepare(loopback(), FOUR, configurations().0).unwrap();
    let address = workers[0].local_addr().unwrap();
    let error = prepare(address, FOUR, configurations().0).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    let error = prepare(address, NonZeroU16::MIN, configurations().0).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
}

/// A kernel that hands most datagrams to the wrong sockets: every connection works all the same.
#[tokio::test(flavor = "multi_thread")]
async fn what_reaches_the_wrong_worker_is_passed_on() {
    let (server, client) = configurations();
    let workers = prepare(loopback(), FOUR, server).unwrap();
    let address = workers[0].local_addr().unwrap();
    let other = Steering::new([1, 2, 3, 4], FOUR, 0).unwrap();
    program::attach(&workers[0].socket, &other).unwrap();
    let endpoints: Vec<Endpoint> = workers.into_iter().map(|worker| worker.start().unwrap()).collect();
    for endpoint in &endpoints {
        let endpoint = endpoint.clone();
        tokio::spawn(async move {
            while let Some(connection) = endpoint.accept().await {
                tokio::spawn(async move {
                    let (mut send, mut recv) = connection.accept_bi().await.unwrap();
                    send.write_all(&recv.read_to_end(100_000).await.unwrap()).await.unwrap();
                    send.finish();
                    connection.closed().await;
                });
            }
        });
    }
    let data = vec![7; 50_000];
    let visits = async {
        for _ in 0..20 {
            let visitor = Endpoint::client(loopback()).unwrap();
            let connection = visitor.connect(&client, address, "localhost").await.unwrap();
            let (mut send, mut recv) = connection.open_bi().await.unwrap();
            send.write_all(&data).await.unwrap();
            send.finish();
            assert_eq!(recv.read_to_end(100_000).await.unwrap(), data);
        }
    };
    tokio::time::timeout(Duration::from_secs(60), visits).await.expect("a connection is stuck");
    let stats: Vec<_> = endpoints.iter().map(Endpoint::stats).collect();
    assert!(stats.iter().any(|stats| stats.misplaced > 0));
    assert_eq!(stats.iter().map(|stats| stats.resets_sent).sum::<u64>(), 0, "none for another's connection");
    assert_eq!(stats.iter().map(|stats| stats.accepted).sum::<u64>(), 20);
}

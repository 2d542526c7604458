//! Clients that change their address under way, over loopback.

use std::net::SocketAddr;
use std::time::Duration;

use crate::common::{Pair, bounded, pattern};
use posthaste_endpoint::{Connection, LocalError, RebindError, RecvStream, TransportConfig};

const LEN: usize = 24 << 20;

/// Begins a download of [`LEN`] bytes and reads the first of them.
async fn begin(client: &Connection, server: Connection) -> (RecvStream, Vec<u8>) {
    tokio::spawn(async move {
        let (mut send, _recv) = server.accept_bi().await.unwrap();
        send.write_bytes(pattern(LEN, 1).into()).await.unwrap();
        send.finish();
        server.closed().await;
    });
    let (mut send, mut recv) = client.open_bi().await.unwrap();
    send.finish();
    let mut received = Vec::new();
    read(&mut recv, &mut received, 1 << 20).await;
    (recv, received)
}

/// Reads until there are so many bytes, or the stream is over.
async fn read(recv: &mut RecvStream, received: &mut Vec<u8>, until: usize) {
    while received.len() < until {
        let Some(chunk) = recv.read_chunk(64 << 10).await.unwrap() else { return };
        received.extend_from_slice(&chunk);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_goes_on_from_another_port_and_another_address() {
    bounded(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let server_end = server.clone();
        let (mut recv, mut received) = begin(&client, server).await;
        let mut addresses = vec![pair.client.local_addr().unwrap()];
        for (turn, local) in ["127.0.0.1:0", "127.0.0.2:0", "127.0.0.3:0"].into_iter().enumerate() {
            pair.client.rebind(local.parse().unwrap()).unwrap();
            addresses.push(pair.client.local_addr().unwrap());
            read(&mut recv, &mut received, (turn + 2) * (4 << 20)).await;
            // One round trip later the server has followed.
            while server_end.remote_address() != *addresses.last().unwrap() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        read(&mut recv, &mut received, usize::MAX).await;
        assert!(received == pattern(LEN, 1), "{} bytes came", received.len());
        assert_eq!(client.stats().moves, 3);
        let stats = server_end.stats();
        assert_eq!(stats.moves, 3);
        assert_eq!(stats.max_datagram_size, 1452, "loopback carries it");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_is_not_possible_changes_nothing() {
    bounded(async {
        let still = TransportConfig { active_migration: false, ..posthaste_endpoint::default_transport() };
        let pair = Pair::with(still, posthaste_endpoint::default_transport());
        let (client, server) = pair.connect().await;
        let (mut recv, mut received) = begin(&client, server).await;
        let before = pair.client.local_addr().unwrap();
        let error = pair.client.rebind("127.0.0.1:0".parse().unwrap()).unwrap_err();
        let RebindError::Refused { remote, reason } = &error else { panic!("{error}") };
        assert_eq!((*remote, *reason), (pair.address, LocalError::MigrationForbidden));
        let other: SocketAddr = "[::1]:0".parse().unwrap();
        assert!(matches!(pair.client.rebind(other), Err(RebindError::OtherFamily(_))));
        assert!(matches!(pair.server.rebind("127.0.0.1:0".parse().unwrap()), Err(RebindError::Server)));
        assert!(matches!(pair.client.rebind("192.0.2.1:0".parse().unwrap()), Err(RebindError::Bind(_))));
        assert_eq!(pair.client.local_addr().unwrap(), before);
        read(&mut recv, &mut received, usize::MAX).await;
        assert!(received == pattern(LEN, 1));
    })
    .await;
}

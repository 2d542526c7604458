//! The order of receiving, handling and sending: what waits in the socket is answered in parts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use posthaste_endpoint::{Connection, Endpoint, TransportConfig};

use crate::common::{Pair, bounded};

const CONNECTIONS: usize = 8;

fn pair() -> Pair {
    let transport = || TransportConfig { mtu_discovery: false, ..posthaste_endpoint::default_transport() };
    Pair::with(transport(), transport())
}

/// Answers streams, and notes for each how many sends the socket has had when it is handled.
fn spawn_answers(endpoint: &Endpoint, connection: Connection, sends: &Arc<Mutex<Vec<u64>>>) {
    let (endpoint, sends) = (endpoint.clone(), Arc::clone(sends));
    tokio::spawn(async move {
        while let Ok((mut send, mut recv)) = connection.accept_bi().await {
            let (endpoint, sends) = (endpoint.clone(), Arc::clone(&sends));
            tokio::spawn(async move {
                recv.read_to_end(100).await.unwrap();
                sends.lock().unwrap().push(endpoint.socket_stats().sends);
                send.finish_with(Bytes::from_static(&[b'!'; 1_000])).await.unwrap();
            });
        }
    });
}

async fn request(connection: Connection) {
    let (_, mut recv) = connection.open_bi_with(Bytes::from_static(b"?")).await.unwrap();
    assert_eq!(recv.read_to_end(1_000).await.unwrap().len(), 1_000);
}

/// One thread: all requests are in the server's socket before its driver runs.
#[tokio::test(flavor = "current_thread")]
async fn the_first_connection_is_answered_before_the_last_is_handled() {
    bounded(async {
        let pair = pair();
        let sends = Arc::default();
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            let (client, server) = pair.connect().await;
            spawn_answers(&pair.server, server, &sends);
            clients.push(client);
        }
        // Handshakes end, and acknowledgements are sent.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let requests = clients.iter().map(|client| tokio::spawn(request(client.clone())));
        for request in requests.collect::<Vec<_>>() {
            request.await.unwrap();
        }
        let sends = sends.lock().unwrap();
        assert_eq!(sends.len(), CONNECTIONS);
        let between = sends[CONNECTIONS - 1] - sends[0];
        assert!(
            between >= CONNECTIONS as u64 / 2,
            "{between} sends between the first and the last: {sends:?}"
        );
    })
    .await;
}

/// A connection that asks without end does not keep others from being answered.
#[tokio::test(flavor = "current_thread")]
async fn one_connections_requests_do_not_starve_another() {
    bounded(async {
        let pair = pair();
        let (busy, server) = pair.connect().await;
        let sends = Arc::default();
        spawn_answers(&pair.server, server, &sends);
        let asked = Arc::new(AtomicU64::new(0));
        for _ in 0..90 {
            let (busy, asked) = (busy.clone(), Arc::clone(&asked));
            tokio::spawn(async move {
                loop {
                    request(busy.clone()).await;
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let (modest, server) = pair.connect().await;
        spawn_answers(&pair.server, server, &sends);
        let before = asked.load(Ordering::Relaxed);
        for _ in 0..20 {
            request(modest.clone()).await;
        }
        // It has one request under way where the other has ninety.
        let others = asked.load(Ordering::Relaxed) - before;
        assert!(others <= 20 * 90 * 4, "{others} requests of the busy connection for 20 of the modest one");
    })
    .await;
}

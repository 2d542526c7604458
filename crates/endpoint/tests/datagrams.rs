//! Messages in DATAGRAM frames (RFC 9221) over sockets.

use std::time::Duration;

use crate::common::{Pair, bounded};
use bytes::Bytes;
use posthaste_endpoint::{
    Connection, DatagramOrder, DatagramRefusal, DatagramStats, SendDatagramError, TransportConfig,
    default_transport,
};

/// Messages that wait to be read, at most (`QUEUED_DATAGRAMS` of the transport).
const QUEUE: u64 = 1024;
/// Messages of a sender that does not wait: far more than leave in the time in which they are made.
const COUNT: u64 = 100_000;

fn transport() -> TransportConfig {
    TransportConfig { max_datagram_frame_size: 65_535, ..default_transport() }
}

fn message(index: u64, len: usize) -> Bytes {
    let mut bytes = index.to_be_bytes().to_vec();
    bytes.resize(len.max(8), 7);
    bytes.into()
}

/// Waits until the counters are as wanted.
async fn until(connection: &Connection, is_wanted: impl Fn(&DatagramStats) -> bool) -> DatagramStats {
    loop {
        let stats = connection.stats().datagrams;
        if is_wanted(&stats) {
            return stats;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_all_sizes_go_both_ways() {
    bounded(async {
        let pair = Pair::with(transport(), transport());
        let (client, server) = pair.connect().await;
        let max = client.max_datagram_size().expect("the server takes messages");
        assert!((1_200..=1_452).contains(&max), "{max}");
        for len in [0, 1, 63, 64, 1_000, max] {
            let data = Bytes::from(vec![len as u8; len]);
            client.send_datagram(data.clone()).unwrap();
            assert_eq!(server.receive_datagram().await.unwrap(), data);
            server.send_datagram_wait(data.clone()).await.unwrap();
            assert_eq!(client.receive_datagram().await.unwrap(), data);
        }
        let stats = client.stats().datagrams;
        assert_eq!((stats.sent, stats.received), (6, 6));
        assert_eq!((stats.dropped_unsent, stats.dropped_unread), (0, 0));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_peer_does_not_take_is_refused() {
    bounded(async {
        let small = TransportConfig { max_datagram_frame_size: 100, ..default_transport() };
        let pair = Pair::with(default_transport(), small);
        let (client, server) = pair.connect().await;
        assert_eq!(client.max_datagram_size(), None);
        let error = client.send_datagram(Bytes::new()).unwrap_err();
        assert!(matches!(error, SendDatagramError::Refused(DatagramRefusal::Unsupported)), "{error}");
        // What one end takes does not bind the other.
        let max = server.max_datagram_size().expect("the client takes small ones");
        assert!((95..=98).contains(&max), "{max}");
        let error = server.send_datagram_wait(Bytes::from(vec![0; max + 1])).await.unwrap_err();
        let refused = DatagramRefusal::TooLarge { max };
        assert!(matches!(error, SendDatagramError::Refused(reason) if reason == refused), "{error}");
        server.send_datagram(Bytes::from(vec![1; max])).unwrap();
        assert_eq!(client.receive_datagram().await.unwrap().len(), max);

        let waiting = tokio::spawn({
            let server = server.clone();
            async move { server.receive_datagram().await }
        });
        client.close(3, b"enough");
        assert!(waiting.await.unwrap().is_err(), "who waits is told of the end");
        server.closed().await;
        assert!(matches!(server.send_datagram(Bytes::new()), Err(SendDatagramError::Connection(_))));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_finds_the_newest() {
    bounded(async {
        let pair = Pair::with(transport(), transport());
        let (client, server) = pair.connect().await;
        for index in 0..5_000 {
            client.send_datagram_wait(message(index, 200)).await.unwrap();
        }
        let sent = until(&client, |stats| stats.sent == 5_000).await;
        assert_eq!(sent.dropped_unsent, 0, "a sender that waits loses nothing here");
        // The last one tells that all have come that will: loopback keeps the order.
        let mut sentinel = 5_000;
        let stats = loop {
            let stats = server.stats().datagrams;
            if stats.received >= 4_000 && stats.dropped_unread == stats.received - QUEUE {
                break stats;
            }
            client.send_datagram_wait(message(sentinel, 200)).await.unwrap();
            sentinel += 1;
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert!(stats.received > QUEUE);
        let first = server.receive_datagram().await.unwrap();
        let first = u64::from_be_bytes(*first.first_chunk().unwrap());
        assert!(first > 2_000, "the oldest went, not the newest: {first}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_does_not_wait_loses_the_oldest() {
    bounded(async {
        let pair = Pair::with(transport(), transport());
        let (client, server) = pair.connect().await;
        client.set_datagram_order(DatagramOrder::AfterStreams);
        let reading = tokio::spawn(async move {
            let mut newest = 0;
            while let Ok(message) = server.receive_datagram().await {
                newest = u64::from_be_bytes(*message.first_chunk().unwrap());
            }
            newest
        });
        for index in 0..COUNT {
            client.send_datagram(message(index, 1_000)).unwrap();
        }
        let stats = until(&client, |stats| stats.sent + stats.dropped_unsent == COUNT).await;
        assert!(stats.dropped_unsent > 0, "100 MB left before they were made? {stats:?}");
        // What is in flight arrives before the close does, or is lost.
        tokio::time::sleep(Duration::from_millis(50)).await;
        client.close(0, b"");
        let newest = reading.await.unwrap();
        assert!(newest + QUEUE >= COUNT, "the newest are kept: {newest}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_show_messages() {
    bounded(async {
        let folder = tempfile::tempdir().unwrap();
        let sink = posthaste_endpoint::QlogDirectory::new(folder.path());
        let traced = TransportConfig { qlog: Some(std::sync::Arc::new(sink)), ..transport() };
        let pair = Pair::with(transport(), traced);
        let (client, server) = pair.connect().await;
        client.send_datagram(Bytes::from_static(b"seen")).unwrap();
        server.send_datagram(server.receive_datagram().await.unwrap()).unwrap();
        client.receive_datagram().await.unwrap();
        client.close(0, b"");
        pair.client.wait_idle().await;
        drop((client, pair));
        let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let has = |event: &str| {
            let text = std::fs::read_to_string(&file).unwrap();
            text.lines().any(|line| line.contains(event) && line.contains(r#""frame_type":"datagram""#))
        };
        while !(has("quic:packet_sent") && has("quic:packet_received")) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

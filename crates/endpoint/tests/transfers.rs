//! Data over loopback: what is sent arrives, whichever way it is written and read.

use std::io::IoSlice;
use std::time::Duration;

use crate::common::{Pair, bounded, pattern};
use bytes::Bytes;
use posthaste_endpoint::{Connection, Priority, ReadError, TransportConfig, WriteError};
use posthaste_units::ByteCount;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Echoes every bidirectional stream until the connection ends.
fn spawn_echo(connection: Connection) {
    tokio::spawn(async move {
        while let Ok((mut send, mut recv)) = connection.accept_bi().await {
            tokio::spawn(async move {
                while let Ok(Some(chunk)) = recv.read_chunk(usize::MAX).await {
                    if send.write_bytes(chunk).await.is_err() {
                        return;
                    }
                }
                send.finish();
            });
        }
    });
}

async fn echo(connection: &Connection, data: Vec<u8>) {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    let outgoing = Bytes::from(data);
    let expected = outgoing.clone();
    let writer = tokio::spawn(async move {
        send.write_bytes(outgoing).await.unwrap();
        send.finish();
        send.acknowledged().await.unwrap();
    });
    let received = recv.read_to_end(expected.len()).await.unwrap();
    assert!(received == expected, "{} bytes came back changed", expected.len());
    writer.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn small_messages_come_back() {
    bounded(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        spawn_echo(server);
        for length in [0, 1, 100, 1200, 5000] {
            echo(&client, pattern(length, 1)).await;
        }
        assert_eq!(client.alpn().as_deref(), Some(&b"test"[..]));
        assert!(client.handshake_time().is_some_and(|time| time > Duration::ZERO));
        assert_eq!(client.remote_address(), pair.address);
        assert_eq!(client.peer_certificates().map(|chain| chain.len()), Some(1));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_megabyte_and_ten_come_back() {
    bounded(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        spawn_echo(server);
        echo(&client, pattern(1 << 20, 2)).await;
        echo(&client, pattern(10 << 20, 3)).await;
        assert!(client.stats().sent.bytes > ByteCount::new(11 << 20));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ipv6_and_a_dual_stack_socket_work() {
    bounded(async {
        let pair = Pair::at(
            "[::1]:0",
            posthaste_endpoint::default_transport(),
            posthaste_endpoint::default_transport(),
        );
        let (client, server) = pair.connect().await;
        spawn_echo(server);
        echo(&client, pattern(100_000, 4)).await;

        let pair = Pair::new();
        let dual = posthaste_endpoint::Endpoint::client("[::]:0".parse().unwrap()).unwrap();
        let (client, server) =
            tokio::join!(dual.connect(&pair.config, pair.address, "localhost"), pair.server.accept());
        spawn_echo(server.unwrap());
        let client = client.unwrap();
        assert_eq!(client.remote_address(), pair.address, "the peer's address is not shown as a mapped one");
        echo(&client, pattern(100_000, 5)).await;

        let pair = Pair::at(
            "[::]:0",
            posthaste_endpoint::default_transport(),
            posthaste_endpoint::default_transport(),
        );
        let v4 = posthaste_endpoint::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = (std::net::Ipv4Addr::LOCALHOST, pair.address.port()).into();
        let (client, server) =
            tokio::join!(v4.connect(&pair.config, address, "localhost"), pair.server.accept());
        let server = server.unwrap();
        assert_eq!(server.remote_address(), v4.local_addr().unwrap());
        spawn_echo(server);
        echo(&client.unwrap(), pattern(100_000, 6)).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_streams_at_once() {
    bounded(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        spawn_echo(server);
        let streams: Vec<_> = (0..200)
            .map(|index| {
                let client = client.clone();
                tokio::spawn(async move { echo(&client, pattern(20_000 + index, index as u64)).await })
            })
            .collect();
        for stream in streams {
            stream.await.unwrap();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_streams_than_the_peer_permits_wait_for_their_turn() {
    bounded(async {
        let few =
            TransportConfig { max_concurrent_bidi_streams: 4, ..posthaste_endpoint::default_transport() };
        let pair = Pair::with(few, posthaste_endpoint::default_transport());
        let (client, server) = pair.connect().await;
        spawn_echo(server);
        let streams: Vec<_> = (0..50)
            .map(|index| {
                let client = client.clone();
                tokio::spawn(async move { echo(&client, pattern(3000, index)).await })
            })
            .collect();
        for stream in streams {
            stream.await.unwrap();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_connections() {
    bounded(async {
        let pair = Pair::new();
        let acceptor = pair.server.clone();
        tokio::spawn(async move {
            while let Some(connection) = acceptor.accept().await {
                spawn_echo(connection);
            }
        });
        let tasks: Vec<_> = (0..100)
            .map(|index| {
                let (endpoint, config, address) = (pair.client.clone(), pair.config.clone(), pair.address);
                tokio::spawn(async move {
                    let connection = endpoint.connect(&config, address, "localhost").await.unwrap();
                    echo(&connection, pattern(10_000, index)).await;
                    connection.close(0, b"");
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        pair.client.wait_idle().await;
        assert_eq!(pair.client.open_connections(), 0);
        assert_eq!(pair.server.stats().accepted, 100);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unidirectional_streams_go_both_ways_in_order() {
    bounded(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        for (from, to) in [(&client, &server), (&server, &client)] {
            for round in 0..3u8 {
                let mut send = from.open_uni().await.unwrap();
                send.set_priority(Priority { urgency: round, incremental: true });
                send.write_all(&[round; 3000]).await.unwrap();
                send.finish();
                let mut recv = to.accept_uni().await.unwrap();
                assert_eq!(recv.id(), send.id());
                assert_eq!(recv.read_to_end(3000).await.unwrap(), [round; 3000]);
                assert_eq!(recv.read(&mut [0; 8]).await.unwrap(), None, "the end stays the end");
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokios_traits_carry_data_and_the_end() {
    bounded(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let echo = tokio::spawn(async move {
            let (mut send, mut recv) = server.accept_bi().await.unwrap();
            let copied = tokio::io::copy(&mut recv, &mut send).await.unwrap();
            send.shutdown().await.unwrap();
            (copied, server.closed().await)
        });
        let data = pattern(3 << 20, 6);
        let (mut send, mut recv) = client.open_bi().await.unwrap();
        let expected = data.clone();
        let writer = tokio::spawn(async move {
            let copied = tokio::io::copy(&mut &data[..], &mut send).await.unwrap();
            send.shutdown().await.unwrap();
            assert!(send.write_all(b"more").await.is_err(), "a stream that was shut down takes no more");
            copied
        });
        let mut received = Vec::new();
        AsyncReadExt::read_to_end(&mut recv, &mut received).await.unwrap();
        assert!(received == expected, "the copies differ");
        assert_eq!(writer.await.unwrap(), expected.len() as u64);
        client.close(0, b"");
        assert_eq!(echo.await.unwrap().0, expected.len() as u64);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_stops_its_writer_and_bounds_memory() {
    bounded(async {
        let small = TransportConfig {
            send_buffer: ByteCount::new(1 << 20),
            unsent_limit: ByteCount::new(128 << 10),
            ..posthaste_endpoint::default_transport()
        };
        let pair = Pair::with(posthaste_endpoint::default_transport(), small);
        let (client, server) = pair.connect().await;
        let total = 64 << 20;
        let mut send = client.open_uni().await.unwrap();
        let progress = Arc::new(AtomicUsize::new(0));
        let written = Arc::clone(&progress);
        let writer = tokio::spawn(async move {
            let chunk = Bytes::from(vec![9; 64 << 10]);
            while written.load(Ordering::Relaxed) < total {
                if send.write_bytes(chunk.clone()).await.is_err() {
                    return;
                }
                written.fetch_add(chunk.len(), Ordering::Relaxed);
            }
            send.finish();
        });
        let mut recv = server.accept_uni().await.unwrap();
        recv.read_chunk(1).await.unwrap();
        // Nobody reads on: the writer must come to a halt, long before its end.
        let mut before = usize::MAX;
        loop {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let now = progress.load(Ordering::Relaxed);
            if now == before {
                break;
            }
            before = now;
        }
        assert!(before < total / 2, "{before} bytes were taken for a reader that does not read");
        assert!(!writer.is_finished());
        // And goes on when somebody does.
        recv.read_chunk(1 << 20).await.unwrap();
        let mut read = 0;
        while read < 32 << 20 {
            read += recv.read_chunk(usize::MAX).await.unwrap().unwrap().len();
        }
        drop(recv);
        writer.await.unwrap();
    })
    .await;
}

/// Echoes every bidirectional stream with the calls that take much at once.
fn spawn_echo_at_once(connection: Connection) {
    tokio::spawn(async move {
        while let Ok((mut send, mut recv)) = connection.accept_bi().await {
            tokio::spawn(async move {
                let mut chunks = [const { Bytes::new() }; 5];
                while let Ok(Some(filled)) = recv.read_chunks(&mut chunks).await {
                    assert!((1..=5).contains(&filled));
                    if send.write_all_chunks(&mut chunks[..filled]).await.is_err() {
                        return;
                    }
                    assert!(chunks.iter().all(Bytes::is_empty), "what is written is taken out");
                }
                let _ = send.finish_with(Bytes::from_static(b"!")).await;
            });
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_messages_in_one_call_come_back() {
    bounded(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        spawn_echo_at_once(server);
        for length in [0, 1, 100, 5_000, 100_000] {
            let message = Bytes::from(pattern(length, 3));
            let (send, mut recv) = client.open_bi_with(message.clone()).await.unwrap();
            let received = recv.read_to_end(length + 1).await.unwrap();
            assert!(received[..length] == message && received[length..] == *b"!", "{length} bytes");
            send.acknowledged().await.unwrap();
            assert_eq!(recv.read_chunks(&mut [Bytes::new()]).await.unwrap(), None);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_message_in_one_call_waits_for_room_and_a_cancelled_one_is_reset() {
    bounded(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let message = Bytes::from(pattern(50_000_000, 4));
        let expected = message.clone();
        let reader = tokio::spawn(async move {
            let mut recv = server.accept_uni().await.unwrap();
            let (mut chunks, mut read) = (vec![Bytes::new(); 64], 0);
            assert_eq!(recv.read_chunks(&mut []).await.unwrap(), Some(0));
            while let Some(filled) = recv.read_chunks(&mut chunks).await.unwrap() {
                for chunk in &chunks[..filled] {
                    assert!(expected[read..].starts_with(chunk), "at {read}");
                    read += chunk.len();
                }
            }
            assert_eq!(read, expected.len());
            server
        });
        client.open_uni_with(message.clone()).await.unwrap().acknowledged().await.unwrap();
        let server = reader.await.unwrap();
        // Nobody reads: the call cannot come to its end.
        let opening = tokio::time::timeout(Duration::from_millis(100), client.open_uni_with(message.clone()));
        assert!(opening.await.is_err());
        let mut send = client.open_uni().await.unwrap();
        let finishing = tokio::time::timeout(Duration::from_millis(100), send.finish_with(message));
        assert!(finishing.await.is_err());
        drop(send);
        for _ in 0..2 {
            let mut recv = server.accept_uni().await.unwrap();
            let outcome = recv.read_to_end(usize::MAX).await;
            assert!(matches!(outcome, Err(ReadError::Reset(0))), "a part is not the whole: {outcome:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_whole_with_its_end_and_a_part_of_it_is_not() {
    bounded(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        // Some need no room, some are larger than what is copied at once, the last than all that may wait.
        for length in [0, 1, 1_023, 1_024, 3_000, 5_000_000] {
            let data = pattern(length, 3);
            let expected = data.clone();
            let mut send = client.open_uni().await.unwrap();
            let reader = async { server.accept_uni().await.unwrap().read_to_end(length).await.unwrap() };
            let (written, received) = tokio::join!(send.finish_with_copy(&data), reader);
            written.unwrap();
            assert!(received == expected, "{length} bytes");
            send.acknowledged().await.unwrap();
            assert!(matches!(send.finish_with_copy(b"more").await, Err(WriteError::ClosedStream)));
        }
        let data = pattern(50_000_000, 4);
        let mut send = client.open_uni().await.unwrap();
        let finishing = tokio::time::timeout(Duration::from_millis(100), send.finish_with_copy(&data));
        assert!(finishing.await.is_err(), "nobody reads");
        drop(send);
        let outcome = server.accept_uni().await.unwrap().read_to_end(usize::MAX).await;
        assert!(matches!(outcome, Err(ReadError::Reset(0))), "a part is not the whole: {outcome:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slices_are_written_together() {
    bounded(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let mut send = client.open_uni().await.unwrap();
        assert!(send.is_write_vectored());
        let parts = [pattern(100, 1), pattern(40_000, 2)];
        let slices = parts.each_ref().map(|part| IoSlice::new(part));
        assert_eq!(send.write_vectored(&slices).await.unwrap(), 32 * 1024, "as much as is copied at once");
        send.finish();
        let received = server.accept_uni().await.unwrap().read_to_end(usize::MAX).await.unwrap();
        assert!(received == parts.concat()[..32 * 1024]);
    })
    .await;
}

//! How connections, streams and endpoints begin and end.

use std::time::Duration;

use crate::common::{ALPN, Pair, bounded, identity, pattern};
use posthaste_endpoint::{
    ClientConfig, CloseReason, ConnectionError, ConnectionStats, Endpoint, ReadError, ServerConfig, Side,
    TransportConfig, WriteError, tls,
};

fn idle_after(millis: u64) -> TransportConfig {
    TransportConfig {
        max_idle_timeout: Duration::from_millis(millis),
        ..posthaste_endpoint::default_transport()
    }
}

fn code_of(reason: &CloseReason) -> (u64, String) {
    match reason {
        CloseReason::PeerApplication { error_code, reason } => {
            (*error_code, String::from_utf8_lossy(reason).into_owned())
        }
        other => panic!("not closed by the peer's application: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn close_codes_arrive_both_ways() {
    bounded(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        assert_eq!((client.side(), server.side()), (Side::Client, Side::Server));
        assert_eq!(server.server_name().as_deref(), Some("localhost"));
        client.close(42, b"bye");
        assert_eq!(code_of(&server.closed().await), (42, "bye".to_owned()));
        assert_eq!(client.close_reason(), Some(CloseReason::Local { error_code: 42 }));
        assert!(matches!(
            client.open_bi().await,
            Err(ConnectionError::Closed(CloseReason::Local { error_code: 42 }))
        ));

        let (client, server) = pair.connect().await;
        server.close(43, b"enough");
        assert_eq!(code_of(&client.closed().await), (43, "enough".to_owned()));
        let error = client.accept_uni().await.unwrap_err();
        assert_eq!(error.to_string(), "closed by the peer (code 0x2b) enough");
        // What was known of the connection still is.
        assert_eq!(client.remote_address(), pair.address);
        assert!(client.stats().packets_sent > 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_wakes_everyone_who_waits() {
    bounded(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let (mut send, mut recv) = client.open_bi().await.unwrap();
        send.write_all(b"x").await.unwrap();
        let (acknowledged, stopped) = (send.acknowledged(), send.stopped());
        let waiting = (client.clone(), client.clone(), client.clone());
        let tasks = tokio::spawn(async move {
            tokio::join!(
                async { waiting.0.accept_bi().await.unwrap_err() },
                async { waiting.1.accept_uni().await.unwrap_err() },
                async { waiting.2.closed().await },
                async { recv.read_chunk(10).await.unwrap_err() },
                async { acknowledged.await.unwrap_err() },
                async { stopped.await.unwrap_err() },
            )
        });
        let (_send, mut theirs) = server.accept_bi().await.unwrap();
        assert_eq!(theirs.read_chunk(10).await.unwrap().unwrap(), "x");
        server.close(9, b"");
        let (bi, uni, closed, read, acknowledged, stopped) = tasks.await.unwrap();
        assert_eq!(code_of(&closed).0, 9);
        for error in [bi, uni] {
            assert_eq!(error.close_reason(), Some(&closed));
        }
        assert!(matches!(read, ReadError::ConnectionLost(ConnectionError::Closed(reason)) if reason == closed));
        for error in [acknowledged, stopped] {
            assert!(matches!(error, WriteError::ConnectionLost(ConnectionError::Closed(reason)) if reason == closed));
        }
        assert!(matches!(send.write(b"y").await, Err(WriteError::ConnectionLost(_))));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_handle_closes_the_connection() {
    bounded(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let (send, recv) = client.open_bi().await.unwrap();
        drop(client.clone());
        drop(client);
        assert_eq!(server.close_reason(), None, "streams keep the connection");
        drop(send);
        drop(recv);
        assert_eq!(code_of(&server.closed().await).0, 0);
        pair.client.wait_idle().await;
        assert_eq!(pair.client.open_connections(), 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_ends_a_connection_after_the_idle_timeout() {
    bounded(async {
        let pair = Pair::with(posthaste_endpoint::default_transport(), idle_after(300));
        let (client, server) = pair.connect().await;
        let started = tokio::time::Instant::now();
        assert_eq!(client.closed().await, CloseReason::IdleTimeout);
        assert!(started.elapsed() >= Duration::from_millis(250), "{:?}", started.elapsed());
        assert_eq!(server.closed().await, CloseReason::IdleTimeout, "the lesser timeout holds at both ends");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_at_the_other_end_is_a_timeout_that_says_so() {
    bounded(async {
        let deaf = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = deaf.local_addr().unwrap();
        drop(deaf);
        let client = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let config = ClientConfig::new(tls::client_config_insecure(ALPN).unwrap(), idle_after(400));
        let error = client.connect(&config, address, "localhost").await.unwrap_err();
        assert!(matches!(error, ConnectionError::Closed(CloseReason::IdleTimeout)), "{error:?}");
        assert_eq!(error.to_string(), "timed out: nothing was heard from the peer");
        assert_eq!(client.open_connections(), 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_attempted_is_refused_at_once() {
    bounded(async {
        let client = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let config = ClientConfig::new(
            tls::client_config_insecure(ALPN).unwrap(),
            posthaste_endpoint::default_transport(),
        );
        let v6 = client.connect(&config, "[::1]:443".parse().unwrap(), "localhost").await.unwrap_err();
        assert!(matches!(v6, ConnectionError::UnusableAddress(_)), "{v6:?}");
        let name = client.connect(&config, "127.0.0.1:443".parse().unwrap(), "no name!").await.unwrap_err();
        assert!(matches!(name, ConnectionError::Connect(_)), "{name:?}");
        assert!(client.accept().await.is_none(), "a client accepts nothing");
        client.wait_idle().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_stop_accepting_only_what_is_there_goes_on() {
    bounded(async {
        let pair = Pair::with(posthaste_endpoint::default_transport(), idle_after(400));
        let (client, server) = pair.connect().await;
        let acceptor = pair.server.clone();
        let waiting = tokio::spawn(async move { acceptor.accept().await.is_none() });
        pair.server.stop_accepting();
        assert!(waiting.await.unwrap(), "accept tells that there will be no more");
        assert!(pair.server.accept().await.is_none());
        let other = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        assert!(other.connect(&pair.config, pair.address, "localhost").await.is_err());
        assert!(pair.server.stats().refused > 0);
        drop(client);
        server.closed().await;
        pair.server.wait_idle().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_made_before_stop_accepting_is_still_accepted() {
    bounded(async {
        let pair = Pair::new();
        let client = pair.client.connect(&pair.config, pair.address, "localhost").await.unwrap();
        // The server's end completes with the client's last handshake flight.
        while pair.server.open_connections() == 0 {
            tokio::task::yield_now().await;
        }
        pair.server.stop_accepting();
        let server = pair.server.accept().await.expect("it was there before");
        assert!(pair.server.accept().await.is_none());
        client.close(1, b"");
        server.closed().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_an_endpoint_closes_all_and_is_said_before_idle() {
    bounded(async {
        let pair = Pair::new();
        let mut clients = Vec::new();
        let mut servers = Vec::new();
        for _ in 0..5 {
            let (client, server) = pair.connect().await;
            clients.push(client);
            servers.push(server);
        }
        assert_eq!(pair.server.open_connections(), 5);
        pair.server.close(77, b"maintenance");
        pair.server.wait_idle().await;
        assert_eq!(pair.server.open_connections(), 0);
        for client in clients {
            assert_eq!(code_of(&client.closed().await), (77, "maintenance".to_owned()));
        }
        assert!(pair.server.accept().await.is_none());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_untrusted_certificate_is_named_as_the_cause() {
    // spec: rfc9001 4.4 server-authenticated, rfc9000 7 authenticated-key-exchange
    bounded(async {
        let pair = Pair::new();
        let (_, other_roots) = identity();
        let config = ClientConfig::new(
            tls::client_config_with_roots(other_roots, ALPN).unwrap(),
            posthaste_endpoint::default_transport(),
        );
        let error = pair.client.connect(&config, pair.address, "localhost").await.unwrap_err();
        assert!(matches!(error, ConnectionError::Closed(CloseReason::Tls { .. })), "{error:?}");
        assert!(error.to_string().contains("certificate"), "{error}");

        let error = pair.client.connect(&pair.config, pair.address, "example.org").await.unwrap_err();
        assert!(error.to_string().contains("not valid for name"), "{error}");
        // The server took no harm, and one who trusts anyone gets in.
        let config = ClientConfig::new(
            tls::client_config_insecure(ALPN).unwrap(),
            posthaste_endpoint::default_transport(),
        );
        pair.client.connect(&config, pair.address, "example.org").await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_common_protocol_is_an_error_at_both_ends() {
    // spec: rfc9001 8.1 alpn-used, 8.1 alpn-missing-closes, rfc9000 7 protocol-agreed
    bounded(async {
        let pair = Pair::new();
        let config = ClientConfig::new(
            tls::client_config_insecure(&[b"other"]).unwrap(),
            posthaste_endpoint::default_transport(),
        );
        let error = pair.client.connect(&config, pair.address, "localhost").await.unwrap_err();
        let ConnectionError::Closed(CloseReason::PeerTransport { code, .. }) = &error else {
            panic!("{error:?}");
        };
        assert_eq!(*code, posthaste_endpoint::TransportErrorCode::crypto(120), "no_application_protocol");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_writer_finishes_and_a_panicking_one_resets() {
    bounded(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let mut send = client.open_uni().await.unwrap();
        send.write_all(b"whole").await.unwrap();
        drop(send);
        let mut recv = server.accept_uni().await.unwrap();
        assert_eq!(recv.read_to_end(100).await.unwrap(), b"whole");

        let mut send = client.open_uni().await.unwrap();
        let crashed = tokio::spawn(async move {
            send.write_all(b"part").await.unwrap();
            panic!("a writer that fails half-way (this message belongs to a test)");
        });
        assert!(crashed.await.unwrap_err().is_panic());
        let mut recv = server.accept_uni().await.unwrap();
        let error = recv.read_to_end(100).await.unwrap_err();
        assert!(matches!(error, ReadError::Reset(0)), "{error:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_and_stops_carry_their_codes() {
    bounded(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let mut send = client.open_uni().await.unwrap();
        send.write_all(b"part").await.unwrap();
        let mut recv = server.accept_uni().await.unwrap();
        send.reset(5);
        assert!(matches!(send.acknowledged().await, Err(WriteError::ClosedStream)));
        let error = recv.read_to_end(100).await.unwrap_err();
        assert!(matches!(error, ReadError::Reset(5)), "{error:?}");
        assert!(matches!(recv.read(&mut [0; 4]).await, Err(ReadError::Reset(5))), "a reset stays one");

        let mut send = client.open_uni().await.unwrap();
        send.write_all(b"part").await.unwrap();
        let stopped = send.stopped();
        let mut recv = server.accept_uni().await.unwrap();
        recv.stop(6);
        assert!(matches!(recv.read(&mut [0; 4]).await, Err(ReadError::ClosedStream)));
        assert_eq!(stopped.await.unwrap(), Some(6));
        assert!(matches!(send.write(b"more").await, Err(WriteError::Stopped(6))));

        // Also a stop that comes before the stream is taken is heard of.
        let (mut ask, mut answer) = client.open_bi().await.unwrap();
        ask.write_all(b"never mind").await.unwrap();
        answer.stop(8);
        let mut marker = client.open_uni().await.unwrap();
        marker.write_all(b"sent after the stop").await.unwrap();
        let _marker = server.accept_uni().await.unwrap();
        let (taken, _question) = server.accept_bi().await.unwrap();
        assert_eq!(taken.stopped().await.unwrap(), Some(8));

        // A reader that goes away stops its stream.
        let mut send = client.open_uni().await.unwrap();
        send.write_all(b"part").await.unwrap();
        drop(server.accept_uni().await.unwrap());
        assert_eq!(send.stopped().await.unwrap(), Some(0));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_longer_than_allowed_is_not_read_on() {
    bounded(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let mut send = client.open_uni().await.unwrap();
        send.write_all(&pattern(5000, 1)).await.unwrap();
        send.finish();
        let mut recv = server.accept_uni().await.unwrap();
        assert!(matches!(recv.read_to_end(4999).await, Err(ReadError::TooLong { limit: 4999 })));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_attempt_leaves_no_connection() {
    bounded(async {
        let deaf = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let client = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let config = ClientConfig::new(
            tls::client_config_insecure(ALPN).unwrap(),
            posthaste_endpoint::default_transport(),
        );
        let attempt = client.connect(&config, deaf.local_addr().unwrap(), "localhost");
        assert!(tokio::time::timeout(Duration::from_millis(50), attempt).await.is_err());
        client.wait_idle().await;
        assert_eq!(client.open_connections(), 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_idle_connections_stay_and_go() {
    bounded(async {
        let pair = Pair::new();
        let mut held = Vec::new();
        for _ in 0..25 {
            let batch = (0..20).map(|_| {
                let (endpoint, config, address) = (pair.client.clone(), pair.config.clone(), pair.address);
                tokio::spawn(async move { endpoint.connect(&config, address, "localhost").await.unwrap() })
            });
            for connecting in batch.collect::<Vec<_>>() {
                held.push((connecting.await.unwrap(), pair.server.accept().await.unwrap()));
            }
        }
        assert_eq!(pair.server.open_connections(), 500);
        // All are alive. (Which server's end belongs to which client's is not known here.)
        for (client, _) in &held {
            let mut send = client.open_uni().await.unwrap();
            send.write_all(b"here").await.unwrap();
            send.finish();
        }
        for (_, server) in &held {
            assert_eq!(server.accept_uni().await.unwrap().read_to_end(10).await.unwrap(), b"here");
        }
        drop(held);
        pair.client.wait_idle().await;
        pair.server.wait_idle().await;
        assert_eq!((pair.client.open_connections(), pair.server.open_connections()), (0, 0));
    })
    .await;
}

#[test]
fn a_runtime_that_stops_is_an_error_and_no_hang() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (pair, client, _server) = runtime.block_on(bounded(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        (pair, client, server)
    }));
    runtime.shutdown_timeout(Duration::from_secs(5));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(bounded(async {
        assert!(matches!(client.open_bi().await, Err(ConnectionError::Socket(_))));
        client.closed().await;
        let error = pair.client.connect(&pair.config, pair.address, "localhost").await.unwrap_err();
        assert!(error.to_string().contains("driver has stopped"), "{error}");
        assert!(pair.server.accept().await.is_none());
        pair.server.wait_idle().await;
    }));
}

#[test]
fn outside_a_runtime_an_endpoint_says_what_is_missing() {
    let (server_tls, _) = identity();
    let error = Endpoint::server(
        "127.0.0.1:0".parse().unwrap(),
        ServerConfig::new(server_tls, posthaste_endpoint::default_transport()),
    )
    .unwrap_err();
    assert!(error.to_string().contains("tokio runtime"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_session_works_like_a_new_one() {
    bounded(async {
        let pair = Pair::new();
        for _ in 0..3 {
            let (client, server) = pair.connect().await;
            // A round trip on a stream leaves time for the server's session tickets to arrive before it.
            let mut send = server.open_uni().await.unwrap();
            send.write_all(b"after the tickets").await.unwrap();
            send.finish();
            client.accept_uni().await.unwrap().read_to_end(100).await.unwrap();
            send.acknowledged().await.unwrap();
            client.close(0, b"");
            server.closed().await;
        }
    })
    .await;
}

/// Connects, asks once, and tells what the client has sent and received by then, and how long that took.
async fn ask_once() -> (ConnectionStats, Duration) {
    let pair = Pair::new();
    let server = pair.server.clone();
    // As servers are made: a task for the connection, one for each request.
    tokio::spawn(async move {
        let connection = server.accept().await.unwrap();
        tokio::spawn(async move {
            let (mut send, mut recv) = connection.accept_bi().await.unwrap();
            tokio::spawn(async move {
                let request = recv.read_to_end(100).await.unwrap();
                send.write_bytes(request.into()).await.unwrap();
                send.finish();
            });
            connection.closed().await;
        });
    });
    let client = tokio::spawn(async move {
        let began = tokio::time::Instant::now();
        let client = pair.client.connect(&pair.config, pair.address, "localhost").await.unwrap();
        let (mut send, mut recv) = client.open_bi().await.unwrap();
        send.write_bytes("request".into()).await.unwrap();
        send.finish();
        assert_eq!(recv.read_to_end(100).await.unwrap(), b"request");
        (client.stats(), began.elapsed())
    });
    bounded(client).await.unwrap()
}

/// One thread, so that tasks run in an order that does not depend on the machine.
#[tokio::test]
async fn first_requests_and_answers_travel_with_the_end_of_the_handshake() {
    let (mut stats, mut took) = ask_once().await;
    for _ in 0..20 {
        if took < Duration::from_millis(200) {
            break;
        }
        // The machine is busy, and timers have sent more.
        (stats, took) = ask_once().await;
    }
    // Two for the hello with its two key shares, two for what acknowledges the server's flight, ends the handshake and
    // asks, one to acknowledge the answer.
    assert!(stats.sent.datagrams <= 5, "{stats:?}");
    // Two for the server's flight, two for the end of the handshake, session tickets and the answer.
    assert!(stats.received.datagrams <= 4, "{stats:?}");
}

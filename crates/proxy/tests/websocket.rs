//! WebSocket over all versions of HTTP: RFC 6455, RFC 8441, RFC 9220.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::{WebSocketStream, accept_async, client_async};

use crate::common::PATIENCE;
use crate::raw::{self, End, Raw};
use crate::recorder::{Recorder, Reply, When};
use crate::scene::proxy;
use crate::tunnels::{FIELDS, Front, Stream, WAYS, Way, joined, pass, rest};

/// RFC 9114 section 8.1.
const H3_REQUEST_CANCELLED: u64 = 0x10c;
const H3_MESSAGE_ERROR: u64 = 0x10e;

/// A client's messages come back; then it says goodbye.
async fn converse(mut client: WebSocketStream<Box<dyn Stream>>) {
    for message in [Message::text("hello"), Message::binary(vec![7; 300_000]), Message::text("")] {
        client.send(message.clone()).await.unwrap();
        assert!(client.next().await.unwrap().unwrap() == message);
    }
    client.close(None).await.unwrap();
    assert!(matches!(client.next().await, Some(Ok(Message::Close(_))) | None));
    assert!(client.next().await.is_none());
}

#[tokio::test]
async fn messages_pass_both_ways_over_all_versions() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut server = accept_async(stream).await.unwrap();
                while let Some(Ok(message)) = server.next().await {
                    if message.is_text() || message.is_binary() {
                        server.send(message).await.unwrap();
                    }
                }
            });
        }
    });
    for way in WAYS {
        let front = Front::new(way, address, |_| {}).await;
        let conversation = async {
            if let Front::Tcp(server, Way::Http1) = &front {
                // The whole handshake of another implementation.
                let stream: Box<dyn Stream> = Box::new(server.try_connect("http/1.1").await.unwrap());
                let request = "ws://localhost/chat".into_client_request().unwrap();
                converse(client_async(request, stream).await.unwrap().0).await;
            } else {
                let tunnel = front.open().await.unwrap();
                let client = WebSocketStream::from_raw_socket(tunnel.stream, Role::Client, None);
                converse(client.await).await;
            }
        };
        timeout(PATIENCE, conversation).await.unwrap_or_else(|_| panic!("{way:?} hangs"));
    }
}

#[tokio::test]
async fn an_upstream_is_asked_by_http1() {
    for way in WAYS {
        let joined = joined(way, |_| {}).await;
        let head = joined.head.to_ascii_lowercase();
        assert!(head.starts_with("get /chat http/1.1\r\nhost: localhost\r\n"), "{head}");
        for field in ["upgrade: websocket", "connection: upgrade", "sec-websocket-version: 13"] {
            assert_eq!(head.matches(&format!("\r\n{field}\r\n")).count(), 1, "{head}");
        }
        assert_eq!(head.matches("\r\nsec-websocket-key: ").count(), 1, "{head}");
        assert!(!head.contains("content-length") && !head.contains("chunked"), "{head}");
    }
}

#[tokio::test]
async fn other_answers_reach_the_client() {
    let accepted =
        "HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n";
    for (answer, statuses) in [
        ("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", [403; 3]),
        ("HTTP/1.1 426 No\r\nSec-WebSocket-Version: 14\r\nContent-Length: 0\r\n\r\n", [426; 3]),
        ("HTTP/1.1 308 There\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", [308; 3]),
        // A success would be an agreement where the client asks by CONNECT.
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", [200, 502, 502]),
        // Agreements to something else.
        (accepted, [502; 3]),
        ("HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", [502; 3]),
    ] {
        for (way, status) in WAYS.into_iter().zip(statuses) {
            let upstream = Recorder::start(When::Whole, move |_| Reply::keep(answer)).await;
            let front = Front::new(way, upstream.address, |_| {}).await;
            assert_eq!(front.open().await.err(), Some(status), "{way:?}: {answer}");
        }
    }
}

#[tokio::test]
async fn questions_that_are_not_whole_or_for_others_do_not_reach_the_upstream() {
    for way in WAYS {
        let upstream = Recorder::start(When::Whole, |_| Reply::ok(b"")).await;
        let front = Front::new(way, upstream.address, |_| {}).await;
        assert_eq!(front.ask("websocket", &[]).await.err(), Some(400), "{way:?}");
        let twice = [FIELDS, FIELDS].concat();
        assert_eq!(front.ask("websocket", &twice).await.err(), Some(400), "{way:?}");
        assert!(upstream.messages().is_empty());
        // HTTP/1.1 permits to ignore the question.
        let status = if way == Way::Http1 { 200 } else { 501 };
        assert_eq!(front.ask("connect-udp", FIELDS).await.err(), Some(status), "{way:?}");
        for message in upstream.messages() {
            assert!(message.all("upgrade").is_empty() && message.all("connection").is_empty());
        }
    }
}

#[tokio::test]
async fn a_server_that_offers_nothing_is_asked_in_vain() {
    let upstream = Recorder::start(When::Whole, |_| Reply::ok(b"")).await;
    let proxy = || proxy(&format!("http://{}", upstream.address), |_| {});
    let front = Front::of(Way::Http1, proxy(), false).await;
    assert_eq!(front.open().await.err(), Some(200));
    let server = crate::common::Server::start(proxy(), |_| {});
    let connect = raw::headers(&[
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":authority", "localhost"),
        (":path", "/"),
    ]);
    assert_eq!(Raw::connect(&server).await.ask(&connect).await, End::Reset(H3_MESSAGE_ERROR));
}

#[tokio::test]
async fn either_end_may_end_first() {
    for way in WAYS {
        let mut ends = joined(way, |_| {}).await;
        let content = "0123456789".repeat(20_000).into_bytes();
        pass(&mut ends.client.stream, &mut ends.upstream, &content).await;
        ends.client.stream.shutdown().await.unwrap();
        assert!(rest(&mut ends.upstream).await.is_empty(), "{way:?}: the client has ended");
        pass(&mut ends.upstream, &mut ends.client.stream, &content).await;
        drop(ends.upstream);
        assert!(rest(&mut ends.client.stream).await.is_empty());

        let mut ends = joined(way, |_| {}).await;
        pass(&mut ends.upstream, &mut ends.client.stream, b"bye").await;
        ends.upstream.shutdown().await.unwrap();
        assert!(rest(&mut ends.client.stream).await.is_empty(), "{way:?}: the upstream has ended");
        pass(&mut ends.client.stream, &mut ends.upstream, &content).await;
        ends.client.stream.shutdown().await.unwrap();
        assert!(rest(&mut ends.upstream).await.is_empty());
    }
}

#[tokio::test]
async fn an_end_that_vanishes_ends_the_other() {
    for way in WAYS {
        let mut ends = joined(way, |_| {}).await;
        pass(&mut ends.client.stream, &mut ends.upstream, b"here").await;
        drop(ends.client);
        // spec: rfc9114 4.4 error-ends-tcp
        assert!(rest(&mut ends.upstream).await.is_empty(), "{way:?}: the client has left");

        let mut ends = joined(way, |_| {}).await;
        pass(&mut ends.upstream, &mut ends.client.stream, b"here").await;
        ends.upstream.set_zero_linger().unwrap();
        drop(ends.upstream);
        assert!(rest(&mut ends.client.stream).await.is_empty(), "{way:?}: the upstream has left");
        if way == Way::Http3 {
            assert_eq!(ends.client.reset.await, Ok(H3_REQUEST_CANCELLED), "RFC 9220 section 3");
        }
    }
}

#[tokio::test]
async fn a_client_that_resets_its_stream_ends_the_connection_to_the_upstream() {
    // spec: rfc9114 4.4 reset-ends-tcp
    let (address, mut connections) = crate::tunnels::upstream().await;
    let Front::Quic(server) = Front::new(Way::Http3, address, |_| {}).await else { panic!("over QUIC") };
    let raw = Raw::connect(&server).await;
    let (mut send, recv) = raw.open().await;
    let connect = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":authority", "localhost"),
    ];
    let head = raw::headers(&[&connect[..], &[(":path", "/")], FIELDS].concat());
    send.write_all(&head).await.unwrap();
    let (mut upstream, _) = connections.recv().await.unwrap();
    send.reset(H3_REQUEST_CANCELLED);
    assert!(rest(&mut upstream).await.is_empty());
    drop(recv);
}

#[tokio::test]
async fn a_tunnel_in_which_nothing_moves_ends() {
    for way in WAYS {
        let short = Duration::from_millis(200);
        let mut ends = joined(way, |options| options.tunnel_timeout = short).await;
        assert!(rest(&mut ends.client.stream).await.is_empty(), "{way:?}");
        assert!(rest(&mut ends.upstream).await.is_empty(), "{way:?}");
    }
}

#[tokio::test]
async fn the_receiver_sets_the_pace() {
    /// More than all buffers between both ends have room for.
    const PLENTY: usize = 64 << 20;

    /// Writes until nothing is taken for a second; how much was taken.
    async fn fill(stream: &mut (impl tokio::io::AsyncWrite + Unpin)) -> usize {
        let (piece, mut taken) = (vec![0; 64 * 1024], 0);
        while taken < PLENTY {
            match timeout(Duration::from_secs(1), stream.write(&piece)).await {
                Ok(written) => taken += written.unwrap(),
                Err(_) => break,
            }
        }
        taken
    }

    for way in WAYS {
        let mut ends = joined(way, |_| {}).await;
        assert!(fill(&mut ends.upstream).await < PLENTY, "{way:?}: the client does not read");
        let mut ends = joined(way, |_| {}).await;
        assert!(fill(&mut ends.client.stream).await < PLENTY, "{way:?}: the upstream does not read");
    }
}

#[tokio::test]
async fn a_server_that_stops_lets_tunnels_go_on_for_a_while() {
    for way in WAYS {
        let mut ends = joined(way, |_| {}).await;
        match ends.front {
            Front::Tcp(mut server, _) => {
                server.stop();
                // However long the grace is.
                pass(&mut ends.client.stream, &mut ends.upstream, b"still here").await;
                server.cut();
                assert_eq!(server.ended().await.cut_off, 1, "{way:?}");
            }
            Front::Quic(server) => {
                let ended = timeout(PATIENCE, server.stop()).await.expect("no end").unwrap();
                assert_eq!(ended.cut_off, 1);
            }
        }
        assert!(rest(&mut ends.upstream).await.is_empty(), "{way:?}");
        rest(&mut ends.client.stream).await;
    }
}

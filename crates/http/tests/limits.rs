//! Every bound on what the other end can make us hold or do, pushed past from outside.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{PATIENCE, Server, by, closed, listen, listen_with, say, sized, trust, visit};
use bytes::Bytes;
use http::StatusCode;
use posthaste_endpoint::{
    CloseReason, Connection, ConnectionError, Endpoint, ReadError, RecvStream, SendStream, TransportConfig,
    default_transport,
};
use posthaste_http::{Client, ClientError, ClientOptions, Request, ServerOptions, service_fn, text};
use posthaste_http3::{
    MAX_CONTROL_FRAME, MAX_FRAME_PAYLOAD, MAX_UNIDIRECTIONAL_STREAMS, MessageKind, MessageReader, Part,
    encode,
};
use tokio::time::timeout;

const EXCESSIVE_LOAD: u64 = 0x107;

fn server(configure: impl FnOnce(&mut ServerOptions)) -> Server {
    Server::start(by(|_: &str| text(StatusCode::OK, "")), configure)
}

/// A request with a field of this many bytes.
fn request(length: usize) -> Bytes {
    let request = http::Request::get("https://localhost/").header("x", "y".repeat(length)).body(()).unwrap();
    encode::request(&request).unwrap().into()
}

/// Sends a whole request and reads the status of its response.
async fn ask(connection: &Connection, request: Bytes) -> StatusCode {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_bytes(request).await.unwrap();
    send.finish();
    answer(&mut recv).await.0.status()
}

/// Reads a whole response without trailers.
async fn answer(recv: &mut RecvStream) -> (http::Response<()>, Bytes) {
    let mut response = Bytes::from(timeout(PATIENCE, recv.read_to_end(100_000)).await.unwrap().unwrap());
    let mut reader = MessageReader::new(MessageKind::Response { to_head: false }, 100_000);
    let Ok(Some(Part::Response(head))) = reader.next(&mut response) else { panic!("no response") };
    let mut body = Vec::new();
    while let Some(part) = reader.next(&mut response).unwrap() {
        let Part::Data(data) = part else { panic!("{part:?}") };
        body.extend_from_slice(&data);
    }
    reader.end().unwrap();
    (head, body.into())
}

/// Frame type and length as they are on the wire; lengths from 64 on.
fn frame_header(frame_type: &[u8], length: u64) -> Vec<u8> {
    let length = u32::try_from(length).unwrap() | 0x8000_0000;
    [frame_type, &length.to_be_bytes()].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_section_too_large_is_answered_and_a_frame_too_large_ends_the_connection() {
    let server = server(|options| options.max_header_size = 2000);
    let (_endpoint, connection) = visit(&server).await;
    assert_eq!(ask(&connection, request(1700)).await, StatusCode::OK);
    assert_eq!(ask(&connection, request(2000)).await, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    assert_eq!(ask(&connection, request(100_000)).await, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    assert_eq!(ask(&connection, request(0)).await, StatusCode::OK, "the connection goes on");

    let (mut send, _recv) = connection.open_bi().await.unwrap();
    send.write_all(&frame_header(&[0x01], MAX_FRAME_PAYLOAD + 1)).await.unwrap();
    assert_eq!(closed(&connection).await, EXCESSIVE_LOAD);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_control_stream_and_qpack_streams_keep_little() {
    let settings = [&[0x00][..], &frame_header(&[0x04], MAX_CONTROL_FRAME + 1)].concat();
    let update = frame_header(&[0x80, 0x0f, 0x07, 0x00], MAX_CONTROL_FRAME + 1);
    let update = [&[0x00, 0x04, 0x00][..], &update].concat();
    let mut endless_id = vec![0x03, 0x7f];
    endless_id.extend([0xff; 12]);
    let streams: [(&[u8], u64); 5] = [
        (&settings, EXCESSIVE_LOAD),
        (&update, EXCESSIVE_LOAD),
        // A capacity of 4,097, and an insertion without any.
        (&[0x02, 0x3f, 0xe2, 0x1f], 0x201),
        (&[0x02, 0x41, b'a', 0x00], 0x201),
        (&endless_id, 0x202),
    ];
    let server = server(|_| {});
    for (bytes, code) in streams {
        let (_endpoint, connection) = visit(&server).await;
        let _stream = say(&connection, bytes).await;
        assert_eq!(closed(&connection).await, code, "{bytes:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_passed_over_is_not_kept() {
    let server = server(|_| {});
    let (_endpoint, connection) = visit(&server).await;
    // SETTINGS, and a reserved frame that never ends: more of it than all windows together.
    let mut control =
        say(&connection, &[0x00, 0x04, 0x00, 0x21, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).await;
    let (mut send, _recv) = connection.open_bi().await.unwrap();
    send.write_all(&[0x21, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).await.unwrap();
    let chunk = Bytes::from(vec![0; 1 << 20]);
    for _ in 0..32 {
        timeout(PATIENCE, control.write_bytes(chunk.clone())).await.expect("it is not read").unwrap();
        timeout(PATIENCE, send.write_bytes(chunk.clone())).await.expect("it is not read").unwrap();
    }
    assert_eq!(ask(&connection, request(0)).await, StatusCode::OK);
}

/// Permits more streams than HTTP/3 reads at once.
fn many_streams() -> TransportConfig {
    let mut transport = default_transport();
    transport.max_concurrent_uni_streams = 2 * MAX_UNIDIRECTIONAL_STREAMS as u64;
    transport
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_streams_of_unknown_types_as_the_transport_permits_may_come_at_once() {
    let server = server(|_| {});
    let (_endpoint, connection) = visit(&server).await;
    let mut streams = Vec::new();
    for _ in 0..default_transport().max_concurrent_uni_streams {
        let mut stream = timeout(PATIENCE, connection.open_uni()).await.expect("it is permitted").unwrap();
        // A type of two bytes, half of which is late.
        stream.write_all(&[0x40]).await.unwrap();
        streams.push(stream);
    }
    assert_eq!(ask(&connection, request(0)).await, StatusCode::OK);
    for stream in &mut streams {
        stream.write_all(&[0x21]).await.unwrap();
    }
    for stream in streams {
        let stopped = timeout(PATIENCE, stream.stopped()).await.expect("it is read").unwrap();
        assert_eq!(stopped, Some(0x103));
    }
    assert_eq!(ask(&connection, request(0)).await, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_without_a_type_are_few_and_those_of_unknown_types_do_not_count() {
    let answer = by(|_: &str| text(StatusCode::OK, ""));
    let server = Server::start_at(listen_with(many_streams()), answer, |_| {});
    let (_endpoint, connection) = visit(&server).await;
    for _ in 0..100 {
        let stream = say(&connection, &[0x21]).await;
        let stopped = timeout(PATIENCE, stream.stopped()).await.expect("it is read").unwrap();
        assert_eq!(stopped, Some(0x103));
    }
    let mut silent = Vec::new();
    for _ in 0..MAX_UNIDIRECTIONAL_STREAMS {
        silent.push(say(&connection, &[0x40]).await);
    }
    assert_eq!(ask(&connection, request(0)).await, StatusCode::OK);
    silent.push(say(&connection, &[0x40]).await);
    assert_eq!(closed(&connection).await, EXCESSIVE_LOAD);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_never_become_any_end_the_connection() {
    let server = server(|_| {});
    let (_endpoint, connection) = visit(&server).await;
    let abuse = async {
        // More than are borne, for the last may still be on their way when the server has had enough.
        for _ in 0..2000 {
            let Ok((mut send, _recv)) = connection.open_bi().await else { return };
            let _ = send.write_all(&[0x01]).await;
            send.reset(0x10c);
        }
    };
    timeout(PATIENCE, abuse).await.expect("streams run out");
    assert_eq!(closed(&connection).await, EXCESSIVE_LOAD);
}

/// Sends whole requests for a path, and gives each up at once. False if the server has had enough.
async fn give_up(connection: &Connection, path: &str, count: usize) -> bool {
    let request = http::Request::get(format!("https://localhost/{path}")).body(()).unwrap();
    let request = Bytes::from(encode::request(&request).unwrap());
    for _ in 0..count {
        let Ok((mut send, mut recv)) = connection.open_bi().await else { return false };
        let _ = send.write_bytes(request.clone()).await;
        send.finish();
        recv.stop(0x10c);
    }
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_given_up_at_once_end_the_connection() {
    let server = Server::start(
        service_fn(|request: Request| async move {
            if request.uri().path() != "/" {
                std::future::pending::<()>().await;
            }
            text(StatusCode::OK, "")
        }),
        |_| {},
    );
    // Rapid reset (CVE-2023-44487): more than are borne, for the last may still be on their way.
    let (_endpoint, connection) = visit(&server).await;
    timeout(PATIENCE, give_up(&connection, "never", 5000)).await.expect("streams run out");
    assert_eq!(closed(&connection).await, EXCESSIVE_LOAD);

    // A client that uses most of what it asks for may give as many up.
    let (_endpoint, connection) = visit(&server).await;
    for _ in 0..6 {
        for _ in 0..250 {
            assert_eq!(ask(&connection, request(0)).await, StatusCode::OK);
        }
        assert!(give_up(&connection, "never", 200).await);
    }
    assert_eq!(ask(&connection, request(0)).await, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_do_not_come_and_bodies_that_nobody_wants_are_not_waited_for() {
    let server = server(|options| options.header_timeout = Duration::from_millis(50));
    let (_endpoint, connection) = visit(&server).await;
    // The second stream opens the first (RFC 9000 section 3.2), on which nothing comes.
    let (_send, mut silent) = connection.open_bi().await.unwrap();
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(&request(100)[..50]).await.unwrap();
    let (head, body) = answer(&mut recv).await;
    assert_eq!(head.status(), StatusCode::REQUEST_TIMEOUT);
    assert!(head.headers().contains_key("date") && !head.headers().contains_key("connection"), "{head:?}");
    assert_eq!(&body[..], b"408 Request Timeout\n");
    let stopped = timeout(PATIENCE, send.stopped()).await.expect("the rest is wanted").unwrap();
    assert_eq!(stopped, Some(0x100), "RFC 9114 section 4.1");
    let end = timeout(PATIENCE, silent.read_to_end(10)).await.expect("the server waits");
    assert!(matches!(end, Err(ReadError::Reset(0x10c))), "{end:?}");
    assert_eq!(ask(&connection, request(0)).await, StatusCode::OK, "the connection goes on");

    let (mut send, _recv) = connection.open_bi().await.unwrap();
    send.write_bytes(request(0)).await.unwrap();
    let body = [frame_header(&[0x00], 1 << 29), vec![0; 200_000]].concat();
    // The server may have asked to stop before it is all written.
    let _ = send.write_all(&body).await;
    let stopped = timeout(PATIENCE, send.stopped()).await.expect("the body is wanted").unwrap();
    assert_eq!(stopped, Some(0x100), "RFC 9114 section 4.1");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_counted() {
    let server = server(|options| options.max_connections = 1);
    let (_endpoint, first) = visit(&server).await;
    assert_eq!(ask(&first, request(0)).await, StatusCode::OK);
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    // The word may be here before the handshake is over.
    let reason = match endpoint.connect(&server.client_config(), server.address, "localhost").await {
        Ok(second) => timeout(PATIENCE, second.closed()).await.expect("the connection stays"),
        Err(ConnectionError::Closed(reason)) => reason,
        Err(other) => panic!("{other}"),
    };
    assert!(matches!(reason, CloseReason::PeerApplication { error_code: EXCESSIVE_LOAD, .. }), "{reason}");
    assert_eq!(ask(&first, request(0)).await, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_do_not_read_hold_up_nobody() {
    let large = Bytes::from(vec![0; 10_000_000]);
    let service = by(move |path| match path {
        "/large" => sized(StatusCode::OK, large.clone()),
        _ => text(StatusCode::OK, ""),
    });
    let server = Server::start(service, |options| options.max_requests = 4);
    let (_endpoint, idle) = visit(&server).await;
    let mut unread = Vec::new();
    for _ in 0..20 {
        let (mut send, recv) = idle.open_bi().await.unwrap();
        let request = http::Request::get("https://localhost/large").body(()).unwrap();
        send.write_bytes(encode::request(&request).unwrap().into()).await.unwrap();
        send.finish();
        unread.push((send, recv));
    }
    // The first of them has begun to arrive.
    let mut byte = [0; 1];
    timeout(PATIENCE, unread[0].1.read(&mut byte)).await.expect("nothing comes").unwrap();
    let (_endpoint, other) = visit(&server).await;
    for _ in 0..10 {
        assert_eq!(ask(&other, request(0)).await, StatusCode::OK);
    }
}

/// What a client makes of a server that does `act` with its request.
async fn fetch<F: Future<Output = ()> + Send>(
    act: impl FnOnce(Connection, SendStream, RecvStream) -> F + Send + 'static,
) -> (Result<StatusCode, ClientError>, Option<CloseReason>) {
    let (endpoint, certificate) = listen();
    let uri = format!("https://127.0.0.1:{}/", endpoint.local_addr().unwrap().port()).parse().unwrap();
    let acting = tokio::spawn(async move {
        let connection = endpoint.accept().await.unwrap();
        let (send, recv) = connection.accept_bi().await.unwrap();
        act(connection.clone(), send, recv).await;
        timeout(PATIENCE, connection.closed()).await.ok()
    });
    let quic = trust(&certificate).with_transport(Arc::new(many_streams()));
    let client = Client::new(ClientOptions { max_header_size: 2000, ..ClientOptions::new(quic) });
    let result = timeout(PATIENCE, client.get(&uri)).await.expect("the client waits");
    client.close().await;
    (result.map(|response| response.status()), acting.await.unwrap())
}

/// A response's head with a field of this many bytes.
fn response(status: u16, length: usize) -> Bytes {
    let response = http::Response::builder().status(status).header("x", "y".repeat(length));
    encode::response(&response.body(()).unwrap()).into()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_has_limits_too() {
    let answer = |heads: Vec<Bytes>| {
        fetch(|_, mut send: SendStream, recv| async move {
            for head in heads {
                // The client may have had enough.
                let _ = send.write_bytes(head).await;
            }
            send.finish();
            let _ = send.acknowledged().await;
            drop(recv);
        })
    };
    let hints = |count| {
        let mut heads = vec![response(103, 0); count];
        heads.push(response(200, 0));
        heads
    };
    assert_eq!(answer(vec![response(200, 1700)]).await.0.unwrap(), StatusCode::OK);
    assert_eq!(answer(hints(32)).await.0.unwrap(), StatusCode::OK);
    for heads in [vec![response(200, 2000)], hints(1000)] {
        let error = answer(heads).await.0.unwrap_err();
        assert!(matches!(error, ClientError::Protocol { .. }), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_closes_on_servers_that_overdo_it() {
    // spec: rfc9114 6.1 server-request-closes
    let streams = fetch(|connection: Connection, send, recv| async move {
        let mut silent = Vec::new();
        for _ in 0..=MAX_UNIDIRECTIONAL_STREAMS {
            silent.push(say(&connection, &[0x40]).await);
        }
        closed(&connection).await;
        drop((send, recv));
    });
    let settings = fetch(|connection: Connection, send, recv| async move {
        let oversized = [&[0x00][..], &frame_header(&[0x04], MAX_CONTROL_FRAME + 1)].concat();
        let control = say(&connection, &oversized).await;
        closed(&connection).await;
        drop((send, recv, control));
    });
    let request = fetch(|connection: Connection, send, recv| async move {
        let (mut asking, answer) = connection.open_bi().await.unwrap();
        asking.write_all(&[0x01]).await.unwrap();
        closed(&connection).await;
        drop((send, recv, asking, answer));
    });
    for ((result, reason), code) in
        [(streams.await, EXCESSIVE_LOAD), (settings.await, EXCESSIVE_LOAD), (request.await, 0x103)]
    {
        assert!(matches!(result, Err(ClientError::Protocol { .. })), "{result:?}");
        let is_told =
            matches!(reason, Some(CloseReason::PeerApplication { error_code, .. }) if error_code == code);
        assert!(is_told, "{reason:?}");
    }
}

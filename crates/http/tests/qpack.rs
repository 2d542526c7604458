//! QPACK's dynamic table (RFC 9204) between our ends, and towards peers that are made by hand.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use http::{HeaderMap, HeaderName, Method, StatusCode};
use posthaste_endpoint::{Connection, RecvStream, SendStream};
use posthaste_http::{Request, text};
use posthaste_http3::{
    DECODER_TABLE, MAX_BLOCKED_STREAMS, MessageKind, MessageReader, Part, Settings, encode,
};
use tokio::time::timeout;

use crate::common::{App, PATIENCE, Server, body, closed, say, visit};

/// Answers with what the request's fields say.
fn mirror() -> impl App {
    posthaste_http::service_fn(|request: Request| {
        let value = |name: &str| request.headers().get(name).map_or("-", |value| value.to_str().unwrap());
        let said = format!("{} {} {}", value("cookie"), value("x-custom"), request.uri().path());
        let mut response = text(StatusCode::OK, "");
        response
            .headers_mut()
            .insert("x-answer", "always the same and long enough to count".parse().unwrap());
        *response.body_mut() = said.into();
        response.headers_mut().remove("content-length");
        std::future::ready(response)
    })
}

async fn read(stream: &mut RecvStream) -> Bytes {
    timeout(PATIENCE, stream.read_chunk(1000)).await.expect("nothing comes").unwrap().unwrap()
}

/// `:method GET, :scheme https`, then `:authority` and `:path` as the first two entries from the base on.
const WAITS: &[u8] = b"\x01\x06\x03\x81\xd1\xd7\x10\x11";

/// The encoder stream with these entries.
const ENTRIES: &[u8] = b"\x02\x3f\xe1\x1f\xc0\x09localhost\xc1\x07/a/path";

#[tokio::test(flavor = "multi_thread")]
async fn what_repeats_crosses_once() {
    // spec: rfc9204 2.2.2.1 sections-acknowledged, 4.2 one-of-each, 4.2 not-closed, 3.2.3 within-maximum
    let server = Server::start(mirror(), |_| {});
    let client = server.client();
    let mut fields = HeaderMap::new();
    let cookie = "0123456789abcdef".repeat(64);
    fields.insert("cookie", cookie.parse().unwrap());
    fields.insert("x-custom", "value".parse().unwrap());
    let mut sent = Vec::new();
    for turn in 0..20 {
        // Four at a time: some of them wait for what others insert.
        let asked = (0..4).map(|which| {
            let (client, fields) = (client.clone(), fields.clone());
            let uri = server.uri(&format!("/{turn}/{which}"));
            async move {
                let response = client.request(&Method::GET, &uri, &fields).await.unwrap();
                assert_eq!(response.headers()["x-answer"], "always the same and long enough to count");
                (uri.path().to_owned(), body(response).await.unwrap())
            }
        });
        for (path, said) in timeout(PATIENCE, futures::future::join_all(asked)).await.unwrap() {
            assert_eq!(String::from_utf8(said).unwrap(), format!("{cookie} value {path}"));
        }
        sent.push(client.connections()[0].stats.sent.bytes.get());
    }
    assert_eq!(client.connections().len(), 1);
    // Four cookies are 3,000 bytes, even in Huffman's code.
    let last = sent[19] - sent[9];
    assert!(last < 10 * 1500, "{last} bytes for forty requests");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_waits_for_its_entries_and_is_acknowledged() {
    // spec: rfc9204 2.2.2.1 sections-acknowledged
    let server = Server::start(mirror(), |_| {});
    let (_endpoint, connection) = visit(&server).await;
    let mut control = timeout(PATIENCE, connection.accept_uni()).await.unwrap().unwrap();
    let begin = read(&mut control).await;
    let settings = Settings::parse(&begin[3..3 + usize::from(begin[2])]).unwrap();
    let announced = (settings.qpack_max_table_capacity, settings.qpack_blocked_streams);
    assert_eq!(announced, (DECODER_TABLE, MAX_BLOCKED_STREAMS));

    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(WAITS).await.unwrap();
    send.finish();
    let early = timeout(Duration::from_millis(100), recv.read_chunk(1000)).await;
    assert!(early.is_err(), "an answer to a request that cannot be read");
    let _encoder = say(&connection, ENTRIES).await;
    let mut answer = Bytes::from(timeout(PATIENCE, recv.read_to_end(1000)).await.unwrap().unwrap());
    let mut reader = MessageReader::new(MessageKind::Response { to_head: false }, 1000);
    assert!(matches!(reader.next(&mut answer), Ok(Some(Part::Response(head))) if head.status() == 200));
    let Ok(Some(Part::Data(data))) = reader.next(&mut answer) else { panic!("no body") };
    assert_eq!(data, "- - /a/path");

    // The insertions, which may be acknowledged before the section. The section itself, whose acknowledgement would be a
    // packet of its own, with the answer to the next request.
    let (mut next, _answer) = connection.open_bi().await.unwrap();
    next.write_all(WAITS).await.unwrap();
    let mut decoder = timeout(PATIENCE, connection.accept_uni()).await.unwrap().unwrap();
    let mut said = Vec::new();
    while said.last() != Some(&0x80) {
        said.extend(read(&mut decoder).await);
    }
    assert!(said == b"\x03\x80" || said == b"\x03\x02\x80", "{said:x?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_waits_can_be_given_up() {
    let server = Server::start(mirror(), |options| options.header_timeout = Duration::from_millis(300));
    let (_endpoint, connection) = visit(&server).await;
    let _control = timeout(PATIENCE, connection.accept_uni()).await.unwrap().unwrap();
    let (mut send, _recv) = connection.open_bi().await.unwrap();
    send.write_all(WAITS).await.unwrap();
    // The first is reset; behind the second more arrives than is read, and it waits for ever.
    let (mut other, mut answer) = connection.open_bi().await.unwrap();
    other.write_all(&[WAITS, b"\x00\x41\x00", &[b'x'; 256]].concat()).await.unwrap();
    send.reset(0x10c);
    let mut decoder = timeout(PATIENCE, connection.accept_uni()).await.unwrap().unwrap();
    let mut said = Vec::new();
    while said.len() < 3 {
        said.extend(read(&mut decoder).await);
    }
    said.sort_unstable();
    assert_eq!(said, b"\x03\x40\x44", "both are cancelled");
    let late = timeout(PATIENCE, answer.read_to_end(1000)).await.unwrap().unwrap();
    let mut reader = MessageReader::new(MessageKind::Response { to_head: false }, 1000);
    let Ok(Some(Part::Response(head))) = reader.next(&mut late.into()) else { panic!("no response") };
    assert_eq!(head.status(), StatusCode::REQUEST_TIMEOUT, "the second is too late");
    // The connection goes on.
    let asked = http::Request::get("https://localhost/").body(()).unwrap();
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_bytes(encode::request(&asked).unwrap().into()).await.unwrap();
    send.finish();
    assert!(!timeout(PATIENCE, recv.read_to_end(1000)).await.unwrap().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_client_gets_the_rfcs_error() {
    // spec: rfc9204 2.1.2 too-many-blocked-closes, 2.2.3 evicted-in-instruction-closes
    // spec: rfc9204 3.2.2 entry-too-large-closes, 4.4.1 needless-acknowledgment-closes
    let server = Server::start(mirror(), |_| {});
    let streams: [(&str, &[u8], u64); 5] = [
        ("a duplicate of nothing", b"\x02\x3f\xe1\x1f\x00", 0x201),
        ("an entry larger than the table", b"\x02\x21\x41a\x00", 0x201),
        ("a string that cannot fit", b"\x02\x3f\xe1\x1f\xc0\x7f\xff\xff\x7f", 0x201),
        ("an acknowledgement of nothing", b"\x03\x80", 0x202),
        ("an increment beyond the insertions", b"\x03\x01", 0x202),
    ];
    for (what, bytes, code) in streams {
        let (_endpoint, connection) = visit(&server).await;
        let _stream = say(&connection, bytes).await;
        assert_eq!(closed(&connection).await, code, "{what}");
    }
    let (_endpoint, connection) = visit(&server).await;
    let _encoder = say(&connection, ENTRIES).await;
    let (mut send, _recv) = connection.open_bi().await.unwrap();
    // The third entry from the base on, where two are required.
    let _ = send.write_all(b"\x01\x05\x03\x81\xd1\xd7\x12").await;
    assert_eq!(closed(&connection).await, 0x200);

    let (_endpoint, connection) = visit(&server).await;
    let mut waiting = Vec::new();
    for _ in 0..=MAX_BLOCKED_STREAMS {
        let Ok(Ok((mut send, recv))) = timeout(Duration::from_secs(5), connection.open_bi()).await else {
            break;
        };
        if send.write_all(WAITS).await.is_err() {
            break;
        }
        waiting.push((send, recv));
    }
    assert_eq!(closed(&connection).await, 0x200, "{} streams wait", waiting.len());
}

/// The server's control stream and its QPACK streams, by their types, once a client that has a table has made it open them;
/// and the client's own.
async fn critical_streams(connection: &Connection) -> ([RecvStream; 3], [SendStream; 2]) {
    let settings =
        Settings { qpack_max_table_capacity: 4096, qpack_blocked_streams: 16, ..Settings::default() };
    let control = say(connection, &encode::control_stream(&settings, None)).await;
    let encoder = say(connection, ENTRIES).await;
    let mut streams = [None, None, None];
    while streams.iter().any(Option::is_none) {
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        send.write_all(WAITS).await.unwrap();
        send.finish();
        recv.read_to_end(10_000).await.unwrap();
        while let Some(Ok(mut stream)) = connection.accept_uni().now_or_never() {
            let kind = usize::from(read(&mut stream).await[0]);
            streams[if kind == 0 { 0 } else { kind - 1 }] = Some(stream);
        }
    }
    (streams.map(Option::unwrap), [control, encoder])
}

#[tokio::test(flavor = "multi_thread")]
async fn qpack_streams_that_the_peer_stops_end_the_connection() {
    // spec: rfc9204 4.2 closed-closes
    for which in [1, 2] {
        let server = Server::start(mirror(), |_| {});
        let (_endpoint, connection) = visit(&server).await;
        let opened = timeout(PATIENCE, critical_streams(&connection)).await;
        let (mut streams, _own) = opened.expect("a stream is not opened");
        // Without further requests there are no further instructions, which would meet a stream that is stopped.
        tokio::time::sleep(Duration::from_millis(200)).await;
        streams[which].stop(0x10c);
        assert_eq!(closed(&connection).await, 0x104, "{which}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_stay_literals() {
    // spec: rfc9204 4.5.4 never-indexed-stays-literal
    let server = Server::start(mirror(), |_| {});
    let client = server.client();
    let mut fields = HeaderMap::new();
    fields.insert(
        HeaderName::from_static("authorization"),
        "Bearer 0123456789abcdef".repeat(20).parse().unwrap(),
    );
    for _ in 0..5 {
        client.request(&Method::GET, &server.uri("/"), &fields).await.unwrap();
    }
    let before = client.connections()[0].stats.sent.bytes.get();
    for _ in 0..5 {
        body(client.request(&Method::GET, &server.uri("/"), &fields).await.unwrap()).await.unwrap();
    }
    let sent = client.connections()[0].stats.sent.bytes.get() - before;
    assert!(sent > 5 * 300, "{sent} bytes: each has its own");
}

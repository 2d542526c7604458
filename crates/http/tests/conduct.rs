//! What each end does on the wire, seen by an end that is made by hand (RFC 9114).

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri};
use posthaste_endpoint::{Connection, Endpoint, RecvStream, SendStream};
use posthaste_http::{Client, ClientError, ClientOptions, text};
use posthaste_http3::{MessageKind, MessageReader, Part, Settings, encode};
use tokio::time::timeout;

use crate::common::{PATIENCE, Server, body, by, closed, listen, trust, visit};

/// Type of a control stream, and type and length of its SETTINGS.
fn assert_begins_a_control_stream(begin: &[u8]) {
    assert_eq!(begin[..2], [0x00, 0x04], "{begin:x?}");
    let length = usize::from(begin[2]);
    assert!(begin.len() >= 3 + length, "SETTINGS are not whole: {begin:x?}");
    Settings::parse(&begin[3..3 + length]).unwrap();
}

/// What has arrived of the peer's control stream, which it opens first, and the stream.
async fn control_of(connection: &Connection) -> (Bytes, RecvStream) {
    let mut stream = timeout(PATIENCE, connection.accept_uni()).await.unwrap().unwrap();
    let begin = timeout(PATIENCE, stream.read_chunk(1000)).await.unwrap().unwrap().unwrap();
    (begin, stream)
}

fn response(status: u16) -> Bytes {
    encode::response(&http::Response::builder().status(status).body(()).unwrap()).into()
}

/// A whole request, which ends before anything has been answered.
async fn request(recv: &mut RecvStream) -> http::Request<()> {
    let mut stream = Bytes::from(timeout(PATIENCE, recv.read_to_end(100_000)).await.unwrap().unwrap());
    let mut reader = MessageReader::new(MessageKind::Request, 100_000);
    let Ok(Some(Part::Request(head))) = reader.next(&mut stream) else { panic!("no request") };
    assert!(reader.next(&mut stream).unwrap().is_none(), "one request a stream, and nothing behind it");
    reader.end().unwrap();
    head
}

/// A client and the connection by which it has come.
fn visited() -> (Client, Uri, Endpoint, tokio::task::JoinHandle<Connection>) {
    let (endpoint, certificate) = listen();
    let uri: Uri = format!("https://localhost:{}/", endpoint.local_addr().unwrap().port()).parse().unwrap();
    let client = Client::new(ClientOptions::new(trust(&certificate)));
    let accepting = endpoint.clone();
    let accepted = tokio::spawn(async move { accepting.accept().await.unwrap() });
    (client, uri, endpoint, accepted)
}

async fn accept(connection: &Connection) -> (SendStream, RecvStream) {
    timeout(PATIENCE, connection.accept_bi()).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_sends_settings_before_it_hears_any_and_ends_what_it_answers() {
    // spec: rfc9204 4.2 permitted-always
    // spec: rfc9114 6.2.1 one-control-stream, 7.2.4.2 settings-wait-for-nothing, 7.2.4.2 settings-at-once
    // spec: rfc9114 7.2.4 sent-once, 7.2.4 only-on-control, 6.2.1 not-closed, 4.1 server-ends-stream
    // spec: rfc9114 6.2.1 not-stopped, 6.2 three-streams-at-least
    let server = Server::start(by(|_: &str| text(StatusCode::OK, "content")), |_| {});
    let (_endpoint, connection) = visit(&server).await;
    let (begin, mut control) = control_of(&connection).await;
    assert_begins_a_control_stream(&begin);
    let mut ours = Vec::new();
    for begin in [&encode::control_stream(&Settings::default(), None)[..], &[0x02], &[0x03]] {
        let mut stream = timeout(PATIENCE, connection.open_uni()).await.expect("three streams").unwrap();
        stream.write_all(begin).await.unwrap();
        ours.push(stream);
    }
    for _ in 0..3 {
        let asked = http::Request::get("https://localhost/").body(()).unwrap();
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        send.write_bytes(encode::request(&asked).unwrap().into()).await.unwrap();
        send.finish();
        let mut answer = Bytes::from(timeout(PATIENCE, recv.read_to_end(1000)).await.unwrap().unwrap());
        let mut reader = MessageReader::new(MessageKind::Response { to_head: false }, 1000);
        assert!(matches!(reader.next(&mut answer), Ok(Some(Part::Response(head))) if head.status() == 200));
        assert!(matches!(reader.next(&mut answer), Ok(Some(Part::Data(_)))));
        assert!(reader.next(&mut answer).unwrap().is_none());
    }
    // Both control streams are still there, and no other stream has come.
    assert!(futures::FutureExt::now_or_never(control.read_chunk(1)).is_none());
    assert!(futures::FutureExt::now_or_never(connection.accept_uni()).is_none());
    assert!(futures::FutureExt::now_or_never(ours[0].stopped()).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_control_stream_that_the_peer_stops_ends_the_connection() {
    let server = Server::start(by(|_: &str| text(StatusCode::OK, "content")), |_| {});
    let (_endpoint, connection) = visit(&server).await;
    let (_, mut control) = control_of(&connection).await;
    control.stop(0x10c);
    assert_eq!(closed(&connection).await, 0x104);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_sends_settings_and_each_request_whole_on_a_stream_of_its_own() {
    // spec: rfc9114 6.2.1 one-control-stream, 7.2.4.2 settings-wait-for-nothing, 4.1 one-request-a-stream
    // spec: rfc9114 4.1 client-ends-stream, 4.1 end-waits-for-no-response, 4.2 names-sent-in-lowercase
    // spec: rfc9114 3.2 host-indicated, 8 unknown-code-is-no-error, 5.2 nothing-new-after-goaway
    let (client, uri, endpoint, accepted) = visited();
    let mut fields = HeaderMap::new();
    fields.insert(http::HeaderName::from_bytes(b"X-Upper").unwrap(), "Value".parse().unwrap());
    let (asking, target) = (client.clone(), uri.clone());
    let asked = tokio::spawn(async move {
        let mut statuses = Vec::new();
        for _ in 0..2 {
            let response = asking.request(&Method::GET, &target, &fields).await;
            statuses.push(response.map(|response| response.status()));
        }
        statuses
    });
    let connection = timeout(PATIENCE, accepted).await.unwrap().unwrap();
    let (begin, _control) = control_of(&connection).await;
    assert_begins_a_control_stream(&begin);
    for turn in 0..2_u64 {
        let (mut send, mut recv) = accept(&connection).await;
        let head = request(&mut recv).await;
        assert_eq!((send.id().to_wire(), head.headers()["x-upper"].as_bytes()), (turn * 4, &b"Value"[..]));
        if turn == 0 {
            // A code that nobody knows ends the stream and nothing else.
            send.reset(0x1234_5678);
        } else {
            let mut control = connection.open_uni().await.unwrap();
            let bytes = [encode::control_stream(&Settings::default(), None), encode::go_away(8)].concat();
            assert!(client.connections()[0].takes_requests);
            control.write_all(&bytes).await.unwrap();
            let left = async {
                while client.connections()[0].takes_requests {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            timeout(PATIENCE, left).await.expect("the server is leaving");
            send.write_bytes(response(204)).await.unwrap();
            send.finish();
            // With the last response it is of no more use.
            assert!(
                timeout(PATIENCE, connection.accept_bi()).await.unwrap().is_err(),
                "a request after GOAWAY"
            );
        }
    }
    let statuses = timeout(PATIENCE, asked).await.unwrap().unwrap();
    assert!(matches!(&statuses[0], Err(ClientError::Reset { .. })), "{statuses:?}");
    assert_eq!(*statuses[1].as_ref().unwrap(), StatusCode::NO_CONTENT);
    let again = tokio::spawn(async move { client.get(&uri).await.map(drop) });
    let other = timeout(PATIENCE, endpoint.accept()).await.unwrap().unwrap();
    assert_ne!(
        other.remote_address(),
        connection.remote_address(),
        "another port, though the first is still open"
    );
    accept(&other).await;
    again.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_counts_although_the_server_stops_the_request() {
    // spec: rfc9114 4.1 early-response-kept
    let (client, uri, _endpoint, accepted) = visited();
    let upload = http::Request::put(uri).body(posthaste_http::Body::from(vec![7; 4_000_000])).unwrap();
    let asked = tokio::spawn(async move { body(client.send(upload).await.unwrap()).await });
    let connection = timeout(PATIENCE, accepted).await.unwrap().unwrap();
    let (mut send, mut recv) = accept(&connection).await;
    recv.stop(0x100);
    send.write_bytes(response(200)).await.unwrap();
    send.write_all(b"\x00\x04done").await.unwrap();
    send.finish();
    assert_eq!(timeout(PATIENCE, asked).await.unwrap().unwrap().unwrap(), b"done");
}

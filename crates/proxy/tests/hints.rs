//! Early hints (RFC 8297): a 103 of the upstream reaches the client ahead of the response.

use http::StatusCode;
use posthaste_endpoint::RecvStream;
use posthaste_http3::{MessageKind, MessageReader, Part};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::common::{PATIENCE, Server};
use crate::raw::{Raw, data, request};
use crate::scene::proxy;

/// An upstream that sends `ahead`, and a response once it is told to.
async fn upstream(ahead: String) -> (String, oneshot::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (go, gone) = oneshot::channel();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(ahead.as_bytes()).await.unwrap();
        gone.await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        // The client decides when it is over.
        let _ = stream.read_u8().await;
    });
    (url, go)
}

/// The next head of a response.
async fn head(
    recv: &mut RecvStream,
    reader: &mut MessageReader,
    data: &mut bytes::Bytes,
) -> http::Response<()> {
    let reading = async {
        loop {
            if let Some(part) = reader.next(data).unwrap() {
                let Part::Response(head) = part else { panic!("no head") };
                return head;
            }
            *data = recv.read_chunk(65_536).await.unwrap().expect("the stream ends without a response");
        }
    };
    timeout(PATIENCE, reading).await.expect("nothing comes")
}

/// The heads of all responses to a GET; the upstream goes on when the first has come.
async fn heads(ahead: String) -> Vec<http::Response<()>> {
    let (url, go) = upstream(ahead).await;
    let server = Server::start(proxy(&url, |_| {}), |_| {});
    let client = Raw::connect(&server).await;
    let (mut send, mut recv) = client.open().await;
    send.write_all(&request("GET", &[])).await.unwrap();
    send.finish();
    let mut reader = MessageReader::new(MessageKind::Response { to_head: false }, 100_000);
    let mut data = bytes::Bytes::new();
    let mut heads = vec![head(&mut recv, &mut reader, &mut data).await];
    go.send(()).unwrap();
    while heads.last().unwrap().status().is_informational() {
        heads.push(head(&mut recv, &mut reader, &mut data).await);
    }
    heads
}

#[tokio::test(flavor = "multi_thread")]
async fn links_of_a_103_come_ahead_of_the_response_and_nothing_else_does() {
    let ahead = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\nLink: </a>; rel=preload\r\n\r\n\
                 HTTP/1.1 103 Early Hints\r\nX-Odd: 1\r\n\r\n\
                 HTTP/1.1 103 Early Hints\r\nLink: </b>; rel=preload\r\nConnection: x\r\nSet-Cookie: a=b\r\n\
                 Link: </c>; rel=preload\r\n\r\n";
    let heads = heads(ahead.to_owned()).await;
    let statuses: Vec<_> = heads.iter().map(http::Response::status).collect();
    assert_eq!(statuses, [StatusCode::EARLY_HINTS, StatusCode::OK]);
    let fields: Vec<_> =
        heads[0].headers().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    assert_eq!(fields, [("link", "</b>; rel=preload"), ("link", "</c>; rel=preload")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_hints_ends_in_a_response() {
    let storm = "HTTP/1.1 103 Early Hints\r\nLink: </b>; rel=preload\r\n\r\n".repeat(30);
    let heads = heads(storm).await;
    assert_eq!(heads.last().unwrap().status(), StatusCode::OK);
    assert!(heads.len() <= 9, "{} heads", heads.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_asks_first_is_told_to_send_what_somebody_waits_for() {
    // RFC 9110 section 10.1.1.
    let (url, go) = upstream(String::new()).await;
    let server = Server::start(proxy(&url, |_| {}), |_| {});
    let client = Raw::connect(&server).await;
    let mut go = Some(go);
    for (more, expected) in [(("x-a", "1"), [100, 200].as_slice()), (("via", "1.1 edge"), &[508])] {
        let (mut send, mut recv) = client.open().await;
        let fields = [("content-length", "4"), ("expect", "100-Continue"), more];
        send.write_all(&request("POST", &fields)).await.unwrap();
        let mut reader = MessageReader::new(MessageKind::Response { to_head: false }, 100_000);
        let mut rest = bytes::Bytes::new();
        for status in expected {
            let head = head(&mut recv, &mut reader, &mut rest).await;
            assert_eq!(head.status().as_u16(), *status, "{more:?}");
            if *status == 100 {
                send.write_bytes(data("four")).await.unwrap();
                send.finish();
                go.take().unwrap().send(()).unwrap();
            }
        }
    }
}

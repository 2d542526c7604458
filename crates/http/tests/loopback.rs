//! The server and the client against each other over real sockets.

use std::future::ready;
use std::net::Ipv4Addr;
use std::sync::Mutex;
use std::time::Duration;

use crate::common::{PATIENCE, Server, body, by, fed, sized, status, with};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use posthaste_endpoint::Endpoint;
use posthaste_http::{
    Client, ClientError, ClientOptions, MAX_ENDED_CONNECTIONS, Outcome, Peer, Request, Response, StaticFiles,
    service_fn, text,
};
use tokio::time::timeout;

fn sample(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn static_server(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Server) {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let server = Server::start(StaticFiles::new(directory.path(), false).unwrap(), |_| {});
    (directory, server)
}

fn redirect(location: &str) -> Response {
    with(status(StatusCode::FOUND), header::LOCATION, location)
}

#[tokio::test(flavor = "multi_thread")]
async fn files_arrive_whole_and_are_logged() {
    let content = sample(3_000_001);
    let (_directory, server) = static_server(&[("big.bin", &content), ("empty", b"")]);
    let client = server.client();

    let response = client.get(&server.uri("/big.bin")).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.content_length(), Some(3_000_001));
    assert!(response.headers().contains_key(header::DATE));
    assert!(body(response).await.unwrap() == content);

    let response = client.head(&server.uri("/big.bin")).await.unwrap();
    assert_eq!(response.headers()[header::CONTENT_LENGTH], "3000001");
    assert!(body(response).await.unwrap().is_empty());

    assert!(body(client.get(&server.uri("/empty")).await.unwrap()).await.unwrap().is_empty());
    assert_eq!(client.get(&server.uri("/missing")).await.unwrap().status(), StatusCode::NOT_FOUND);
    let mut fields = HeaderMap::new();
    fields.insert(header::RANGE, HeaderValue::from_static("bytes=1000000-1999999"));
    let part = client.request(&Method::GET, &server.uri("/big.bin"), &fields).await.unwrap();
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    assert!(body(part).await.unwrap() == content[1_000_000..2_000_000]);

    assert_eq!(client.connections().len(), 1, "one origin, one connection");
    let mut lines = server.log.lines(5).await;
    lines.sort_by_key(|line| line.2);
    let last = lines.last().unwrap();
    assert_eq!((last.0.as_str(), last.1, last.2), ("GET /big.bin", Some(200), 3_000_001));
    assert_eq!(last.3, Outcome::Complete);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_say_that_their_origin_speaks_http_3() {
    let answer = || by(|_: &str| status(StatusCode::OK));
    for (alt_svc, is_told) in [(Some(Duration::from_mins(1)), true), (None, false)] {
        let server = Server::start(answer(), |options| options.alt_svc = alt_svc);
        let client = server.client();
        let response = client.get(&server.uri("/")).await.unwrap();
        let expected = format!("h3=\":{}\"; ma=60", server.address.port());
        let said = response.headers().get(header::ALT_SVC).map(HeaderValue::as_bytes);
        assert_eq!(said, is_told.then_some(expected.as_bytes()));
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_requests_than_streams_share_one_connection() {
    let content = sample(10_000);
    let (_directory, server) = static_server(&[("small", &content)]);
    let client = server.client();
    // The server permits 256 streams at a time.
    let fetches = (0..600)
        .map(|_| async { body(client.get(&server.uri("/small")).await.unwrap()).await.unwrap() == content });
    let all = timeout(PATIENCE, futures::future::join_all(fetches)).await.expect("requests hang");
    assert!(all.into_iter().all(|is_same| is_same));
    assert_eq!(client.connections().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_followed_to_a_limit_and_never_to_http() {
    // spec: rfc9114 3.1.2 other-schemes-ensured
    let (_directory, server) = static_server(&[("docs/index.html", b"index")]);
    let response = server.client().get(&server.uri("/docs")).await.unwrap();
    assert_eq!(response.uri().path(), "/docs/");
    assert_eq!(body(response).await.unwrap(), b"index");

    let server = Server::start(
        by(|path: &str| match path {
            "/loop" => redirect("/loop"),
            "/http" => redirect("http://127.0.0.1/"),
            "/nowhere" => status(StatusCode::FOUND),
            _ => text(StatusCode::OK, ""),
        }),
        |_| {},
    );
    let client = server.client();
    let error = client.get(&server.uri("/loop")).await.unwrap_err();
    assert!(matches!(error, ClientError::TooManyRedirects { limit: 10 }), "{error}");
    let error = client.get(&server.uri("/http")).await.unwrap_err();
    assert!(matches!(error, ClientError::Redirect { .. }), "{error}");
    assert_eq!(client.get(&server.uri("/nowhere")).await.unwrap().status(), StatusCode::FOUND);
    let options = ClientOptions { max_redirects: 0, ..ClientOptions::new(server.client_config()) };
    assert_eq!(Client::new(options).get(&server.uri("/loop")).await.unwrap().status(), StatusCode::FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_fails_resets_the_response() {
    let server = Server::start(
        by(|_: &str| {
            let (feed, response) = fed();
            tokio::spawn(async move {
                feed.send("half").await.unwrap();
                feed.fail("the disk is gone").await.unwrap();
            });
            response
        }),
        |_| {},
    );
    // The reset may overtake what was sent before it, even the headers.
    let error = match server.client().get(&server.uri("/")).await {
        Ok(response) => body(response).await.unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(&error, ClientError::Reset { code } if code == "H3_INTERNAL_ERROR"), "{error}");
    assert_eq!(server.log.lines(1).await[0].3, Outcome::Failed("the disk is gone".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_length_that_is_not_kept_is_noticed() {
    let server = Server::start(
        by(|path: &str| {
            let announced = if path == "/short" { "5" } else { "3" };
            let response = sized(StatusCode::OK, Bytes::from_static(b"four"));
            with(response, header::CONTENT_LENGTH, announced)
        }),
        |_| {},
    );
    for (path, expected) in [("/short", 5), ("/long", 3)] {
        let response = server.client().get(&server.uri(path)).await.unwrap();
        let error = body(response).await.unwrap_err();
        let is_length = matches!(error, ClientError::Length { expected: e, received: 4 } if e == expected);
        assert!(is_length, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_ends_in_a_timeout() {
    let held = std::sync::Arc::new(Mutex::new(Vec::new()));
    let server = Server::start(
        by(move |_: &str| {
            let (feed, response) = fed();
            let held = std::sync::Arc::clone(&held);
            tokio::spawn(async move {
                feed.send("some").await.unwrap();
                held.lock().unwrap().push(feed);
            });
            response
        }),
        |_| {},
    );
    let mut options = ClientOptions::new(server.client_config());
    options.idle_timeout = Duration::from_secs(1);
    let response = Client::new(options).get(&server.uri("/")).await.unwrap();
    let error = body(response).await.unwrap_err();
    assert!(matches!(error, ClientError::IdleTimeout(_)), "{error}");
    // The client gave the response up, which ends it at the server though nothing is written.
    let line = server.log.lines(1).await.remove(0);
    assert!(matches!(line.3, Outcome::Aborted(_)), "{line:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_peer_and_a_wrong_certificate_are_told_apart() {
    // spec: rfc9114 3.1 certificate-verified, 3.1 unverified-without-authority
    let (_directory, server) = static_server(&[("a", b"a")]);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut options = ClientOptions::new(server.client_config());
    options.connect_timeout = Duration::from_secs(1);
    let client = Client::new(options);
    let uri = format!("https://127.0.0.1:{}/", silent.local_addr().unwrap().port()).parse().unwrap();
    // Requests that waited for the same attempt share its end instead of trying one after the other.
    let began = tokio::time::Instant::now();
    let errors = futures::future::join_all((0..20).map(|_| client.get(&uri))).await;
    assert!(errors.iter().all(|error| matches!(error, Err(ClientError::NoAnswer { .. }))), "{errors:?}");
    assert!(began.elapsed() < Duration::from_secs(15));

    let other = Server::start(by(|_: &str| text(StatusCode::OK, "")), |_| {});
    let error = client.get(&other.uri("/")).await.unwrap_err();
    assert!(matches!(error, ClientError::Certificate { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_lets_requests_finish_and_takes_no_new_ones() {
    let feeds = std::sync::Arc::new(Mutex::new(Vec::new()));
    let theirs = std::sync::Arc::clone(&feeds);
    let server = Server::start(
        by(move |_: &str| {
            let (feed, response) = fed();
            theirs.lock().unwrap().push(feed);
            response
        }),
        |_| {},
    );
    let client = server.client();
    let uri = server.uri("/");
    let response = client.get(&uri).await.unwrap();
    let ended = server.stop();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut options = ClientOptions::new(credulous());
    options.connect_timeout = Duration::from_millis(300);
    assert!(Client::new(options).get(&uri).await.is_err(), "a stopping server takes no connection");

    let feed = feeds.lock().unwrap().pop().unwrap();
    feed.send("to the end").await.unwrap();
    feed.finish().await.unwrap();
    assert_eq!(body(response).await.unwrap(), b"to the end");
    let ended = timeout(PATIENCE, ended).await.expect("the server does not end").unwrap();
    assert_eq!(ended.cut_off, 0);
}

/// Of a client that would take anybody for the server.
fn credulous() -> posthaste_endpoint::ClientConfig {
    posthaste_endpoint::ClientConfig::new(
        posthaste_endpoint::tls::client_config_insecure(&[posthaste_http::ALPN]).unwrap(),
        posthaste_endpoint::default_transport(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_end_is_cut_off_after_the_grace() {
    let held = std::sync::Arc::new(Mutex::new(Vec::new()));
    let server = Server::start(
        by(move |_: &str| {
            let (feed, response) = fed();
            held.lock().unwrap().push(feed);
            response
        }),
        |options| options.grace = Duration::from_millis(200),
    );
    let client = server.client();
    let response = client.get(&server.uri("/")).await.unwrap();
    let ended = timeout(PATIENCE, server.stop()).await.expect("the server does not end").unwrap();
    assert_eq!((ended.cut_off, ended.requests_cut_off), (1, 1));
    body(response).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_has_acknowledged_and_not_read_is_read_while_the_server_stops() {
    let content = sample(100_000);
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), &content).unwrap();
    let files = StaticFiles::new(directory.path(), false).unwrap();
    let server = Server::start(files, |options| options.grace = 2 * PATIENCE);
    let client = server.client();
    let response = client.get(&server.uri("/file")).await.unwrap();
    // All of it is in the client's transport.
    server.log.lines(1).await;
    let ended = server.stop();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(body(response).await.unwrap() == content);
    // Before the grace is over: a client that has read all closes its connection.
    let ended = timeout(PATIENCE, ended).await.expect("the server does not end").unwrap();
    assert_eq!((ended.cut_off, ended.requests_cut_off), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_close_holds_a_stopping_server_for_the_grace_at_most() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), b"content").unwrap();
    let files = StaticFiles::new(directory.path(), false).unwrap();
    let server = Server::start(files, |options| options.grace = Duration::from_millis(600));
    let client = server.client();
    let _unread = client.get(&server.uri("/file")).await.unwrap();
    server.log.lines(1).await;
    let began = tokio::time::Instant::now();
    let ended = timeout(PATIENCE, server.stop()).await.expect("the server does not end").unwrap();
    assert_eq!((ended.cut_off, ended.requests_cut_off), (0, 0), "it has all of its response");
    assert!(began.elapsed() > Duration::from_millis(300), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_too_large_to_keep_closes_the_connection() {
    let (_directory, server) = static_server(&[("a", b"a")]);
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let quic = endpoint.connect(&server.client_config(), server.address, "localhost").await.unwrap();
    let (mut send, _recv) = quic.open_bi().await.unwrap();
    // HEADERS of 1 GiB.
    send.write_all(&[0x01, 0x80 | 0x40, 0, 0, 0, 0x40, 0, 0, 0]).await.unwrap();
    let reason = timeout(PATIENCE, quic.closed()).await.expect("the server keeps it");
    let is_excessive =
        matches!(reason, posthaste_endpoint::CloseReason::PeerApplication { error_code: 0x107, .. });
    assert!(is_excessive, "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_over_are_let_go_and_the_last_reports_stay() {
    let server = Server::start(by(|_: &str| text(StatusCode::OK, "content")), |_| {});
    let client = server.client();
    let made = MAX_ENDED_CONNECTIONS + 176;
    for _ in 0..made {
        client.hang_up();
        assert!(!body(client.get(&server.uri("/")).await.unwrap()).await.unwrap().is_empty());
    }
    let reports = client.connections();
    // It is looked for what is over when 32 connections are held as open.
    assert!(
        (MAX_ENDED_CONNECTIONS..=MAX_ENDED_CONNECTIONS + 32).contains(&reports.len()),
        "{}",
        reports.len()
    );
    assert!(
        reports.iter().map(|report| report.index).eq(made - reports.len()..made),
        "the last ones, in order"
    );
    for report in &reports {
        assert!(report.handshake.is_some() && report.stats.packets_received > 0, "{report:?}");
    }
    // What goes is a matter of order, not of luck: the open one is still there, and is used.
    client.get(&server.uri("/")).await.unwrap();
    client.hang_up_one(0);
    client.get(&server.uri("/")).await.unwrap();
    assert_eq!(client.connections().last().unwrap().index, made - 1);
    client.hang_up_one(made - 1);
    client.get(&server.uri("/")).await.unwrap();
    assert_eq!(client.connections().last().unwrap().index, made, "the next one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_replaces_another_comes_from_another_port() {
    let server = Server::start(
        service_fn(|request: Request| {
            let port = request.extensions().get::<Peer>().unwrap().address.port();
            ready(sized(StatusCode::OK, port.to_string().into()))
        }),
        |_| {},
    );
    let client = server.client();
    let mut ports = Vec::new();
    for replaced in 0..4 {
        for _ in 0..2 {
            ports.push(body(client.get(&server.uri("/")).await.unwrap()).await.unwrap());
        }
        client.hang_up_one(replaced);
    }
    assert!(ports.chunks(2).all(|same| same[0] == same[1]), "one connection, one port: {ports:?}");
    ports.dedup();
    assert_eq!(ports.len(), 4, "{ports:?}");

    // The sockets of connections that are over are closed, though the client has their reports. Of the last one it is
    // not, as nothing has replaced it.
    let is_free = |port: u16| std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok();
    let parse = |text: &Vec<u8>| -> u16 { String::from_utf8_lossy(text).parse().unwrap() };
    let ports: Vec<_> = ports.iter().map(parse).collect();
    let closed = async {
        while !ports[..3].iter().all(|port| is_free(*port)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, closed).await.expect("sockets stay open");
    assert!(!is_free(ports[3]));
}

//! Responses leave in the order that RFC 9218 gives them: shown by what a client receives, packet by packet.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex};

use crate::common::{App, PATIENCE, Server, by, fed, with};
use http::HeaderName;
use posthaste_endpoint::{
    Connection, ConnectionId, Endpoint, QlogSink, RecvStream, SendStream, Side, TransportConfig,
};
use posthaste_http3::{Priority, Settings, encode};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

/// What the client's connection lets the server send before anything is read.
const WINDOW: usize = 128 * 1024;
/// A response's body; all of them together wait in the server's buffers.
const BODY: usize = 80 * 1024;

/// A trace in memory.
#[derive(Clone, Default)]
struct Trace(Arc<Mutex<Vec<u8>>>);

impl QlogSink for Trace {
    fn open(&self, _: &ConnectionId, _: Side) -> Option<Box<dyn Write + Send + Sync>> {
        Some(Box::new(self.clone()))
    }
}

impl Write for Trace {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Trace {
    /// The streams of the STREAM frames in the order of their arrival, without what comes again and without what
    /// lies behind the first [`BODY`] bytes of a stream.
    fn first_frames(&self) -> Vec<u64> {
        let trace = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let records = trace
            .lines()
            .map(|line| serde_json::from_str::<Value>(line.trim_start_matches('\u{1e}')).unwrap())
            .filter(|record| record["name"].as_str().is_some_and(|name| name.ends_with("packet_received")));
        let frames =
            records.flat_map(|record| record["data"]["frames"].as_array().cloned().unwrap_or_default());
        let mut behind = BTreeMap::new();
        let mut streams = Vec::new();
        for frame in frames.filter(|frame| frame["frame_type"] == "stream") {
            let (id, offset) = (frame["stream_id"].as_u64().unwrap(), frame["offset"].as_u64().unwrap());
            if id % 4 == 0 && offset < BODY as u64 && behind.get(&id).is_none_or(|behind| offset > *behind) {
                behind.insert(id, offset);
                streams.push(id);
            }
        }
        streams
    }
}

/// Answers with a long body, and tells when that is in the transport's buffers.
fn handler(buffered: UnboundedSender<String>) -> impl App {
    by(move |path: &str| {
        let (feed, mut response) = fed();
        let length = if path.starts_with("/filler") { 3 * WINDOW / 2 } else { BODY };
        if path == "/demoted" {
            response = with(response, HeaderName::from_static("priority"), "u=7");
        }
        if let Some((_, kind)) = path.split_once('.') {
            response = with(response, http::header::CONTENT_TYPE, &kind.replace('.', "/"));
        }
        let (path, buffered) = (path.to_owned(), buffered.clone());
        tokio::spawn(async move {
            feed.send(vec![b'x'; length]).await.unwrap();
            // The channel takes the third piece when the second has left it, which is when the first is written.
            for _ in 0..2 {
                feed.send(".").await.unwrap();
            }
            buffered.send(path).unwrap();
            feed.finish().await.unwrap();
        });
        response
    })
}

/// A client that opens streams by hand.
struct Visit {
    connection: Connection,
    control: SendStream,
    buffered: UnboundedReceiver<String>,
    responses: Vec<(SendStream, RecvStream)>,
}

impl Visit {
    async fn begin(connection: Connection, buffered: UnboundedReceiver<String>) -> Self {
        let mut control = connection.open_uni().await.unwrap();
        control.write_bytes(encode::control_stream(&Settings::default(), None)).await.unwrap();
        Self { connection, control, buffered, responses: Vec::new() }
    }

    /// Asks for `path`; the stream's ID, when the response waits in the server's buffers.
    async fn ask(&mut self, path: &str, priority: &str) -> u64 {
        self.ask_by(http::Request::get(format!("https://localhost{path}")).header("priority", priority)).await
    }

    async fn ask_silently(&mut self, path: &str) -> u64 {
        self.ask_by(http::Request::get(format!("https://localhost{path}"))).await
    }

    async fn ask_by(&mut self, request: http::request::Builder) -> u64 {
        let request = request.body(()).unwrap();
        let (mut send, recv) = self.connection.open_bi().await.unwrap();
        let id = send.id().to_wire();
        send.write_bytes(encode::request(&request).unwrap().into()).await.unwrap();
        send.finish();
        self.responses.push((send, recv));
        let buffered = timeout(PATIENCE, self.buffered.recv()).await.expect("no answer").unwrap();
        assert_eq!(buffered, request.uri().path());
        id
    }

    async fn update(&mut self, stream: u64, urgency: u8, incremental: bool) {
        let update = encode::priority_update(stream, Priority { urgency, incremental });
        self.control.write_bytes(update).await.unwrap();
    }

    /// Lets everything come.
    async fn read_all(&mut self) {
        let all = self.responses.drain(..).map(|(_, mut recv)| async move {
            let response = recv.read_to_end(4 * WINDOW).await.unwrap();
            assert!(response.len() > BODY);
        });
        timeout(PATIENCE, futures::future::join_all(all)).await.expect("responses hang");
    }
}

/// A client whose window the first long response fills, and its trace.
async fn visit(server: &Server, buffered: UnboundedReceiver<String>) -> (Visit, Endpoint, Trace) {
    let trace = Trace::default();
    let window = WINDOW / 1024;
    let narrow = format!("cubic-fixed@credit.stream.window={window}KiB,credit.connection.window={window}KiB");
    let transport = TransportConfig {
        profile: posthaste_schemes::named(&narrow).unwrap(),
        qlog: Some(Arc::new(trace.clone())),
        ..posthaste_endpoint::default_transport()
    };
    let config = server.client_config().with_transport(Arc::new(transport));
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let connection = endpoint.connect(&config, server.address, "localhost").await.unwrap();
    (Visit::begin(connection, buffered).await, endpoint, trace)
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_leave_in_the_order_of_their_priorities() {
    // spec: rfc9218 10 urgent-first, 10 in-order, 10 shared, 7 latest-update-kept
    let (tell, buffered) = unbounded_channel();
    let server = Server::start(handler(tell), |_| {});
    let (mut visit, endpoint, trace) = visit(&server, buffered).await;

    // It fills the window, so that all others wait side by side; being the most urgent, it still goes first.
    let filler = visit.ask("/filler", "u=0").await;
    let raised = visit.ask("/raised", "u=6").await;
    let urgent = visit.ask("/urgent", "u=1").await;
    let demoted = visit.ask("/demoted", "u=1").await;
    let left = visit.ask("/left", "i").await;
    let right = visit.ask("/right", "i").await;
    // One update before its request, one long behind it.
    let lowered = right + 4;
    visit.update(lowered, 6, false).await;
    assert_eq!(visit.ask("/lowered", "u=0").await, lowered);
    visit.update(raised, 1, false).await;
    let last = visit.ask("/last", "u=2").await;
    visit.read_all().await;
    visit.connection.close(0x100, b"");
    timeout(PATIENCE, endpoint.wait_idle()).await.expect("the connection stays");

    let frames = trace.first_frames();
    let mut runs: Vec<u64> = frames.iter().map(|id| if *id == right { left } else { *id }).collect();
    runs.dedup();
    assert_eq!(runs, [filler, raised, urgent, last, left, lowered, demoted]);
    let mut turns: Vec<u64> = frames.into_iter().filter(|id| *id == left || *id == right).collect();
    turns.dedup();
    // Each body is more than the 64 KiB of a first turn.
    assert!(turns.len() > 2, "{turns:?}: the two are not sent side by side");
}

/// The order of responses to a client that says nothing of most requests, as places of `paths`.
async fn order(paths: [&str; 5], first_priority: Option<&str>) -> Vec<usize> {
    let (tell, buffered) = unbounded_channel();
    let server = Server::start(handler(tell), |options| options.rank_by_type = true);
    let (mut visit, endpoint, trace) = visit(&server, buffered).await;
    let mut streams = Vec::new();
    if let Some(priority) = first_priority {
        visit.ask("/filler", priority).await;
    } else {
        visit.ask_silently("/filler.text.html").await;
    }
    for path in paths {
        streams.push(visit.ask_silently(path).await);
    }
    visit.read_all().await;
    visit.connection.close(0x100, b"");
    timeout(PATIENCE, endpoint.wait_idle()).await.expect("the connection stays");
    let frames = trace.first_frames();
    let mut order: Vec<_> = frames.iter().filter_map(|id| streams.iter().position(|it| it == id)).collect();
    order.dedup();
    order
}

#[tokio::test(flavor = "multi_thread")]
async fn for_a_client_without_priorities_the_content_decides() {
    let paths = ["/a.video.mp4", "/b.image.png", "/c.application.json", "/d.text.css", "/e.text.html"];
    assert_eq!(order(paths, None).await, [4, 3, 2, 1, 0]);
    // Who ranks one request means what it leaves out.
    let paths = ["/a.video.mp4", "/b.image.png", "/c.application.json", "/d.text.css", "/e.text.html"];
    assert_eq!(order(paths, Some("u=1")).await, [0, 1, 2, 3, 4]);
}

//! HTTP/3 requests that come a byte a second, and requests of others meanwhile. For `cargo xtask hostile`.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{Request, StatusCode};
use posthaste_endpoint::{ReadError, RecvStream, SendStream};
use posthaste_http3::{MessageKind, MessageReader, Part, encode};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::connection::{Place, Way};
use crate::{Result, check, content};

/// Streams of each kind, all that one connection may have.
const STREAMS: usize = 256;
/// Between two bytes.
const EVERY: Duration = Duration::from_secs(1);
/// Between two requests of others.
const OTHERS_EVERY: Duration = Duration::from_millis(100);
/// For one of these, and for the last responses.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of the others' responses.
const USUAL: u64 = 60_000;

/// A request, written a byte at a time.
struct Slow {
    send: SendStream,
    rest: std::vec::IntoIter<u8>,
    is_over: bool,
}

/// Sends heads on all streams of one connection and bodies on all of another, a byte a second for so many seconds. Prints what
/// came of them, `heads|bodies OUTCOME COUNT`, and `others REQUESTS MILLISECONDS` with the longest of others' requests.
pub(crate) async fn run(place: &Place, seconds: u64) -> Result<()> {
    let uri = place.uri("/upload")?;
    let long = "x".repeat(seconds as usize + 100);
    let head = encode::request(&Request::get(uri.clone()).header("x-long", long).body(())?)?;
    let upload = Request::post(uri).header("content-length", seconds).body(())?;
    let mut begun = encode::request(&upload)?;
    encode::data_header(&mut begun, seconds);
    let mut slow = Vec::new();
    let mut answers = JoinSet::new();
    let mut connections = Vec::new();
    for (kind, first, rest) in [("heads", Vec::new(), head), ("bodies", begun, content(0, seconds))] {
        let connection = place.raw().await?;
        for _ in 0..STREAMS {
            let (mut send, recv) = timeout(PATIENCE, connection.1.open_bi()).await??;
            send.write_all(&first).await?;
            slow.push(Slow { send, rest: rest.clone().into_iter(), is_over: false });
            answers.spawn(async move { (kind, answer(recv).await) });
        }
        connections.push(connection);
    }
    let others = tokio::spawn(others(place.clone(), Duration::from_secs(seconds)));
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for _ in 0..seconds {
        ticks.tick().await;
        for slow in &mut slow {
            slow.step().await;
        }
    }
    let (requests, longest) = others.await??;
    println!("others {requests} {}", longest.as_millis());
    for slow in &mut slow {
        slow.send.finish();
    }
    let mut outcomes: BTreeMap<(&str, String), usize> = BTreeMap::new();
    while let Some(outcome) = timeout(PATIENCE, answers.join_next()).await? {
        *outcomes.entry(outcome?).or_default() += 1;
    }
    for ((kind, outcome), count) in outcomes {
        println!("{kind} {outcome} {count}");
    }
    Ok(())
}

impl Slow {
    async fn step(&mut self) {
        let Some(byte) = self.rest.next().filter(|_| !self.is_over) else { return };
        // The server may have had enough.
        self.is_over = self.send.write_all(&[byte]).await.is_err();
    }
}

/// The status of a response, or in which way there is none.
async fn answer(mut recv: RecvStream) -> String {
    let mut reader = MessageReader::new(MessageKind::Response { to_head: false }, 100_000);
    loop {
        match recv.read_chunk(65_536).await {
            Ok(Some(mut data)) => match reader.next(&mut data) {
                Ok(Some(Part::Response(head))) => return head.status().as_u16().to_string(),
                Ok(_) => {}
                Err(_) => return "broken".to_owned(),
            },
            Ok(None) => return "nothing".to_owned(),
            Err(ReadError::Reset(code)) => return format!("reset-{code:x}"),
            Err(_) => return "lost".to_owned(),
        }
    }
}

/// Requests of all versions one after another; how many, and how long the slowest took.
async fn others(place: Place, during: Duration) -> Result<(u64, Duration)> {
    let (began, mut count, mut longest) = (Instant::now(), 0, Duration::ZERO);
    let uri = place.uri(&format!("/bytes/{USUAL}"))?;
    while began.elapsed() < during {
        for way in [Way::Http1, Way::Http2, Way::Http3] {
            let since = Instant::now();
            let asking = async {
                let mut connection = place.connect(way, false).await?;
                let mut answer = connection.get(&uri).await?;
                answer.expect(StatusCode::OK)?;
                let mut offset = 0;
                while let Some(piece) = answer.chunk().await? {
                    offset = check(&piece, offset)?;
                }
                drop(answer);
                connection.close().await;
                if offset == USUAL { Ok(()) } else { Err(format!("{offset} bytes").into()) }
            };
            let done: Result<()> = timeout(PATIENCE, asking).await?;
            done.map_err(|error| format!("another client over {}: {error}", way.name()))?;
            count += 1;
            longest = longest.max(since.elapsed());
            tokio::time::sleep(OTHERS_EVERY).await;
        }
    }
    Ok((count, longest))
}

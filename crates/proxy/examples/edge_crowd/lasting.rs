//! Requests that last: given up by the client, silent, or large in both directions. For `cargo xtask hostile`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{Request, StatusCode};
use posthaste_service::Body;
use tokio::time::{Instant, sleep, timeout};

use crate::connection::{Answer, Connection, Place, Way};
use crate::{Result, check, content};

const WAYS: [Way; 3] = [Way::Http1, Way::Http2, Way::Http3];
/// Responses, and uploads, that are given up over each version.
const ROUNDS: u64 = 20;
/// Between two of them.
const PAUSE: Duration = Duration::from_millis(50);
/// For what is not meant to take time.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of a WebSocket that are written at once; so many are on their way at most before the next.
const PIECE: u64 = 64 * 1024;

/// Milliseconds since 1970.
pub(crate) fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()
}

/// Gives responses up whose heads are here, and over HTTP/3 uploads, too; prints `gave-up KEY MILLISECONDS` for each.
pub(crate) async fn give_up(place: &Place) -> Result<()> {
    for (way, uploads) in WAYS.map(|way| (way, false)).into_iter().chain([(Way::Http3, true)]) {
        let kind = if uploads { "upload" } else { "response" };
        for round in 0..ROUNDS {
            let key = format!("{}-{kind}-{round}", way.name());
            timeout(PATIENCE, give_one_up(place, way, uploads, &key)).await??;
            sleep(PAUSE).await;
        }
    }
    Ok(())
}

async fn give_one_up(place: &Place, way: Way, uploads: bool, key: &str) -> Result<()> {
    let uri = place.uri(&format!("/held/{key}"))?;
    let mut connection = place.connect(way, false).await?;
    if uploads {
        let (feed, body) = Body::channel();
        let asking = connection.send(Request::post(uri).body(body)?);
        let (answer, written) = tokio::join!(asking, feed.send(content(0, 1_000)));
        written?;
        let answer = answer?;
        answer.expect(StatusCode::OK)?;
        println!("gave-up {key} {}", now());
        // The stream is reset; its other direction goes on.
        drop(feed);
        sleep(PAUSE).await;
        drop(answer);
    } else {
        let answer = connection.get(&uri).await?;
        answer.expect(StatusCode::OK)?;
        println!("gave-up {key} {}", now());
        drop(answer);
        sleep(PAUSE).await;
    }
    connection.close().await;
    Ok(())
}

/// Reads an event, waits for the next through a silence, over all versions at once; prints `silent VERSION SECONDS`.
pub(crate) async fn listen(mut place: Place, seconds: u64) -> Result<()> {
    place.silence = Duration::from_secs(seconds) + PATIENCE;
    let place = &place;
    let listen = async |way: Way| -> Result<()> {
        let mut connection = place.connect(way, false).await?;
        let mut answer = connection.get(&place.uri(&format!("/silence/{seconds}"))?).await?;
        answer.expect(StatusCode::OK)?;
        expect_piece(&mut answer, "data: before\n\n").await?;
        let since = Instant::now();
        let limit = Duration::from_secs(seconds) + PATIENCE;
        timeout(limit, expect_piece(&mut answer, "data: after\n\n")).await??;
        println!("silent {} {}", way.name(), since.elapsed().as_secs_f64());
        // An end may come in a frame of its own, which is an empty piece.
        while let Some(rest) = answer.chunk().await? {
            if !rest.is_empty() {
                return Err(format!("WRONG {} bytes behind the last event", rest.len()).into());
            }
        }
        connection.close().await;
        Ok(())
    };
    tokio::try_join!(listen(Way::Http1), listen(Way::Http2), listen(Way::Http3))?;
    Ok(())
}

async fn expect_piece(answer: &mut Answer, expected: &str) -> Result<()> {
    let piece = answer.chunk().await?.ok_or("the events have ended")?;
    if piece == expected { Ok(()) } else { Err(format!("WRONG event {piece:?}").into()) }
}

/// Sends so many bytes through a WebSocket of each version, and compares what comes back; prints `talked VERSION SECONDS`.
pub(crate) async fn talk(place: &Place, bytes: u64) -> Result<()> {
    for way in WAYS {
        let mut connection = place.connect(way, false).await?;
        if way != Way::Http1 {
            // The server's settings come with the first response.
            let mut answer = connection.get(&place.uri("/bytes/1")?).await?;
            while answer.chunk().await?.is_some() {}
        }
        let since = Instant::now();
        echo(&mut connection, place, bytes).await.map_err(|error| format!("{}: {error}", way.name()))?;
        println!("talked {} {}", way.name(), since.elapsed().as_secs_f64());
        connection.close().await;
    }
    Ok(())
}

async fn echo(connection: &mut Connection, place: &Place, bytes: u64) -> Result<()> {
    let mut tunnel = connection.open(&place.uri("/echo")?).await?;
    let (mut written, mut read) = (0, 0);
    while read < bytes {
        if written < bytes && written - read <= PIECE {
            let end = bytes.min(written + PIECE);
            timeout(PATIENCE, tunnel.write(content(written, end))).await??;
            written = end;
            continue;
        }
        let piece = timeout(PATIENCE, tunnel.read()).await??.ok_or("the WebSocket has ended")?;
        read = check(&piece, read)?;
    }
    tunnel.end().await
}

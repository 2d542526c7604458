//! Requests for another protocol: HTTP/1.1's `Upgrade` (RFC 9110 section 7.8) and HTTP/2's extended CONNECT (RFC 8441).
//! hyper makes a stream of bytes of either; here it becomes the bodies of a [`Upgrade`].
//!
//! Over HTTP/2 hyper can end its half of such a stream in order only: a client sees the end of a tunnel that broke like one
//! that ended, and a client's reset with `CANCEL` looks like its end. WebSocket tells these apart by its own close frames.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;

use http::header::{self, HeaderMap};
use http::{Method, Request, Version};
use hyper::body::Incoming;
use hyper::ext::Protocol;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use posthaste_service::{
    Body, BodyError, BodyGone, BodySender, Outcome, TUNNEL_PIECE, Upgrade, list_members, poll_piece,
};
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::OwnedSemaphorePermit;

use crate::activity::Open;
use crate::io::Cut;
use crate::record::Record;

/// What a client asks for, and the stream that the connection, or its HTTP/2 stream, becomes if the service agrees.
pub(crate) struct Asked {
    pub(crate) upgrade: Upgrade,
    stream: OnUpgrade,
    received: BodySender,
}

/// What ends together with a tunnel.
pub(crate) struct Held {
    pub(crate) record: Record,
    pub(crate) open: Open,
    pub(crate) _slot: Option<OwnedSemaphorePermit>,
}

/// The other protocol that a request asks for: one, without content.
pub(crate) fn asked(request: &mut Request<Incoming>) -> Option<Asked> {
    let protocol = if *request.method() == Method::CONNECT {
        request.extensions().get::<Protocol>()?.as_str().to_owned()
    } else {
        by_http1(request)?
    };
    let (received, body) = Body::channel();
    Some(Asked { upgrade: Upgrade::new(protocol, body), stream: hyper::upgrade::on(request), received })
}

fn by_http1(request: &Request<Incoming>) -> Option<String> {
    let is_empty = http_body::Body::is_end_stream(request.body());
    let may_ask = request.version() == Version::HTTP_11 && *request.method() == Method::GET;
    if !may_ask || !is_empty || !names_upgrade(request.headers()) {
        return None;
    }
    let mut protocols = request.headers().get_all(header::UPGRADE).iter();
    let protocol = protocols.next().filter(|_| protocols.next().is_none())?;
    protocol.to_str().ok().map(str::to_owned)
}

/// True if `Connection` says that `Upgrade` is for this server.
fn names_upgrade(fields: &HeaderMap) -> bool {
    list_members(fields, &header::CONNECTION).any(|name| name.eq_ignore_ascii_case("upgrade"))
}

impl Asked {
    /// Carries bytes both ways in a task of its own: what the client sends goes to the service, and `body` to the client.
    /// Ends when both directions have ended, or one of them breaks, or the connection is cut.
    pub(crate) fn carry(self, body: Body, held: Held, cut: Arc<Cut>) {
        tokio::spawn(async move {
            let mut held = held;
            let carried = tokio::select! {
                biased;
                carried = carry(self.stream, self.received, body, &mut held) => carried,
                () = cut.happened() => Err(Outcome::Aborted("the connection was cut".to_owned())),
            };
            held.record.outcome = Some(carried.map_or_else(|outcome| outcome, |()| Outcome::Complete));
        });
    }
}

async fn carry(stream: OnUpgrade, received: BodySender, body: Body, held: &mut Held) -> Result<(), Outcome> {
    let stream = stream.await.map_err(|error| Outcome::Aborted(error.to_string()))?;
    let (reading, writing) = tokio::io::split(TokioIo::new(stream));
    let from_client = async {
        receive(reading, received).await;
        Ok(())
    };
    tokio::try_join!(from_client, send(writing, body, held)).map(|_| ())
}

/// Brings the service what the client sends, until either has enough.
async fn receive(mut stream: ReadHalf<TokioIo<Upgraded>>, received: BodySender) {
    // A service that has left needs to know nothing.
    let _: Result<(), BodyGone> = loop {
        let read = tokio::select! {
            read = poll_fn(|cx| poll_piece(&mut stream, cx)) => read,
            () = received.closed() => break Err(BodyGone),
        };
        let passed = match read {
            Ok(piece) if piece.is_empty() => break received.finish().await,
            Ok(piece) => received.send(piece).await,
            Err(error) => break received.fail(BodyError::Lost(Box::new(error))).await,
        };
        if passed.is_err() {
            break passed;
        }
    };
}

/// Brings the client what the service sends.
async fn send(
    mut stream: WriteHalf<TokioIo<Upgraded>>,
    mut body: Body,
    held: &mut Held,
) -> Result<(), Outcome> {
    loop {
        let data = body.chunk().await.map_err(|error| Outcome::Failed(error.to_string()))?;
        held.open.set_waiting(true);
        let left = |error: io::Error| Outcome::Aborted(error.to_string());
        let Some(data) = data else { return stream.shutdown().await.map_err(left) };
        // hyper copies up to three pieces per HTTP/2 stream.
        for piece in data.chunks(TUNNEL_PIECE) {
            stream.write_all(piece).await.map_err(left)?;
            held.record.body_bytes += piece.len() as u64;
        }
        stream.flush().await.map_err(left)?;
        held.open.set_waiting(false);
    }
}

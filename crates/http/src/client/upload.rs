//! A request's body on its way to the server.

use std::sync::{Arc, OnceLock};

use http_body::Frame;
use posthaste_endpoint::WriteError;
use posthaste_http3::{Code, encode};
use tokio::task::JoinHandle;

use super::connect::Live;
use crate::message_stream::MessageSender;
use crate::service::Body;

/// Bytes of one DATA frame.
const FRAME: usize = 64 * 1024;

/// A body that is sent while the response is read. Dropped, it is given up: the server sees that it is not whole.
pub(super) struct Upload {
    task: JoinHandle<bool>,
    /// What became of the task, once it has ended: whether the server has acknowledged all of the body.
    outcome: Option<bool>,
    failure: Arc<OnceLock<String>>,
}

impl Upload {
    /// Sends the body behind the head that `sender` holds.
    pub(super) fn start(live: Arc<Live>, mut sender: MessageSender, body: Body) -> Self {
        let failure = Arc::new(OnceLock::new());
        let told = Arc::clone(&failure);
        let sending = async move {
            match send(&live, &mut sender, body).await {
                Ok(()) => return sender.acknowledged().await.is_ok(),
                Err(Failed::Source(reason)) => {
                    // It is set once: nothing comes behind a failure.
                    let _ = told.set(reason);
                    sender.reset(Code::H3_REQUEST_CANCELLED);
                }
                // spec: rfc9114 4.1 early-response-kept
                // A server may answer what it does not want to read (RFC 9114 section 4.1); a connection that is over
                // shows in the response.
                Err(Failed::Unwanted) => sender.reset(Code::H3_NO_ERROR),
            }
            false
        };
        Self { task: tokio::spawn(sending), outcome: None, failure }
    }

    /// Waits until the server has acknowledged all of the body (true), or it is certain that it will not. Cancel safe.
    pub(super) async fn ended(&mut self) -> bool {
        match self.outcome {
            Some(outcome) => outcome,
            None => *self.outcome.insert((&mut self.task).await.unwrap_or(false)),
        }
    }

    /// Why the body could not be sent, if its source has failed.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.task.abort();
    }
}

enum Failed {
    /// The body's source.
    Source(String),
    /// The server wants no more, or the connection is over.
    Unwanted,
}

impl From<WriteError> for Failed {
    fn from(_: WriteError) -> Self {
        Self::Unwanted
    }
}

/// Sends the body to its end, as fast as the server takes it.
async fn send(live: &Live, sender: &mut MessageSender, mut body: Body) -> Result<(), Failed> {
    while let Some(frame) = next_frame(sender, &mut body).await? {
        match frame.into_data() {
            Ok(mut data) => {
                while !data.is_empty() {
                    sender.content(data.split_to(data.len().min(FRAME))).await?;
                    live.progress.note();
                }
            }
            Err(frame) => {
                let Ok(trailers) = frame.into_trailers() else { continue };
                if !trailers.is_empty() {
                    sender.frame(encode::trailers(&trailers));
                }
                break;
            }
        }
    }
    // spec: rfc9114 4.1 client-ends-stream
    Ok(sender.finish().await?)
}

/// The body's next frame. If that takes time, what precedes it goes ahead, and a server that wants no more is noticed.
async fn next_frame(
    sender: &mut MessageSender,
    body: &mut Body,
) -> Result<Option<Frame<bytes::Bytes>>, Failed> {
    let frame = {
        let mut next = std::pin::pin!(body.frame());
        match futures::poll!(next.as_mut()) {
            std::task::Poll::Ready(frame) => frame,
            std::task::Poll::Pending => {
                sender.flush().await?;
                tokio::select! {
                    biased;
                    frame = next => frame,
                    _ = sender.unwanted() => return Err(Failed::Unwanted),
                }
            }
        }
    };
    frame.transpose().map_err(|error| Failed::Source(error.to_string()))
}

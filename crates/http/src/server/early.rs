//! The handshake of a QUIC connection, for requests that came before its end.

use std::future::Future;
use std::pin::Pin;

use posthaste_endpoint::Connection;

use crate::service::{Handshake, HandshakeFailed};

/// The handshake of this connection.
pub(super) struct QuicHandshake(pub(super) Connection);

impl Handshake for QuicHandshake {
    fn is_complete(&self) -> bool {
        !self.0.is_handshaking()
    }

    fn completed(&self) -> Pin<Box<dyn Future<Output = Result<(), HandshakeFailed>> + Send + '_>> {
        Box::pin(async { self.0.handshake().await.map(|_| ()).map_err(HandshakeFailed::new) })
    }
}

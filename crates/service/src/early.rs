//! Requests that came as early data.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, Method, StatusCode};

use crate::error::BoxError;

/// Says that a request has come as early data to an intermediary; any value means that (RFC 8470 section 5.1).
pub const EARLY_DATA: HeaderName = HeaderName::from_static("early-data");

/// Status and text of the answer to early data that must wait for the handshake (RFC 8470 section 5.2).
pub const TOO_EARLY: (StatusCode, &str) = (StatusCode::TOO_EARLY, "ask again when the handshake is complete");

/// Refuses a request that somebody on the path may have repeated unless its method is safe: `is_early` here, or to an
/// intermediary by its fields. The client is to ask again when the handshake is complete.
///
/// # Errors
/// [`TOO_EARLY`].
pub fn refuse_early(
    is_early: bool,
    method: &Method,
    fields: &HeaderMap,
) -> Result<(), (StatusCode, &'static str)> {
    if !method.is_safe() && (is_early || fields.contains_key(&EARLY_DATA)) {
        return Err(TOO_EARLY);
    }
    Ok(())
}

/// The handshake of the connection that brings a request; servers implement it for [`Early`].
pub trait Handshake: Send + Sync {
    /// True once it is complete.
    fn is_complete(&self) -> bool;

    /// Resolves when it is complete, or cannot become so.
    fn completed(&self) -> Pin<Box<dyn Future<Output = Result<(), HandshakeFailed>> + Send + '_>>;
}

/// The connection ended before its handshake was complete.
#[derive(Debug, thiserror::Error)]
#[error("the handshake was not completed: {0}")]
pub struct HandshakeFailed(#[source] BoxError);

impl HandshakeFailed {
    /// For this reason.
    pub fn new(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(reason.into())
    }
}

/// The request came as early data (0-RTT): somebody on the path may have repeated it (RFC 8470). An extension of the
/// request. Servers of this project answer requests with unsafe methods with 425 before a service sees them.
#[derive(Clone)]
pub struct Early(Arc<dyn Handshake>);

impl Early {
    /// For a request of a connection with this handshake.
    pub fn new(handshake: impl Handshake + 'static) -> Self {
        Self(Arc::new(handshake))
    }

    /// True once the handshake is complete: the request is no repetition.
    pub fn is_settled(&self) -> bool {
        self.0.is_complete()
    }

    /// Waits until the handshake is complete.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn settled(&self) -> Result<(), HandshakeFailed> {
        self.0.completed().await
    }
}

impl std::fmt::Debug for Early {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Early").field("is_settled", &self.is_settled()).finish_non_exhaustive()
    }
}

//! Requests that came as early data.

use posthaste_endpoint::{Connection, ConnectionError, EarlyData};

/// The request came as early data (0-RTT): somebody on the path may have repeated it (RFC 8470). An extension of the
/// request; requests with unsafe methods are answered with 425 before a service sees them.
#[derive(Debug, Clone)]
pub struct Early(Connection);

impl Early {
    pub(super) fn new(connection: Connection) -> Self {
        Self(connection)
    }

    /// True once the handshake is complete: the request is no repetition.
    pub fn is_settled(&self) -> bool {
        !self.0.is_handshaking()
    }

    /// Waits until the handshake is complete.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn settled(&self) -> Result<EarlyData, ConnectionError> {
        self.0.handshake().await
    }
}

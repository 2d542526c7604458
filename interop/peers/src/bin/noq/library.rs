//! noq, and what differs between it and quinn.

use bytes::Bytes;
pub(crate) use noq::*;
use posthaste_interop_peers::contract::Result;

/// The next bytes of the stream, in order.
pub(crate) async fn read_chunk(receive: &mut RecvStream) -> Result<Option<Bytes>> {
    Ok(receive.read_chunk(usize::MAX).await?)
}

/// The endpoint with what its connections use.
pub(crate) fn with_client_config(endpoint: Endpoint, config: ClientConfig) -> Result<Endpoint> {
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}

/// Whether the server has taken early data.
pub(crate) async fn is_early(accepted: ZeroRttAccepted) -> bool {
    accepted.await
}

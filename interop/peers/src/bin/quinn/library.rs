//! quinn, and what differs between it and its relatives.

use bytes::Bytes;
use posthaste_interop_peers::contract::Result;
pub(crate) use quinn::*;

/// The next bytes of the stream, in order.
pub(crate) async fn read_chunk(receive: &mut RecvStream) -> Result<Option<Bytes>> {
    Ok(receive.read_chunk(usize::MAX, true).await?.map(|chunk| chunk.bytes))
}

/// The endpoint with what its connections use.
pub(crate) fn with_client_config(mut endpoint: Endpoint, config: ClientConfig) -> Result<Endpoint> {
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}

/// Whether the server has taken early data.
pub(crate) async fn is_early(accepted: ZeroRttAccepted) -> bool {
    accepted.await
}

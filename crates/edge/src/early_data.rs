//! Has requests that came as early data (0-RTT) wait for the handshake where their site wants that (RFC 8470 section 3).

use http::{HeaderName, StatusCode};
use posthaste_service::{Early, Request};

use crate::actions::Action;
use crate::config::EarlyDataUse;

/// Says that a request has come as early data to an intermediary (RFC 8470 section 5.1).
const EARLY_DATA: HeaderName = HeaderName::from_static("early-data");

/// The request, once `action` may answer it. A request that waited is no early data any more.
///
/// # Errors
/// Status and text of the answer: the handshake is another server's, or did not complete.
pub(crate) async fn admit(
    permitted: EarlyDataUse,
    action: &Action,
    mut request: Request,
) -> Result<Request, (StatusCode, &'static str)> {
    let is_permitted = match permitted {
        EarlyDataUse::Safe => true,
        EarlyDataUse::Files => !matches!(action, Action::Proxy(_)),
        EarlyDataUse::Off => false,
    };
    if is_permitted {
        return Ok(request);
    }
    let too_early = (StatusCode::TOO_EARLY, "ask again when the handshake is complete");
    // Only the intermediary could wait for the handshake that it means.
    if request.headers().contains_key(&EARLY_DATA) {
        return Err(too_early);
    }
    if let Some(early) = request.extensions_mut().remove::<Early>() {
        early.settled().await.map_err(|_| too_early)?;
    }
    Ok(request)
}

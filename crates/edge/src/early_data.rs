//! Has requests that came as early data (0-RTT) wait for the handshake where their site wants that (RFC 8470 section 3).

use http::StatusCode;
use posthaste_service::{EARLY_DATA, Early, Request, TOO_EARLY};

use crate::actions::Action;
use crate::config::EarlyDataUse;

/// The request, once `action` may answer it. A request that waited is no early data any more.
///
/// # Errors
/// [`TOO_EARLY`]: the handshake is another server's, or did not complete.
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
    // Only the intermediary could wait for the handshake that it means.
    if request.headers().contains_key(&EARLY_DATA) {
        return Err(TOO_EARLY);
    }
    if let Some(early) = request.extensions_mut().remove::<Early>() {
        early.settled().await.map_err(|_| TOO_EARLY)?;
    }
    Ok(request)
}

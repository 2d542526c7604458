//! Policies of the seam `credit`: how much a receiver lets its peer send.

pub mod autotune;
pub mod demand;
pub mod fast;
pub mod fixed;
pub mod improved;
pub mod on_ack;

use posthaste_policy::sample::WindowView;
use posthaste_units::ByteCount;

use crate::Variant;

/// The greatest limit that the wire can carry (RFC 9000 section 16).
const GREATEST_LIMIT: ByteCount = ByteCount::new((1 << 62) - 1);

/// What the peer may still send, counted from what the application has read.
fn ahead(view: &WindowView) -> ByteCount {
    view.advertised - view.consumed
}

/// What of the window the budget of all connections allows.
fn rationed(view: &WindowView, window: ByteCount) -> ByteCount {
    view.allowance.map_or(window, |allowance| window.min(allowance))
}

/// Half of that: less than this is left when a window is renewed.
fn half(view: &WindowView, window: ByteCount) -> ByteCount {
    rationed(view, window) / 2
}

/// The advance that puts the limit `window` ahead of what has been read, or as far as the budget of all connections
/// allows; none if it is there already or beyond (a limit is never taken back, RFC 9000 section 4.1).
fn replenish(view: &WindowView, window: ByteCount) -> Option<ByteCount> {
    let window = rationed(view, window);
    let limit = (view.consumed + window).min(GREATEST_LIMIT);
    let advance = limit - view.advertised;
    (!advance.is_zero()).then_some(advance)
}

/// The update that may first enlarge a window, unless said otherwise: it takes two to see how long one has lasted.
const fn second_update() -> u32 {
    2
}

#[cfg(test)]
mod tests;

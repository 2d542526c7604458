//! What sending on connections waited for.

use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

use posthaste_endpoint::Waited;

use super::FAMILIES;
use crate::metrics::page::{Labels, Page};

/// What is waited for: the values of the label `for`.
const REASONS: [&str; 5] = ["application", "credit", "window", "pacing", "validation"];

/// Times by [`REASONS`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Waits([Duration; REASONS.len()]);

impl Waits {
    pub(super) fn of(waited: &Waited) -> Self {
        let Waited { application, credit, window, pacing, validation } = *waited;
        Self([application, credit, window, pacing, validation].map(Into::into))
    }
}

impl AddAssign for Waits {
    fn add_assign(&mut self, other: Self) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own = own.saturating_add(other);
        }
    }
}

pub(super) fn write(page: &mut Page<'_>, totals: [&Waits; 2]) -> fmt::Result {
    let mut labels = Vec::new();
    for (waits, family) in totals.iter().zip(FAMILIES) {
        for (reason, time) in REASONS.iter().zip(waits.0) {
            labels.push(([family[0], ("for", *reason)], time.as_secs_f64()));
        }
    }
    let values: Vec<_> = labels.iter().map(|(own, seconds)| (&own[..] as Labels<'_>, *seconds)).collect();
    page.seconds("quic_waited", "For how long sending on connections waited, by what for", &values)
}

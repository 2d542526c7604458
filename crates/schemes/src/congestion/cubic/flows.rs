//! One connection that behaves as several would: the constants of CUBIC for N flows.
//!
//! `safe` is the emulation of the most deployed QUIC stack: of N flows one backs off at a time, so the sum keeps
//! `(N - 1 + beta) / N`, and grows such that it takes what N Reno flows would. `paper` is `ModQUIC`'s: on loss the
//! window is multiplied by `1 - 0.3 / n`, n at least 2, and Reno's part grows by 4 datagrams a window (its
//! section 4.2.1; its K follows from the same factor, as RFC 9438's does).

use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected, Visitor};

/// Most flows that may be emulated: beyond, the constants are those of no back-off at all.
pub const MOST_FLOWS: u32 = 64;
/// Flows that each of several live connections stands for at most in the safe form. Each for as many as there are would
/// make 16 flows of 4 connections; two is what the deployed emulation has for a connection.
pub const MOST_LIVE_FLOWS: u32 = 2;
/// `ModQUIC`: the increase of Reno's part in datagrams a window.
const PAPER_ALPHA: f64 = 4.0;
/// `ModQUIC`: a single flow counts as two.
const PAPER_LEAST_FLOWS: u32 = 2;

/// How many flows one connection stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flows {
    /// So many, 1 to [`MOST_FLOWS`].
    Fixed(u32),
    /// As many as this endpoint has live connections with the peer's host, at most [`MOST_FLOWS`], and in the safe form
    /// [`MOST_LIVE_FLOWS`].
    Live,
}

impl Default for Flows {
    fn default() -> Self {
        Self::Fixed(1)
    }
}

impl Flows {
    /// As a profile's TOML has it.
    pub fn text(self) -> String {
        match self {
            Self::Fixed(count) => count.to_string(),
            Self::Live => "live".to_owned(),
        }
    }

    /// The number of flows with `connections` live connections.
    pub(super) fn count(self, variant: Variant, connections: u32) -> u32 {
        let most = match variant {
            Variant::Safe => MOST_LIVE_FLOWS,
            Variant::Paper => MOST_FLOWS,
        };
        match self {
            Self::Fixed(count) => count,
            Self::Live => connections.clamp(1, most),
        }
    }
}

impl<'de> Deserialize<'de> for Flows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Flows;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "a number of flows from 1 to {MOST_FLOWS}, or \"live\"")
            }

            fn visit_i64<E: Error>(self, count: i64) -> Result<Flows, E> {
                match u32::try_from(count) {
                    Ok(count @ 1..=MOST_FLOWS) => Ok(Flows::Fixed(count)),
                    _ => Err(E::invalid_value(Unexpected::Signed(count), &self)),
                }
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Flows, E> {
                if text == "live" {
                    return Ok(Flows::Live);
                }
                Err(E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Text)
    }
}

/// Whose constants for N flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Variant {
    /// Decrease and increase match: the flows together take N shares.
    #[default]
    Safe,
    /// `ModQUIC` as published.
    Paper,
}

impl Variant {
    /// Its name in a profile's TOML.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Paper => "paper",
        }
    }

    /// The window's factor on a congestion event, of `flows` flows that each back off to `beta`.
    pub(super) fn beta(self, beta: f64, flows: u32) -> f64 {
        let flows = match self {
            Self::Safe => f64::from(flows),
            Self::Paper => f64::from(flows.max(PAPER_LEAST_FLOWS)),
        };
        // The same in both: (N - 1 + beta) / N is 1 - (1 - beta) / N. Fast convergence follows, as midpoint of it
        // and 1: (N - 1 + 0.85) / N.
        (flows - 1.0 + beta) / flows
    }

    /// Reno's increase in datagrams a window, for the factor that [`Self::beta`] gave.
    pub(super) fn alpha(self, flows_beta: f64, flows: u32) -> f64 {
        match self {
            Self::Safe => {
                let flows = f64::from(flows);
                3.0 * flows * flows * (1.0 - flows_beta) / (1.0 + flows_beta)
            }
            Self::Paper => PAPER_ALPHA,
        }
    }
}

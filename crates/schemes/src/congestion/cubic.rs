//! Congestion control `cubic`: a window that grows with the cube of the time since the last loss.
//!
//! - Claims: long, wide paths are refilled in seconds, not minutes; short ones behave as Reno does.
//! - Source: RFC 9438, whole: cubic and Reno-friendly regions, fast convergence, spurious-loss undo (section 4.9,
//!   in the shared part), application-limited and idle time left out of the clock (sections 4.2 and 5.8).
//! - Use when: in doubt; it is what the internet runs.
//! - Breaks when: loss is not congestion (every random loss costs 30 % of the window), and where a deep buffer
//!   makes it the cause of the delay: it fills what it finds. With several flows, the share of a bottleneck grows
//!   with them: rivals that are single flows get less.

mod flows;

use posthaste_units::{Duration, Time};
use serde::Deserialize;

pub use flows::{Flows, MOST_FLOWS, MOST_LIVE_FLOWS, Variant};

use super::loss_based::{Avoidance, Growth, LossBased, Shrinking, shared_constants};
use crate::value;
use crate::{Entry, Property};
use posthaste_policy::{
    Congestion, CongestionFactory, Constant, Description, PathLimits, PolicyText, SlowStart,
};

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "cubic",
    claims: "refills long, wide paths in seconds after a loss, and is as fair as Reno on short ones",
    source: "RFC 9438",
    use_when: "in doubt: it is what the internet runs",
    breaks_when: "loss is not congestion (each costs 30 % of the window), or buffers are deep (it fills them)",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::congestion::<Parameters>(TEXT).with(&[
    Property::TakesFirstWindow,
    Property::TakesJump,
    Property::CutByLoss,
]);

/// The window may at most grow by this factor in a round trip (RFC 9438 section 4.2).
const GREATEST_TARGET: f64 = 1.5;

/// Parameters of [`Cubic`].
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// The window's factor on a congestion event, above 0 and below 1; RFC 9438 section 4.6 has 0.7.
    #[serde(deserialize_with = "value::fraction")]
    pub beta: f64,
    /// How steep the curve is, in datagrams a cubic second, above 0 and at most 10; section 5.1 has 0.4.
    #[serde(deserialize_with = "value::steepness")]
    pub c: f64,
    /// Whether a flow whose last peak was lower releases more (section 4.7).
    pub fast_convergence: bool,
    /// How the flight shrinks in recovery: `prr` (the default, RFC 9937) or `at_once` (RFC 9002's letter).
    pub recovery: Shrinking,
    /// How many flows the connection stands for: 1 to 64, or `"live"`.
    pub flows: Flows,
    /// Whose constants for several flows: `safe` or `paper`.
    pub variant: Variant,
    /// What the size of packets follows: the `path` (the default), or the `state` of the window.
    pub packet_size: PacketSize,
}

/// What the size of packets follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PacketSize {
    /// The path: as large as it carries.
    #[default]
    Path,
    /// The window, from one round trip to the next (`ModQUIC`, section 3.2.1): 1,200 bytes once it has shrunk, as large as
    /// the path carries once it has grown.
    State,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            beta: 0.7,
            c: 0.4,
            fast_convergence: true,
            recovery: Shrinking::Prr,
            flows: Flows::default(),
            variant: Variant::default(),
            packet_size: PacketSize::default(),
        }
    }
}

impl Parameters {
    /// The window's factor on a congestion event, with so many live connections.
    pub fn beta(&self, connections: u32) -> f64 {
        self.variant.beta(self.beta, self.flows.count(self.variant, connections))
    }

    /// The Reno-friendly region's increase in datagrams a round trip (section 4.3): with it, flows that back off to
    /// `beta` take the same share as as many Renos.
    pub fn alpha(&self, connections: u32) -> f64 {
        self.variant.alpha(self.beta(connections), self.flows.count(self.variant, connections))
    }

    /// The peak to aim for, as a part of the window, when the last was not reached again (section 4.7).
    pub fn convergence_factor(&self, connections: u32) -> f64 {
        f64::midpoint(1.0, self.beta(connections))
    }

    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        let mut constants = vec![
            Constant::new("beta", format!("{:.3}", self.beta(1))),
            Constant::new("c", self.c),
            Constant::new("alpha", format!("{:.3}", self.alpha(1))),
            Constant::new("fast_convergence", self.fast_convergence),
            Constant::new("recovery", self.recovery.name()),
            Constant::new("flows", self.flows.text()),
            Constant::new("variant", self.variant.name()),
        ];
        if self.packet_size == PacketSize::State {
            constants
                .push(Constant::new("packet_size", "1,200 bytes once the window shrank, else the path's"));
        }
        constants.extend(shared_constants());
        constants
    }
}

impl CongestionFactory for Parameters {
    fn build(&self, limits: PathLimits, slow_start: Box<dyn SlowStart>) -> Box<dyn Congestion> {
        let controller = Cubic::new(CubicIncrease::new(*self), slow_start, limits);
        Box::new(controller.with_shrinking(self.recovery))
    }

    fn sizes_packets_by_state(&self) -> bool {
        self.packet_size == PacketSize::State
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(self.constants())
    }
}

/// The controller.
pub type Cubic = LossBased<CubicIncrease>;

/// One stage of congestion avoidance: the curve and how far along it the window is.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stage {
    /// Time in which the window was in use; RFC 9438's t.
    elapsed: Duration,
    /// Until when `elapsed` has been kept.
    kept_until: Time,
    /// Seconds until the curve is back at `peak`; RFC 9438's K.
    k: f64,
    /// Bytes at the plateau; RFC 9438's `W_max`.
    peak: f64,
    /// Bytes that Reno would have by now; RFC 9438's `W_est`.
    reno: f64,
}

/// Growth by the cube of time; see the module. Bytes where the RFC has segments.
#[derive(Debug, Clone, Copy)]
pub struct CubicIncrease {
    parameters: Parameters,
    /// `W_max`: the window before the last reduction, less what fast convergence gives up. `None` before the
    /// first, and after persistent congestion: the stage then starts on the plateau (section 4.8).
    peak: Option<f64>,
    /// `cwnd_prior`: the window when the threshold was last set.
    prior: f64,
    stage: Option<Stage>,
    /// Live connections with the peer's host.
    connections: u32,
}

impl CubicIncrease {
    /// A controller's increase with `parameters`.
    pub const fn new(parameters: Parameters) -> Self {
        Self { parameters, peak: None, prior: 0.0, stage: None, connections: 1 }
    }

    /// Begins a stage of congestion avoidance with the first ack that counts in it.
    fn begin_stage(&mut self, growth: &Growth) -> Stage {
        let peak = self.peak.map_or(growth.window, |peak| peak.max(growth.window));
        self.peak = Some(peak);
        let segments = (peak - growth.window) / growth.datagram;
        Stage {
            elapsed: Duration::ZERO,
            kept_until: growth.now,
            k: libm::cbrt(segments / (self.parameters.c * growth.share)),
            peak,
            reno: growth.window,
        }
    }
}

impl Stage {
    /// `W_cubic` after `time` of the stage (figure 1).
    fn curve(&self, time: Duration, c: f64, datagram: f64) -> f64 {
        let offset = time.as_secs_f64() - self.k;
        c * offset * offset * offset * datagram + self.peak
    }
}

impl Avoidance for CubicIncrease {
    fn on_ack(&mut self, growth: &Growth) -> f64 {
        let mut stage = self.stage.unwrap_or_else(|| self.begin_stage(growth));
        stage.elapsed += growth.now.since(stage.kept_until);
        stage.kept_until = growth.now;

        // Section 4.3: once Reno has made up for the reduction, it grows as Reno does.
        let alpha = self.parameters.alpha(self.connections);
        let alpha = if stage.reno >= self.prior { alpha.max(1.0) } else { alpha };
        stage.reno += alpha * growth.share * growth.datagram * growth.acked / growth.window;

        // A part of a flow has that part of the curve: lower, but as long.
        let c = self.parameters.c * growth.share;
        let curve = |time| stage.curve(time, c, growth.datagram);
        let window = if curve(stage.elapsed) < stage.reno {
            stage.reno
        } else {
            // Sections 4.4 and 4.5: reach the curve's value of the next round trip within this one.
            let ahead = curve(stage.elapsed + growth.smoothed_rtt);
            let target = ahead.clamp(growth.window, growth.window * GREATEST_TARGET);
            let step = (target - growth.window) * growth.acked / growth.window;
            (growth.window + step).min(target)
        };
        self.stage = Some(stage);
        // The curve's part may have run ahead of Reno's: an ack never shrinks the window.
        window.max(growth.window)
    }

    fn reduce(&mut self, window: f64) -> f64 {
        let gave_way = self.parameters.fast_convergence && self.peak.is_some_and(|peak| window < peak);
        self.peak = Some(if gave_way {
            window * self.parameters.convergence_factor(self.connections)
        } else {
            window
        });
        self.prior = window;
        self.stage = None;
        window * self.parameters.beta(self.connections)
    }

    fn on_pause(&mut self, now: Time) {
        if let Some(stage) = &mut self.stage {
            stage.kept_until = stage.kept_until.max(now);
        }
    }

    fn forget(&mut self) {
        self.peak = None;
        self.stage = None;
    }

    fn rescale(&mut self, factor: f64) {
        self.peak = self.peak.map(|peak| peak * factor);
        self.prior *= factor;
        if let Some(stage) = &mut self.stage {
            stage.peak *= factor;
            stage.reno *= factor;
        }
    }

    fn on_connections(&mut self, count: u32) {
        self.connections = count;
    }
}

#[cfg(test)]
mod tests;

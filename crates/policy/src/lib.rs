//! The seams: every decision about speed as a small trait, and the [`Profile`] that bundles one policy for each.
//!
//! A policy does no I/O, reads no clock and knows no transport type: it is told what happened (see [`sample`])
//! and answers with bytes, rates and times. It can therefore be tested by its step response alone.
//!
//! | seam | trait | decides |
//! |---|---|---|
//! | [`mod@start`] | [`Start`] | what a new path may send first |
//! | [`mod@slow_start`] | [`SlowStart`] | how the window grows until the capacity is found |
//! | [`congestion`] | [`Congestion`] | how much may be in flight, and how fast it may leave |
//! | [`silence`] | [`Silence`] | what a silent peer means |
//! | [`credit`] | [`Credit`] | how much a receiver lets its peer send, per stream and connection |
//! | [`ack`] | [`AckPolicy`] | when to acknowledge |
//! | [`repair`] | [`Repair`] | what is sent again before it is known to be lost |
//! | [`group`] | [`Group`] | what several connections of one client have in common |
//!
//! A program that replaces one policy begins with a whole profile, such as the default one of `posthaste-schemes`, and
//! sets one factory: `default_profile().to_builder("mine").congestion(Mine::new).build()`. [`ProfileBuilder`] has an
//! example of a policy.
//!
//! Each seam has a file with its trait and the trait of its factory. A [`Profile`] holds one factory per seam, from
//! which the transport builds the policies of each path, stream and connection. Factories are closures or types of any
//! crate; those that come with Posthaste are in `posthaste-schemes`.

pub mod ack;
pub mod congestion;
pub mod credit;
mod describe;
pub mod group;
pub mod history;
mod notice;
pub mod profile;
pub mod repair;
pub mod sample;
pub mod silence;
pub mod slow_start;
pub mod start;

pub use ack::{AckFactory, AckPolicy};
pub use congestion::{
    Adjustment, Congestion, CongestionFactory, CongestionState, FlowShare, LossCause, Pacing, PathLimits,
    Phase,
};
pub use credit::{AckRide, Credit, CreditFactory};
pub use describe::{Constant, Description, PolicyReport, PolicyText, ProfileReport, Seam};
pub use group::{Group, GroupFactory, Lead};
pub use notice::Notice;
pub use profile::{BuildError, Profile, ProfileBuilder};
pub use repair::{Repair, RepairFactory};
pub use silence::{Silence, SilenceFactory, Verdict};
pub use slow_start::{SlowStart, SlowStartFactory, SlowStartStep};
pub use start::{Jumps, Start, StartFactory};

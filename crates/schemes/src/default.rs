//! The default profile, made without its text.

use posthaste_policy::Profile;
use posthaste_units::ByteCount;

use crate::credit::autotune;
use crate::{ack, congestion, group, repair, silence, slow_start, start};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// The default profile, `cubic`: what `named("cubic")` gives.
///
/// # Panics
/// Never: a test builds it.
#[expect(clippy::expect_used, reason = "a test builds it; nothing of it comes from outside")]
pub fn default_profile() -> Profile {
    let windows = |initial, maximum| autotune::Parameters {
        initial: ByteCount::new(initial),
        maximum: ByteCount::new(maximum),
        grows_at: 2,
    };
    Profile::builder("cubic")
        .description(
            "What the internet runs today, done carefully: CUBIC behind HyStart++, windows that grow.",
        )
        .start(start::initial::Parameters::default())
        .slow_start(slow_start::hystart_pp::Parameters::default())
        .congestion(congestion::cubic::Parameters::default())
        .silence(silence::collapse::Parameters::default())
        // The connection has 1.5 times a stream's window: with less, streams that share it stall each other.
        .credit(windows(MIB, 16 * MIB), windows(1536 * KIB, 24 * MIB))
        .ack(ack::standard::Parameters::default())
        .repair(repair::none::Parameters::default())
        .group(group::plain::Parameters::default())
        .build()
        .expect("the default profile is whole")
}

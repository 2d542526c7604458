use posthaste_units::{ByteCount, Duration, Time};

use super::*;
use crate::repair::Nothing;
use crate::sample::{AckRequest, AckSample, CreditMoment, LossSample, ReceivedSample, RttView, WindowView};
use crate::{Adjustment, CongestionState, LossCause, Pacing, PolicyText, SlowStart};

/// Stands for a policy of every seam.
#[derive(Debug)]
struct Stub(ByteCount);

impl Start for Stub {
    fn initial_window(&self, _max_datagram_size: ByteCount) -> ByteCount {
        self.0
    }
}

impl Congestion for Stub {
    fn on_ack(&mut self, _ack: &AckSample<'_>) {}
    fn on_loss(&mut self, _loss: &LossSample<'_>) -> LossCause {
        LossCause::Congestion
    }
    fn on_congestion_experienced(&mut self, _now: Time, _sent_at: Time, _in_flight: ByteCount) {}
    fn on_persistent_congestion(&mut self, _now: Time) {}
    fn on_max_datagram_size(&mut self, _size: ByteCount) {}
    fn adjust(&mut self, _adjustment: &Adjustment) {}
    fn window(&self) -> ByteCount {
        self.0
    }
    fn pacing(&self, _rtt: &RttView) -> Option<Pacing> {
        None
    }
    fn state(&self) -> CongestionState {
        CongestionState { window: self.0, slow_start_threshold: None, phase: crate::Phase::SlowStart }
    }
}

impl Silence for Stub {
    fn probe_timeout(&self, base: Duration, _count: u32) -> Duration {
        base
    }
}

impl Credit for Stub {
    fn initial_window(&self) -> ByteCount {
        self.0
    }
    fn grant(&mut self, _moment: CreditMoment, _view: &WindowView) -> Option<ByteCount> {
        None
    }
    fn window(&self) -> ByteCount {
        self.0
    }
}

impl AckPolicy for Stub {
    fn on_packet(&mut self, _packet: &ReceivedSample) {}
    fn deadline(&self) -> Option<Time> {
        None
    }
    fn on_ack_sent(&mut self) {}
    fn on_request(&mut self, _request: &AckRequest) {}
}

/// A factory that says what its windows are.
struct Bounded(u64, u64);

impl CreditFactory for Bounded {
    fn build(&self) -> Box<dyn Credit> {
        Box::new(stub())
    }
    fn bounds(&self) -> Option<(ByteCount, ByteCount)> {
        Some((ByteCount::new(self.0), ByteCount::new(self.1)))
    }
}

fn stub() -> Stub {
    Stub(ByteCount::new(9000))
}

/// A controller that begins where the limits say.
fn controller(limits: PathLimits, _slow_start: Box<dyn SlowStart>) -> Stub {
    Stub(limits.initial_window)
}

fn complete() -> ProfileBuilder {
    Profile::builder("mine")
        .start(stub)
        .congestion(controller)
        .silence(stub)
        .credit(stub, stub)
        .ack(|_: Duration| stub())
}

#[test]
fn closures_and_functions_are_factories() {
    let profile = complete().build().unwrap();
    let limits = PathLimits { max_datagram_size: 1200.into(), initial_window: 7000.into(), seed: 1 };
    assert_eq!(profile.congestion(limits).window(), 7000.into());
    assert_eq!(profile.start().initial_window(1200.into()), 9000.into());
    assert_eq!(profile.stream_credit().window(), profile.connection_credit().window());
    assert_eq!(profile.max_ack_delay(), Duration::from_millis(25));
    assert!(profile.group().is_none() && profile.history_rules().is_none());
    assert_eq!(profile.silence().probe_timeout(Duration::from_secs(1), 3), Duration::from_secs(1));
}

#[test]
fn what_is_not_described_says_so_and_what_is_left_out_has_its_name() {
    let profile = complete().build().unwrap();
    let names: Vec<&str> = profile.describe().policies.iter().map(|policy| policy.text.name).collect();
    let custom = "custom";
    assert_eq!(names, [custom, "classic", custom, custom, custom, custom, custom, "none", "plain"]);
    assert!(format!("{profile:?}").contains("slow_start: \"classic\""), "{profile:?}");
}

#[test]
fn a_seam_without_a_policy_is_named() {
    let error = Profile::builder("mine").start(stub).credit(stub, stub).build().unwrap_err();
    assert_eq!(error, BuildError::Missing { name: "mine".to_owned(), seam: Seam::Congestion });
    assert_eq!(error.to_string(), "profile `mine` has no policy for the seam `congestion`");
}

#[test]
fn windows_that_contradict_each_other_are_refused() {
    for (stream, connection, part) in [
        (Bounded(2, 1), Bounded(3, 3), "credit.stream: `initial` is above `maximum`"),
        (Bounded(1, 2), Bounded(3, 2), "credit.connection: `initial` is above `maximum`"),
        (Bounded(4, 8), Bounded(3, 9), "1.5 times"),
        (Bounded(4, 8), Bounded(4, 7), "1.5 times"),
    ] {
        let message = complete().credit(stream, connection).build().unwrap_err().to_string();
        assert!(message.starts_with("profile `mine`: ") && message.contains(part), "{message}");
    }
    // Those of closures are not known.
    complete().connection_credit(Bounded(1, 1)).build().unwrap();
}

#[test]
fn a_profile_built_on_another_differs_in_what_is_set() {
    /// A start that describes itself.
    struct Told;
    impl StartFactory for Told {
        fn build(&self) -> Box<dyn Start> {
            Box::new(Stub(ByteCount::new(1)))
        }
        fn describe(&self) -> Description {
            let text = PolicyText { name: "told", ..Description::default().text };
            Description::of(text).with_breaks(vec!["a MUST"])
        }
    }
    let first = complete().description("the first").build().unwrap();
    let second = first.to_builder("second").start(Told).repair(Nothing).build().unwrap();
    assert_eq!((second.name(), second.description()), ("second", "the first"));
    assert_eq!(second.start().initial_window(1200.into()), 1.into());
    let report = second.describe();
    assert_eq!((report.policies[0].text.name, &report.policies[0].breaks[..]), ("told", &["a MUST"][..]));
    assert_eq!(report.policies[2].text.name, "custom");
    assert_eq!(first.start().initial_window(1200.into()), 9000.into());
}

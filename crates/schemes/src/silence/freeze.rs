//! Silence `freeze`: a silent peer is out of reach, not behind a congested network: stop, probe, and go on.
//!
//! - Claims: after a tunnel, a handover or a suspended radio a transfer goes on at the speed that it had, instead of
//!   starting from two datagrams.
//! - Source: the handshaking mechanism of "modified QUIC": when acks stop, the sender holds its state, sends probes that back
//!   off, and resumes at its full rate with the first ack (variant `paper`). Variant `safe`: half the frozen window,
//!   paced over one round trip and validated as a jump of RFC 9959 is; if any of that is lost, the window collapses.
//! - Use when: silences are the last hop's and the capacity is there again after them.
//! - Breaks when: it is not. After an outage that ends in a slower network, or with others in the queue, the first
//!   flight is too much: `paper` goes on as if nothing had been lost, `safe` loses one paced flight of half.
//! - Experiment: `freeze`.
//!
//! What a silence is: in `paper` it begins with the first probe timeout, so that a lost tail is one, too. In `safe`
//! it is what RFC 9002 section 7.6 takes for persistent congestion; whatever is shorter is treated as RFC 9002 has
//! it. Both break that section's MUST that the window collapses, `paper` also section 7.3.1's that losses count.

use posthaste_policy::sample::{AckSample, LossSample, PathView, RttView, SentSample, SilenceSample};
use posthaste_policy::{
    Adjustment, Constant, Description, LossCause, Pacing, PolicyText, Silence, SilenceFactory, Verdict,
};
use posthaste_units::{ByteCount, Duration, Time};
use serde::Deserialize;

use super::back_off;
use crate::start::jump::Jump;
use crate::{Entry, Variant};

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "freeze",
    claims: "after a silence (tunnel, handover) a transfer goes on near the speed that it had",
    source: "ModQUIC, handshaking mechanism (paper); with half the window, validated as in RFC 9959 (safe)",
    use_when: "silences are the last hop's, and the capacity is there again after them",
    breaks_when: "it is not: a slower network after the outage, or others in the queue, get a flight too many",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::silence::<Parameters>(TEXT);

/// The share of the frozen window that `safe` tries: RFC 9959's, half.
const SAFE_DIVISOR: u64 = 2;
/// Less is not worth a jump: it is what a collapse leaves (RFC 9002 section 7.2).
const LEAST_DATAGRAMS: u64 = 2;
/// Probe timeouts in a row from which on `safe` sends nothing but probes: one may be a lost tail's.
const SAFE_HOLDS_AFTER: u32 = 2;

/// Parameters of [`Freeze`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// The paper's form or the safe one.
    pub variant: Variant,
}

impl Parameters {
    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        let after = match self.variant {
            Variant::Paper => "the frozen window, at once; losses of the silence do not count".to_owned(),
            Variant::Safe => format!("1/{SAFE_DIVISOR} of the frozen window over one round trip, validated"),
        };
        vec![
            Constant::new("variant", self.variant),
            Constant::new("after a silence", after),
            super::back_off_constant(),
        ]
    }

    /// The MUSTs that the variant breaks.
    pub fn breaks(&self) -> Vec<&'static str> {
        let collapse = "RFC 9002 section 7.6.2: persistent congestion takes the window to its minimum";
        match self.variant {
            Variant::Safe => vec![collapse],
            Variant::Paper => vec![
                collapse,
                "RFC 9002 sections 7.3.1 and 7.3.2: losses end slow start and reduce the window",
                "RFC 8085 section 3.1: a sender slows down when packets are lost",
            ],
        }
    }
}

impl SilenceFactory for Parameters {
    fn build(&self) -> Box<dyn Silence> {
        Box::new(Freeze::new(*self))
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(self.constants()).with_breaks(self.breaks())
    }
}

/// Holds the state through a silence; see the module.
#[derive(Debug, Clone)]
pub struct Freeze {
    variant: Variant,
    /// The silence that lasts, if one does.
    frozen: Option<Frozen>,
    /// The last silence that is over.
    thaw: Option<Thaw>,
    /// When the last jump began, and where it stands. One that is over is kept until the next silence: which of its
    /// packets are lost shows with the ack of the last of them, or later.
    jump: Option<(Time, Jump)>,
}

#[derive(Debug, Clone, Copy)]
struct Frozen {
    /// When the first probe timeout expired.
    since: Time,
    /// The window then.
    window: ByteCount,
    /// Probe timeouts so far.
    probes: u32,
}

#[derive(Debug, Clone, Copy)]
struct Thaw {
    /// When the silence began.
    since: Time,
    /// When the first ack came.
    at: Time,
    /// The window frozen before it.
    window: ByteCount,
    /// Bytes acknowledged since of what was sent since the silence began: what had arrived before it proves nothing.
    acked: ByteCount,
    max_datagram_size: ByteCount,
    /// The chance to jump has been used.
    is_spent: bool,
}

impl Freeze {
    /// The policy with `parameters`.
    pub const fn new(parameters: Parameters) -> Self {
        Self { variant: parameters.variant, frozen: None, thaw: None, jump: None }
    }

    /// Persistent congestion after a silence: a jump to half of what was, if that is more than a collapse leaves.
    fn jump(&mut self, view: &PathView) -> Verdict {
        let Some(thaw) = self.thaw.as_mut().filter(|thaw| !thaw.is_spent) else { return Verdict::Collapse };
        thaw.is_spent = true;
        let least_window = thaw.max_datagram_size * LEAST_DATAGRAMS;
        let window = (thaw.window / SAFE_DIVISOR).min(view.congestion.window);
        if window <= least_window {
            return Verdict::Collapse;
        }
        // What was in flight is lost; only what came through since proves anything.
        let (jump, adjustment) = Jump::begin(view, window, least_window, thaw.acked);
        self.jump = Some((view.now, jump));
        Verdict::Adjust(adjustment)
    }
}

impl Silence for Freeze {
    fn probe_timeout(&self, base: Duration, count: u32) -> Duration {
        back_off(base, count)
    }

    fn on_probe_timeout(&mut self, silence: &SilenceSample) {
        let first = Frozen { since: silence.now, window: silence.state.window, probes: 0 };
        let frozen = self.frozen.get_or_insert(first);
        frozen.probes = silence.count;
    }

    fn holds_back(&self) -> bool {
        let after = if self.variant == Variant::Paper { 1 } else { SAFE_HOLDS_AFTER };
        self.frozen.is_some_and(|frozen| frozen.probes >= after)
    }

    fn on_end(&mut self, now: Time, max_datagram_size: ByteCount) -> bool {
        let Some(frozen) = self.frozen.take() else { return false };
        self.jump.take_if(|(_, jump)| !jump.is_running());
        self.thaw = Some(Thaw {
            since: frozen.since,
            at: now,
            window: frozen.window,
            acked: ByteCount::ZERO,
            max_datagram_size,
            is_spent: false,
        });
        true
    }

    fn excuses(&self, sent_at: Time) -> bool {
        // All that was on its way when the silence ended was sent into it.
        self.variant == Variant::Paper && self.thaw.is_some_and(|thaw| sent_at <= thaw.at)
    }

    fn on_sent(&mut self, sent: &SentSample, view: &PathView) -> Option<Adjustment> {
        let (_, jump) = self.jump.as_mut()?;
        jump.on_sent(sent, view)
    }

    fn on_ack(&mut self, ack: &AckSample<'_>) -> Option<Adjustment> {
        if let Some(thaw) = &mut self.thaw {
            let proving = ack.packets.iter().filter(|packet| packet.sent_at >= thaw.since);
            thaw.acked += proving.map(|packet| packet.bytes).sum();
        }
        let (_, jump) = self.jump.as_mut()?;
        jump.on_ack(ack)
    }

    fn is_in_charge(&self) -> bool {
        self.jump.as_ref().is_some_and(|(_, jump)| jump.is_in_charge())
    }

    fn on_loss(
        &mut self,
        loss: &LossSample<'_>,
        _cause: LossCause,
        is_persistent: bool,
        view: &PathView,
    ) -> Verdict {
        if let Some((began, jump)) = &mut self.jump
            && loss.packets.iter().any(|packet| packet.sent_at >= *began)
        {
            // A retreat until the flight is accounted for, but not with half of what got through: the hope was that the
            // network had not changed.
            let had_failed = jump.has_failed();
            jump.on_congestion(loss.packets, view);
            let has_retreated = jump.has_failed() && !had_failed;
            return if has_retreated || is_persistent { Verdict::Collapse } else { Verdict::Stand };
        }
        match (is_persistent, self.variant) {
            (false, _) => Verdict::Stand,
            (true, Variant::Safe) => self.jump(view),
            (true, Variant::Paper) => Verdict::Collapse,
        }
    }

    fn on_congestion_experienced(&mut self, view: &PathView) -> Option<Adjustment> {
        let (_, jump) = self.jump.as_mut()?;
        jump.on_congestion(&[], view)
    }

    fn on_path_change(&mut self) {
        *self = Self::new(Parameters { variant: self.variant });
    }

    fn pacing(&self, rtt: &RttView, max_datagram_size: ByteCount) -> Option<Pacing> {
        let (_, jump) = self.jump.as_ref()?;
        jump.pacing(rtt, max_datagram_size)
    }
}

#[cfg(test)]
mod tests;

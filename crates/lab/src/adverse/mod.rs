//! Drawn paths that do all that a path can do wrong, and whether transfers between our stack and others survive
//! them: `cargo xtask adverse`.
//!
//! A run ends well if every byte has arrived on its stream in its place, or if one end told of an idle timeout that
//! there was reason for. All else is a failure: another error, wrong bytes, silence until the deadline, a panic.

mod case;
mod traffic;
mod weather;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use posthaste_transport::QlogSink;
use posthaste_units::Time;

pub use case::{Case, Rival, Theme, UnknownRival};
pub use traffic::{Plan, Transfer};
pub use weather::{Outage, Weather};

use crate::peers::{Pair, Settings, Stack};
use crate::world::{End, World};
use traffic::{Failure, Traffic};
use weather::{Exposed, Log};

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Every byte is there.
    Complete,
    /// An end heard nothing for the idle timeout, though packets were sent, and said so.
    TimedOut,
    /// It ended as it must not.
    Failed(Fault),
}

/// What must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The connection ended with an error for which there was no reason.
    WrongError(String),
    /// Wrong, missing or surplus bytes, or a stream reset.
    WrongBytes(String),
    /// Neither completion nor an error by the deadline.
    Hang(String),
    /// A stack's clock stands still, or it waits for nothing.
    Stuck(String),
    /// A stack panicked.
    Panic(String),
}

impl Fault {
    /// One word for tables.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::WrongError(_) => "wrong error",
            Self::WrongBytes(_) => "wrong bytes",
            Self::Hang(_) => "hang",
            Self::Stuck(_) => "stuck",
            Self::Panic(_) => "panic",
        }
    }

    /// What was seen.
    pub fn detail(&self) -> &str {
        match self {
            Self::WrongError(text)
            | Self::WrongBytes(text)
            | Self::Hang(text)
            | Self::Stuck(text)
            | Self::Panic(text) => text,
        }
    }
}

/// A failure that was looked into and is the rival's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RivalsFault {
    /// Whose.
    pub rival: Rival,
    /// The case that shows it.
    pub seed: u64,
    /// What it does wrong.
    pub what: &'static str,
}

/// Failures of drawn cases that are the rival's. They are counted and named, and do not fail a series.
pub const RIVALS_FAULTS: [RivalsFault; 2] = [
    RivalsFault {
        rival: Rival::Quinn,
        seed: 6131,
        what: "a client whose Finished was lost probes with 1-RTT packets alone, for an hour: a server without the \
               Finished can open none of them",
    },
    RivalsFault {
        rival: Rival::Quinn,
        seed: 10147,
        what: "a client that has read a whole response (our server has the acknowledgement of all of it) never sends \
               the next request",
    },
];

impl Case {
    /// The known fault that this case shows, if it fails.
    pub fn rivals_fault(&self) -> Option<&'static RivalsFault> {
        RIVALS_FAULTS.iter().find(|fault| fault.rival == self.rival && fault.seed == self.seed)
    }
}

/// What a run has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// Virtual time at the end.
    pub at: Time,
    /// Packets that left both ends.
    pub packets: u64,
    /// Hash over all of them.
    pub hash: String,
}

/// Runs a case; a panic in a stack is caught.
pub fn run(case: &Case) -> Outcome {
    run_traced(case, None)
}

/// Runs a case and traces what of it is ours.
pub fn run_traced(case: &Case, qlog: Option<Arc<dyn QlogSink>>) -> Outcome {
    match catch_unwind(AssertUnwindSafe(|| run_uncaught(case, qlog))) {
        Ok(outcome) => outcome,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Outcome {
                ending: Ending::Failed(Fault::Panic(text.unwrap_or_default())),
                at: Time::ZERO,
                packets: 0,
                hash: String::new(),
            }
        }
    }
}

fn run_uncaught(case: &Case, qlog: Option<Arc<dyn QlogSink>>) -> Outcome {
    let mut world = World::new(case.seed);
    let up = world.add_link("up", case.up.clone()).expect("drawn within range");
    let down = world.add_link("down", case.down.clone()).expect("drawn within range");
    let settings = Settings { qlog, ..case.settings() };
    let pair = Stack::mixed_pair(&case.client, &case.server, &settings, world.rng())
        .expect("none of them is the TCP model");
    let log = Rc::new(RefCell::new(Log::default()));
    let mut expose = |peer| Exposed::new(peer, case.weather, world.rng().fork(), Rc::clone(&log));
    let (client, server) = (expose(pair.client), expose(pair.server));
    let pair = Pair { client: Box::new(client), server: Box::new(server) };
    let (client, server) = world.add_connection(pair, &[up], &[down]);
    let traffic = Traffic::new(case.plan.clone(), [client, server]);
    let failure = traffic.failure();
    let app = world.add_app(Box::new(traffic), &[client, server]);
    let ending = match (world.run(case.deadline), failure.get()) {
        (End::Completed, _) => Ending::Complete,
        (End::Deadline, _) => {
            Ending::Failed(Fault::Hang(format!("{} bytes read", world.app(app).report().bytes)))
        }
        (End::Stuck(reason), _) => Ending::Failed(Fault::Stuck(reason)),
        (End::Failed(_), Some(failure)) => judge(case, failure, world.now(), &log.borrow()),
        (End::Failed(_), None) => unreachable!("the only application tells why it failed"),
    };
    Outcome { ending, at: world.now(), packets: world.packets(), hash: world.trace_hash() }
}

/// Whether there was reason for the end of the connection.
fn judge(case: &Case, failure: &Failure, now: Time, log: &Log) -> Ending {
    let at = if failure.is_at_client { "client" } else { "server" };
    let text = format!("{at}: {}", failure.reason);
    if !failure.is_close {
        return Ending::Failed(Fault::WrongBytes(text));
    }
    if !TIMEOUT_TEXTS.iter().any(|wanted| failure.reason.contains(wanted)) {
        return Ending::Failed(Fault::WrongError(text));
    }
    // Two ends that wait for each other send nothing, or nothing of it is lost: a deadlock, not a path that is cut.
    let (sent, arrived) = log.since(now - case.idle_timeout);
    if case.may_time_out() && arrived < sent {
        return Ending::TimedOut;
    }
    Ending::Failed(Fault::WrongError(format!(
        "{text} ({sent} packets sent in this time, {arrived} arrived intact)"
    )))
}

/// Parts of what the stacks say when an idle timeout ends a connection.
const TIMEOUT_TEXTS: [&str; 2] = ["timed out", "idle timeout"];

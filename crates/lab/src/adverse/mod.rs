//! Drawn paths that do all that a path can do wrong, and whether transfers between our stack and others survive
//! them: `cargo xtask adverse`.
//!
//! A run ends well if every byte has arrived on its stream in its place, or if one end told of an idle timeout that
//! there was reason for. All else is a failure: another error, wrong bytes, silence until the deadline, a panic.

mod case;
mod traffic;
mod weather;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use posthaste_units::{Duration, Time};

pub use case::{Case, Rival, Theme, UnknownRival};
pub use traffic::{Plan, Transfer};
pub use weather::{Outage, Weather};

use crate::peers::{Pair, Stack};
use crate::world::{End, World};
use traffic::{Failure, Traffic};
use weather::Exposed;

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
    match catch_unwind(AssertUnwindSafe(|| run_uncaught(case))) {
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

fn run_uncaught(case: &Case) -> Outcome {
    let mut world = World::new(case.seed);
    let up = world.add_link("up", case.up.clone()).expect("drawn within range");
    let down = world.add_link("down", case.down.clone()).expect("drawn within range");
    let pair = Stack::mixed_pair(&case.client, &case.server, &case.settings(), world.rng())
        .expect("none of them is the TCP model");
    let sent = Rc::new(Cell::new(0));
    let mut expose = |peer| Exposed::new(peer, case.weather, world.rng().fork(), Rc::clone(&sent));
    let (client, server) = (expose(pair.client), expose(pair.server));
    let heard = [client.heard(), server.heard()];
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
        (End::Failed(_), Some(failure)) => {
            let heard = &heard[usize::from(!failure.is_at_client)];
            judge(case, failure, world.now().since(heard.last.get()), sent.get() - heard.sent_by_last.get())
        }
        (End::Failed(_), None) => unreachable!("the only application tells why it failed"),
    };
    Outcome { ending, at: world.now(), packets: world.packets(), hash: world.trace_hash() }
}

/// Whether there was reason for the end of the connection, after such a silence in which so many packets were sent.
fn judge(case: &Case, failure: &Failure, silence: Duration, sent: u64) -> Ending {
    let at = if failure.is_at_client { "client" } else { "server" };
    let text = format!("{at}: {}", failure.reason);
    if !failure.is_close {
        return Ending::Failed(Fault::WrongBytes(text));
    }
    if !TIMEOUT_TEXTS.iter().any(|wanted| failure.reason.contains(wanted)) {
        return Ending::Failed(Fault::WrongError(text));
    }
    // Two ends that wait for each other send nothing: that is a deadlock, not a path that is cut.
    if case.may_time_out() && silence + NOISE >= case.idle_timeout && sent >= LEAST_SENT {
        return Ending::TimedOut;
    }
    Ending::Failed(Fault::WrongError(format!(
        "{text} (silent for {silence:?}, {sent} packets sent meanwhile)"
    )))
}

/// A silence may be this much shorter than it should: the last packet heard may have been none of the connection's
/// (a stateless reset that a corrupted connection ID has drawn).
const NOISE: Duration = Duration::from_secs(1);

/// Packets that the ends send at least in a silence that is the path's fault: an answer to the last one heard, and
/// probes.
const LEAST_SENT: u64 = 3;

/// Parts of what the stacks say when an idle timeout ends a connection.
const TIMEOUT_TEXTS: [&str; 2] = ["timed out", "idle timeout"];

//! What sending waits for, and for how long.

use posthaste_units::{Duration, Time};

/// For how long sending has waited, by what it waited for. The wait in progress is counted when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waited {
    /// For the application: nothing was left to send. Contains the connection's idle times.
    pub application: Duration,
    /// For flow-control credit, of a stream or of the connection (RFC 9000 section 4).
    pub credit: Duration,
    /// For room in the congestion window.
    pub window: Duration,
    /// For the pacer.
    pub pacing: Duration,
    /// For the proof of the client's address: a server may send it no more than three times what came from it
    /// (RFC 9000 section 8).
    pub validation: Duration,
}

/// What sending waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    Application,
    Credit,
    Window,
    Pacing,
    Validation,
}

/// The waits of a connection.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    present: Option<(Reason, Time)>,
    waited: Waited,
}

impl Waiting {
    /// From now on sending waits for this; `None`: it does not wait.
    pub(super) fn set(&mut self, now: Time, reason: Option<Reason>) {
        if reason == self.present.map(|(before, _)| before) {
            return;
        }
        if let Some((before, since)) = self.present {
            let waited = &mut self.waited;
            let total = match before {
                Reason::Application => &mut waited.application,
                Reason::Credit => &mut waited.credit,
                Reason::Window => &mut waited.window,
                Reason::Pacing => &mut waited.pacing,
                Reason::Validation => &mut waited.validation,
            };
            *total += now.since(since);
        }
        self.present = reason.map(|reason| (reason, now));
    }

    /// The waits that are over.
    pub(super) fn waited(&self) -> Waited {
        self.waited
    }
}

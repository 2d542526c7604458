//! The connections that a client has made: those that are open, and reports of the last ones that are over.

use std::collections::VecDeque;
use std::sync::Arc;

use super::ConnectionReport;
use super::connect::Live;

/// Connections that are over and still reported; of earlier ones nothing remains.
pub const MAX_ENDED_CONNECTIONS: usize = 1024;

/// Open connections among which none is looked for that is over: to look takes the endpoint's lock for each of them.
const FIRST_LOOK: usize = 32;

/// One connection.
enum Made {
    Open(Arc<Live>),
    /// Its last report. The connection itself may be freed.
    Over(Box<ConnectionReport>),
}

/// All connections that a client knows, in the order in which they were made.
pub(super) struct Connections {
    known: VecDeque<Made>,
    /// The next connection's index.
    next: usize,
    /// How many of `known` are held as open ones.
    open: usize,
    /// With so many it is looked which are over.
    look_at: usize,
}

impl Default for Connections {
    fn default() -> Self {
        Self { known: VecDeque::new(), next: 0, open: 0, look_at: FIRST_LOOK }
    }
}

impl Connections {
    /// Takes up a connection that has just been made, and gives it its index.
    pub(super) fn add(&mut self, mut live: Live) -> Arc<Live> {
        live.index = self.next;
        self.next += 1;
        let live = Arc::new(live);
        self.known.push_back(Made::Open(Arc::clone(&live)));
        self.open += 1;
        live
    }

    /// True if it is time to let go of what is over: as often as the number of open connections has doubled.
    pub(super) fn is_look_due(&self) -> bool {
        self.open >= self.look_at
    }

    /// Lets go of the connections that are over, and of the oldest reports beyond [`MAX_ENDED_CONNECTIONS`]. The caller
    /// drops what is returned when it has no lock.
    #[must_use]
    pub(super) fn let_go(&mut self) -> Vec<Arc<Live>> {
        let mut ended = Vec::new();
        for made in &mut self.known {
            if let Made::Open(live) = made
                && live.quic().close_reason().is_some()
            {
                let report = Box::new(live.report());
                if let Made::Open(live) = std::mem::replace(made, Made::Over(report)) {
                    ended.push(live);
                }
            }
        }
        self.open -= ended.len();
        self.look_at = FIRST_LOOK.max(2 * self.open);
        let mut surplus = (self.known.len() - self.open).saturating_sub(MAX_ENDED_CONNECTIONS);
        self.known.retain(|made| {
            let goes = surplus > 0 && matches!(made, Made::Over(_));
            surplus -= usize::from(goes);
            !goes
        });
        ended
    }

    /// The connections that were not over when it was last looked.
    pub(super) fn open(&self) -> impl Iterator<Item = &Arc<Live>> {
        self.known.iter().filter_map(|made| match made {
            Made::Open(live) => Some(live),
            Made::Over(_) => None,
        })
    }

    pub(super) fn reports(&self) -> Vec<ConnectionReport> {
        let report = |made: &Made| match made {
            Made::Open(live) => live.report(),
            Made::Over(report) => (**report).clone(),
        };
        self.known.iter().map(report).collect()
    }
}

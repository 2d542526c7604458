//! A connection while somebody observes it.

use std::sync::Arc;

use posthaste_endpoint::Connection;

use super::ConnectionLog;

/// Tells an observer of a connection's end when dropped.
pub(super) struct Observed {
    log: Arc<dyn ConnectionLog>,
    connection: Connection,
}

impl Observed {
    pub(super) fn new(log: Arc<dyn ConnectionLog>, connection: Connection) -> Self {
        log.opened(&connection);
        Self { log, connection }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.log.closed(&self.connection);
    }
}

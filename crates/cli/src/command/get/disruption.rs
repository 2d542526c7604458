//! What happens to the client in the midst of it: `--move-after`, it goes to another socket, as a phone from Wi-Fi to
//! cellular does; `--drop-after`, it loses a connection.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use posthaste_http::Client;

use crate::args::Get;
use crate::printer;

/// The connection that `--drop-after` closes: the second.
const DROPPED: usize = 1;

/// Counts what arrives, and moves the client once, or closes a connection once.
pub(super) struct Disruption {
    client: Client,
    /// Bytes that arrive before, and where to go.
    plan: Option<(u64, SocketAddr)>,
    drop_after: Option<u64>,
    received: AtomicU64,
}

impl Disruption {
    pub(super) fn new(client: &Client, args: &Get) -> Self {
        let plan = args.move_after.map(|bytes| (bytes, SocketAddr::new(args.move_to, 0)));
        Self { client: client.clone(), plan, drop_after: args.drop_after, received: AtomicU64::new(0) }
    }

    /// So many more bytes of bodies have arrived.
    pub(super) fn received(&self, bytes: u64) {
        let before = self.received.fetch_add(bytes, Ordering::Relaxed);
        let is_due = |after: u64| before < after && before + bytes >= after;
        if self.drop_after.is_some_and(is_due) {
            self.client.hang_up_one(DROPPED);
        }
        if let Some((after, local)) = self.plan
            && is_due(after)
            && let Err(error) = self.client.rebind(local)
        {
            printer::error(format_args!("cannot move to {local}: {error}"));
        }
    }
}

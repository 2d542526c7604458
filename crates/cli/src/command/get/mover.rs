//! `--move-after`: the client goes to another socket in the midst of it, as a phone from Wi-Fi to cellular does.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use posthaste_http::Client;

use crate::args::Get;
use crate::printer;

/// Counts what arrives, and moves the client once.
pub(super) struct Mover {
    client: Client,
    /// Bytes that arrive before, and where to go.
    plan: Option<(u64, SocketAddr)>,
    received: AtomicU64,
}

impl Mover {
    pub(super) fn new(client: &Client, args: &Get) -> Self {
        let plan = args.move_after.map(|bytes| (bytes, SocketAddr::new(args.move_to, 0)));
        Self { client: client.clone(), plan, received: AtomicU64::new(0) }
    }

    /// So many more bytes of bodies have arrived.
    pub(super) fn received(&self, bytes: u64) {
        let Some((after, local)) = self.plan else { return };
        let before = self.received.fetch_add(bytes, Ordering::Relaxed);
        if before < after
            && before + bytes >= after
            && let Err(error) = self.client.rebind(local)
        {
            printer::error(format_args!("cannot move to {local}: {error}"));
        }
    }
}

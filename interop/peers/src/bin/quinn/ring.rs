//! quinn on ring, as its users get it by default: for the benches.

mod library;
mod raw;

use clap::Parser as _;
use posthaste_interop_peers::contract::{Mode, Result};
use posthaste_interop_peers::tls;

/// One thread, as all peers have: CPU per byte is compared, not parallelism.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    tls::use_ring()?;
    raw::run(Mode::parse()).await
}

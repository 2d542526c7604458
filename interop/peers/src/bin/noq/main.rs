//! noq, which comes from quinn and has its interface, on aws-lc: for the benches.

mod library;
#[path = "../quinn/raw.rs"]
mod raw;

use clap::Parser as _;
use posthaste_interop_peers::contract::{Mode, Result};

/// One thread, as all peers have: CPU per byte is compared, not parallelism.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    raw::run(Mode::parse()).await
}

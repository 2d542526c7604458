//! Third-party QUIC programs that speak one command-line contract, for `cargo xtask interop` and `bench`.
//!
//! One file a peer under `src/bin`; what they share is here and knows no QUIC library, so that a comparison
//! measures the libraries and not their harness. The contract is written down in `interop/README.md`.

pub mod bulk;
pub mod contract;
pub mod datagrams;
pub mod requests;
pub mod tls;

//! The tests over the public interface, in one program: each further one would link everything again. `memory` measures its
//! process and `hostile` has files of its own.

mod credit;
mod datagrams;
mod early_data;
mod groups;
mod guaranteed;
mod handshake_moves;
mod initial_window;
mod moves_and_outages;
mod neighbours;
mod packet_size;
mod panicking_factory;
mod path_history;
mod paths;
#[cfg(feature = "qlog")]
mod qlog;
mod quinn_interop;
mod random_operations;
mod repair;
mod silence;
mod small_windows;
mod steering;
mod support;
mod tail_code;
mod tokens;
mod transfer;

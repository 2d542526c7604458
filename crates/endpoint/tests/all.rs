//! The tests over the public interface, in one program: each further one would link everything again.

mod common;
mod datagrams;
mod early_data;
mod groups;
mod lifecycle;
mod roaming;
#[cfg(target_os = "linux")]
mod socket_errors;
mod transfers;
mod turns;
#[cfg(target_os = "linux")]
mod workers;

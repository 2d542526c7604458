//! The tests over the public interface, in one program: each further one would link everything again.

#[path = "../../http/tests/common/mod.rs"]
mod common;

mod early;
mod faults;
mod forwarding;
mod heads;
mod lengths;
mod raw;
mod recorder;
mod scene;
mod tls;
mod versions;

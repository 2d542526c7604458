//! The tests over the public interface, in one program: each further one would link everything again.

#[path = "../../http/tests/common/mod.rs"]
mod common;

#[allow(dead_code, reason = "the proxy's tests use a part of it")]
#[path = "../../tcp/tests/common/mod.rs"]
mod over_tcp;

mod balance;
mod early;
mod faults;
mod forwarding;
mod heads;
mod hints;
mod hostile;
mod kept;
mod lengths;
mod mixtures;
mod observed;
mod raw;
mod recorder;
mod scene;
mod tls;
#[cfg(unix)]
#[path = "support/translated.rs"]
mod translated;
mod tunnels;
mod upstreams;
mod versions;
mod websocket;

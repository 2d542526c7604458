//! The endpoint under schedules that shuttle draws: who runs next is decided anew at each lock, wake and wait.
//!
//! The driver, the handles, their shared state and the wakers are the crate's own files, compiled into this program with
//! shuttle's locks and tasks (`concurrency`). Around them the sockets are queues in memory, time stands still but for
//! pacing, and no datagram is lost. So nothing goes on because a timer fires: a wake that is lost leaves a task that waits
//! for ever, and shuttle reports that as a deadlock, with the schedule that leads to it.
#![allow(dead_code, unreachable_pub, reason = "each file is included whole, and a part of it is used")]
#![allow(
    clippy::unused_self,
    clippy::unnecessary_wraps,
    reason = "what is replaced has the form of the original"
)]
#![allow(unfulfilled_lint_expectations, reason = "lints about public items find none here")]

mod clock;
mod concurrency;
mod network;
mod quiet;
mod receive_buffers;
mod rest;
mod scenes;
mod timer;
mod workers;

#[path = "../../src/connection.rs"]
mod connection;
#[path = "../../src/connection_state.rs"]
mod connection_state;
#[path = "../../src/datagrams.rs"]
mod datagrams;
#[path = "../../src/driver.rs"]
mod driver;
#[path = "../../src/endpoint.rs"]
mod endpoint;
#[path = "../../src/error.rs"]
mod error;
#[path = "../../src/inbox.rs"]
mod inbox;
#[path = "../../src/state.rs"]
mod state;
#[path = "../../src/stream/mod.rs"]
mod stream;
#[path = "../../src/stream_table.rs"]
mod stream_table;
#[path = "../../src/trouble.rs"]
mod trouble;
#[path = "../../src/wait.rs"]
mod wait;
#[path = "../../src/wakers.rs"]
mod wakers;

use network as socket;

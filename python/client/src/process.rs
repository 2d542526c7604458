//! The runtime of this process, and what belongs to which process.

use std::sync::{Mutex, Weak};
use std::time::Duration;

use pyo3::prelude::*;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::fault::{Fault, lock};

/// Time for the last tasks to end when the interpreter exits; a name that is just being resolved may take longer, and is
/// left behind.
const LAST_TASKS: Duration = Duration::from_millis(100);

/// A client that wants to say goodbye when the interpreter exits.
pub(crate) trait Farewell: Send + Sync {
    /// Closes its connections.
    fn close(&self) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// The runtime, if this process has one. Locked with the interpreter's lock held and only for moments without release of
/// it, so that no fork finds it locked.
static CURRENT: Mutex<Current> = Mutex::new(Current::Idle);

enum Current {
    /// No client was made yet.
    Idle,
    Running(Process),
    /// The interpreter is exiting.
    Over,
}

struct Process {
    id: u32,
    runtime: Runtime,
    clients: Vec<Weak<dyn Farewell>>,
}

/// The runtime; starts it for the first client. A forked process gets its own: the threads of the other are not in it.
pub(crate) fn runtime() -> Result<Handle, Fault> {
    let mut current = lock(&CURRENT);
    match &*current {
        Current::Running(process) if process.id == std::process::id() => {
            return Ok(process.runtime.handle().clone());
        }
        Current::Over => return Err(Fault::closed("the interpreter is exiting; no more requests are sent")),
        Current::Idle | Current::Running(_) => {}
    }
    let built = Builder::new_multi_thread().worker_threads(1).thread_name("posthaste").enable_all().build();
    let runtime =
        built.map_err(|error| Fault::config(format!("cannot start the client's thread: {error}")))?;
    let handle = runtime.handle().clone();
    let process = Process { id: std::process::id(), runtime, clients: Vec::new() };
    // The runtime of before a fork cannot be dropped: that would wait for threads that this process does not have.
    std::mem::forget(std::mem::replace(&mut *current, Current::Running(process)));
    Ok(handle)
}

/// Notes a client for [`shut_down`].
pub(crate) fn register(client: Weak<dyn Farewell>) {
    if let Current::Running(process) = &mut *lock(&CURRENT) {
        process.clients.retain(|client| client.strong_count() > 0);
        process.clients.push(client);
    }
}

/// Ends the thread of the package: closes all connections, so that servers need not wait for a timeout. Called when the
/// interpreter exits; afterwards there are no clients any more.
#[pyfunction]
pub(crate) fn shut_down(py: Python<'_>) {
    let process = match &mut *lock(&CURRENT) {
        Current::Running(process) if process.id != std::process::id() => return,
        current => std::mem::replace(current, Current::Over),
    };
    let Current::Running(Process { runtime, clients, .. }) = process else { return };
    py.detach(move || {
        let closing = clients.iter().filter_map(Weak::upgrade).map(|client| runtime.spawn(client.close()));
        let closing: Vec<_> = closing.collect();
        runtime.block_on(async {
            for client in closing {
                // A client that panics has nothing more to close.
                let _ = client.await;
            }
        });
        runtime.shutdown_timeout(LAST_TASKS);
    });
}

/// A value that only the process that made it may touch: in a forked one its locks may be held by threads that are not
/// there, and its sockets are the other's. There it is neither used nor dropped.
pub(crate) struct Owned<T> {
    process: u32,
    /// There until the drop.
    value: Option<T>,
}

impl<T> Owned<T> {
    /// The value of this process.
    pub(crate) fn new(value: T) -> Self {
        Self { process: std::process::id(), value: Some(value) }
    }

    /// The value, unless the process has been forked since.
    pub(crate) fn get(&self) -> Result<&T, Fault> {
        self.value.as_ref().filter(|_| self.process == std::process::id()).ok_or_else(Fault::forked)
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.value.take());
        }
    }
}

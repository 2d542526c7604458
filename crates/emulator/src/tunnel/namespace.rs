//! Network namespaces, held by nothing but threads, processes and files: the kernel removes them with their holders.

use std::io;
use std::sync::mpsc;
use std::thread::JoinHandle;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getgid, getuid};

use super::error::TunnelError;

/// Moves the calling process into a network namespace of its own, where it may make tunnels, with nothing in it but
/// loopback. Without privileges it goes into a user namespace first, in which its user is root.
///
/// # Errors
/// The system does not permit it. Without privileges it also takes a process with a single thread.
pub fn isolate() -> Result<(), TunnelError> {
    if unshare(CloneFlags::CLONE_NEWNET).is_ok() {
        return Ok(());
    }
    let (user, group) = (getuid(), getgid());
    into_user_namespace().map_err(|error| TunnelError::Namespace(error.into()))?;
    // A group map is only taken from who gave up `setgroups`: a rule of user namespaces.
    std::fs::write("/proc/self/setgroups", "deny")
        .and_then(|()| std::fs::write("/proc/self/uid_map", format!("0 {user} 1")))
        .and_then(|()| std::fs::write("/proc/self/gid_map", format!("0 {group} 1")))
        .map_err(TunnelError::Namespace)
}

/// A thread that was waited for may be on its way out for some microseconds, in which the process counts as one with
/// several threads: no error before so many tries is one.
fn into_user_namespace() -> nix::Result<()> {
    const TRIES: u32 = 10_000;

    let enter = || unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET);
    for _ in 1..TRIES {
        match enter() {
            Err(Errno::EINVAL) => std::thread::yield_now(),
            result => return result,
        }
    }
    enter()
}

/// True if the calling process may make tunnels in the network namespace that it is in.
pub fn is_permitted() -> bool {
    // The thread takes the namespace with it when it ends.
    let probe = std::thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET).is_ok());
    probe.join().unwrap_or(false)
}

type Job = Box<dyn FnOnce() + Send>;

/// A thread in a network namespace of its own.
///
/// What it starts and opens is in that namespace. Processes that it has started, and that asked for it, are killed
/// when it ends (`PR_SET_PDEATHSIG` means the thread, not the process).
#[derive(Debug)]
pub(super) struct NamespaceThread {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl NamespaceThread {
    pub(super) fn start() -> Result<Self, TunnelError> {
        let (jobs, waiting) = mpsc::channel::<Job>();
        let thread = std::thread::Builder::new()
            .name("namespace".to_owned())
            .spawn(move || waiting.into_iter().for_each(|job| job()))?;
        let this = Self { jobs: Some(jobs), thread: Some(thread) };
        this.run(|| unshare(CloneFlags::CLONE_NEWNET))?
            .map_err(|error| TunnelError::Namespace(error.into()))?;
        Ok(this)
    }

    /// What `job` returns when it has been run there.
    pub(super) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let gone = || io::Error::other("the namespace's thread has ended");
        let (answer, answered) = mpsc::channel();
        let job = Box::new(move || drop(answer.send(job())));
        self.jobs.as_ref().ok_or_else(gone)?.send(job).map_err(|_| gone())?;
        answered.recv().map_err(|_| gone())
    }
}

impl Drop for NamespaceThread {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the namespace's thread has panicked");
        }
    }
}

//! The service manager: sockets that it holds, and how it learns of the edge's state (`sd_listen_fds(3)`, `sd_notify(3)`).

use std::net::{TcpListener, UdpSocket};

use crate::exit::Failure;

/// Sockets that were passed; none where nobody passes any.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    pub(super) udp: Option<UdpSocket>,
    pub(super) tcp: Vec<TcpListener>,
}

impl Passed {
    /// Takes them, and their variables out of the environment: to be called before there are threads, which may read it.
    #[cfg(target_os = "linux")]
    pub(crate) fn take() -> Result<Self, Failure> {
        let mut all = listenfd::ListenFd::from_env();
        let mut passed = Self::default();
        for index in 0..all.len() {
            if let Ok(Some(tcp)) = all.take_tcp_listener(index) {
                passed.tcp.push(tcp);
                continue;
            }
            let udp = all.take_udp_socket(index).ok().flatten();
            if udp.is_none() || passed.udp.is_some() {
                return Err(Failure::usage("the service manager passes a socket that is not known here")
                    .hint(
                        "one ListenDatagram=, the same port as ListenStream=, and another one for redirects",
                    ));
            }
            passed.udp = udp;
        }
        Ok(passed)
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unnecessary_wraps, reason = "elsewhere there is nothing that can fail")]
    pub(crate) fn take() -> Result<Self, Failure> {
        Ok(Self::default())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.udp.is_none() && self.tcp.is_empty()
    }
}

/// It serves, with the configuration that was asked for last.
pub(super) fn ready() {
    #[cfg(target_os = "linux")]
    tell(&[sd_notify::NotifyState::Ready]);
}

/// It reads its configuration again; [`ready`] follows.
pub(super) fn reloading() {
    #[cfg(target_os = "linux")]
    match sd_notify::NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[sd_notify::NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "the service manager is not told"),
    }
}

/// It finishes the requests in progress.
pub(super) fn stopping() {
    #[cfg(target_os = "linux")]
    tell(&[sd_notify::NotifyState::Stopping]);
}

#[cfg(target_os = "linux")]
fn tell(state: &[sd_notify::NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "the service manager is not told");
    }
}

//! What is asked of the kernel about interfaces, in the namespace of the calling thread.

use rtnetlink::{Handle, LinkUnspec};

use super::error::TunnelError;

/// Runs `work` with netlink in the calling thread's namespace.
pub(super) fn with_netlink<T>(
    work: impl AsyncFnOnce(Handle) -> Result<T, TunnelError>,
) -> Result<T, TunnelError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let (connection, netlink, _) = rtnetlink::new_connection()?;
        tokio::spawn(connection);
        work(netlink).await
    })
}

pub(super) async fn loopback_up(netlink: &Handle) -> Result<(), TunnelError> {
    // Loopback is the first interface of every namespace.
    let link = LinkUnspec::new_with_index(1).up().build();
    netlink.link().set(link).execute().await.map_err(TunnelError::interface("loopback"))
}

/// The number of the interface with this name, or `None` if there is none.
pub(super) fn index_of(name: &str) -> Option<u32> {
    nix::net::if_::if_nametoindex(name).ok()
}

/// Asks for a setting that a tunnel can do without: containers often show /proc/sys read-only, and where the kernel
/// has no IPv6 there is nothing to switch off.
pub(super) fn prefer(key: &str, value: &str) {
    if let Err(error) = std::fs::write(format!("/proc/sys/{key}"), value) {
        tracing::debug!(%error, key, "not set");
    }
}

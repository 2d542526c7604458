//! Upstreams of a configuration: whether they accept connections, and whether their certificates are accepted.

use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, TcpStream as Tcp, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use posthaste_edge::{Config, SiteConfig};
use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::command::edge::trusted;
use crate::command::get::fallback::{provider_over_tcp, tls_config};

/// Time for an upstream to accept a connection, and for each step of TLS.
const PATIENCE: Duration = Duration::from_secs(2);

/// What keeps this upstream from being connected to.
pub(super) async fn unreachable(url: &str) -> Option<String> {
    #[cfg(unix)]
    if let Some(path) = url.strip_prefix("unix:") {
        let connected = UnixStream::connect(path).await;
        return connected.err().map(|error| format!("{url} cannot be reached: {error}"));
    }
    let (host, port) = host_and_port(&url.parse().ok()?)?;
    match timeout(PATIENCE, TcpStream::connect((host, port))).await {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(format!("{url} cannot be reached: {error}")),
        Err(_) => Some(format!("{url} did not accept a connection within {} s", PATIENCE.as_secs())),
    }
}

/// What keeps TLS with the `https` upstreams from succeeding; those that do not accept connections are passed over.
pub(super) async fn unproved(config: &Config) -> Vec<String> {
    let mut faults = BTreeSet::new();
    for (name, site) in &config.sites {
        for (url, neighbours_name) in https(name, site) {
            let ca = site.ca.as_ref().map(|ca| ca.get_ref().clone());
            // It waits as rustls does, for the file of trusted certificates, too.
            let shaken = tokio::task::spawn_blocking(move || {
                shake(&url, neighbours_name.as_deref(), ca.as_deref())
                    .err()
                    .map(|error| format!("{url}: no TLS with it, so its requests will get 502: {error}"))
            });
            faults.extend(shaken.await.ok().flatten());
        }
    }
    faults.into_iter().collect()
}

/// The `https` upstreams of a site; with those that are asked for the site's name, that name.
fn https(name: &str, site: &SiteConfig) -> Vec<(String, Option<String>)> {
    let to = site.routes.iter().map(|route| &route.to).chain([&site.to]);
    let to = to.flatten().flat_map(|targets| targets.get_ref().urls()).map(|url| (url.clone(), None));
    // A wildcard is the name of no server.
    let named = (!name.starts_with('*')).then(|| name.to_owned());
    let beside = site.routes.iter().map(|route| &route.beside).chain([&site.beside]);
    let beside = beside.flatten().map(|url| (url.get_ref().clone(), named.clone()));
    to.chain(beside).filter(|(url, _)| url.starts_with("https:")).collect()
}

/// Makes a TLS connection and drops it.
fn shake(url: &str, neighbours_name: Option<&str>, ca: Option<&std::path::Path>) -> io::Result<()> {
    let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidInput, reason);
    let place = url.parse().ok().and_then(|uri| host_and_port(&uri));
    let (host, port) = place.ok_or_else(|| invalid("not a URL".to_owned()))?;
    let addresses: Vec<SocketAddr> = (host.as_str(), port).to_socket_addrs()?.collect();
    let Some(mut tcp) = addresses.iter().find_map(|at| Tcp::connect_timeout(at, PATIENCE).ok()) else {
        // That is told already.
        return Ok(());
    };
    tcp.set_read_timeout(Some(PATIENCE))?;
    tcp.set_write_timeout(Some(PATIENCE))?;
    let config = tls_config(provider_over_tcp(), trusted(ca).map_err(invalid)?);
    let name = ServerName::try_from(neighbours_name.unwrap_or(&host).to_owned());
    let name = name.map_err(|error| invalid(error.to_string()))?;
    let connection = config.and_then(|config| ClientConnection::new(Arc::new(config), name));
    let mut tls = connection.map_err(io::Error::other)?;
    while tls.is_handshaking() {
        tls.complete_io(&mut tcp).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                io::Error::new(io::ErrorKind::TimedOut, format!("silent for {} s", PATIENCE.as_secs()))
            }
            _ => error,
        })?;
    }
    Ok(())
}

/// The host without brackets, and the port.
fn host_and_port(uri: &Uri) -> Option<(String, u16)> {
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
    Some((uri.host()?.trim_start_matches('[').trim_end_matches(']').to_owned(), port))
}

//! The sockets: UDP for HTTP/3, TCP for HTTP/1.1 and HTTP/2 on the same port, a pair for each worker, and port 80.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroU16;

use posthaste_edge::{Config, Workers};
use posthaste_endpoint::{Endpoint, ServerConfig};
use tokio::net::{TcpListener, TcpSocket};

use super::systemd::Passed;
use crate::command::running::{cannot_listen, cannot_listen_over};
use crate::command::workers::Worker;
use crate::exit::Failure;

/// Ports to try where any free one will do: it must be free for TCP and UDP.
const TRIES: usize = 32;

/// The ports for `https` and `http`.
pub(super) const HTTPS: u16 = 443;
const HTTP: u16 = 80;

/// Connections that wait to be accepted by a worker, at most (`listen(2)`; the system may permit less).
const BACKLOG: u32 = 1024;

/// A worker's runtime with its sockets.
pub(super) struct Post {
    pub(super) worker: Worker,
    pub(super) endpoint: Endpoint,
    /// `None` with a neighbour, which has the TCP port.
    pub(super) listener: Option<TcpListener>,
}

/// All of them.
pub(super) struct Sockets {
    pub(super) posts: Vec<Post>,
    pub(super) redirect: Option<TcpListener>,
}

/// Listens over UDP, and over TCP on the same port unless a neighbour does so.
pub(super) async fn listen(config: &Config, quic: ServerConfig, passed: Passed) -> Result<Sockets, Failure> {
    if !passed.is_empty() {
        return on_passed(config, quic, passed);
    }
    let (listen, count) = (config.edge.listen, config.edge.workers.count());
    let refused = |error: io::Error| cannot_listen(listen, &error);
    if config.has_neighbour() {
        let posts = over_udp(listen, count, quic).map_err(refused)?;
        return Ok(Sockets { posts, redirect: None });
    }
    let mut left = if listen.port() == 0 { TRIES } else { 1 };
    loop {
        let no_tcp = |error: &_| cannot_listen_over("TCP", listen, error);
        // Listeners that share a port do not notice other programs that do so: this one does.
        let alone = TcpListener::bind(listen).await.map_err(|error| no_tcp(&error))?;
        let address = alone.local_addr().map_err(|error| no_tcp(&error))?;
        left -= 1;
        match over_udp(address, count, quic.clone()) {
            Ok(mut posts) => {
                over_tcp(&mut posts, alone, address).map_err(|error| no_tcp(&error))?;
                return Ok(Sockets { posts, redirect: listen_for_redirects(config).await? });
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && left > 0 => {}
            Err(error) => return Err(cannot_listen(address, &error)),
        }
    }
}

fn over_udp(address: SocketAddr, count: NonZeroU16, quic: ServerConfig) -> io::Result<Vec<Post>> {
    let workers = Endpoint::workers(address, count, quic)?;
    let post = |quic: posthaste_endpoint::Worker| {
        let worker = Worker::new()?;
        let endpoint = worker.make(|| quic.start())?;
        Ok(Post { worker, endpoint, listener: None })
    };
    workers.into_iter().map(post).collect()
}

/// Gives the posts their listeners: a single one keeps what is bound, several share its port.
fn over_tcp(posts: &mut [Post], alone: TcpListener, address: SocketAddr) -> io::Result<()> {
    let alone = alone.into_std()?;
    if let [post] = posts {
        post.listener = Some(post.worker.make(|| TcpListener::from_std(alone))?);
        return Ok(());
    }
    drop(alone);
    for post in posts {
        post.listener = Some(post.worker.make(|| {
            let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            socket.set_reuseaddr(true)?;
            #[cfg(unix)]
            socket.set_reuseport(true)?;
            socket.bind(address)?;
            socket.listen(BACKLOG)
        })?);
    }
    Ok(())
}

/// On the sockets of a service manager: UDP, TCP on the same port, and perhaps another one for redirects.
fn on_passed(config: &Config, quic: ServerConfig, passed: Passed) -> Result<Sockets, Failure> {
    let missing = |what: &str, line: &str| {
        Failure::usage(format!("the service manager passes no {what}"))
            .hint(format!("{line} in the .socket unit"))
    };
    match config.edge.workers {
        Workers::Count(count) if count.get() > 1 => {
            return Err(Failure::usage(
                "several workers need sockets of their own, and the service manager passes one",
            )
            .hint("disable the .socket unit, or omit `workers` in [edge]"));
        }
        Workers::Auto => tracing::warn!("one worker serves, because the service manager passes the sockets"),
        Workers::Count(_) => {}
    }
    let udp = passed.udp.ok_or_else(|| missing("UDP socket", "ListenDatagram=443"))?;
    let unusable = |error: io::Error| Failure::runtime(format!("a passed socket cannot be used: {error}"));
    let mut single = adopt(udp, quic).map_err(unusable)?;
    if config.has_neighbour() {
        return Ok(Sockets { posts: vec![single], redirect: None });
    }
    let port = single.endpoint.local_addr().map_err(unusable)?.port();
    let mut redirect = None;
    for tcp in passed.tcp {
        tcp.set_nonblocking(true).map_err(unusable)?;
        if tcp.local_addr().map_err(unusable)?.port() == port {
            single.listener = Some(single.worker.make(|| TcpListener::from_std(tcp)).map_err(unusable)?);
        } else {
            redirect = Some(TcpListener::from_std(tcp).map_err(unusable)?);
        }
    }
    if single.listener.is_none() {
        return Err(missing("TCP socket on the UDP port", "ListenStream=443"));
    }
    Ok(Sockets { posts: vec![single], redirect })
}

fn adopt(udp: UdpSocket, quic: ServerConfig) -> io::Result<Post> {
    let worker = Worker::new()?;
    let endpoint = worker.make(|| Endpoint::server_on(udp, quic))?;
    Ok(Post { worker, endpoint, listener: None })
}

/// Port 80, unless something else is asked for. It may belong to somebody else; the site is served without it.
async fn listen_for_redirects(config: &Config) -> Result<Option<TcpListener>, Failure> {
    if let Some(address) = config.edge.redirect {
        let listener = TcpListener::bind(address).await;
        return listener.map(Some).map_err(|error| cannot_listen_over("TCP", address, &error));
    }
    if config.edge.listen.port() != HTTPS {
        return Ok(None);
    }
    let address = SocketAddr::new(config.edge.listen.ip(), HTTP);
    let listener = TcpListener::bind(address).await;
    Ok(listener.inspect_err(|error| tracing::warn!(%address, %error, "no redirects from http")).ok())
}

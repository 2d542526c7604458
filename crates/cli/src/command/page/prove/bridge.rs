//! How a run, whose network namespace has no way out, reaches the site and all other hosts: by Unix sockets, behind which
//! connections begin in the network that the command was started in.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::super::relay::join;
use crate::args::Pin;
use crate::exit::Failure;

/// Longest name of a host in the DNS, and its end of line.
const MAX_NAME: usize = 254;

const HTTPS: u16 = 443;

/// Time to connect.
const PATIENCE: Duration = Duration::from_secs(20);

/// Open sockets; they close with it.
#[derive(Debug)]
pub(super) struct Bridge {
    /// Leads to the site.
    pub(super) site: PathBuf,
    /// Leads to the host that the first line names, port 443.
    pub(super) others: PathBuf,
    tasks: [JoinHandle<()>; 2],
}

impl Bridge {
    /// In this folder, to this site.
    pub(super) fn open(folder: &Path, site: SocketAddr, pins: &[Pin]) -> Result<Self, Failure> {
        let pinned = |pin: &Pin| (pin.host.clone(), SocketAddr::new(pin.address, pin.port.unwrap_or(HTTPS)));
        let pins: Arc<BTreeMap<_, _>> = Arc::new(pins.iter().map(pinned).collect());
        let [site_socket, others] = ["site.sock", "others.sock"].map(|name| folder.join(name));
        let listen = |path: &Path| {
            UnixListener::bind(path).map_err(|error| {
                Failure::runtime(format!("cannot listen on {}: {error}", path.display()))
                    .hint("set TMPDIR to a writable directory with a short name")
            })
        };
        let (to_site, to_others) = (listen(&site_socket)?, listen(&others)?);
        let tasks = [
            tokio::spawn(accept_all(to_site, move |stream| pass_on(stream, site))),
            tokio::spawn(accept_all(to_others, move |stream| pass_on_by_name(stream, Arc::clone(&pins)))),
        ];
        Ok(Self { site: site_socket, others, tasks })
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn accept_all<F>(listener: UnixListener, serve: impl Fn(UnixStream) -> F)
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let task = serve(stream);
                tokio::spawn(
                    async move { task.await.unwrap_or_else(|error| tracing::debug!(%error, "bridge")) },
                );
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn pass_on(stream: UnixStream, site: SocketAddr) -> io::Result<()> {
    let onward = timeout(PATIENCE, TcpStream::connect(site)).await??;
    join(onward, stream).await
}

async fn pass_on_by_name(mut stream: UnixStream, pins: Arc<BTreeMap<String, SocketAddr>>) -> io::Result<()> {
    let name = line(&mut stream).await?;
    let connect = async {
        match pins.get(&name) {
            Some(address) => TcpStream::connect(address).await,
            None => TcpStream::connect((name.as_str(), HTTPS)).await,
        }
    };
    let onward = timeout(PATIENCE, connect).await??;
    join(onward, stream).await
}

/// The first line, without its end, in lower case. What follows is left where it is.
async fn line(stream: &mut UnixStream) -> io::Result<String> {
    let mut line = Vec::new();
    while line.len() < MAX_NAME {
        match stream.read_u8().await? {
            b'\n' => break,
            byte => line.push(byte.to_ascii_lowercase()),
        }
    }
    String::from_utf8(line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

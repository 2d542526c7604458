//! `posthaste page-relay`: the way from the far end of a path, an empty network namespace, to servers outside of it. Unix
//! sockets cross namespaces; what listens behind them is `prove/bridge.rs`.

use std::ffi::OsString;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpCongestion;
use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional_with_sizes};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::time::timeout;

use crate::args::PageRelay;
use crate::exit::Failure;

/// Bytes of a TLS handshake until the name must be known.
const MAX_HELLO: usize = 64 << 10;

/// Time until it must be.
const HELLO_PATIENCE: Duration = Duration::from_secs(20);

/// Bytes under way in each direction of a connection.
const BUFFER: usize = 64 << 10;

/// Runs until it is ended.
pub(crate) fn run(args: &PageRelay) -> Result<ExitCode, Failure> {
    let failed = |error: io::Error| Failure::runtime(format!("cannot relay: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime
        .block_on(async {
            let others = listen(args.others_port, &args.tcp).await?;
            let site = match (args.site_port, &args.site) {
                (Some(port), Some(socket)) => Some((listen(port, &args.tcp).await?, socket.clone())),
                _ => None,
            };
            if let Some((listener, socket)) = site {
                tokio::spawn(accept_all(listener, socket, pass_on));
            }
            accept_all(others, args.others.clone(), pass_on_by_name).await;
            Ok(ExitCode::SUCCESS)
        })
        .map_err(failed)
}

/// Accepted connections have the listener's congestion control.
async fn listen(port: u16, controller: &str) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await?;
    control_by(&listener, controller)?;
    Ok(listener)
}

/// Has the kernel's TCP use this congestion control.
pub(super) fn control_by(socket: &impl AsFd, name: &str) -> io::Result<()> {
    Ok(setsockopt(socket, TcpCongestion, &OsString::from(name))?)
}

/// Gives each connection a task.
async fn accept_all<F>(listener: TcpListener, socket: PathBuf, serve: fn(TcpStream, PathBuf) -> F)
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let task = serve(stream, socket.clone());
                tokio::spawn(
                    async move { task.await.unwrap_or_else(|error| tracing::debug!(%error, "relay")) },
                );
            }
            // Too many open files, for example: some of them will be closed.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn pass_on(stream: TcpStream, socket: PathBuf) -> io::Result<()> {
    let port = socket.to_str().and_then(|text| text.parse::<u16>().ok());
    match port {
        Some(port) => {
            let site = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
            site.set_nodelay(true)?;
            join(stream, site).await
        }
        None => join(stream, UnixStream::connect(&socket).await?).await,
    }
}

/// The name comes first, as a line, then all bytes of the client.
async fn pass_on_by_name(mut stream: TcpStream, socket: PathBuf) -> io::Result<()> {
    let (name, hello) = timeout(HELLO_PATIENCE, server_name(&mut stream)).await??;
    let mut outside = connect_by_name(&socket, &name).await?;
    outside.write_all(&hello).await?;
    join(stream, outside).await
}

async fn connect_by_name(socket: &Path, name: &str) -> io::Result<UnixStream> {
    let mut outside = UnixStream::connect(socket).await?;
    outside.write_all(format!("{name}\n").as_bytes()).await?;
    Ok(outside)
}

/// The name in a TLS client's first message (RFC 6066 section 3), and all that was read for it.
async fn server_name(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<(String, Vec<u8>)> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
    let (mut acceptor, mut all, mut chunk) = (Acceptor::default(), Vec::new(), [0; 4096]);
    while all.len() < MAX_HELLO {
        let count = stream.read(&mut chunk).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        all.extend_from_slice(&chunk[..count]);
        let mut rest = &chunk[..count];
        while !rest.is_empty() && acceptor.read_tls(&mut rest)? > 0 {
            if let Some(accepted) = acceptor.accept().map_err(|_| invalid("no TLS"))? {
                let name = accepted.client_hello().server_name().map(str::to_owned);
                return Ok((name.ok_or_else(|| invalid("no server name"))?, all));
            }
        }
    }
    Err(invalid("no end of the TLS client's first message"))
}

/// Passes bytes and ends on, in both directions.
pub(super) async fn join(one: TcpStream, mut other: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    one.set_nodelay(true)?;
    let mut one = one;
    copy_bidirectional_with_sizes(&mut one, &mut other, BUFFER, BUFFER).await.map(drop)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn hello(name: &'static str) -> Vec<u8> {
        let roots = rustls::RootCertStore::empty();
        let config = rustls::ClientConfig::builder_with_provider(posthaste_endpoint::tls::crypto_provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = name.try_into().unwrap();
        let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    #[tokio::test]
    async fn the_name_is_found_however_the_message_is_cut_and_nothing_is_lost() {
        let mut sent = hello("fonts.test");
        sent.extend_from_slice(b"more");
        let (near, mut far) = tokio::io::duplex(1);
        let (mut near, copy) = (near, sent.clone());
        let writer = tokio::spawn(async move { far.write_all(&copy).await });
        let (name, read) = server_name(&mut near).await.unwrap();
        assert_eq!(name, "fonts.test");
        assert!(sent.starts_with(&read) && read.len() <= sent.len());
        drop(near);
        let _ = writer.await;
    }

    #[tokio::test]
    async fn what_is_not_tls_or_names_nobody_is_refused() {
        for wrong in [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), hello("192.0.2.1"), Vec::new()] {
            assert!(server_name(&mut wrong.as_slice()).await.is_err());
        }
    }
}
